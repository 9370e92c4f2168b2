"""SWE-bench: rows as published before and since swebench 5, images as built, a scripted engine."""

import importlib
import json
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from engine import BROKEN, FIXED, Engine, git, make_python, make_repository, put
from rows import write_rows

from rtmc.agent.tasks.images import SweBench, apply_patch
from rtmc.agent.tasks.images.r2e_gym import parse_summary
from rtmc.agent.tasks.images.swe_bench import SwebenchPackage
from rtmc.errors import MissingExtraError, OptionError

OLD_TEST = "from calc import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
NEW_TEST = OLD_TEST.replace("import total", "import mean, total") + (
    "\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n"
)
MEND = "sed -i 's/(len(values) + 1)/len(values)/' calc/__init__.py"
FAIL, KEEP = "tests/test_calc.py::test_mean", "tests/test_calc.py::test_total"

# The shape of a row's eval_script: the tests anew, the patch of them, the run between two marks.
SCRIPT = """#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git checkout {base} tests/test_calc.py
git apply -v - <<'EOF_114329324912'
{test_patch}
EOF_114329324912
: '>>>>> Start Test Output'
pytest -rA tests/test_calc.py
: '>>>>> End Test Output'
git checkout {base} tests/test_calc.py
"""


def diff_of(tmp_path: Path, path: str, old: str, new: str) -> str:
    folder = tmp_path / "diff"
    put(folder, {path: old})
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    put(folder, {path: new})
    return git(folder, "diff", "--", path)


def published(**more: Any) -> dict[str, Any]:
    """Give a row of SWE-bench_Verified with the columns it always had."""
    return {
        "repo": "pallets/flask",
        "instance_id": "pallets__flask-5014",
        "base_commit": "7ee9ceb71e868944a46e1ff00b506772a53a4f1d",
        "patch": "diff --git a/calc/__init__.py b/calc/__init__.py\n",
        "test_patch": "diff --git a/tests/test_calc.py b/tests/test_calc.py\n"
        "--- a/tests/test_calc.py\n+++ b/tests/test_calc.py\n",
        "problem_statement": "mean is wrong\r\n\r\nmean([2]) gives 1.\r\n",
        "hints_text": "look at the denominator",
        "created_at": "2023-03-04T18:36:21Z",
        "version": "2.3",
        "FAIL_TO_PASS": json.dumps([FAIL]),
        "PASS_TO_PASS": json.dumps([KEEP]),
        "environment_setup_commit": "182ce3dd15dfa3537391c3efaf9c3ff407d134d4",
        "difficulty": "<15 min fix",
        **more,
    }


class PlainHarness:
    """For these tests: the row's script, and pytest's summary."""

    def script(self, facts: Mapping[str, Any]) -> str:
        return facts["eval_script"]

    def failed(self, facts: Mapping[str, Any], log: str) -> list[str] | None:
        outcomes = parse_summary(log)
        wanted = facts["FAIL_TO_PASS"] + facts["PASS_TO_PASS"]
        return (
            [t for t in wanted if outcomes.get(t.split("::")[1]) != "PASSED"] if outcomes else None
        )


@pytest.fixture(scope="module")
def image(tmp_path_factory, containers) -> tuple[Path, dict[str, Any]]:
    """An image, and a row since swebench 5 for it."""
    tmp_path = tmp_path_factory.mktemp("swe")
    root = tmp_path / "image"
    _, parent = make_repository(root / "testbed")
    make_python(root / "opt/miniconda3/envs/testbed")
    put(root, {
        "opt/miniconda3/bin/activate": (
            "conda() { export PATH=/opt/miniconda3/envs/$2/bin:$PATH; }\n"
            "export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1\n"
        ),
    })  # fmt: skip
    test_patch = diff_of(tmp_path, "tests/test_calc.py", OLD_TEST, NEW_TEST)
    return root, published(
        base_commit=parent,
        patch=diff_of(tmp_path, "calc/__init__.py", BROKEN, FIXED),
        test_patch=test_patch,
        image="swebench/sweb.eval.x86_64.pallets_1776_flask-5014:latest",
        eval_script=SCRIPT.format(base=parent, test_patch=test_patch),
        log_parser="parse_log_pytest",
        eval_type="pass_and_fail",
    )


@pytest.fixture
def engine(image) -> Engine:
    return Engine({"sweb.eval.x86_64.pallets_1776_flask-5014": image[0]})


