"""SWE-bench (Verified): issues of twelve Python projects (arXiv 2310.06770).

Running and reading the tests is left to the package ``swebench``, SWE-bench's own: which script
tests a problem, how its log is read, what counts as solved. So a reward here is what its harness
says. The package comes with much that has no use here (seventy packages, half a gigabyte, and five
seconds to import), which is why it is an extra and imported late; but its parsers mend faults of
the dataset, and a copy of them would part from it.

Since version 5 a row holds its evaluation script, its parser and its image. Rows of before go
together with version 4, which has the test commands of all repositories.

Deviations from its harness: the container has no network (tests that need one fail, which makes
some problems of ``psf/requests`` unsolvable), and files that steer pytest are as they were
(``judge.STEERING``) unless the reference solution changes them.
"""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.base import Opener, Problem
from rtmc.agent.tasks.images.repository import paths_of
from rtmc.agent.tasks.images.rows import names_of
from rtmc.agent.tasks.images.task import WORKSPACE, ImageTask
from rtmc.errors import FormatError, MissingExtraError, OptionError

__all__ = ["Harness", "SweBench", "SwebenchPackage"]

_START = ">>>>> Start Test Output"


class _Row(msgspec.Struct):
    instance_id: str
    repo: str
    base_commit: str
    version: str
    problem_statement: str
    patch: str
    test_patch: str
    fail_to_pass: str | list[str] = msgspec.field(name="FAIL_TO_PASS")
    pass_to_pass: str | list[str] = msgspec.field(name="PASS_TO_PASS")
    image: str | None = None
    eval_script: str | None = None
    log_parser: str | None = None
    eval_type: str | None = None


class Harness(Protocol):
    """What runs and reads the tests of a problem, from its ``facts``."""

    def script(self, facts: Mapping[str, Any]) -> str:
        """Write the bash script that puts the tests in place and runs them."""
        ...

    def failed(self, facts: Mapping[str, Any], log: str) -> list[str] | None:
        """Name the deciding tests that failed, from the script's output; None: it says nothing."""
        ...


class SweBench(ImageTask):
    """SWE-bench's problems.

    ``facts``: the row but for the issue and ``hints_text``, with ``image`` and the two lists of
    tests as lists.
    """

    dataset = "SWE-bench"
    row_type = _Row
    bin = "/opt/miniconda3/envs/testbed/bin"

    def __init__(
        self,
        paths: Sequence[str | Path],
        opener: Opener,
        *,
        seconds: float = 1800.0,
        harness: Harness | None = None,
    ) -> None:
        """Name the files; they are read when the problems are asked for.

        Args:
            paths: rows of SWE-bench_Verified or another of SWE-bench's Python datasets, ``.jsonl``
                or ``.parquet``.
            opener: of containers.
            seconds: wall time of the tests; SWE-bench's own harness has the same.
            harness: None = the package ``swebench``.
        """
        super().__init__("swe-bench", paths, opener, seconds)
        self._harness = SwebenchPackage() if harness is None else harness

    def open(self, problem: Problem) -> Sandbox:
        """Start the problem's container for the agent, as of ``ImageTask``.

        Raises:
            MissingExtraError: nothing could judge it: ``swebench`` is not installed.
            OptionError: the row does not fit the installed version of ``swebench``.
            SandboxError: the container does not start, or is not as the benchmark's are.
        """
        self._harness.script(problem.facts)
        return super().open(problem)

    def _problem(self, row: _Row) -> Problem:
        lists = {
            "FAIL_TO_PASS": names_of(row.fail_to_pass, "FAIL_TO_PASS"),
            "PASS_TO_PASS": names_of(row.pass_to_pass, "PASS_TO_PASS"),
        }
        if not lists["FAIL_TO_PASS"]:
            raise FormatError("FAIL_TO_PASS is empty: no test tells a solution from none")
        facts = {
            name: value
            for name, value in msgspec.structs.asdict(row).items()
            if name not in ("fail_to_pass", "pass_to_pass", "problem_statement") and value
        }
        return Problem(
            problem_id=row.instance_id,
            text=row.problem_statement.strip(),
            must_pass=(*lists["FAIL_TO_PASS"], *lists["PASS_TO_PASS"]),
            facts={**facts, **lists, "image": row.image or _image(row.instance_id)},
        )

    def _hide(self, sandbox: Sandbox) -> None:
        """Do nothing: the deciding tests come with ``test_patch``."""

    def _deciding_files(self, problem: Problem) -> Collection[str]:
        return sorted(paths_of(problem.facts["test_patch"]))

    def _run(self, problem: Problem, clean: Sandbox) -> tuple[float | None, Sequence[str], str]:
        log, stopped = self._logged(clean, self._harness.script(problem.facts))
        if stopped:
            return 0.0, problem.must_pass, stopped
        if _START not in log:
            last = (log.strip().splitlines() or ["it printed nothing"])[-1][:200]
            return None, problem.must_pass, f"the script ended before the tests: {last}"
        failed = self._harness.failed(problem.facts, log)
        if failed is None:
            return 0.0, problem.must_pass, "the tests printed no outcome"
        return float(not failed), failed, ""


