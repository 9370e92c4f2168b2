"""Build seeded problems: inject bugs one by one, and keep those that the tests can tell.

A bug is kept if tests that were stable fail, the same ones each time, and fewer than half of all;
if the suite without them can be given to the agent; and if a small program shows it. What became
of each bug is written down when it is known, so that a build that was stopped goes on; which bugs
are kept depends on the packages, their number and the seed alone.
"""

import hashlib
import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.base import Opener
from rtmc.agent.tasks.seeded.cut import cut_tests
from rtmc.agent.tasks.seeded.demonstrate import demonstrate
from rtmc.agent.tasks.seeded.example import programs
from rtmc.agent.tasks.seeded.mutate import KINDS, Mutation, apply, sound, spots
from rtmc.agent.tasks.seeded.packages import Package, fetch, unpack
from rtmc.agent.tasks.seeded.store import (
    PROBLEMS,
    Line,
    Verdict,
    Verdicts,
    read_package,
    save_package,
    write_problems,
)
from rtmc.agent.tasks.seeded.suite import Baseline, Run, baseline, is_test, run_suite
from rtmc.agent.tasks.seeded.text import issue
from rtmc.errors import OptionError

__all__ = ["Settings", "Summary", "build"]

T = TypeVar("T")

REPEATS = 3
"""How often the whole suite is run on a bug."""
MOST_FAILING = 0.5
"""Share of the tests that a bug may break."""
PER_FUNCTION = 4
"""Bugs that are kept of one function."""
SHOWN = 8
"""Failing tests that a program is looked for in."""


class Settings(msgspec.Struct, frozen=True):
    """What to build.

    Attributes:
        packages: to inject bugs in.
        count: problems in all; each package gives about as many as the others.
        seed: of the order in which bugs are tried, and of the wording.
        jobs: sandboxes at a time.
    """

    packages: tuple[Package, ...]
    count: int = 500
    seed: int = 0
    jobs: int = 1


class Summary(msgspec.Struct, frozen=True):
    """What a build came to.

    Attributes:
        tried: bugs by kind.
        kept: problems by kind.
        reasons: why bugs were not kept, with how many.
        packages: problems by package.
        left_out: tests that are not stable, by package.
    """

    tried: dict[str, int]
    kept: dict[str, int]
    reasons: dict[str, int]
    packages: dict[str, int]
    left_out: dict[str, int]


class Bug(msgspec.Struct, frozen=True):
    """A bug that may be injected: a file of the package, and the edit."""

    path: str
    mutation: Mutation

    def name(self, package: Package) -> str:
        """Give the problem's id, which says nothing of the place."""
        edit = [package.sha256, self.path, self.mutation]
        return f"{package.name}-{hashlib.sha256(msgspec.json.encode(edit)).hexdigest()[:10]}"


def build(
    settings: Settings,
    folder: Path,
    opener: Opener,
    tick: Callable[[int], object] = lambda more: None,
) -> Summary:
    """Build problems into a folder, or go on with what is there.

    Args:
        settings: what to build.
        folder: gets the packages, a line a problem in ``problems.jsonl``, and what was tried.
        opener: of sandboxes.
        tick: called with 1 for each problem.

    Raises:
        OptionError: a package's suite does not run here, or all packages together do not give that
            many problems; those there are are written all the same.
        FormatError: the folder holds what no build wrote.
        OutputError: it cannot be written.
    """
    verdicts = Verdicts(folder)
    with ThreadPoolExecutor(settings.jobs, "build") as pool:
        try:
            bases = list(pool.map(lambda p: _prepare(p, folder, opener), settings.packages))
            mines = [_Mine(base, settings, verdicts, opener, pool) for base in bases]
            _dig(mines, settings.count, tick)
        finally:
            pool.shutdown(cancel_futures=True)
    lines = [line for mine in mines for line in mine.lines]
    write_problems(folder, lines)
    verdicts.tidy(name for mine in mines for name, _, _ in mine.tried)
    if len(lines) < settings.count:
        raise OptionError(
            f"these packages give {len(lines)} problems, not {settings.count}; they are in "
            f"{folder / PROBLEMS}. Name more --packages, or ask for fewer with --count"
        )
    return _summary(mines)


