"""R2E-Gym: rows as published, images as built, on a scripted engine."""

import json
from pathlib import Path
from typing import Any

import pytest
from engine import FIXED, Engine, git, make_python, make_repository, put
from rows import write_rows

from rtmc.agent.tasks.images import R2EGym, apply_patch
from rtmc.agent.tasks.images.r2e_gym import parse_summary, reference_patch
from rtmc.errors import FormatError, SandboxError

IMAGE = "namanjain12/calc_final"
HIDDEN_TESTS = """import calc


class TestMean:
    def test_mean(self):
        print("x" * 100_000)  # more than a sandbox keeps of an output
        assert calc.mean([1, 3]) == 2

    def test_old(self):
        assert calc.mean([]) == 0


def test_total():
    assert calc.total([1, 2]) == 3
"""
EXPECTED = {
    "TestMean.test_mean": "PASSED",
    "\x1b[1mtest_total\x1b[0m": "PASSED",
    "TestMean.test_old - ZeroDivisionError": "FAILED",
}
MEND = "sed -i 's/(len(values) + 1)/len(values)/' calc/__init__.py"


def file_diff(path: str, old: list[str], new: list[str], start: int) -> dict[str, Any]:
    """Give a file of a commit, with a line of context before and two after."""
    lines = [{"content": "def mean(values):", "type": "context"}]
    lines += [{"content": line, "type": "deleted"} for line in old]
    lines += [{"content": line, "type": "added"} for line in new]
    lines += 2 * [{"content": "", "type": "context"}]
    return {
        "old_file_content": "",
        "new_file_content": "",
        "header": {"file": {"path": path}, "misc_line": None},
        "index_line": {"old_commit_hash": "1" * 7, "new_commit_hash": "2" * 7, "mode": "100644"},
        "is_binary_file": False,
        "binary_line": None,
        "minus_file": {"path": f"a/{path}"},
        "plus_file": {"path": f"b/{path}"},
        "hunks": [
            {
                "descriptor": {
                    "old_range": {"start": start, "length": len(old) + 3},
                    "new_range": {"start": start, "length": len(new) + 3},
                    "section": "def mean(values):",
                },
                "line_group": {"all_lines": lines},
                "modified_entities": [],
            }
        ],
    }


def row(commit: str, repo: str = "calc") -> dict[str, Any]:
    """Give a row with every column of R2E-Gym-Subset."""
    diffs = [
        file_diff(
            "calc/__init__.py",
            ["    return sum(values) / (len(values) + 1)"],
            ["    return sum(values) / len(values)"],
            4,
        ),
        file_diff("tests/test_calc.py", ["old"], ["new"], 1),
        file_diff("README.md", ["old"], ["new"], 1),
    ]
    return {
        "repo_name": repo,
        "docker_image": f"{IMAGE}:{commit}",
        "commit_hash": commit,
        "parsed_commit_content": json.dumps(
            {
                "file_diffs": diffs,
                "old_commit_hash": f"{commit}^",
                "new_commit_hash": commit,
                "commit_message": "Mend mean",
                "commit_date": "2020-01-01T00:00:00",
                "metadata": {},
            }
        ),
        "execution_result_content": json.dumps({"test_file_codes": [HIDDEN_TESTS]}),
        "modified_files": ["calc/__init__.py"],
        "modified_entity_summaries": [{"name": "mean", "start_lineno": 4}],
        "relevant_files": ["calc/__init__.py"],
        "num_non_test_files": 1,
        "num_non_test_func_methods": 1,
        "num_non_test_lines": 2,
        "prompt": "Write an issue …",
        "problem_statement": "[ISSUE]\n\n**Title:** mean is wrong\n\nmean([2]) gives 1.\n[/ISSUE]",
        "expected_output_json": json.dumps(EXPECTED),
    }


@pytest.fixture(scope="module")
def image(tmp_path_factory, containers) -> tuple[Path, str]:
    """An image, and the commit that is its problem."""
    root = tmp_path_factory.mktemp("r2e") / "image"
    commit, _ = make_repository(root / "testbed")
    make_python(root / "testbed/.venv")
    run = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 .venv/bin/python -m pytest -rA r2e_tests"
    put(root, {
        "testbed/run_tests.sh": run,
        "testbed/expected_test_output.json": "{}",
        "r2e_tests/__init__.py": "",
        "r2e_tests/test_1.py": HIDDEN_TESTS,
        "root/parsed_commit.json": "{}",
    })  # fmt: skip
    return root, commit