@pytest.fixture
def task(image, engine, tmp_path) -> SweBench:
    path = write_rows(tmp_path / "rows.jsonl", [image[1]])
    return SweBench([path], engine.opener(), seconds=20, harness=PlainHarness())


# --- rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("lists", [json.loads, str])
def test_rows(tmp_path, suffix, lists):
    old = published(FAIL_TO_PASS=lists(json.dumps([FAIL])), PASS_TO_PASS=lists(json.dumps([KEEP])))
    path = write_rows(tmp_path / f"rows.{suffix}", [old])
    task = SweBench([path], Engine().opener())
    (problem,) = task.problems
    assert task.name == "swe-bench"
    assert problem.problem_id == "pallets__flask-5014"
    assert problem.text == "mean is wrong\r\n\r\nmean([2]) gives 1."
    assert problem.must_pass == (FAIL, KEEP)
    assert problem.facts == {
        "instance_id": "pallets__flask-5014",
        "repo": "pallets/flask",
        "base_commit": "7ee9ceb71e868944a46e1ff00b506772a53a4f1d",
        "version": "2.3",
        "patch": old["patch"],
        "test_patch": old["test_patch"],
        "FAIL_TO_PASS": [FAIL],
        "PASS_TO_PASS": [KEEP],
        "image": "swebench/sweb.eval.x86_64.pallets_1776_flask-5014:latest",
    }


def test_rows_since_version_5(tmp_path):
    new = published(image="other/image:1", eval_script="x", log_parser="y", eval_type="z")
    path = write_rows(tmp_path / "rows.parquet", [new])
    (problem,) = SweBench([path], Engine().opener()).problems
    names = ("image", "eval_script", "log_parser", "eval_type")
    assert [problem.facts[name] for name in names] == ["other/image:1", "x", "y", "z"]


def test_broken_rows(tmp_path):
    rows = [
        published(FAIL_TO_PASS="['single quotes']"),
        published(PASS_TO_PASS=[1]),
        published(FAIL_TO_PASS="[]"),
        published(),
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    task = SweBench([path], Engine().opener())
    assert len(task.problems) == 1
    assert [str(skipped).removeprefix(f"{path}:") for skipped in task.skipped] == [
        "1: FAIL_TO_PASS is no list of names (JSON is malformed: invalid character (byte 1))",
        "2: Expected `str`, got `int` - at `$.PASS_TO_PASS[0]`",
        "3: FAIL_TO_PASS is empty: no test tells a solution from none",
    ]


# --- containers ------------------------------------------------------------------------------


def test_what_the_agent_sees(task, engine, start):
    _, _, box = start(task)
    assert box.read("tests/test_calc.py").decode() == OLD_TEST
    assert box.run("git status --porcelain").output == ""
    assert box.run("git log --all --format=%s").output == "State of the image\ncalc\n"
    assert box.run("which python pytest").output == (
        "/opt/miniconda3/envs/testbed/bin/python\n/opt/miniconda3/envs/testbed/bin/pytest\n"
    )
    assert engine.created[0].asked["entrypoint"][0] == "/opt/miniconda3/envs/testbed/bin/python"


def test_the_reference_gets_1(task, start):
    _, problem, box = start(task)
    assert apply_patch(box, problem.facts["patch"].encode())
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed, judgement.reason) == (1.0, (), "")


def test_doing_nothing_gets_0(task, engine, start):
    _, problem, box = start(task)
    assert task.judge(problem, box).reward == 0.0
    box.write("notes.txt", b"x\n")  # something, so that the tests run
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed, judgement.reason) == (0.0, (FAIL,), "")


def test_edits_of_the_deciding_tests_do_not_count(task, start):
    _, problem, box = start(task)
    box.write("tests/test_calc.py", b"def test_mean(): pass\ndef test_total(): pass\n")
    box.write("tests/conftest.py", b"collect_ignore_glob = ['*']\n")
    assert b"test_calc.py" not in task.patch(problem, box)
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.reason) == (0.0, "the agent changed nothing that counts")
    box.run(MEND)
    assert task.judge(problem, box).reward == 1.0


def test_steering_that_the_reference_changes_counts(image, engine, tmp_path, start):
    changed = {**image[1], "patch": image[1]["patch"] + "diff --git a/setup.cfg b/setup.cfg\n"}
    path = write_rows(tmp_path / "rows.jsonl", [changed])
    task, problem, box = start(SweBench([path], engine.opener(), harness=PlainHarness()))
    box.run(MEND)
    box.write("setup.cfg", b"[tool:pytest]\naddopts = --collect-only\n")
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.reason) == (0.0, "the tests printed no outcome")


