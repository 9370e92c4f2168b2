"""The host's side of a sandbox: asks ``init.py`` inside, and turns answers into results."""

import codecs
import functools
import inspect
import marshal
import os
import struct
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Protocol, Self

import msgspec

from rtmc.agent.sandbox import init
from rtmc.agent.sandbox.base import Limits, Result, Spot
from rtmc.errors import SandboxError, WorkspaceError

__all__ = ["BOOT_CODE", "BOOT_TEXT", "PATIENCE", "Channel", "Hosted", "greet", "program", "receive"]

PATIENCE = 60.0
"""Seconds beyond a command's own in which an answer must come, also on a busy machine."""

_BOOT = (
    "import marshal, os\ndef get(size):\n data = b''\n while len(data) < size:\n"
    "  more = os.read(0, size - len(data)) or os._exit(1)\n  data += more\n return data\n"
    "space = {'__name__': 'inside'}\nexec(%s, space)\nspace['main']()"
)
BOOT_TEXT = _BOOT % "get(int.from_bytes(get(4), 'big'))"
"""What an interpreter of any version gets as ``-c`` to read and run a ``program``."""
BOOT_CODE = _BOOT % "marshal.loads(get(int.from_bytes(get(4), 'big')))"
"""The same where the interpreter is our own, which saves it the compiling."""


class Channel(Protocol):
    """A stream to the process inside; a ``socket.socket`` is one."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""
        ...

    def recv(self, size: int, /) -> bytes:
        """Receive some bytes, none at the end."""
        ...

    def settimeout(self, seconds: float | None, /) -> None:
        """Limit each of the other two; past it they raise TimeoutError."""
        ...


@functools.cache
def program(module: ModuleType, compiled: bool) -> bytes:
    """Write a module whose ``main`` an interpreter with one of the boots shall run.

    Args:
        module: which needs nothing of rtmc.
        compiled: the interpreter is our own, with ``BOOT_CODE``.
    """
    text = inspect.getsource(module).encode()
    name = module.__name__.rpartition(".")[2]
    data = marshal.dumps(compile(text, name, "exec")) if compiled else text
    return struct.pack(">I", len(data)) + data


def greet(
    channel: Channel,
    limits: Limits,
    workspace: str,
    env: Mapping[str, str],
    *,
    compiled: bool,
    bash: str = "bash",
    kernel_processes: int | None = None,
    count_files: bool = False,
) -> None:
    """Send the process inside its program; ``receive`` gets its hello.

    Args:
        channel: to an interpreter that runs one of the boots.
        limits: as the sandbox promises them.
        workspace: its absolute path inside.
        env: variables besides those that the interpreter has.
        compiled: it is our own interpreter, with ``BOOT_CODE``.
        bash: the shell.
        kernel_processes: what the kernel shall hold, where that counts this sandbox alone.
        count_files: the workspace and /tmp are file systems of their own.
    """
    held = msgspec.structs.asdict(limits)
    held |= {"kernel_processes": kernel_processes, "files": limits.files if count_files else 0}
    config = {"limits": held, "env": dict(env), "workspace": workspace, "bash": bash}
    channel.settimeout(PATIENCE)
    channel.sendall(program(init, compiled))
    send(channel, repr(config).encode())


class Hosted:
    """A sandbox whose first process is ``init.py``."""

    python: tuple[str, ...] = ("python", "-I")

    def __init__(
        self,
        channel: Channel,
        limits: Limits,
        workspace: str,
        notes: Sequence[str],
        end: Callable[[], str],
    ) -> None:
        """Take over a channel on which the process inside has said hello.

        Args:
            channel: to the process inside.
            limits: as promised.
            workspace: its path inside.
            notes: how the limits hold.
            end: ends everything and gives what the sandbox had to say; called at most once, also
                when nobody holds the sandbox any more, or Python ends.
        """
        self._channel, self._limits = channel, limits
        self.workspace, self.notes = workspace, tuple(notes)
        self._end = weakref.finalize(self, _unless_forked, os.getpid(), end)

    def run(self, command: str, timeout: float | None = None) -> Result:
        """Run a command in the shell."""
        if "\0" in command:
            command = "echo '[not run: the command holds a NUL, which no shell reads]'; (exit 2)"
        return self._result(timeout, "run", command.encode(errors="replace"))

    def exec(self, argv: Sequence[str], stdin: bytes = b"", timeout: float | None = None) -> Result:
        """Run a program outside the shell."""
        keep = b"%d" % self._limits.output
        return self._result(timeout, "exec", keep, stdin, *(word.encode() for word in argv))

    def read(self, path: str) -> bytes:
        """Give the bytes of a file."""
        return self._file("read", path)[0]

    def write(self, path: str, data: bytes) -> None:
        """Set the bytes of a file."""
        self._file("write", path, data)

    def look(self, path: str) -> Spot:
        """Tell what is at a path."""
        kind, size, real = self._file("find", path)
        return Spot(real.decode(errors="surrogateescape"), kind.decode(), int(size))

    def put(self, files: Mapping[str, bytes] | bytes) -> None:
        """Add files to the workspace."""
        if isinstance(files, bytes):
            self._tar("cannot put the files", files, "-x", "--no-same-owner", "-f", "-")
            return
        parts = [part for path, data in files.items() for part in (_name(path), data)]
        try:
            self._ask(self._limits.seconds, b"put", *parts)
        except WorkspaceError as error:
            raise WorkspaceError(f"cannot put the files: {error}") from error

    def take(self) -> bytes:
        """Give the workspace as a tar."""
        return self._tar("cannot take the workspace", b"", "-c", "-S", "-f", "-", ".")

    def state(self) -> str:
        """Hash the workspace."""
        return self._ask(self._limits.seconds, b"state")[0].decode()

    def close(self) -> None:
        """End everything in the sandbox."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- asking ------------------------------------------------------------------------------

    def _ask(self, seconds: float, *parts: bytes) -> list[bytes]:
        """Ask one thing and wait for the answer.

        Raises:
            SandboxError: there is none; the sandbox is closed.
            WorkspaceError: the answer is no.
        """
        if not self._end.alive:
            raise SandboxError("the sandbox is closed; open a new one")
        try:
            self._channel.settimeout(seconds + PATIENCE)
            send(self._channel, *parts)
            word, *answer = receive(self._channel)
        except (OSError, EOFError) as error:
            silent = isinstance(error, TimeoutError)
            said = self._end() or ("it did not answer" if silent else "its first process is gone")
            raise SandboxError(f"the sandbox has ended ({said}); open a new one") from error
        except BaseException:
            self.close()  # an answer nobody waits for would be taken for the next one
            raise
        if word == b"no":
            raise WorkspaceError(answer[0].decode(errors="replace"))
        return answer

    def _file(self, what: str, path: str, *parts: bytes) -> list[bytes]:
        try:
            return self._ask(self._limits.seconds, what.encode(), _name(path), *parts)
        except WorkspaceError as error:
            raise WorkspaceError(f"cannot {what} {path}: {error}") from error

    def _tar(self, failed: str, stdin: bytes, *options: str) -> bytes:
        argv = ("tar", "-C", self.workspace, *options)
        keep = 16 * self._limits.disk  # all of it, and the frames around many small files
        seconds = self._limits.seconds
        answer = self._ask(
            seconds, b"exec", b"%f" % seconds, b"%d" % keep, stdin, *(a.encode() for a in argv)
        )
        head, tail, total, code = answer[:4]
        if code != b"0" or int(total) != len(head) + len(tail):
            reason = (head + tail)[-500:].decode(errors="replace").strip()
            raise WorkspaceError(f"{failed}: {reason or 'tar was stopped'}")
        return head + tail

    def _result(self, timeout: float | None, what: str, *parts: bytes) -> Result:
        seconds = self._limits.seconds if timeout is None else timeout
        start = time.perf_counter()
        answer = self._ask(seconds, what.encode(), b"%f" % seconds, *parts)
        duration = time.perf_counter() - start
        head, tail, total, code, over, news, shell, cwd = answer
        cwd = cwd.decode(errors="replace")
        notes = _notes(over.decode(), news.decode(), shell, cwd, seconds)
        return Result(
            output=_shown(head, tail, int(total)) + "".join(f"[{note}]\n" for note in notes),
            exit_code=int(code) if code else None,
            timed_out=over == b"time",
            died=shell != b"same",
            cwd=cwd,
            duration=duration,
        )


