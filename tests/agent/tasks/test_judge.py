"""Pytest decides, on what the agent left behind, whatever it did to the tests."""

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from here import opener

from rtmc.agent.tasks.base import FilesTask, Problem
from rtmc.agent.tasks.memory import Memory
from rtmc.errors import OptionError

PROBLEM = Problem(
    "sum",
    "add(1, 2) should be 3.",
    files={
        "calc.py": b"def add(a, b):\n    return a - b\n",
        "test_calc.py": b"from calc import add\n\ndef test_zero():\n    assert add(0, 0) == 0\n",
    },
    tests={
        "test_calc.py": b"from calc import add\n\n"
        b"def test_zero():\n    assert add(0, 0) == 0\n\n"
        b"def test_add():\n    assert add(1, 2) == 3\n",
    },
    must_pass=("test_calc.py::test_zero", "test_calc.py::test_add"),
)
FIX = {"calc.py": b"def add(a, b):\n    return a + b\n"}


def judged(problem=PROBLEM, seconds=60.0, command="true", **files):
    task = FilesTask("t", [problem], opener, seconds)
    with task.open(problem) as sandbox:
        sandbox.put(files)
        assert sandbox.run(command).exit_code == 0
        return task.judge(problem, sandbox)


def test_the_hidden_test_decides():
    nothing = judged()
    assert (nothing.reward, nothing.failed) == (0.0, ("test_calc.py::test_add",))
    mended = judged(**FIX)
    assert (mended.reward, mended.failed, mended.reason) == (1.0, (), "")
    assert mended.seconds > 0


@pytest.mark.parametrize(
    "files",
    [
        {"test_calc.py": b"def test_zero(): pass\n\ndef test_add(): pass\n"},
        {"conftest.py": b"import pytest\n\n@pytest.hookimpl(wrapper=True)\n"
                        b"def pytest_runtest_makereport():\n    report = yield\n"
                        b"    report.outcome = 'passed'\n    return report\n"},
        {"pytest.ini": b"[pytest]\naddopts = -k zero\n"},
        {"setup.cfg": b"[tool:pytest]\naddopts = --collect-only\n"},
        {"sub/conftest.py": b"raise SystemExit(0)\n", "pyproject.toml": b"[tool.pytest.ini_options]"
                                                                        b"\naddopts = '--co'\n"},
        {"pytest.py": b"def main(*_, **__): return 0\n", "_pytest/__init__.py": b""},
        {"json.py": b"raise SystemExit(0)\n"},
        {"sitecustomize.py": b"import os; os._exit(0)\n"},
    ],
    ids=lambda files: next(iter(files)),
)  # fmt: skip
def test_what_the_agent_does_to_the_tests_does_not_count(files):
    assert judged(**files).reward == 0.0
    assert judged(**FIX, **files).reward == 1.0


def test_settings_of_the_repository_itself_hold():
    problem = Problem(
        "src", "x", {**PROBLEM.files, "pytest.ini": b"[pytest]\npythonpath = src\n",
                     "src/calc.py": PROBLEM.files["calc.py"]},
        {"tests/test_calc.py": PROBLEM.tests["test_calc.py"]},
        ("tests/test_calc.py::test_add",),
    )  # fmt: skip
    bad = {"pytest.ini": b"[pytest]\naddopts = --co\n"}
    assert judged(problem, **bad).reward == 0.0
    assert (
        judged(problem, command="rm -r *.ini *.py", **{"src/calc.py": FIX["calc.py"]}).reward == 1
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"import os\nos._exit(0)\n", "pytest ended without a report"),
        (b"def add(a, b\n", ""),
        (b"raise KeyboardInterrupt\n", ""),
        (b"import os\nos.kill(os.getpid(), 9)\n", "pytest ended without a report"),
    ],
    ids=["exits", "syntax", "interrupts", "kills"],
)
def test_code_that_breaks_the_run_fails(code, reason):
    found = judged(**{"calc.py": code})
    assert found.reward == 0.0
    assert found.failed == PROBLEM.must_pass
    assert found.reason.startswith(reason)


