"""The process from which warm sandboxes are forked; runs inside bubblewrap, with pytest loaded.

Each byte that comes with a descriptor asks for one sandbox: a child takes namespaces of its own,
mounts what bubblewrap would have mounted, gives up all it could do, and becomes ``init.py`` on that
descriptor. It has one thing more: it listens for ``client.py``, and forks itself into a Python
in which pytest is loaded already.

The host sends this module as code, as it does ``init.py``.
"""

import _socket
import array
import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import inspect
import io
import marshal
import os
import pathlib
import resource
import runpy
import signal
import socket
import stat
import struct
import sys
import threading
import traceback

SAMPLE = """\
import pytest

def test_passes(tmp_path, capsys, monkeypatch):
    print(1)

def test_fails():
    assert [1] + [2] == {"a": 1}.get("b")

def test_raises():
    with pytest.raises(KeyError, match="b"):
        {}["b"]
    raise ValueError(1)
"""
TOOLS = "/run/rtmc"  # where the programs are that stand in front of others
WARM = os.fsencode(TOOLS + "/warm")
ADDRESS = b"\0rtmc-warm"  # abstract: it belongs to the network namespace
CLIENT = 255  # where the connection is, out of the way

CLONE = {"ns": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000,
         "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}  # fmt: skip
NOSUID, NODEV, NOEXEC, BIND, REC, PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
CAPBSET_DROP, SET_DUMPABLE = 24, 4
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
USER = 1000

libc = ctypes.CDLL(None, use_errno=True)


def load():
    """Load what a run of pytest loads: find out by one, in a child."""
    reads, writes = os.pipe()
    if not os.fork():
        os.chdir("/tmp")
        with open("test_sample.py", "w") as file:
            file.write(SAMPLE)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        import pytest

        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        pytest.main(["--durations=1", "test_sample.py"])
        os.write(writes, " ".join(sys.modules).encode())
        os._exit(0)
    os.close(writes)
    with open(reads) as names:
        for name in names.read().split():
            if name not in ("__main__", "test_sample"):
                importlib.import_module(name)
    importlib.import_module("pytest")  # which says so where it is missing
    # The same run shall print the same, "in 0.00s": what an agent reads decides what it does.
    vars(importlib.import_module("_pytest.timing"))["perf_counter"] = lambda: 0.0
    os.wait()
    begin_config()
    sys.path.remove("")
    gc.collect()
    gc.freeze()  # so that the collector does not touch, and so copy, what is shared


def begin_config():
    """Register pytest's own plugins, which takes a third of a small run, for the run to come.

    Only where this pytest makes its configuration as known, and a run leaves no plugin out.
    """
    config = importlib.import_module("_pytest.config")
    make = getattr(config, "get_config", None)
    if make is None or not set(inspect.signature(make).parameters) <= {"args", "plugins", "prog"}:
        return
    begun = [make()]

    def get_config(args=None, plugins=None, **options):
        if not begun or any(arg.startswith("-p") for arg in args or ()):
            return make(args, plugins, **options)
        found = begun.pop()
        found.invocation_params = config.Config.InvocationParams(
            args=args or (), plugins=plugins, dir=pathlib.Path.cwd()
        )
        if options.get("prog"):
            found._parser.prog = options["prog"]
        return found

    vars(config)["get_config"] = get_config


def main():
    """Fork a sandbox for each descriptor that comes."""
    kept = eval(message())
    load()
    control = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the children
    control.send(struct.pack(">II", 9, 5) + b"hello")  # as init.py says it
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            os._exit(0)
        if not os.fork():
            become_sandbox(fds[0], kept)
        os.close(fds[0])


def become_sandbox(channel, kept):
    """Take namespaces of its own, and be the first process in them.

    ``kept`` are the paths that can be read where this one mounts something of its own.
    """
    try:
        os.dup2(channel, 0)
        os.dup2(channel, 1)
        os.closerange(3, 1024)
        disk = int(message())
        isolate()
        if os.fork():
            os._exit(0)
        os.setsid()
        furnish(disk, kept)
        renounce()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        space: dict = {"__name__": "init"}
        exec(marshal.loads(message()), space)
        os.environ.clear()
        space["main"](listen)
    except BaseException as error:
        said = os.fsencode(str(error))
        os.write(1, struct.pack(">II", 4 + len(said), len(said)) + said)  # in place of a hello
    os._exit(1)


def message():
    """Read one message of the host: its length, and then it."""
    return read_exactly(int.from_bytes(read_exactly(4), "big"))


def read_exactly(size):
    """Read that many bytes of the host."""
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            os._exit(0)  # it has thought better of it
        data += more
    return data


def isolate():
    """Leave all namespaces of the others, and allow no further user namespace."""
    uid, gid = os.getuid(), os.getgid()
    call("unshare", sum(CLONE.values()))
    for name, text in (
        ("self/uid_map", f"{USER} {uid} 1"),
        ("self/setgroups", "deny"),
        ("self/gid_map", f"{USER} {gid} 1"),
        ("sys/user/max_user_namespaces", "0"),
    ):
        with open("/proc/" + name, "w") as file:
            file.write(text)


def furnish(disk, kept):
    """Mount what is its own, and start the loopback."""
    handles = {path: os.open(path, os.O_PATH) for path in kept}
    call("mount", None, b"/", None, REC | PRIVATE, None)
    call("mount", b"proc", b"/proc", b"proc", NOSUID | NODEV | NOEXEC, None)
    for path in (b"/workspace", b"/tmp", b"/dev/shm"):
        call("mount", b"tmpfs", path, b"tmpfs", NOSUID | NODEV, b"mode=1777,size=%d" % disk)
    for path, handle in handles.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            os.mkdir(path)
        else:
            open(path, "x").close()
        source = b"/proc/self/fd/%d" % handle
        call("mount", source, os.fsencode(path), None, BIND | REC, None)
        os.close(handle)
    options = b"newinstance,ptmxmode=0666,mode=620"
    call("mount", b"devpts", b"/dev/pts", b"devpts", NOSUID | NOEXEC, options)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    os.chdir("/workspace")


def renounce():
    """Give up every capability, for this process and all it will ever start."""
    number = 0
    while libc.prctl(CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    header, none = struct.pack("=Ii", 0x20080522, 0), bytes(24)
    call("capset", header, none)


def call(name, *arguments):
    """Call the C library; raise what it says."""
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


# --- the warm Python -----------------------------------------------------------------------


def listen(init):
    """Have a sandbox's first process fork itself for whoever asks."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(ADDRESS)
    listener.listen(64)
    listener.setblocking(False)
    nothing = os.open(os.devnull, os.O_RDWR)
    unlike_ours = {0: nothing, 1: nothing, 2: nothing}  # ours lead to the host

    def on_asked():
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return

        def on_end(code):
            with contextlib.suppress(OSError):  # nobody may wait for it any more
                connection.send(b"%d" % code)
            connection.close()

        init.on_end[init.fork(lambda: serve(connection), init.workspace, unlike_ours)] = on_end

    init.watch(listener.fileno(), on_asked)
    init.programs[WARM] = lambda argv: serve_host(argv, init.env)


def serve_host(argv, env):
    """Be the Python that the host asked for, which needs no client."""
    os.closerange(3, 1024)
    os.environ.update(env)
    os._exit(run([os.fsdecode(word) for word in argv]))


def serve(connection):
    """Be the Python that was asked for: its arguments, directory, variables, files and limits."""
    fds = array.array("i")
    size = int.from_bytes(connection.recv(4, _socket.MSG_WAITALL), "big")
    text, ancillary, _, _ = connection.recvmsg(1, _socket.CMSG_SPACE(3 * fds.itemsize))
    fds.frombytes(ancillary[0][2])
    if len(fds) != 3:
        os._exit(127)  # whoever asks so is no client.py
    text += connection.recv(size - 1, _socket.MSG_WAITALL)
    for theirs, ours in enumerate(fds):
        os.dup2(ours, theirs)
    client = fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, CLIENT)
    os.closerange(3, client)
    os.closerange(client + 1, 1024)
    # The end of the client is ours: the kernel sends SIGIO, which nobody handles.
    fcntl.fcntl(client, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(client, fcntl.F_SETFL, os.O_ASYNC)
    argv, cwd, env, umask, limits = eval(text)
    for kind, limit in limits:
        resource.setrlimit(kind, limit)
    os.umask(umask)
    os.chdir(cwd)
    os.environ.update(env)
    os._exit(run(argv))


def run(argv):
    """Run ``-c CODE …``, ``-m pytest …`` or ``pytest …`` as a new Python would; give its code."""
    libc.prctl(SET_DUMPABLE, 1, 0, 0, 0)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.stdin = io.TextIOWrapper(
        io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "surrogateescape"
    )
    sys.stdout = stream(1, "surrogateescape")
    sys.stderr = stream(2, "backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.path[:0] = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(":") if p]
    try:
        if argv[1:2] == ["-c"]:
            sys.argv = ["-c", *argv[3:]]
            exec(compile(argv[2], "<string>", "exec"), {"__name__": "__main__"})
            raise SystemExit(0)
        if argv[1:3] == ["-m", "pytest"]:
            sys.path.insert(0, os.getcwd())
            sys.argv = ["-m", *argv[3:]]
            runpy.run_module("pytest", run_name="__main__", alter_sys=True)
        config = importlib.import_module("_pytest.config")
        sys.argv = [argv[0].replace(TOOLS, os.path.dirname(sys.executable)), *argv[1:]]
        raise SystemExit(getattr(config, "_console_main", config.console_main)())
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # ty: ignore[missing-attribute]
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            file.flush()
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    os.write(2, os.fsencode(f"{code}\n"))
    return 1


def stream(fd, errors):
    """Open an unbuffered text stream, as PYTHONUNBUFFERED makes them."""
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, write_through=True)
