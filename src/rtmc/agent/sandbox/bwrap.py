"""The default sandbox: bubblewrap, on this machine, for root and ordinary users alike.

An ordinary user needs one bwrap, in a user namespace of its own. Root gets another one in front:
it makes the view with root's eyes (a Python below /root, say) and becomes a user that owns
nothing; from there on all is as for an ordinary user. So the kernel's limit of processes holds,
which it does not for root, and what got out would be nobody.

Inside there is /usr and the Python that runs this, to read; /workspace, /tmp and /dev/shm, in
memory and of limited size, to write; a loopback and no other network; no capability, no further
user namespace, and the system calls that ``seccomp`` leaves.
"""

import contextlib
import functools
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtmc.agent.sandbox.base import ENVIRONMENT, OF_OUR_PYTHON, Limits
from rtmc.agent.sandbox.hosted import BOOT_CODE, Hosted, greet, receive
from rtmc.agent.sandbox.seccomp import seccomp_filter
from rtmc.errors import SandboxError

__all__ = ["BwrapSandbox", "environment"]

WORKSPACE = "/workspace"
OLDEST = (0, 8)
"""bubblewrap since then limits a tmpfs and forbids further user namespaces."""

NOBODY = "65533"
"""Whom root becomes: a user id that Debian keeps free, so that it owns nothing."""

_ETC = Path(__file__).with_name("etc")


class BwrapSandbox(Hosted):
    """A sandbox of namespaces."""

    def __init__(
        self,
        limits: Limits = Limits(),
        *,
        env: Mapping[str, str] | None = None,
        readable: Sequence[str] = (),
    ) -> None:
        """Start it.

        Args:
            limits: what it may use.
            env: variables besides those of ``environment``.
            readable: more paths of this machine that can be read inside, at the same place, as far
                as any user may read them.

        Raises:
            SandboxError: bubblewrap is missing or too old, or the kernel does not allow it.
        """
        as_root = is_root()
        kernel_processes = limits.processes + 1 if counts_by_namespace() else None
        boot = [os.path.realpath(sys.executable), "-I", "-S", "-c", BOOT_CODE]
        process, ours = start(limits, binds_of(readable), boot)
        first: list[int] = []  # a handle of the first process inside, once it is known
        end = functools.partial(end_of, process, ours, first)
        try:
            greet(
                ours,
                limits,
                WORKSPACE,
                environment(env),
                compiled=True,
                bash="/bin/bash",
                kernel_processes=kernel_processes,
                count_files=True,
            )
            first.append(hello(ours))
        except (OSError, EOFError) as error:
            raise refused(end(), as_root) from error
        super().__init__(ours, limits, WORKSPACE, notes_of(limits), end)


def start(
    limits: Limits, binds: Mapping[str, str], program: Sequence[str], *, nests: bool = False
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start bubblewrap; give the process, and a channel to the standard input of what runs inside.

    Args:
        limits: for the sizes of what can be written.
        binds: path inside → path of this machine.
        program: the first process.
        nests: it may make user namespaces itself.

    Raises:
        SandboxError: bubblewrap is missing or too old.
    """
    bwrap = find_bwrap()
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # before anybody can answer
    seccomp = _pipe_of(seccomp_filter())
    try:
        process = subprocess.Popen(
            command(bwrap, limits, binds, is_root(), seccomp, program, nests=nests),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.PIPE,
            pass_fds=[seccomp] if seccomp is not None else [],
            start_new_session=True,  # Ctrl-C is for the host, which then closes its sandboxes
            env={},
            cwd="/",
        )
    finally:
        theirs.close()
        if seccomp is not None:
            os.close(seccomp)
    return process, ours


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Make the environment inside: nothing of ours but where its programs are."""
    places = [f"{sys.prefix}/bin", f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": ":".join(dict.fromkeys(places)),
        "HOME": "/tmp",
        "USER": "agent",
        **ENVIRONMENT,
        **OF_OUR_PYTHON,
        **(more or {}),
    }


def command(
    bwrap: str,
    limits: Limits,
    binds: Mapping[str, str],
    as_root: bool,
    seccomp: int | None,
    program: Sequence[str],
    *,
    nests: bool = False,
) -> list[str]:
    """Write the command that starts the first process inside.

    Args:
        bwrap: the program.
        limits: for the sizes of what can be written.
        binds: path inside → path of this machine.
        as_root: put root's own bwrap in front.
        seccomp: a descriptor with the filter.
        program: the first process.
        nests: it may make user namespaces itself.
    """
    front = []
    if as_root:
        front = [
            bwrap, "--dir", "/tmp", *_view(binds), "--dev-bind", "/dev", "/dev",
            "--bind", "/proc", "/proc", "--", "setpriv", "--reuid", NOBODY, "--regid", NOBODY,
            "--clear-groups", "--",
        ]  # fmt: skip
        binds = {inside: inside for inside in binds}
    size = ["--perms", "1777", "--size", str(limits.disk), "--tmpfs"]
    return [
        *front, bwrap,
        "--unshare-all", "--unshare-user", *([] if nests else ["--disable-userns"]),
        "--uid", "1000", "--gid", "1000",
        "--hostname", "sandbox", "--new-session", "--cap-drop", "ALL", "--clearenv", "--as-pid-1",
        *(["--seccomp", str(seccomp)] if seccomp is not None else []),
        "--proc", "/proc", "--dev", "/dev", *size, "/dev/shm", "--remount-ro", "/dev",
        *size, "/tmp", *size, WORKSPACE, *_view(binds), "--remount-ro", "/", "--chdir", WORKSPACE,
        "--", *program,
    ]  # fmt: skip


def _view(binds: Mapping[str, str]) -> list[str]:
    """Write bwrap's options for what can be read."""
    options = []
    made = {"/"}
    for inside, ours in binds.items():
        for folder in reversed(Path(inside).parents):
            if str(folder) not in made:  # bwrap would copy the mode, which may shut others out
                made.add(str(folder))
                options += ["--dir", str(folder)]
        if os.path.islink(ours) and inside.count("/") == 1:  # /bin → usr/bin
            options += ["--symlink", os.readlink(ours), inside]
        else:
            options += ["--ro-bind", ours, inside]
        made.add(inside)
    return options


def binds_of(readable: Sequence[str]) -> dict[str, str]:
    """List what can be read inside: path there → path here."""
    system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"]
    needed = ["/etc/alternatives", "/etc/ld.so.cache"]
    binds = {path: path for path in (*system, *needed) if os.path.lexists(path)}
    binds |= {f"/etc/{name}": str(_ETC / name) for name in ("passwd", "group", "hosts")}
    own = [sys.prefix, sys.base_prefix, sys.executable]
    for path in (*own, *map(os.path.realpath, own), *readable):
        path = os.path.abspath(path)
        if not any(path == above or path.startswith(f"{above}/") for above in binds):
            binds[path] = path
    return binds


def is_root() -> bool:
    """Tell whether this is the machine's own root, whom the kernel spares its limits."""
    if os.geteuid():
        return False
    return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]


