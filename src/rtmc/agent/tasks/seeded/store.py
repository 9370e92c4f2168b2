"""The folder of a build: packages once each, problems a line each, and what became of every bug.

    sdists/NAME-VERSION.tar.gz    as it came
    packages/NAME-VERSION.tar     the workspace without a bug, its suite cut to the stable tests
    packages/NAME-VERSION.json    what the suite showed
    tried.jsonl                   each bug that was tried, by problem id, and what became of it
    problems.jsonl                the problems, complete

A line of ``tried.jsonl`` is written when it is known; what a stopped build left half is dropped.
"""

import io
import tarfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from rtmc.agent.tasks.seeded.demonstrate import Example
from rtmc.agent.tasks.seeded.mutate import Mutation
from rtmc.agent.tasks.seeded.packages import Package
from rtmc.agent.tasks.seeded.suite import Baseline
from rtmc.atomic import open_atomic
from rtmc.errors import FormatError, OutputError

__all__ = [
    "PROBLEMS",
    "Line",
    "Verdict",
    "Verdicts",
    "read_package",
    "read_problems",
    "save_package",
    "write_problems",
]

T = TypeVar("T")

PROBLEMS = "problems.jsonl"
TRIED = "tried.jsonl"


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a bug.

    Attributes:
        reason: why it is not kept; empty if it is.
        failing: tests that fail with it, as node ids, stable ones or not.
        example: a program that shows it; None if it is not kept.
    """

    reason: str = ""
    failing: tuple[str, ...] = ()
    example: Example | None = None


class Line(msgspec.Struct, frozen=True):
    """One problem, as it is written down.

    Attributes:
        problem_id: of the problem.
        package: the package's name.
        version: the package's version.
        split: ``train`` or ``held-out``.
        path: file with the bug.
        mutation: the bug.
        failing: tests that fail with it.
        example: the program in the text.
        text: what the agent is told.
    """

    problem_id: str
    package: str
    version: str
    split: str
    path: str
    mutation: Mutation
    failing: tuple[str, ...]
    example: Example
    text: str


class _Facts(msgspec.Struct, frozen=True):
    """What the suite of a package showed; callers are numbers of tests, −1 for import."""

    package: Package
    tests: tuple[str, ...]
    left_out: dict[str, str]
    where: dict[str, tuple[str, int]]
    callers: list[tuple[str, int, list[int]]]
    cpu_seconds: int


class Verdicts:
    """What became of bugs, by problem id; for several threads."""

    def __init__(self, folder: Path) -> None:
        """Read what an earlier build wrote.

        Raises:
            FormatError: it is something else.
            OutputError: the folder cannot be made.
        """
        _make(folder)
        self._path = folder / TRIED
        self._lock = threading.Lock()
        self._known: dict[str, Verdict] = {}
        data = self._path.read_bytes() if self._path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            name, verdict = _decode(line, tuple[str, Verdict], f"{self._path}:{number}")
            self._known[name] = verdict
        if whole != data:
            with open_atomic(self._path) as file:
                file.write(whole)

    def get(self, name: str) -> Verdict | None:
        """Give what became of a bug, if that is known."""
        return self._known.get(name)

    def put(self, name: str, verdict: Verdict) -> None:
        """Write down what became of a bug.

        Raises:
            OutputError: it cannot be written.
        """
        line = msgspec.json.encode([name, verdict]) + b"\n"
        with self._lock:
            self._known[name] = verdict
            try:
                with self._path.open("ab") as file:
                    file.write(line)
            except OSError as error:
                raise OutputError(f"cannot write {self._path}: {error.strerror}") from error

    def tidy(self, names: Iterable[str]) -> None:
        """Write the file anew: these, in this order, without what was tried ahead for nothing."""
        with open_atomic(self._path) as file:
            for name in names:
                file.write(msgspec.json.encode([name, self._known[name]]) + b"\n")


def save_package(folder: Path, base: Baseline) -> None:
    """Write a package and what its suite showed; the tar first, so that the facts mean both."""
    _make(folder / "packages")
    numbers = {name: number for number, name in enumerate(base.tests)}
    facts = _Facts(
        base.package, base.tests, base.left_out, base.where,
        [
            (path, line, [-1 if not name else numbers[name] for name in names])
            for (path, line), names in sorted(base.callers.items())
        ],
        base.cpu_seconds,
    )  # fmt: skip
    with open_atomic(_place(folder, base.package.full_name, "tar")) as file:
        file.write(_pack(base.files))
    with open_atomic(_place(folder, base.package.full_name, "json")) as file:
        file.write(msgspec.json.encode(facts))


def read_package(folder: Path, full_name: str) -> Baseline | None:
    """Read a package; None if it is not there.

    Raises:
        FormatError: what is there is something else.
    """
    path = _place(folder, full_name, "json")
    if not path.exists():
        return None
    facts = _decode(path.read_bytes(), _Facts, str(path))
    try:
        with tarfile.open(_place(folder, full_name, "tar")) as tar:
            files = {m.name: f.read() for m in tar if (f := tar.extractfile(m)) is not None}
    except (OSError, tarfile.TarError) as error:
        raise FormatError(
            f"{path.with_suffix('.tar')}: no package ({error}); remove {path} to build it anew"
        ) from error
    callers = {
        (place, line): tuple("" if n < 0 else facts.tests[n] for n in numbers)
        for place, line, numbers in facts.callers
    }
    return Baseline(
        facts.package, files, facts.tests, facts.left_out, facts.where, callers, facts.cpu_seconds
    )


def write_problems(folder: Path, lines: Sequence[Line]) -> None:
    """Write the problems, all or none."""
    with open_atomic(folder / PROBLEMS) as file:
        for line in lines:
            file.write(msgspec.json.encode(line) + b"\n")


def read_problems(folder: Path) -> list[Line]:
    """Read the problems.

    Raises:
        FormatError: there are none, or the file is something else.
    """
    path = folder / PROBLEMS
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(
            f"{path}: {error.strerror}; name a folder that `rtmc tasks build seeded -o` has written"
        ) from error
    return [
        _decode(line, Line, f"{path}:{number}")
        for number, line in enumerate(data.splitlines(), start=1)
    ]


def _decode(line: bytes, type_: type[T], place: str) -> T:
    try:
        return msgspec.json.decode(line, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{place}: not what a build of seeded problems writes ({error}); choose another folder"
        ) from error


def _place(folder: Path, full_name: str, suffix: str) -> Path:
    return folder / "packages" / f"{full_name}.{suffix}"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from error


def _pack(files: Mapping[str, bytes]) -> bytes:
    """Make a tar that depends on the files alone."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return data.getvalue()