def test_code_that_never_ends_fails():
    found = judged(seconds=1.0, **{"calc.py": b"def add(a, b):\n    while True: pass\n"})
    assert (found.reward, found.reason) == (0.0, "the tests ran longer than 1 s")


def test_a_run_that_collects_no_test_is_an_error():
    problem = Problem("none", "x", {}, {"test_a.py": b"x = 1\n"}, ("test_a.py::test_a",))
    found = judged(problem)
    assert (found.reward, found.reason) == (None, "no test was collected")
    missing = Problem(
        "none", "x", {}, {"test_b.py": b"def test_a(): pass\n"}, ("test_a.py::test_a",)
    )
    found = judged(missing)
    assert (found.reward, found.reason) == (None, "pytest could not be called so")


def test_skipped_is_not_passed():
    skips = b"import pytest\n\n@pytest.mark.skip\ndef test_a(): pass\n"
    problem = Problem("skip", "x", {}, {"test_a.py": skips}, ("test_a.py::test_a",))
    assert judged(problem).reward == 0.0
    teardown = b"import pytest\n\n@pytest.fixture\ndef x():\n    yield\n    assert 0\n\n" \
               b"def test_a(x): pass\n"  # fmt: skip
    problem = Problem("late", "x", {}, {"test_a.py": teardown}, ("test_a.py::test_a",))
    assert judged(problem).reward == 0.0


def test_what_the_agent_left_running_is_not_there():
    found = judged(command="(sleep 60; rm -f calc.py) & touch /tmp/mark", **FIX)
    assert found.reward == 1.0


def test_a_problem_without_a_test_is_refused():
    with pytest.raises(OptionError, match="lazy: no test decides"):
        Problem("lazy", "x")


def remembering():
    """Give a task that remembers, and a list that grows by each sandbox it opens."""
    opened = []

    def counted(**options):
        opened.append(1)
        return opener(**options)

    return FilesTask("t", [PROBLEM], counted, memory=Memory()), opened


def test_what_was_left_alike_is_judged_once():
    task, opened = remembering()
    left = [FIX, FIX, {}, {"calc.py": FIX["calc.py"] + b"\n"}, FIX | {".pytest_cache/x": b"1"},
            FIX | {"__pycache__/calc.pyc": b"1"}]  # fmt: skip
    found = []
    for files in left:
        with task.open(PROBLEM) as sandbox:
            sandbox.put(files)
            found.append(task.judge(PROBLEM, sandbox))
    assert [one.reward for one in found] == [1, 1, 0, 1, 1, 1]
    assert found[0] == found[1] == found[4]
    assert len(opened) == 6 + 4
    other = msgspec.structs.replace(PROBLEM, problem_id="other")
    with task.open(other) as sandbox:
        sandbox.put(FIX)
        assert task.judge(other, sandbox).reward == 1
    assert len(opened) == 6 + 4 + 2


def test_links_and_modes_are_told_apart():
    task, opened = remembering()
    commands = ["ln -s calc.py other.py", "ln -s test_calc.py other.py", "chmod 400 calc.py",
                "ln -s calc.py other.py", "chmod 400 calc.py", "true"]  # fmt: skip
    for command in commands:
        with task.open(PROBLEM) as sandbox:
            assert sandbox.run(command).exit_code == 0
            task.judge(PROBLEM, sandbox)
    assert len(opened) == 6 + 4


def test_why_tests_could_not_decide_is_not_remembered():
    task, opened = remembering()
    for _ in range(2):
        with task.open(PROBLEM) as sandbox:
            sandbox.put({"calc.py": b"import os\nos._exit(0)\n"})
            assert task.judge(PROBLEM, sandbox).reason
    assert len(opened) == 4