@pytest.fixture
def engine(image) -> Engine:
    return Engine({"calc_final": image[0]})


@pytest.fixture
def task(image, engine, tmp_path) -> R2EGym:
    path = write_rows(tmp_path / "rows.jsonl", [row(image[1])])
    return R2EGym([path], engine.opener(), seconds=20)


# --- rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_rows(tmp_path, suffix):
    rows = [row("a" * 40), row("b" * 40, "pandas"), row("c" * 40, "sympy")]
    task = R2EGym([write_rows(tmp_path / f"rows.{suffix}", rows)], Engine().opener())
    assert [problem.problem_id for problem in task.problems] == [
        "calc__" + "a" * 40,
        "pandas__" + "b" * 40,
        "sympy__" + "c" * 40,
    ]
    problem = task.problems[0]
    assert problem.text == "**Title:** mean is wrong\n\nmean([2]) gives 1."
    assert problem.must_pass == ("TestMean.test_mean", "test_total")
    assert not problem.files
    assert problem.facts == {
        "repo": "calc",
        "base_commit": "a" * 40 + "^",
        "image": f"{IMAGE}:{'a' * 40}",
        "patch": (
            "diff --git a/calc/__init__.py b/calc/__init__.py\nindex 1111111..2222222 100644\n"
            "--- a/calc/__init__.py\n+++ b/calc/__init__.py\n"
            "@@ -4,4 +4,4 @@ def mean(values):\n def mean(values):\n"
            "-    return sum(values) / (len(values) + 1)\n+    return sum(values) / len(values)\n"
            " \n \n"
        ),
    }
    assert task.name == "r2e-gym"


def test_without_the_repositories_of_swe_bench(tmp_path):
    rows = [row("a" * 40, name) for name in ("sympy", "pandas", "orange3", "Flask")]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    task = R2EGym([path], Engine().opener(), without_swe_bench_repos=True)
    assert [problem.facts["repo"] for problem in task.problems] == ["pandas", "orange3"]
    assert not task.skipped


def test_broken_rows_are_named_and_the_others_are_read(tmp_path):
    broken: list[Any] = [row(letter * 40) for letter in "abcde"]
    del broken[0]["docker_image"]
    broken[1]["expected_output_json"] = "[]"
    broken[2]["parsed_commit_content"] = '{"file_diffs": 1}'
    broken[3]["expected_output_json"] = '{"test_old": "FAILED"}'
    path = write_rows(tmp_path / "rows.jsonl", [*broken, row("e" * 40)])
    path.write_text(path.read_text() + '\n{"repo_name":\n')
    task = R2EGym([path], Engine().opener())
    assert [problem.problem_id for problem in task.problems] == ["calc__" + "e" * 40]
    assert [str(skipped).removeprefix(f"{path}:") for skipped in task.skipped] == [
        "1: Object missing required field `docker_image`",
        "2: expected_output_json is no object of outcomes by test (Expected `object`, got `array`)",
        "3: parsed_commit_content is no commit (Expected `array`, got `int` - at `$.file_diffs`)",
        f"4: calc__{'d' * 40}: no test decides; name some in must_pass",
        f"6: calc__{'e' * 40} for a second time",
        "8: Input data was truncated",
    ]


