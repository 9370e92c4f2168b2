"""What every sandbox is: limits, the result of a command, and the interface."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, Self

import msgspec

from rtmc.errors import OptionError

__all__ = ["Limits", "Result", "Sandbox", "Spot"]

MIB = 1 << 20

ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "OMP_NUM_THREADS": "1",  # many sandboxes share the cores
    "PYTHONUNBUFFERED": "1",  # so that stdout and stderr come in their order
    # A .pyc is taken for fresh if size and second agree: an agent edits faster than that.
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Variables of every sandbox, besides those that say where things are."""

OF_OUR_PYTHON = {
    # What happens to be installed beside rtmc is no part of the agent's repository.
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
"""Variables of a sandbox in which the Python that runs this serves the agent."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox may use; how far each holds is in ``Sandbox.notes``.

    Attributes:
        memory: bytes of memory of all processes together, without files.
        processes: how many processes and threads may exist at once.
        disk: bytes of all files in the workspace; as many again in /tmp, and in /dev/shm.
        files: how many files may exist in workspace and /tmp together.
        file_size: bytes of one file.
        cpu_seconds: processor time of one process.
        seconds: wall time of a command that is given no other.
        output: bytes kept of what a command prints: the first and the last half of it.
    """

    memory: int = 1024 * MIB
    processes: int = 128
    disk: int = 256 * MIB
    files: int = 50_000
    file_size: int = 128 * MIB
    cpu_seconds: int = 600
    seconds: float = 60.0
    output: int = 32 * 1024

    def __post_init__(self) -> None:
        """Refuse a limit that nothing could keep.

        Raises:
            OptionError: a limit is not positive.
        """
        for name, value in msgspec.structs.asdict(self).items():
            if not 0 < value < float("inf"):
                raise OptionError(f"limits: {name} is {value}; expected a positive number")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended.

    Attributes:
        output: stdout and stderr as they came, undecodable bytes replaced, the middle left out
            where it is long, and after it what the sandbox itself has to say, in brackets.
        exit_code: 128 + n where signal n ended it; None where the sandbox did.
        timed_out: the command ran out of wall time.
        died: the shell had to begin anew: variables and functions are gone.
        cwd: the shell's directory afterwards.
        duration: seconds of wall time.
    """

    output: str
    exit_code: int | None
    timed_out: bool
    died: bool
    cwd: str
    duration: float


class Spot(NamedTuple):
    """What is at a path.

    Attributes:
        path: relative to the workspace, links followed; ``.`` is the workspace itself.
        kind: ``file``, ``folder``, ``other`` (a pipe, a dangling link), ``nothing``; or ``outside``
            where it leads out of the workspace.
        size: bytes of a file.
    """

    path: str
    kind: str
    size: int


class Sandbox(Protocol):
    """A workspace, a shell in it, and nothing else; for one thread at a time.

    Paths are relative to the workspace and may not lead out of it, by a link neither. A file that
    cannot be read or written is a ``WorkspaceError``, a sandbox that has ended a ``SandboxError``.
    Whatever a command does is no error but its ``Result``.

    Attributes:
        workspace: the absolute path of the workspace inside.
        notes: how each limit holds here, and what does not hold, a sentence each.
        python: how to start the interpreter whose packages the workspace is tested with, blind to
            what the workspace holds; arguments follow.
    """

    workspace: str
    notes: tuple[str, ...]
    python: tuple[str, ...]

    def run(self, command: str, timeout: float | None = None) -> Result:
        """Run a command in the one shell, which keeps directory, variables and background jobs.

        A command out of time is killed with everything that was ever started; the shell begins
        anew in its directory, with what was exported.
        """
        ...

    def exec(self, argv: Sequence[str], stdin: bytes = b"", timeout: float | None = None) -> Result:
        """Run a program outside the shell, in the workspace; nothing that it starts remains."""
        ...

    def read(self, path: str) -> bytes:
        """Give the bytes of a file."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Set the bytes of a file; a new one gets the folders it needs."""
        ...

    def look(self, path: str) -> Spot:
        """Tell what is at a path, whatever it is."""
        ...

    def put(self, files: Mapping[str, bytes] | bytes) -> None:
        """Add files to the workspace: by path, over whatever stands there; or as a tar."""
        ...

    def take(self) -> bytes:
        """Give the whole workspace as a tar that ``put`` takes."""
        ...

    def state(self) -> str:
        """Hash the workspace: path, kind, executable bit and bytes of each file.

        Folders count by the files in them; ``.git``, ``__pycache__`` and ``.pytest_cache`` do not.
        """
        ...

    def close(self) -> None:
        """End everything in the sandbox; a second time does nothing."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
