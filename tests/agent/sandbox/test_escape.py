"""Attempts to get out of bubblewrap's sandbox.

Each aims only at what the test itself planted on this machine: a listener on loopback, a file with
a marker, a variable, a process. Where the outcome could be the machine's own doing, the same
attempt is made from outside first, and succeeds.
"""

import io
import os
import socket
import subprocess
import sys
import tarfile
import textwrap
import time
from pathlib import Path

import pytest
from outside import alive, gone

from rtmc.agent.sandbox import Sandbox, open_sandbox
from rtmc.errors import SandboxError, WorkspaceError

MARK = "rtmc-marker-6f1d"


def python(sandbox: Sandbox, code: str, timeout: float = 30):
    """Run Python inside, as the agent would."""
    return sandbox.run(f"python3 - <<'END'\n{textwrap.dedent(code)}\nEND", timeout)


def outside(code: str) -> str:
    """Run the same Python here."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder of this machine with a marked file."""
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "secret").write_text(MARK)
    return folder


# --- network -------------------------------------------------------------------------------------


@pytest.fixture
def listeners(tmp_path: Path):
    """Listen on loopback: TCP, UDP, and Unix sockets with a path and without."""
    addresses = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "path": (socket.AF_UNIX, socket.SOCK_STREAM, str(tmp_path / "socket")),
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{MARK}-{os.getpid()}"),
    }
    opened = {}
    for name, (family, kind, address) in addresses.items():
        listener = socket.socket(family, kind)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.settimeout(0.2)
        opened[name] = listener

    def came(name: str) -> bool:
        """Tell whether somebody came, and forget it."""
        try:
            if name == "udp":
                opened[name].recvfrom(10)
            else:
                opened[name].accept()[0].close()
        except TimeoutError:
            return False
        return True

    yield {name: one.getsockname() for name, one in opened.items()}, came
    for listener in opened.values():
        listener.close()


@pytest.mark.parametrize("name", ["tcp", "udp", "path", "abstract"])
def test_network(bwrap, listeners, name):
    addresses, came = listeners
    code = f"""
        import socket
        s = socket.socket({"socket.AF_INET" if name in ("tcp", "udp") else "socket.AF_UNIX"},
                          {"socket.SOCK_DGRAM" if name == "udp" else "socket.SOCK_STREAM"})
        s.settimeout(5)
        s.connect({addresses[name]!r})
        s.send(b"hello")
        print("sent")
    """
    assert outside(code) == "sent\n"
    assert came(name)
    result = python(bwrap(), code)
    assert not came(name)
    # A datagram to a loopback where nobody listens goes nowhere.
    assert name == "udp" or (result.exit_code == 1 and "Error" in result.output)


def test_loopback_inside_is_its_own(bwrap):
    """Tests with a local server work."""
    code = """
        import socket, threading
        server = socket.create_server(("localhost", 0))
        threading.Thread(target=lambda: server.accept()[0].send(b"served")).start()
        print(socket.create_connection(server.getsockname()).recv(10))
    """
    assert python(bwrap(), code).output == "b'served'\n"


@pytest.mark.parametrize("family", ["AF_VSOCK", "AF_PACKET", "AF_ALG"])
def test_sockets_that_no_network_namespace_contains(bwrap, family):
    code = f"import socket; socket.socket(socket.{family}, socket.SOCK_STREAM)"
    result = python(bwrap(), code)
    assert result.exit_code == 1
    assert "Address family not supported" in result.output


# --- files ---------------------------------------------------------------------------------------


def test_reading_outside(bwrap, planted):
    secret = planted / "secret"
    sandbox = bwrap()
    sandbox.run(f"ln -s {secret} link; ln -s {planted} folder")
    here = ("/proc/1/root", "/proc/self/root", "../../../..", "/oldroot", "/newroot", "")
    for path in ("link", "folder/secret", *(f"{place}{secret}" for place in here)):
        result = sandbox.run(f"cat {path}")
        assert result.exit_code == 1
        assert MARK not in result.output
    for path in (str(secret), "link", "folder/secret", f"../../..{secret}"):
        with pytest.raises(WorkspaceError, match="leads out of the workspace"):
            sandbox.read(path)


def test_writing_outside(bwrap, planted):
    secret = planted / "secret"
    sandbox = bwrap()
    sandbox.run(f"ln -s {secret} link; ln -s {planted} folder")
    for path in (secret, planted / "new", "link", "folder/new", f"/proc/1/root{secret}"):
        assert sandbox.run(f"echo changed > {path}").exit_code == 1
    sandbox.run(f"mkdir -p {planted}; echo changed > {secret}")  # in a /tmp of its own
    for path in (str(secret), "link", "folder/new"):
        with pytest.raises(WorkspaceError, match="leads out of the workspace"):
            sandbox.write(path, b"changed")
    assert secret.read_text() == MARK
    assert os.listdir(planted) == ["secret"]


