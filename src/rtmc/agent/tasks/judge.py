"""Judge a workspace by pytest: put the deciding tests in place, run them, read how they ended.

What the agent did to the tests, or to files by which pytest is steered, does not count: such files
are as they were. The code under test runs in the same process as pytest, as everywhere, so a
workspace that is made to lie can lie: docs/sandbox.md.
"""

import inspect
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks import reporter
from rtmc.errors import WorkspaceError

__all__ = ["STEERING", "Judgement", "judge_by_pytest", "outcomes_of", "restore"]

STEERING = frozenset(
    "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg pyproject.toml "
    "sitecustomize.py usercustomize.py".split()
)
"""Names of files that tell pytest what to do."""

NOTHING_RUN = {3: "pytest broke", 4: "pytest could not be called so", 5: "no test was collected"}
"""Exit codes of pytest that say nothing about the workspace."""


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the tests say.

    Attributes:
        reward: 1 if all deciding tests passed, 0 if not; None where they could not decide.
        failed: the deciding tests that did not pass.
        reason: why, where that is no test: out of time, no report, nothing collected.
        seconds: wall time.
        patch: what the agent has changed, as a unified diff.
    """

    reward: float | None
    failed: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    patch: bytes = b""


class Outcomes(msgspec.Struct, frozen=True):
    """What pytest reports.

    Attributes:
        code: pytest's exit code.
        outcomes: ``passed``, ``failed`` or ``skipped`` by node id.
        broken: what could not be collected.
    """

    code: int
    outcomes: dict[str, str]
    broken: list[str]


def judge_by_pytest(
    sandbox: Sandbox,
    left: Iterable[str],
    files: Mapping[str, bytes],
    tests: Mapping[str, bytes],
    must_pass: Sequence[str],
    seconds: float = 60.0,
) -> Judgement:
    """Judge the workspace of a sandbox, which is changed by it.

    Args:
        sandbox: with what the agent left behind.
        left: the paths of that.
        files: the workspace as it was at the start.
        tests: the files that decide.
        must_pass: node ids of the tests that decide.
        seconds: wall time of the tests.
    """
    restore(sandbox, left, files, tests)
    targets = sorted({name.split("::")[0] for name in must_pass})
    found, reason, took = outcomes_of(sandbox, targets, seconds)
    if found is None:
        return Judgement(0.0, tuple(must_pass), reason, took)
    if found.code in NOTHING_RUN:
        return Judgement(None, tuple(must_pass), NOTHING_RUN[found.code], took)
    failed = tuple(name for name in must_pass if found.outcomes.get(name) != "passed")
    missing = [name for name in failed if name not in found.outcomes and not found.broken]
    reason = f"{len(missing)} deciding tests are not there: {missing[0]} …" if missing else ""
    return Judgement(float(not failed), failed, reason, took)


def restore(
    sandbox: Sandbox, left: Iterable[str], files: Mapping[str, bytes], tests: Mapping[str, bytes]
) -> None:
    """Make what steers pytest as it was at the start, and put the tests in place.

    Args:
        sandbox: with what the agent left behind.
        left: the paths of that.
        files: the workspace as it was at the start.
        tests: the files that decide.
    """
    if any(not STEERING.isdisjoint(path.split("/")) for path in left):
        named = [word for name in sorted(STEERING) for word in ("-name", name, "-o")][:-1]
        sandbox.exec(["find", ".", "(", *named, ")", "-exec", "rm", "-rf", "--", "{}", "+"])
    steering = {p: data for p, data in files.items() if PurePosixPath(p).name in STEERING}
    sandbox.put({**steering, **tests})


def outcomes_of(
    sandbox: Sandbox, targets: Sequence[str], seconds: float, options: Sequence[str] = ()
) -> tuple[Outcomes | None, str, float]:
    """Run pytest; give what it reports, or why it does not, and the seconds it took.

    Args:
        sandbox: whose workspace is tested.
        targets: files or node ids.
        seconds: wall time.
        options: more of pytest's.
    """
    path = f".report-{secrets.token_hex(8)}.json"
    result = sandbox.exec(
        [
            *sandbox.python, "-c", inspect.getsource(reporter), f"{sandbox.workspace}/{path}",
            "-q", "--tb=no", "--assert=plain", "-o", f"cache_dir=/tmp/{path}", *options, *targets,
        ],
        timeout=seconds,
    )  # fmt: skip
    try:
        found = msgspec.json.decode(sandbox.read(path), type=Outcomes)
    except (WorkspaceError, msgspec.MsgspecError):
        last = result.output.strip().splitlines()[-1:] or ["it printed nothing"]
        reason = (
            f"the tests ran longer than {seconds:g} s"
            if result.timed_out
            else f"pytest ended without a report: {last[0][:200]}"
        )
        return None, reason, result.duration
    return found, "", result.duration
