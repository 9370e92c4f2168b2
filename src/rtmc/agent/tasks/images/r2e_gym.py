"""R2E-Gym: commits of Python projects with generated issue texts (arXiv 2504.07164).

An image has the repository before the commit in /testbed with its own ``.venv``, the deciding tests
in /r2e_tests, and ``run_tests.sh``, which prints pytest's summary. All of R2E-Gym's runner that
matters here is: link the tests into the repository, run the script, read the summary.

Deviations from R2E-Gym's own runner:

1. Judging is in a clean container (``task``), where the tests have never been seen. Its own moves
   them to /root of the agent's container.
2. Tests that the row expects to fail do not decide. Its own wants the same outcome of every test,
   so that a solution is refused for passing one that the reference fails.
3. A name stands for passed only if every test of that name passed: names lack the file.
4. The status is a line's first word; its own finds ``PASSED`` anywhere in the line.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.base import Opener, Problem
from rtmc.agent.tasks.images.task import ImageTask
from rtmc.errors import FormatError, SandboxError

__all__ = ["SWE_BENCH_REPOSITORIES", "R2EGym", "parse_summary", "reference_patch"]

SWE_BENCH_REPOSITORIES = frozenset(
    "astropy django flask matplotlib pylint pytest requests scikit-learn seaborn sphinx sympy "
    "xarray".split()
)
"""The repositories of SWE-bench, as R2E-Gym writes names; of these it has ``sympy``."""

HIDDEN = (
    "run_tests.sh r2e_tests syn_issue.json expected_test_output.json execution_result.json "
    "parsed_commit.json modified_files.json modified_entities.json"
).split()
"""What some of the images hold in the repository and no agent may see."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\r")


class _Row(msgspec.Struct):
    repo_name: str
    docker_image: str
    commit_hash: str
    problem_statement: str
    expected_output_json: str
    parsed_commit_content: str | None = None


class R2EGym(ImageTask):
    """R2E-Gym's problems.

    ``facts``: ``repo``, ``base_commit``, ``image``, and ``patch`` where the commit changes Python
    files that are no tests.
    """

    dataset = "R2E-Gym"
    row_type = _Row
    bin = "/testbed/.venv/bin"

    def __init__(
        self,
        paths: Sequence[str | Path],
        opener: Opener,
        *,
        without_swe_bench_repos: bool = False,
        seconds: float = 300.0,
    ) -> None:
        """Name the files; they are read when the problems are asked for.

        Args:
            paths: rows of R2E-Gym-V1, -Subset or -Lite, ``.jsonl`` or ``.parquet``.
            opener: of containers.
            without_swe_bench_repos: leave out problems of ``SWE_BENCH_REPOSITORIES``, for training
                what is measured on SWE-bench.
            seconds: wall time of the tests; R2E-Gym's own runner has the same.
        """
        super().__init__("r2e-gym", paths, opener, seconds)
        self._unwanted = SWE_BENCH_REPOSITORIES if without_swe_bench_repos else frozenset[str]()

    def _problem(self, row: _Row) -> Problem | None:
        if row.repo_name.lower() in self._unwanted:
            return None
        try:
            expected = msgspec.json.decode(row.expected_output_json, type=dict[str, str])
        except msgspec.MsgspecError as error:
            raise FormatError(
                f"expected_output_json is no object of outcomes by test ({error})"
            ) from error
        passing = {_name(test) for test, status in expected.items() if status == "PASSED"}
        issue = re.search(r"\[ISSUE\](.*)\[/ISSUE\]", row.problem_statement, re.DOTALL)
        patch = reference_patch(row.parsed_commit_content) if row.parsed_commit_content else ""
        return Problem(
            problem_id=f"{row.repo_name}__{row.commit_hash}",
            text=(issue[1] if issue else row.problem_statement).strip(),
            must_pass=tuple(sorted(passing - {""})),
            facts={
                "repo": row.repo_name,
                "base_commit": f"{row.commit_hash}^",
                "image": row.docker_image,
                **({"patch": patch} if patch else {}),
            },
        )

    def _hide(self, sandbox: Sandbox) -> None:
        hidden = ["/r2e_tests", *HIDDEN, *(f"/root/{name}" for name in HIDDEN)]
        stale = "find . -name .venv -prune -o -name __pycache__ -prune -exec rm -rf {} +"
        result = sandbox.exec(["sh", "-ec", f'rm -rf -- "$@"; {stale}', "sh", *hidden])
        if result.exit_code != 0:
            raise SandboxError(f"the deciding tests cannot be taken out: {result.output.strip()}")

    def _deciding_files(self, problem: Problem) -> Collection[str]:
        return ("r2e_tests", "run_tests.sh")

    def _run(self, problem: Problem, clean: Sandbox) -> tuple[float | None, Sequence[str], str]:
        ready = "test -d /r2e_tests && test -f run_tests.sh && rm -rf r2e_tests"
        if clean.exec(["sh", "-c", f"{ready} && ln -s /r2e_tests r2e_tests"]).exit_code != 0:
            return None, problem.must_pass, "the image lacks /r2e_tests or run_tests.sh"
        log, stopped = self._logged(clean, "bash run_tests.sh")
        if stopped:
            return 0.0, problem.must_pass, stopped
        outcomes = parse_summary(log)
        failed = [name for name in problem.must_pass if outcomes.get(name) != "PASSED"]
        return float(not failed), failed, "" if outcomes else "the tests printed no summary"