def test_a_script_that_ends_before_the_tests(image, engine, tmp_path, start):
    path = write_rows(tmp_path / "rows.jsonl", [{**image[1], "eval_script": "echo no conda\n"}])
    task, problem, box = start(SweBench([path], engine.opener(), harness=PlainHarness()))
    box.run(MEND)
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed) == (None, problem.must_pass)
    assert judgement.reason == "the script ended before the tests: no conda"


def test_out_of_time(image, engine, tmp_path, start):
    path = write_rows(tmp_path / "rows.jsonl", [{**image[1], "eval_script": "sleep 60"}])
    task, problem, box = start(
        SweBench([path], engine.opener(), seconds=0.3, harness=PlainHarness())
    )
    box.run(MEND)
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.reason) == (0.0, "the tests ran longer than 0.3 s")


# --- the package swebench --------------------------------------------------------------------


def test_swebench_is_not_installed(tmp_path, monkeypatch):
    """Before a container starts: nothing could judge what the agent does."""
    monkeypatch.setitem(sys.modules, "swebench", None)
    path = write_rows(tmp_path / "rows.jsonl", [published()])
    engine = Engine()
    task = SweBench([path], engine.opener())
    with pytest.raises(MissingExtraError, match=r"pip install 'rtmc\[swe-bench\]'"):
        task.open(task.problems[0])


@pytest.fixture(scope="module")
def major() -> int:
    """The version of the installed package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("swebench", reason="the extra swe-bench is not installed")
        importlib.import_module("swebench.harness.grading")
        importlib.import_module("swebench.harness.utils")
    return int(importlib.import_module("swebench").__version__.split(".")[0])


def facts_of(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "FAIL_TO_PASS": [FAIL], "PASS_TO_PASS": [KEEP]}


def test_the_script_of_the_package(major):
    facts = facts_of(published(eval_script=SCRIPT, image="i", log_parser="parse_log_pytest",
                               eval_type="pass_and_fail"))  # fmt: skip
    script = SwebenchPackage().script(facts)
    marks = [script.index(f">>>>> {word} Test Output") for word in ("Start", "End")]
    assert "pytest -rA tests/test_calc.py" in script[slice(*marks)]
    assert script.index("git checkout") < script.index("git apply -v -") < marks[0]


def test_a_row_of_before_version_5(major):
    facts = facts_of(published())
    if major < 5:
        assert "conda activate testbed" in SwebenchPackage().script(facts)
        with pytest.raises(OptionError, match="no test command for pallets/flask 99"):
            SwebenchPackage().script({**facts, "version": "99"})
    else:
        with pytest.raises(OptionError) as caught:
            SwebenchPackage().script(facts)
        assert str(caught.value) == (
            "pallets__flask-5014: the row has no eval_script, log_parser, eval_type, as those "
            "published before swebench 5; take newer rows, or pip install 'swebench>=4.1,<5'"
        )


@pytest.mark.parametrize(
    ("lines", "failed"),
    [
        ([f"PASSED {FAIL}", f"PASSED {KEEP}"], []),
        ([f"PASSED {FAIL}", f"FAILED {KEEP} - assert 1"], [KEEP]),
        ([f"SKIPPED {FAIL}", f"PASSED {KEEP}"], [FAIL]),
        ([f"PASSED {FAIL}"], [KEEP]),
        ([], None),
    ],
)
def test_the_outcomes_of_the_package(major, lines, failed):
    facts = facts_of(published(eval_script=SCRIPT, image="i", log_parser="parse_log_pytest",
                               eval_type="pass_and_fail"))  # fmt: skip
    log = "\n".join(["+ : '>>>>> Start Test Output'", *lines, "+ : '>>>>> End Test Output'", ""])
    found = SwebenchPackage().failed(facts, log)
    if major < 5 and failed is None:
        failed = [FAIL, KEEP]  # it does not tell a run without outcomes from one that failed
    assert found == failed


def test_the_package_judges(major, image, engine, tmp_path, start):
    """From the row to the reward with SWE-bench's own grading; only the engine is scripted."""
    if major < 5:
        pytest.skip("the script of swebench 4 installs the repository, which needs a network")
    path = write_rows(tmp_path / "rows.jsonl", [image[1]])
    task, problem, box = start(SweBench([path], engine.opener()))
    box.write("notes.txt", b"x\n")
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed) == (0.0, (FAIL,))
    box.run(MEND)
    assert task.judge(problem, box).reward == 1.0