def counts_by_namespace() -> bool:
    """Tell whether the kernel counts processes by user namespace (since Linux 5.14)."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return found is not None and (int(found[1]), int(found[2])) >= (5, 14)


def find_bwrap() -> str:
    """Find bubblewrap.

    Raises:
        SandboxError: it is missing or too old, or root lacks setpriv.
    """
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxError(
            "bubblewrap is not installed, and the sandbox 'bwrap' needs it: "
            "apt-get install bubblewrap (Fedora: dnf install bubblewrap)"
        )
    if is_root() and shutil.which("setpriv") is None:
        raise SandboxError(
            "setpriv is not installed, and the sandbox 'bwrap' needs it when root runs it: "
            "apt-get install util-linux"
        )
    check_version(_version(path))
    return path


@functools.cache
def _version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout


def check_version(text: str) -> None:
    """Refuse a bubblewrap that is too old.

    Raises:
        SandboxError: it is.
    """
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise SandboxError(
            f"{text.strip() or 'this bubblewrap'} is too old, and the sandbox 'bwrap' needs "
            f"{'.'.join(map(str, OLDEST))} or newer: update the system's package bubblewrap"
        )


def _pipe_of(data: bytes | None) -> int | None:
    """Give a descriptor to read some data from."""
    if data is None:
        return None
    reads, writes = os.pipe()
    os.write(writes, data)
    os.close(writes)
    return reads


def hello(channel: socket.socket) -> int:
    """Wait for the hello of the process inside, and give a handle of that process.

    The kernel tells who wrote to a socket, by the process id that it has here.

    Raises:
        OSError, EOFError: it did not come, or something else was said.
    """
    _, who, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(12), socket.MSG_PEEK)
    if not who:
        raise EOFError
    process = None
    with contextlib.suppress(ProcessLookupError):  # it may have said why it ended
        process = os.pidfd_open(int.from_bytes(who[0][2][:4], sys.byteorder))
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    said = receive(channel)
    if process is None or said != [b"hello"]:
        if process is not None:
            os.close(process)
        raise OSError(b" ".join(said).decode(errors="replace"))
    return process


def end_of(process: subprocess.Popen[bytes], channel: socket.socket, first: list[int]) -> str:
    """Kill the first process, and with it all; give what was said on stderr."""
    channel.close()
    if not first:
        process.kill()
    kill_all(first)
    _, said = process.communicate()
    return said.decode(errors="replace").strip()[-500:]


def kill_all(handles: list[int]) -> None:
    """Kill processes, and give up their handles."""
    for handle in handles:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)


def refused(said: str, as_root: bool) -> SandboxError:
    """Say why bubblewrap did not start."""
    if re.search(r"namespace|uid map|setting up|Operation not permitted|mount proc", said):
        who = f"user {NOBODY}, whom root becomes for it," if as_root else "this user"
        return SandboxError(
            f"bubblewrap could not start, {who} may not use user namespaces here ({said}); allow "
            "them (sysctl kernel.unprivileged_userns_clone=1 and user.max_user_namespaces=10000; "
            "Ubuntu: an AppArmor profile for bwrap; in Docker: --security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined --security-opt systempaths=unconfined), or use "
            "the sandbox 'docker'"
        )
    if "execvp" in said and as_root:
        return SandboxError(
            f"the Python that runs this cannot be read by user {NOBODY}, whom root becomes for the "
            f"sandbox ({said}); allow it: chmod -R a+rX {sys.prefix} {sys.base_prefix}"
        )
    return SandboxError(f"bubblewrap could not start: {said or 'it said nothing'}")


def notes_of(limits: Limits) -> list[str]:
    """Say how the limits hold."""
    holder = "the kernel" if counts_by_namespace() else "a look ten times a second"
    filtered = seccomp_filter() is not None
    return [
        f"memory: the kernel holds each process to {limits.memory >> 20} MiB of its own; all "
        "together are looked at ten times a second, and killed if above",
        f"processes: {holder} holds {limits.processes}",
        f"disk: the kernel holds {limits.disk >> 20} MiB in each of /workspace, /tmp and /dev/shm",
        f"files: a look ten times a second holds {limits.files}",
        "file_size, cpu_seconds: the kernel holds them for each process",
        "kernel memory (sockets, pipes, page tables) is counted nowhere: run rtmc in a memory "
        "control group to bound it",
        *([] if filtered else [f"system calls are not filtered on {platform.machine()}"]),
    ]