def test_no_problem_at_all(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("{}\n")
    with pytest.raises(FormatError) as caught:
        _ = R2EGym([path], Engine().opener()).problems
    assert str(caught.value) == (
        f"{path}: no problem of R2E-Gym; the first of 1 skipped: {path}:1: Object missing required "
        "field `repo_name`"
    )


def test_a_reference_that_makes_and_removes_files(tmp_path):
    made = file_diff("new.py", [], ["x = 1"], 1)
    made["header"]["misc_line"] = "new file mode 100644"
    made["minus_file"]["path"] = "/dev/null"
    place = made["hunks"][0]["descriptor"]
    place["old_range"], place["section"] = {"start": 0, "length": 0}, ""
    place["new_range"] = {"start": 1, "length": None}
    made["hunks"][0]["line_group"]["all_lines"] = [
        {"content": "x = 1", "type": "added"},
        {"content": "No newline at end of file", "type": "note"},
    ]
    empty = {
        "header": {"file": {"path": "empty.py"}, "misc_line": "new file mode 100644"},
        "index_line": {"old_commit_hash": "0" * 7, "new_commit_hash": "e69de29", "mode": ""},
    }
    git(tmp_path, "init", "-q")
    (tmp_path / "p").write_text(reference_patch(json.dumps({"file_diffs": [made, empty]})))
    git(tmp_path, "apply", "p")
    assert (tmp_path / "new.py").read_bytes() == b"x = 1"
    assert (tmp_path / "empty.py").read_bytes() == b""


# --- the log ---------------------------------------------------------------------------------


def test_summary():
    log = """
PASSED r2e_tests/test_0.py::test_before_the_summary
=================== \x1b[36m\x1b[1mshort test summary info\x1b[0m ===================\r
\x1b[32mPASSED\x1b[0m r2e_tests/test_1.py::\x1b[1mtest_a\x1b[0m\r
PASSED r2e_tests/test_1.py::TestB::test_b[x - 1]
PASSED r2e_tests/test_1.py::test_twice
FAILED r2e_tests/test_2.py::test_twice - AssertionError: PASSED
PASSED r2e_tests/test_3.py::test_twice
SKIPPED [1] r2e_tests/test_1.py:7: no display
XFAIL r2e_tests/test_1.py::test_x
ERROR r2e_tests/test_4.py - ModuleNotFoundError: No module named 'x'
ERROR r2e_tests/test_1.py::test_e - fixture 'y' not found
=================== 3 failed, 2 passed in 0.1s ===================
"""
    assert parse_summary(log) == {
        "test_a": "PASSED",
        "TestB.test_b[x": "PASSED",  # as in the rows: R2E-Gym cuts there
        "test_twice": "FAILED",
        "": "ERROR",
        "test_e": "ERROR",
    }


def test_no_summary():
    assert parse_summary("collected 0 items\n") == {}


# --- containers ------------------------------------------------------------------------------


def test_what_the_agent_sees(task, engine, image, start):
    _, _, box = start(task)
    seen = box.run("ls -A . / /root; find /testbed /tmp -name test_1.py").output
    assert "calc" in seen
    for name in ("run_tests.sh", "r2e_tests", "expected_test", "parsed_commit", "test_1"):
        assert name not in seen
    assert box.run("git status --porcelain; git stash list").output == ""
    assert box.run("git log --all --format=%s").output == "State of the image\ncalc\n"
    assert box.run("git tag; git branch -a --format='%(refname)'").output.count("\n") == 1
    fix = box.run(f"git cat-file -t {image[1]}")
    assert fix.exit_code != 0
    assert box.run("git fsck --lost-found 2>&1").output == ""
    assert box.run("which python pytest").output == (
        "/testbed/.venv/bin/python\n/testbed/.venv/bin/pytest\n"
    )
    assert box.run("PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest -q tests").exit_code == 0
    asked = engine.created[0].asked
    assert asked["working_dir"] == "/testbed"
    assert asked["entrypoint"][0] == "/testbed/.venv/bin/python"
    assert asked["network_mode"] == "none"


def test_the_reference_gets_1(task, engine, start):
    _, problem, box = start(task)
    assert apply_patch(box, problem.facts["patch"].encode())
    assert box.read("calc/__init__.py").decode() == FIXED
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed, judgement.reason) == (1.0, (), "")
    assert judgement.seconds > 0
    assert [container.removed for container in engine.created] == [False, True]


def test_a_change_that_is_committed_counts(task, start):
    _, problem, box = start(task)
    assert box.run(f"{MEND} && git -c user.name=a -c user.email=a commit -qam x").exit_code == 0
    assert task.judge(problem, box).reward == 1.0


def test_doing_nothing_gets_0_without_a_run(task, engine, start):
    _, problem, box = start(task)
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed) == (0.0, problem.must_pass)
    assert judgement.reason == "the agent changed nothing"
    assert len(engine.created) == 1


def test_a_change_that_solves_nothing(task, start):
    _, problem, box = start(task)
    box.write("calc/other.py", b"x = 1\n")
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed) == (0.0, ("TestMean.test_mean",))


def test_a_change_that_breaks_all(task, start):
    _, problem, box = start(task)
    box.write("calc/__init__.py", b"def")
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.failed) == (0.0, problem.must_pass)


CHEAT = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