def _prepare(package: Package, folder: Path, opener: Opener) -> Baseline:
    """Give a package's baseline, from the folder if it is there."""
    known = read_package(folder, package.full_name)
    if known is not None and known.package == package:
        return known
    files = unpack(package, fetch(package, folder / "sdists"))
    made = baseline(package, files, opener)
    save_package(folder, made)
    return made


def _dig(mines: Sequence["_Mine"], count: int, tick: Callable[[int], object]) -> None:
    """Take as many problems from each package; where one has no more, the others give more."""
    missing = count
    while mines and missing:
        share, rest = divmod(missing, len(mines))
        given = [mine.dig(share + (n < rest), tick) for n, mine in enumerate(mines)]
        missing -= sum(given)
        mines = [m for n, m in enumerate(mines) if given[n] == share + (n < rest)]


class _Mine:
    """The bugs of one package, tried in order and some of them ahead of it."""

    def __init__(
        self,
        base: Baseline,
        settings: Settings,
        verdicts: Verdicts,
        opener: Opener,
        pool: ThreadPoolExecutor,
    ) -> None:
        self.base = base
        self.lines: list[Line] = []
        self.tried: list[tuple[str, str, Verdict]] = []
        self._settings, self._verdicts, self._opener = settings, verdicts, opener
        self._pool = pool
        self._order = _order(base, settings.seed)
        self._ahead: deque[tuple[Bug, str, Future[Verdict]]] = deque()
        self._of_function: Counter[tuple[str, str]] = Counter()

    def dig(self, share: int, tick: Callable[[int], object]) -> int:
        """Take so many more problems if there are; give how many there were."""
        before = len(self.lines)
        while len(self.lines) < before + share:
            self._fill()
            if not self._ahead:
                break
            bug, name, future = self._ahead.popleft()
            if self._is_full(bug):
                future.cancel()
                continue
            verdict = future.result()
            self.tried.append((name, bug.mutation.kind, verdict))
            if verdict.example is not None:
                self._of_function[bug.path, bug.mutation.function] += 1
                self.lines.append(_line(self.base.package, bug, name, verdict, self._settings.seed))
                tick(1)
        return len(self.lines) - before

    def _fill(self) -> None:
        """Begin to try the next bugs, as many as there are jobs."""
        while len(self._ahead) < self._settings.jobs:
            bug = next(self._order, None)
            if bug is None:
                return
            if not self._is_full(bug) and sound(self.base.files[bug.path], bug.mutation):
                name = bug.name(self.base.package)
                self._ahead.append((bug, name, self._pool.submit(self._try, bug, name)))

    def _is_full(self, bug: Bug) -> bool:
        return self._of_function[bug.path, bug.mutation.function] >= PER_FUNCTION

    def _try(self, bug: Bug, name: str) -> Verdict:
        known = self._verdicts.get(name)
        if known is None:
            known = judge_bug(self.base, bug, self._opener)
            self._verdicts.put(name, known)
        return known


def _order(base: Baseline, seed: int) -> Iterator[Bug]:
    """Put the bugs of a package in an order: kinds in turn, and in each kind the files in turn."""
    pick = random.Random(f"{seed} {base.package.full_name}")
    queues: dict[str, dict[str, list[Bug]]] = {kind: {} for kind in KINDS}
    for path, source in base.files.items():
        if PurePosixPath(path).suffix != ".py" or is_test(base.package, path):
            continue
        try:
            found = spots(source)
        except (SyntaxError, UnicodeDecodeError):  # written for another Python
            continue
        for mutation in found:
            queues[mutation.kind].setdefault(path, []).append(Bug(path, mutation))
    turns = []
    for kind in KINDS:
        for bugs in queues[kind].values():
            pick.shuffle(bugs)
        files = list(queues[kind].values())
        pick.shuffle(files)
        turns.append(_in_turn(files))
    return _in_turn(turns)


def _in_turn(sources: Iterable[Iterable[T]]) -> Iterator[T]:
    """Take one from each in turn until all are empty."""
    waiting = [iter(source) for source in sources]
    while waiting:
        for source in list(waiting):
            try:
                yield next(source)
            except StopIteration:
                waiting.remove(source)


