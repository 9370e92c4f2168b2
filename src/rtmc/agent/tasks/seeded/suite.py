"""Run a package's own tests in a sandbox, and find the ones that can be relied on."""

import inspect
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.base import Opener
from rtmc.agent.tasks.seeded import probe
from rtmc.agent.tasks.seeded.cut import cut_tests
from rtmc.agent.tasks.seeded.packages import Package
from rtmc.errors import OptionError, WorkspaceError

__all__ = ["Baseline", "Failure", "Run", "baseline", "is_test", "run_suite"]

REPEATS = 3
"""How often the suite is run before a test counts as stable."""
SLOW = 1.0
"""Seconds of processor time from which a test is left out."""
CPU_SECONDS = 240
"""Processor time of one run of the whole suite, slow tests included."""
LEAST_CPU = 8
"""Processor time of a run with a bug, at least."""
MORE_CPU = 6
"""That time, as a multiple of what the suite took without."""
WALL = 6
"""Wall time of a run, as a multiple of its processor time."""
ROUNDS = 3
"""How often tests are left out before the package is given up."""


class Failure(msgspec.Struct, frozen=True):
    """Where a test failed.

    Attributes:
        line: in its file.
        values: source of the literals that its names had, by name.
    """

    line: int
    values: dict[str, str]


class Run(msgspec.Struct, frozen=True):
    """What a run of the suite gives; all by node id.

    Attributes:
        code: pytest's exit code.
        outcomes: ``passed``, ``skipped`` or ``failed``.
        seconds: processor time.
        where: file and first line of the test function.
        failures: of failed tests.
        broken: what could not be collected.
        calls: file and first line of the functions that each test called; by "" while collecting.
    """

    code: int
    outcomes: dict[str, str]
    seconds: dict[str, float]
    where: dict[str, tuple[str, int]]
    failures: dict[str, Failure]
    broken: list[str]
    calls: dict[str, list[tuple[str, int]]]

    def failed(self) -> set[str]:
        """Name the tests that failed."""
        return {name for name, outcome in self.outcomes.items() if outcome == "failed"}


@dataclass(frozen=True, slots=True)
class Baseline:
    """A package as it is before a bug is injected.

    Attributes:
        package: which.
        files: its workspace, in which all tests that are not stable are left out.
        tests: node ids of the stable tests, in order.
        left_out: why, by node id of the tests that are not stable.
        where: file and first line of each test function.
        callers: the tests that call a function, by its file and first line; "" for import.
        cpu_seconds: processor time that the suite is given when there is a bug in the package.
    """

    package: Package
    files: dict[str, bytes]
    tests: tuple[str, ...]
    left_out: dict[str, str]
    where: dict[str, tuple[str, int]]
    callers: dict[tuple[str, int], tuple[str, ...]]
    cpu_seconds: int

    def tests_of(self, path: str, line: int | None) -> tuple[str, ...]:
        """Name the tests that call a function; all of them for what runs on import."""
        if line is None:
            return self.tests
        callers = self.callers.get((path, line), ())
        return self.tests if "" in callers else callers


def is_test(package: Package, path: str) -> bool:
    """Tell whether a file belongs to the suite."""
    return any(path == place or path.startswith(f"{place}/") for place in package.tests)


def run_suite(
    sandbox: Sandbox,
    targets: Sequence[str],
    only: Iterable[str] | None = None,
    *,
    traced: bool = False,
    cpu_seconds: int = CPU_SECONDS,
) -> Run | None:
    """Run tests in a sandbox; None where they ran out of time or brought the interpreter down.

    Args:
        sandbox: with the workspace.
        targets: files and folders.
        only: node ids; None runs all.
        traced: note which functions each test calls.
        cpu_seconds: processor time.
    """
    path = f".probe-{secrets.token_hex(8)}.json"
    wanted = None if only is None else sorted(only)
    request = {"only": wanted, "traced": traced, "cpu_seconds": cpu_seconds}
    sandbox.exec(
        [
            *sandbox.python, "-c", inspect.getsource(probe), f"{sandbox.workspace}/{path}",
            "-q", "--tb=no", "-p", "no:cacheprovider", "--continue-on-collection-errors", *targets,
        ],
        stdin=msgspec.json.encode(request),
        timeout=cpu_seconds * WALL,
    )  # fmt: skip
    try:
        found = msgspec.json.decode(sandbox.read(path), type=Run)
    except (WorkspaceError, msgspec.MsgspecError):
        return None
    sandbox.exec(["rm", "-f", path])
    return found


def baseline(package: Package, files: Mapping[str, bytes], opener: Opener) -> Baseline:
    """Run a package's suite several times, and keep what passes each time.

    Args:
        package: which.
        files: its workspace.
        opener: of sandboxes.

    Raises:
        OptionError: its suite does not run here.
    """
    files, left_out = dict(files), {}
    # the first round is a single run, which finds what is slow or broken
    for repeats in (0, *[REPEATS] * ROUNDS):
        runs = _repeat(package, files, opener, repeats)
        bad = _unstable(runs)
        if repeats and not bad:
            return _as_baseline(package, files, left_out, runs)
        left_out |= bad
        files = cut_tests(files, bad, runs[0].where)
    raise OptionError(
        f"{package.full_name}: its tests do not become stable here; choose other --packages"
    )


def _repeat(
    package: Package, files: Mapping[str, bytes], opener: Opener, repeats: int
) -> list[Run]:
    """Run the suite so many times, and once more noting calls."""
    runs: list[Run] = []
    places = [p for p in package.tests if any(f == p or f.startswith(f"{p}/") for f in files)]
    with opener() as sandbox:
        sandbox.put(files)
        for number in range(repeats + 1):
            run = run_suite(sandbox, places, traced=0 < repeats == number)
            if run is None or not run.outcomes:
                said = sandbox.exec(
                    [*sandbox.python, "-m", "pytest", "-q", "-x", *places], timeout=CPU_SECONDS
                ).output
                raise OptionError(
                    f"{package.full_name}: its tests do not run in the sandbox "
                    f"({said.strip()[-300:]}); choose other --packages"
                )
            runs.append(run)
    return runs


def _unstable(runs: Sequence[Run]) -> dict[str, str]:
    """Say which tests cannot decide, and why."""
    bad = {name: "cannot be collected" for run in runs for name in run.broken}
    for name in dict.fromkeys(name for run in runs for name in run.outcomes):
        outcomes = {run.outcomes.get(name, "missing") for run in runs}
        if len(outcomes) > 1:
            bad[name] = "flaky"
        elif outcomes == {"failed"}:
            bad[name] = "fails"
        elif min(run.seconds.get(name, 0.0) for run in runs[:-1] or runs) > SLOW:
            bad[name] = "slow"
    return bad


def _as_baseline(
    package: Package, files: dict[str, bytes], left_out: dict[str, str], runs: Sequence[Run]
) -> Baseline:
    last = runs[-1]
    tests = [name for name, outcome in last.outcomes.items() if outcome == "passed"]
    known = {"", *tests}
    seconds = min(sum(run.seconds.values()) for run in runs[:-1])
    callers: dict[tuple[str, int], list[str]] = {}
    for test, called in last.calls.items():
        for place in called:
            if test in known:
                callers.setdefault(place, []).append(test)
    return Baseline(
        package,
        files,
        tuple(tests),
        left_out,
        last.where,
        {place: tuple(names) for place, names in callers.items()},
        # in steps, so that two builds give the same
        LEAST_CPU << max(0, math.ceil(math.log2(MORE_CPU * (seconds + 0.1) / LEAST_CPU))),
    )