def parse_summary(log: str) -> dict[str, str]:
    """Read pytest's short summary (``-rA``): ``PASSED``, ``FAILED`` or ``ERROR`` by test.

    A test's name is class and function, joined by a dot, without the file; of several outcomes of
    one name the one that is not ``PASSED`` stands.
    """
    outcomes: dict[str, str] = {}
    _, _, summary = _COLOUR.sub("", log).partition("short test summary info")
    for line in summary.splitlines():
        status, _, rest = line.partition(" ")
        name = _name(".".join(rest.split("::")[1:]))
        if status in ("PASSED", "FAILED", "ERROR") and outcomes.get(name, "PASSED") == "PASSED":
            outcomes[name] = status
    return outcomes


def _name(test: str) -> str:
    """Give a test's name without colours and without the message that follows it."""
    return _COLOUR.sub("", test).split(" - ")[0].strip()


class _Path(msgspec.Struct):
    path: str = ""


class _Header(msgspec.Struct):
    file: _Path
    misc_line: str | None = None


class _Index(msgspec.Struct):
    old_commit_hash: str = ""
    new_commit_hash: str = ""
    mode: str | None = ""


class _Range(msgspec.Struct):
    start: int = 0
    length: int | None = None

    def __str__(self) -> str:
        return str(self.start) if self.length is None else f"{self.start},{self.length}"


class _Descriptor(msgspec.Struct):
    old_range: _Range
    new_range: _Range
    section: str | None = ""


class _Line(msgspec.Struct):
    content: str
    type: str


class _Lines(msgspec.Struct):
    all_lines: list[_Line]


class _Hunk(msgspec.Struct):
    descriptor: _Descriptor
    line_group: _Lines


class _FileDiff(msgspec.Struct):
    header: _Header
    index_line: _Index | None = None
    minus_file: _Path | None = None
    plus_file: _Path | None = None
    hunks: list[_Hunk] = []


class _Commit(msgspec.Struct):
    file_diffs: list[_FileDiff]


_MARKS = {"context": " ", "added": "+", "deleted": "-", "note": "\\ "}


def reference_patch(parsed_commit: str) -> str:
    """Write the commit as a patch: its Python files that are no tests, as R2E-Gym does.

    Args:
        parsed_commit: the column ``parsed_commit_content``.

    Raises:
        FormatError: it is no commit of R2E-Gym's.
    """
    try:
        commit = msgspec.json.decode(parsed_commit, type=_Commit)
        diffs = [diff for diff in commit.file_diffs if _is_source(diff.header.file.path)]
        return "".join(map(_patch_of_file, diffs))
    except (msgspec.MsgspecError, KeyError) as error:
        raise FormatError(f"parsed_commit_content is no commit ({error})") from error


def _is_source(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return (
        path.endswith(".py")
        and not path.endswith("_test.py")
        and not parts[-1].startswith("test_")
        and not {"tests", "Tests", "test", "Test"}.intersection(parts)
    )


def _patch_of_file(diff: _FileDiff) -> str:
    path = diff.header.file.path
    lines = [f"diff --git a/{path} b/{path}"]
    if diff.header.misc_line:
        lines.append(diff.header.misc_line)
    if diff.index_line:
        index = diff.index_line
        mode = f" {index.mode}" if index.mode else ""
        lines.append(f"index {index.old_commit_hash}..{index.new_commit_hash}{mode}")
    if diff.minus_file and diff.plus_file:
        lines += [f"--- {diff.minus_file.path}", f"+++ {diff.plus_file.path}"]
    for hunk in diff.hunks:
        place = hunk.descriptor
        lines.append(f"@@ -{place.old_range} +{place.new_range} @@ {place.section or ''}".rstrip())
        lines += [_MARKS[line.type] + line.content for line in hunk.line_group.all_lines]
    return "\n".join(lines) + "\n"