def _name(path: str) -> bytes:
    if "\0" in path:
        raise WorkspaceError("a path cannot hold a NUL")
    return path.encode(errors="surrogateescape")


def _unless_forked(owner: int, end: Callable[[], str]) -> str:
    """End a sandbox, but not the one of the process that this one was forked from."""
    return end() if os.getpid() == owner else ""


def _shown(head: bytes, tail: bytes, total: int) -> str:
    """Join what was kept, and say how much was left out between."""
    left_out = total - len(head) - len(tail)
    if not left_out:
        return _ended((head + tail).decode(errors="replace"))
    # A character may be cut in two: show neither half.
    first = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    last = tail[:3].lstrip(bytes(range(0x80, 0xC0))) + tail[3:]
    return (
        f"{_ended(first)}[… {left_out} bytes left out …]\n{_ended(last.decode(errors='replace'))}"
    )


def _ended(text: str) -> str:
    """End the last line."""
    return f"{text}\n" if text and not text.endswith("\n") else text


def _notes(over: str, news: str, shell: bytes, cwd: str, seconds: float) -> Iterator[str]:
    """Say what the sandbox did."""
    if over == "time":
        yield f"killed after {seconds:g} s, with everything it had started"
    elif over:
        yield f"killed, with everything it had started: {over}"
    if news:
        yield news
    if shell == b"anew":
        yield f"the shell began anew in {cwd}: exported variables are kept, the others are gone"
    elif shell == b"new":
        yield f"the shell had ended; a new one begins in {cwd}, with the variables of the first"


def send(channel: Channel, *parts: bytes) -> None:
    """Write a message."""
    body = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    channel.sendall(struct.pack(">I", len(body)) + body)


def receive(channel: Channel) -> list[bytes]:
    """Read a message.

    Raises:
        EOFError: the process inside is gone.
    """
    body = _read_exactly(channel, struct.unpack(">I", _read_exactly(channel, 4))[0])
    parts, at = [], 0
    while at < len(body):
        (size,) = struct.unpack_from(">I", body, at)
        parts.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    return parts


def _read_exactly(channel: Channel, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = channel.recv(min(size - len(data), 1 << 20))
        if not more:
            raise EOFError
        data += more
    return bytes(data)