def test_what_does_not_count(task, start):
    """Tests, their script, pytest's steering, the interpreter, other files of the image."""
    _, problem, box = start(task)
    box.run("> .git/info/exclude; mkdir /r2e_tests r2e_tests")
    for path in ("conftest.py", "calc/conftest.py", "calc.egg-info/x.py"):
        box.write(path, CHEAT.encode())
    box.write("r2e_tests/test_1.py", b"class TestMean:\n    def test_mean(self): pass\n")
    box.write("run_tests.sh", b"echo short test summary info; echo PASSED a::TestMean::test_mean")
    box.write("setup.cfg", b"[tool:pytest]\naddopts = --collect-only\n")
    box.write(".venv/cheat.pth", b"import os; os._exit(0)\n")
    patch = task.patch(problem, box)
    assert b"conftest.py" in patch
    assert b".venv/cheat.pth" in patch  # an agent can have it there; what counts is below
    assert b"r2e_tests" not in patch
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.reason) == (0.0, "the agent changed nothing that counts")
    box.run(MEND)
    assert task.judge(problem, box).reward == 1.0


def test_the_patch(task, start):
    """Changed, new, removed, binary; not what lay there before, nor what git ignores."""
    _, problem, box = start(task)
    box.write("calc/data.bin", bytes(range(256)))
    box.write("calc/name with ü [1].py", b"x = 1\n")
    box.write(".gitignore", b"*.log\n")
    box.write("a.log", b"x")
    box.run(
        "rm tests/test_calc.py; echo x >> calc.egg-info/PKG-INFO; git add calc; git rm -q setup.cfg"
    )
    patch = task.patch(problem, box)
    assert box.run("git status --porcelain").output.count("A ") == 2  # the agent's index is left
    for name in (b"data.bin", b"[1].py", b".gitignore", b"test_calc.py", b"setup.cfg"):
        assert b" b/calc/" + name in patch or name in patch
    assert b"a.log" not in patch
    assert b"PKG-INFO" not in patch
    assert b"GIT binary patch" in patch
    with task.open(problem) as other:
        assert apply_patch(other, patch)
        assert other.read("calc/data.bin") == bytes(range(256))
        assert other.read("calc/name with ü [1].py") == b"x = 1\n"
        assert other.run("test -e tests/test_calc.py").exit_code == 1
        assert other.run("test -e setup.cfg").exit_code == 0  # steers pytest


def test_no_repository_left(task, start):
    _, problem, box = start(task)
    box.run("rm -rf .git")
    judgement = task.judge(problem, box)
    assert judgement.reward == 0.0
    assert judgement.reason.startswith("git gives no patch of what the agent did: ")


def test_out_of_time(image, engine, tmp_path, start):
    path = write_rows(tmp_path / "rows.jsonl", [row(image[1])])
    task, problem, box = start(R2EGym([path], engine.opener(), seconds=0.5))
    box.write("calc/__init__.py", b"import time\n\ntime.sleep(60)\n")
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.reason) == (0.0, "the tests ran longer than 0.5 s")
    assert judgement.seconds < 20


def test_code_that_ends_the_tests(task, start):
    _, problem, box = start(task)
    box.write("calc/__init__.py", b"import os\n\nos._exit(0)\n")
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.reason) == (0.0, "the tests printed no summary")


def test_an_image_without_tests(image, engine, tmp_path, start):
    import shutil

    bare = tmp_path / "image"
    shutil.copytree(image[0], bare, symlinks=True)
    shutil.rmtree(bare / "r2e_tests")
    path = write_rows(tmp_path / "rows.jsonl", [row(image[1])])
    task, problem, box = start(R2EGym([path], Engine({"calc_final": bare}).opener()))
    box.run(MEND)
    judgement = task.judge(problem, box)
    assert (judgement.reward, judgement.reason) == (
        None,
        "the image lacks /r2e_tests or run_tests.sh",
    )


def test_an_image_without_a_repository(image, tmp_path):
    import shutil

    bare = tmp_path / "image"
    shutil.copytree(image[0], bare, symlinks=True)
    shutil.rmtree(bare / "testbed/.git")
    engine = Engine({"calc_final": bare})
    path = write_rows(tmp_path / "rows.jsonl", [row(image[1])])
    task = R2EGym([path], engine.opener())
    with pytest.raises(SandboxError, match="the image is not as expected: its repository cannot"):
        task.open(task.problems[0])
    assert engine.created[0].removed


def test_no_such_image(tmp_path):
    path = write_rows(tmp_path / "rows.jsonl", [row("a" * 40)])
    task = R2EGym([path], Engine().opener())
    with pytest.raises(
        SandboxError, match=r"Docker has no image namanjain12/calc_final:a+; get it"
    ):
        task.open(task.problems[0])