def test_a_tar_with_links_and_dots_stays_inside(bwrap, planted, tmp_path):
    """``put`` unpacks inside: what the links in a tar reach is nothing of this machine."""
    with io.BytesIO() as out:
        with tarfile.open(fileobj=out, mode="w") as tar:
            link = tarfile.TarInfo("out")
            link.type, link.linkname = tarfile.SYMTYPE, str(planted)
            tar.addfile(link)
            for name in ("out/new", f"..{planted}/new", f"{planted}/new"):
                entry = tarfile.TarInfo(name)
                entry.size = 1
                tar.addfile(entry, io.BytesIO(b"x"))
        data = out.getvalue()
    sandbox = bwrap()
    with pytest.raises(WorkspaceError, match="cannot put the files"):
        sandbox.put(data)
    assert os.listdir(planted) == ["secret"]


def test_what_may_be_read_cannot_be_changed(bwrap, planted):
    sandbox = bwrap(readable=[str(planted)])
    secret = planted / "secret"
    assert sandbox.run(f"cat {secret}").output == f"{MARK}\n"
    for attempt in (
        f"echo changed > {secret}",
        f"rm -f {secret}",
        f"mv {planted} /workspace/",
        f"chmod 777 {secret}",
        f"ln {secret} /workspace/hard",
        f"mount -o remount,rw {planted}",
        f"mount -o remount,rw,bind {planted}",
        f"umount {planted}",
        f"python3 -c 'import os; os.open(\"{secret}\", os.O_RDWR)'",
        f"exec 9<{secret}; echo changed > /proc/self/fd/9",
    ):
        result = sandbox.run(attempt)
        assert result.exit_code, attempt
    assert secret.read_text() == MARK
    assert os.listdir(planted) == ["secret"]


@pytest.mark.parametrize(
    "attempt",
    [
        "mount -t tmpfs none /tmp",
        "mount --bind /usr /workspace",
        "unshare --user --map-root-user --mount true",
        "unshare --mount true",
        "unshare --user true",
        "bwrap --ro-bind / / true",
        "chroot / true",
        "nsenter --target 1 --mount true",
        "mknod disk b 254 0",
    ],
)
def test_mounts_namespaces_and_devices(bwrap, attempt):
    result = bwrap().run(attempt)
    assert result.exit_code
    assert result.output


def test_nothing_else_is_there(bwrap, planted):
    """Everything that can be written is a file system of this sandbox alone."""
    sandbox = bwrap()
    assert set(sandbox.run("ls /").output.split()) <= {
        "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr",
        "run", "workspace",
    } | {Path(path).parts[1] for path in (sys.prefix, sys.base_prefix)}  # fmt: skip
    allowed = {"alternatives", "group", "hosts", "ld.so.cache", "passwd"}
    assert set(sandbox.run("ls /etc").output.split()) <= allowed
    writable = {
        line.split()[4]
        for line in sandbox.run("cat /proc/self/mountinfo").output.splitlines()
        if "rw" in line.split()[5].split(",") and " /dev/" not in line.partition(" - ")[0]
    }
    assert writable == {"/workspace", "/tmp", "/proc"}


# --- environment and the first process -----------------------------------------------------------


def test_environment(bwrap, monkeypatch):
    monkeypatch.setenv("RTMC_TEST_SECRET", MARK)
    sandbox = bwrap(env={"GIVEN": "yes"})
    assert MARK in outside("import os; print(os.environ)")
    assert sandbox.run("echo $GIVEN").output == "yes\n"
    found = sandbox.run("env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'").output
    assert "GIVEN=yes" in found
    assert MARK not in found
    assert MARK not in sandbox.exec(["env"]).output


def test_the_first_process_cannot_be_read_traced_or_stopped(bwrap):
    sandbox = bwrap()
    assert "marshal" in sandbox.run("cat /proc/1/cmdline").output  # it is ours, and no other
    for file in ("environ", "maps", "mem", "fd/0", "root/etc", "cwd/."):
        assert sandbox.run(f"cat /proc/1/{file}").exit_code == 1
    code = """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for request in (16, 0x4206):  # attach, seize
            print(libc.ptrace(request, 1, 0, 0), os.strerror(ctypes.get_errno()))
    """
    assert python(sandbox, code).output == "-1 Operation not permitted\n" * 2
    sandbox.run("kill -9 1; kill -STOP 1; kill -TERM 1; kill -CHLD 1; kill -HUP 1; kill -PIPE 1")
    assert sandbox.run("echo on").output == "on\n"