def judge_bug(base: Baseline, bug: Bug, opener: Opener) -> Verdict:
    """Inject a bug and see what the tests make of it.

    Args:
        base: the package.
        bug: one of its.
        opener: of a sandbox.
    """
    source = base.files[bug.path]
    whole = {bug.path: source}
    broken = {bug.path: apply(source, bug.mutation)}
    touched = base.tests_of(bug.path, bug.mutation.function_line)
    if not touched:
        return Verdict("no test runs the function")
    with opener() as sandbox:
        sandbox.put({**base.files, **broken})
        first = _run(base, sandbox, touched)
        if first is None:
            return Verdict("the tests do not end")
        if first.broken:
            return Verdict("breaks import")
        if reason := _unfit(base, first.failed()):
            return Verdict(reason)
        example = demonstrate(sandbox, _programs(base, bug, first), broken, whole)
        if example is None or _tells(f"{example.expected} {example.got}", bug, base.package):
            return Verdict("no short program shows it")
        failing = first.failed()
        for number in range(REPEATS):
            run = _run(base, sandbox, None)
            if run is None or run.broken:
                return Verdict("the tests do not end")
            if number and run.failed() != failing:
                return Verdict("the failing tests vary")
            failing = run.failed()
        if reason := _unfit(base, failing):
            return Verdict(reason)
        if not _can_be_given(base, failing, broken, opener):
            return Verdict("the failing tests cannot be cut out")
    return Verdict("", tuple(sorted(failing)), example)


def _run(base: Baseline, sandbox: Sandbox, only: Iterable[str] | None) -> Run | None:
    targets = sorted({name.split("::")[0] for name in only or base.tests})
    return run_suite(sandbox, targets, only, cpu_seconds=base.cpu_seconds)


def _unfit(base: Baseline, failing: Collection[str]) -> str:
    """Say what is wrong with the tests that fail."""
    if not set(base.tests) & set(failing):
        return "no test fails"
    return "most tests fail" if len(failing) >= MOST_FAILING * len(base.tests) else ""


def _can_be_given(
    base: Baseline, failing: Collection[str], broken: Mapping[str, bytes], opener: Opener
) -> bool:
    """Tell whether what the agent gets has a suite that runs, and that does not fail."""
    files = cut_tests({**base.files, **broken}, failing, base.where)
    if not any(is_test(base.package, path) for path in files):
        return True
    with opener() as sandbox:
        sandbox.put(files)
        targets = sorted({n.split("::")[0] for n in base.tests} & files.keys())
        if not targets:
            return True
        run = run_suite(sandbox, targets, cpu_seconds=base.cpu_seconds)
    return run is not None and not run.broken and not run.failed()


def _programs(base: Baseline, bug: Bug, run: Run) -> list[str]:
    """List programs that may show a bug, without a word on where it is."""
    names = sorted(run.failures, key=lambda name: (len(name), name))[:SHOWN]
    found: list[str] = []
    for name in names:
        path, line = base.where[name]
        if is_test(base.package, path):
            failure = run.failures[name]
            found += programs(base.files[path], line, failure.line, failure.values)
    return [text for text in dict.fromkeys(found) if not _tells(text, bug, base.package)]


def _tells(text: str, bug: Bug, package: Package) -> bool:
    """Tell whether a text names a private function that has the bug, its file, or the tests."""
    function = bug.mutation.function.rpartition(".")[2]
    private = function.startswith("_") and not function.startswith("__")
    if (private and function in text) or PurePosixPath(bug.path).name in text:
        return True
    modules = [place.removesuffix(".py").replace("/", ".") for place in package.tests]
    return any(f"{word} {module}" in text for module in modules for word in ("from", "import"))


def _line(package: Package, bug: Bug, name: str, verdict: Verdict, seed: int) -> Line:
    assert verdict.example is not None
    return Line(
        problem_id=name,
        package=package.name,
        version=package.version,
        split="held-out" if package.held_out else "train",
        path=bug.path,
        mutation=bug.mutation,
        failing=verdict.failing,
        example=verdict.example,
        text=issue(verdict.example, package.name, package.version, f"{seed} {name}"),
    )


def _summary(mines: Sequence[_Mine]) -> Summary:
    tried = [pair for mine in mines for pair in mine.tried]
    return Summary(
        dict(Counter(kind for _, kind, _ in tried)),
        dict(Counter(kind for _, kind, verdict in tried if verdict.example)),
        dict(Counter(verdict.reason for _, _, verdict in tried if verdict.reason)),
        {mine.base.package.name: len(mine.lines) for mine in mines},
        {mine.base.package.name: len(mine.base.left_out) for mine in mines},
    )