def _image(instance_id: str) -> str:
    """Name the published image; a name on Docker Hub cannot hold two underscores."""
    return f"swebench/sweb.eval.x86_64.{instance_id.replace('__', '_1776_')}:latest".lower()


class _Spec(NamedTuple):
    """What the grading of swebench 4 reads of a ``TestSpec``.

    Its ``make_test_spec`` fetches requirements from the network, which only builds of images need.
    """

    instance_id: str
    repo: str
    version: str
    FAIL_TO_PASS: list[str]
    PASS_TO_PASS: list[str]
    eval_script: str


class SwebenchPackage:
    """The package ``swebench``, version 4.1 or newer."""

    def script(self, facts: Mapping[str, Any]) -> str:
        """Write the evaluation script.

        Raises:
            MissingExtraError: it is not installed.
            OptionError: the row and the version of the package do not go together.
        """
        return self._spec(facts).eval_script

    def failed(self, facts: Mapping[str, Any], log: str) -> list[str] | None:
        """Read the script's output.

        Raises:
            MissingExtraError: it is not installed.
            OptionError: the row and the version of the package do not go together.
        """
        spec, name = self._spec(facts), facts["instance_id"]
        from swebench.harness.grading import get_eval_report  # ty: ignore[import-not-found]

        prediction = {"instance_id": name, "model_patch": "", "model_name_or_path": "rtmc"}
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".log") as file:
            file.write(log)
            file.flush()
            report = get_eval_report(spec, prediction, file.name, include_tests_status=True)[name]
        if not report["patch_successfully_applied"]:
            return None
        status = report["tests_status"]
        # swebench 4 counts a skipped test as neither, and would take a problem whose tests are all
        # skipped for solved.
        repaired = set(status["FAIL_TO_PASS"]["success"])
        unrepaired = [test for test in facts["FAIL_TO_PASS"] if test not in repaired]
        return unrepaired + status["PASS_TO_PASS"]["failure"]

    def _spec(self, facts: Mapping[str, Any]) -> Any:
        try:
            import swebench  # noqa: F401  # ty: ignore[import-not-found]
        except ImportError as error:
            raise MissingExtraError("swebench", "swe-bench") from error
        try:
            from swebench.harness.test_spec.create_scripts import (  # ty: ignore[import-not-found]
                make_eval_script_list,
            )
        except ImportError:
            return _spec_of_row(facts)
        from swebench.harness.constants import MAP_REPO_VERSION_TO_SPECS  # ty: ignore[import-not-found]

        repo, version = facts["repo"], facts["version"]
        if version not in MAP_REPO_VERSION_TO_SPECS.get(repo, {}):
            raise OptionError(
                f"{facts['instance_id']}: the installed swebench has no test command for {repo} "
                f"{version}; is the row of SWE-bench?"
            )
        commands = make_eval_script_list(
            dict(facts),
            MAP_REPO_VERSION_TO_SPECS[repo][version],
            "testbed",
            WORKSPACE,
            facts["base_commit"],
            facts["test_patch"],
        )
        script = "\n".join(["#!/bin/bash", "set -uxo pipefail", *commands]) + "\n"
        names = ("instance_id", "repo", "version", "FAIL_TO_PASS", "PASS_TO_PASS")
        return _Spec(*(facts[name] for name in names), eval_script=script)


def _spec_of_row(facts: Mapping[str, Any]) -> Any:
    """Make a ``TestSpec`` of swebench 5."""
    missing = [name for name in ("eval_script", "log_parser", "eval_type") if name not in facts]
    if missing:
        raise OptionError(
            f"{facts['instance_id']}: the row has no {', '.join(missing)}, as those published "
            "before swebench 5; take newer rows, or pip install 'swebench>=4.1,<5'"
        )
    from swebench.harness.utils import make_test_spec  # ty: ignore[import-not-found]

    return make_test_spec(dict(facts))
