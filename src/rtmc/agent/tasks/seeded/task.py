"""The task ``seeded``: what ``rtmc tasks build seeded`` has built, as problems."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, overload

from rtmc.agent.tasks.base import FilesTask, Opener, Problem
from rtmc.agent.tasks.seeded.cut import cut_tests
from rtmc.agent.tasks.seeded.mutate import apply
from rtmc.agent.tasks.seeded.store import Line, read_package, read_problems
from rtmc.agent.tasks.seeded.suite import Baseline, is_test
from rtmc.errors import FormatError

__all__ = ["SeededTask", "Split", "bug_of", "fix_of"]

Split = Literal["train", "held-out", "all"]


class SeededTask(FilesTask):
    """Real packages with one injected bug each.

    The agent gets the package with the bug and those of its tests that pass all the same; the
    whole suite decides: the tests that the bug broke, and all others in the same files.
    """

    def __init__(
        self,
        folder: str | Path,
        opener: Opener,
        split: Split = "all",
        seconds: float = 120.0,
    ) -> None:
        """Read what was built.

        Args:
            folder: as ``rtmc tasks build seeded -o`` has written it.
            opener: of sandboxes.
            split: packages to train on, packages that are held out, or all.
            seconds: wall time of the tests.

        Raises:
            FormatError: the folder is something else.
        """
        lines = [line for line in read_problems(Path(folder)) if split in ("all", line.split)]
        super().__init__("seeded", _Problems(Path(folder), lines), opener, seconds)


class _Problems(Sequence[Problem]):
    """Problems that are made when they are asked for."""

    def __init__(self, folder: Path, lines: Sequence[Line]) -> None:
        self._folder, self._lines = folder, lines
        self._packages: dict[str, Baseline] = {}

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> "_Problems": ...
    def __getitem__(self, index: int | slice) -> "Problem | _Problems":
        if isinstance(index, slice):
            return _Problems(self._folder, self._lines[index])
        line = self._lines[index]
        return problem_of(line, self.package(f"{line.package}-{line.version}"))

    def package(self, full_name: str) -> Baseline:
        """Give a package; it is read once."""
        if full_name not in self._packages:
            found = read_package(self._folder, full_name)
            if found is None:
                raise FormatError(
                    f"{self._folder}: the package {full_name} is missing; build the folder anew"
                )
            self._packages[full_name] = found
        return self._packages[full_name]


def problem_of(line: Line, base: Baseline) -> Problem:
    """Make a problem of its line.

    Args:
        line: as it was written.
        base: its package.
    """
    broken = {**base.files, line.path: apply(base.files[line.path], line.mutation)}
    tests = {path: data for path, data in base.files.items() if is_test(base.package, path)}
    decide = {name.split("::")[0] for name in line.failing}
    mutation = line.mutation
    return Problem(
        problem_id=line.problem_id,
        text=line.text,
        files=cut_tests(broken, line.failing, base.where),
        tests=tests,
        must_pass=tuple(name for name in base.tests if name.split("::")[0] in decide),
        facts={
            "package": line.package,
            "version": line.version,
            "split": line.split,
            "path": line.path,
            "line": mutation.line,
            "column": mutation.column,
            "function": mutation.function,
            "kind": mutation.kind,
            "description": mutation.description,
            "original": mutation.original,
            "replacement": mutation.replacement,
            "start": mutation.start,
            "end": mutation.start + len(mutation.replacement.encode()),
            "failing": list(line.failing),
        },
    )


def bug_of(folder: Path, line: Line) -> str:
    """Write the bug of a problem as a unified diff.

    Raises:
        FormatError: the folder lacks the package.
    """
    base = _Problems(folder, []).package(f"{line.package}-{line.version}")
    source = base.files[line.path]
    before, after = (t.decode().splitlines() for t in (source, apply(source, line.mutation)))
    return "\n".join(difflib.unified_diff(before, after, line.path, line.path, lineterm=""))


def fix_of(problem: Problem) -> tuple[str, str]:
    """Give the edit that undoes a problem's bug: text that occurs once, and the right one.

    Args:
        problem: of a ``SeededTask``.
    """
    facts = problem.facts
    source = problem.files[facts["path"]]
    start, end = facts["start"], facts["end"]
    begin, stop = start, end
    while not begin < stop or source.count(source[begin:stop]) > 1:
        begin = source.rfind(b"\n", 0, max(0, begin - 1)) + 1
        stop = source.find(b"\n", stop) + 1 or len(source)
    middle = source[begin:start] + facts["original"].encode() + source[end:stop]
    return source[begin:stop].decode(), middle.decode()