def test_no_descriptor_of_ours_is_inside(bwrap):
    listed = bwrap().exec(["ls", "-l", "/proc/self/fd"]).output.splitlines()[1:]
    assert {line.split()[8] for line in listed} == {"0", "1", "2", "3"}  # 3 is what ls reads
    assert not any("socket" in line for line in listed)


def test_no_privilege(bwrap):
    sandbox = bwrap()
    status = dict(
        line.split(":\t") for line in sandbox.run("cat /proc/self/status").output.splitlines()[:-1]
        if ":\t" in line
    )  # fmt: skip
    assert {status[f"Cap{name}"].strip("0") for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {""}
    assert status["NoNewPrivs"] == "1"
    assert status["Uid"].split() == ["1000"] * 4
    assert sandbox.run("id -un").output == "agent\n"
    if os.uname().machine in ("x86_64", "aarch64"):
        assert status["Seccomp"] == "2"


def test_memory_of_no_process_is_refused(bwrap):
    code = """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        calls = {"memfd": lambda: libc.memfd_create(b"x", 0),
                 "shm": lambda: libc.shmget(0, 4096, 0o1600),
                 "queue": lambda: libc.msgget(0, 0o1600)}
        for name, call in calls.items():
            print(name, call(), os.strerror(ctypes.get_errno()))
    """
    printed = python(bwrap(), code).output
    assert [line.split(maxsplit=1)[1] for line in printed.splitlines()] == [
        "-1 Function not implemented"
    ] * 3


# --- processes and signals -----------------------------------------------------------------------


def test_signals_reach_nothing_outside(bwrap):
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as mine:
        sandbox = bwrap()
        result = sandbox.run(f"kill -9 {mine.pid}; kill -9 -{mine.pid}")
        assert result.output.count("No such process") == 2
        assert sandbox.run("ps -e -o args | grep -c '[s]leep 600'").output == "0\n"
        assert mine.poll() is None
        mine.kill()


DAEMON = """
    import os, signal
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    import signal
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.execvp("sleep", ["sleep", "600.{mark}"])
"""


@pytest.mark.parametrize("how", ["nohup", "setsid", "daemon"])
@pytest.mark.parametrize("end", ["timeout", "close"])
def test_background_processes_do_not_survive(bwrap, how, end):
    mark = f"{os.getpid()}{int(time.time() * 1e6)}"
    sandbox = bwrap()
    if how == "daemon":
        python(sandbox, DAEMON.format(mark=mark))
    else:
        sandbox.run(f"{how} sleep 600.{mark} >/dev/null 2>&1 & disown")
    until = time.monotonic() + 20
    while not alive(f"600.{mark}") and time.monotonic() < until:
        time.sleep(0.01)
    assert alive(f"600.{mark}")
    if end == "timeout":
        assert sandbox.run("sleep 1000", timeout=0.3).timed_out
        assert sandbox.run("echo on").output == "on\n"
    else:
        sandbox.close()
    assert gone(f"600.{mark}")


def test_nothing_survives_a_host_that_is_killed(bwrap_works):
    mark = f"{os.getpid()}{int(time.time() * 1e6)}"
    program = textwrap.dedent(f"""
        import os, signal
        from rtmc.agent.sandbox import open_sandbox
        sandbox = open_sandbox()
        sandbox.run("setsid sleep 600.{mark} & disown")
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert gone(f"600.{mark}")


def test_a_sandbox_that_is_forgotten_ends(bwrap_works):
    mark = f"{os.getpid()}{int(time.time() * 1e6)}"
    sandbox = open_sandbox()
    sandbox.run(f"sleep 600.{mark} &")
    del sandbox
    assert gone(f"600.{mark}")


class Interrupted:
    """A channel on which Ctrl-C comes while the host waits for an answer."""

    def __init__(self, channel: socket.socket) -> None:
        self.sendall, self.settimeout = channel.sendall, channel.settimeout

    def recv(self, size: int) -> bytes:
        raise KeyboardInterrupt


def test_a_host_interrupted_while_it_waits_closes_the_sandbox(bwrap):
    """An answer that nobody waits for must not be taken for the next one."""
    mark = f"{os.getpid()}{int(time.time() * 1e6)}"
    sandbox = bwrap()
    sandbox._channel = Interrupted(sandbox._channel)
    with pytest.raises(KeyboardInterrupt):
        sandbox.run(f"sleep 600.{mark}")
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("echo next")
    assert gone(f"600.{mark}")
