"""Building problems of a small package, and playing them: no network, real sandboxes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts import native, play
from seeded_package import write_sdist

from rtmc.agent.sandbox import open_sandbox
from rtmc.agent.tasks.seeded import SeededTask, Settings, build, fix_of, packages, read_problems
from rtmc.agent.tasks.seeded.packages import choose, fetch, unpack
from rtmc.agent.tools import Workbench
from rtmc.cli import main
from rtmc.errors import FormatError, OptionError, SandboxError

COUNT = 4


def opener():
    try:
        return open_sandbox("warm")
    except SandboxError:
        return open_sandbox("local", unsafe=True)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def copy(source, target):
    for path, data in contents(source).items():
        (target / path).parent.mkdir(exist_ok=True)
        (target / path).write_bytes(data)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Have pip know one folder and no index."""
    folder = tmp_path_factory.mktemp("index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(folder))
        yield folder


@pytest.fixture(scope="module")
def package(index):
    return write_sdist(index)


@pytest.fixture(scope="module")
def built(package, tmp_path_factory):
    """Build with one job."""
    folder = tmp_path_factory.mktemp("built")
    summary = build(Settings((package,), COUNT), folder, opener)
    return folder, summary


@pytest.fixture(scope="module")
def task(built):
    return SeededTask(built[0], opener)


def test_what_a_build_says(built):
    folder, summary = built
    assert summary.packages == {"smallsum": COUNT}
    assert sum(summary.kept.values()) == COUNT
    assert len(summary.kept) >= 4  # kinds in turn
    assert sum(summary.tried.values()) == COUNT + sum(summary.reasons.values())
    facts = json.loads((folder / "packages" / "smallsum-1.0.json").read_bytes())
    assert {name.split("::")[1]: why for name, why in facts["left_out"].items()} == {
        "test_flaky": "flaky", "test_slow": "slow", "test_failing": "fails",
    }  # fmt: skip
    assert len(facts["tests"]) == 12
    assert len((folder / "tried.jsonl").read_bytes().splitlines()) == sum(summary.tried.values())


def test_two_jobs_a_kill_and_going_on_give_the_same(built, package, tmp_path):
    """Stop a build with SIGKILL once it has tried something, then go on with two jobs."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import pathlib, msgspec\n"
        "from rtmc.agent.tasks.seeded import Package, Settings, build\n"
        "from test_seeded_build import opener\n"
        "package = msgspec.json.decode(sys.argv[2], type=Package)\n"
        f"build(Settings((package,), {COUNT}, 0, 2), pathlib.Path(sys.argv[3]), opener)\n"
    )
    argv = [
        sys.executable, "-c", code, str(Path(__file__).parent),
        msgspec.json.encode(package).decode(), str(tmp_path),
    ]  # fmt: skip
    process = subprocess.Popen(argv, start_new_session=True)
    tried = tmp_path / "tried.jsonl"
    deadline = time.monotonic() + 60
    while not (tried.exists() and tried.stat().st_size) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "problems.jsonl").exists()
    with tried.open("ab") as file:
        file.write(b'["smallsum-half')  # as a kill within a write leaves it
    build(Settings((package,), COUNT, 0, 2), tmp_path, opener)
    assert contents(tmp_path) == contents(built[0])


def test_the_workspace(task, built):
    (line, *_), problem = read_problems(built[0]), task.problems[0]
    assert len(task.problems) == len(task.problems[1:]) + 1 == COUNT
    assert set(problem.files) <= {
        "LICENSE", "pytest.ini", "smallsum/__init__.py", "tests/test_smallsum.py",
    }  # fmt: skip
    for problem, line in zip(task.problems, read_problems(built[0]), strict=True):
        visible = problem.files["tests/test_smallsum.py"].decode()
        assert set(line.failing) <= set(problem.must_pass)
        for name in line.failing:
            function = name.split("::")[-1].split("[")[0]
            assert f"def {function}(" not in visible
            assert f"def {function}(" in problem.tests["tests/test_smallsum.py"].decode()
        for gone in ("test_flaky", "test_slow", "test_failing"):
            assert gone not in visible
            assert not any(gone in name for name in problem.must_pass)
        with task.open(problem) as sandbox:
            suite = sandbox.exec([*sandbox.python, "-m", "pytest", "-q"])
            assert suite.exit_code == 0, suite.output


def test_the_text_shows_the_bug_and_not_its_place(task):
    for problem in task.problems:
        facts = problem.facts
        assert facts["path"] not in problem.text
        assert "__init__" not in problem.text
        assert "_first" not in problem.text
        assert "line" not in problem.text
        assert "test_" not in problem.text
        program = problem.text.split("```python\n")[1].split("\n```")[0]
        with task.open(problem) as sandbox:
            sandbox.write("example.py", program.encode())
            said = sandbox.run("python example.py").output.strip().splitlines()[-1]
        assert said in problem.text


def oracle(problem):
    """Undo the bug by the facts, with the editor."""
    broken, fixed = fix_of(problem)
    path = problem.facts["path"]
    edit = native(
        "str_replace_editor", command="str_replace", path=path, old_str=broken, new_str=fixed
    )
    return [[edit], [native("finish")]]


@pytest.mark.parametrize(("policy", "reward"), [("oracle", 1.0), ("nothing", 0.0)])
def test_policies(task, policy, reward):
    for problem in task.problems:
        turns = oracle(problem) if policy == "oracle" else [[native("finish")]]
        with task.open(problem) as sandbox:
            episode, _ = play(Workbench(sandbox), turns, native_tools=True)
            assert episode.stop_reason == "finished"
            verdict = task.judge(problem, sandbox)
        assert verdict.reward == reward, problem.facts
        assert set(verdict.failed) == (set() if reward else set(problem.facts["failing"]))


def test_edits_of_the_tests_do_not_count(task):
    problem = task.problems[0]
    with task.open(problem) as sandbox:
        sandbox.write("tests/test_smallsum.py", b"def test_clamp():\n    pass\n")
        sandbox.write("conftest.py", b"def pytest_runtest_call(item):\n    pass\n")
        assert task.judge(problem, sandbox).reward == 0.0


def test_more_problems_use_what_is_there(built, package, tmp_path):
    copy(built[0], tmp_path)
    (tmp_path / "sdists" / "smallsum-1.0.tar.gz").unlink()  # is not needed any more
    opened = []
    build(Settings((package,), COUNT - 2), tmp_path, lambda: opened.append(1) or opener())
    assert not opened
    before = read_problems(built[0])
    assert read_problems(tmp_path) == before[: COUNT - 2]


def test_the_wording_varies(task):
    openings = {problem.text.split("\n\n")[1] for problem in task.problems}
    assert len(openings) > 1


def test_splits(built, task):
    assert len(SeededTask(built[0], opener, "train").problems) == COUNT
    assert len(SeededTask(built[0], opener, "held-out").problems) == 0
    assert {problem.facts["split"] for problem in task.problems} == {"train"}


def test_the_table():
    assert len(packages.PACKAGES) >= 12
    assert 3 <= sum(package.held_out for package in choose([])) < len(packages.PACKAGES) / 2
    for name, package in packages.PACKAGES.items():
        assert name == package.name
        assert len(package.sha256) == 64


def test_errors(package, index, tmp_path):
    with pytest.raises(OptionError, match=r"no package 'smallsun'; choose from boltons, "):
        choose(["smallsun"])
    other = msgspec.structs.replace(package, sha256="0" * 64)
    with pytest.raises(OptionError, match=r"smallsum-1.0: pip did not get its sdist .*index"):
        fetch(other, tmp_path / "sdists")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "smallsum-1.0.tar.gz").write_bytes(b"else")
    with pytest.raises(FormatError, match=r"smallsum-1.0.tar.gz: not the sdist .* remove it"):
        fetch(package, tmp_path / "there")
    sdist = fetch(package, tmp_path / "good")
    with pytest.raises(FormatError, match="the sdist has no spec"):
        unpack(msgspec.structs.replace(package, tests=("spec",)), sdist)
    with pytest.raises(FormatError, match="name a folder that `rtmc tasks build seeded -o`"):
        SeededTask(tmp_path, opener)


def test_a_suite_that_does_not_run(tmp_path_factory, tmp_path):
    place = tmp_path_factory.mktemp("bad")
    bad = write_sdist(place, tests="import nothing_of_that_name\n")
    (tmp_path / "sdists").mkdir()
    (place / "smallsum-1.0.tar.gz").rename(tmp_path / "sdists" / "smallsum-1.0.tar.gz")
    with pytest.raises(OptionError, match=r"smallsum-1.0: its tests do not run in the sandbox"):
        build(Settings((bad,), 1), tmp_path, opener)


def test_the_command_that_builds(built, package, monkeypatch, tmp_path):
    monkeypatch.setitem(packages.PACKAGES, "smallsum", package)
    copy(built[0], tmp_path)
    argv = ["tasks", "build", "seeded", "--packages", "smallsum", "-o", str(tmp_path)]
    result = CliRunner().invoke(main, [*argv, "--count", str(COUNT)])
    assert result.exit_code == 0, result.output
    first, *rest = result.stdout.splitlines()
    assert first.startswith(f"{COUNT} problems of ")
    assert all("not kept" in line or " of " in line for line in rest)
    assert contents(tmp_path) == contents(built[0])


def test_the_commands(built, task, tmp_path):
    run = CliRunner().invoke
    problem = task.problems[0]
    listed = run(main, ["tasks", "list", str(built[0])])
    assert listed.exit_code == 0
    assert len(listed.stdout.splitlines()) == COUNT
    assert problem.problem_id in listed.stdout
    assert run(main, ["tasks", "list", str(built[0]), "--split", "held-out"]).stdout == ""
    shown = run(main, ["tasks", "show", str(built[0]), problem.problem_id])
    assert problem.text in shown.stdout
    assert "\n--- smallsum/__init__.py\n+++ smallsum/__init__.py\n@@ " in shown.stdout
    unknown = run(main, ["tasks", "show", str(built[0]), "x-1"])
    assert unknown.exit_code == 2
    assert unknown.stderr.startswith("rtmc: no problem 'x-1'")
    unknown = run(main, ["tasks", "build", "seeded", "--packages", "x", "-o", str(tmp_path)])
    assert unknown.exit_code == 2
    assert unknown.stderr.startswith("rtmc: no package 'x'; choose from boltons, ")


def registry_answers():
    """Tell whether pip can get at a package: its index is asked as pip would."""
    try:
        result = subprocess.run(
            [sys.executable, "-m", "pip", "index", "versions", "xmltodict"],
            capture_output=True, timeout=15, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0


def test_a_real_package_comes_by_its_hash(tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    if not registry_answers():
        pytest.skip("pip has no index that it can reach here")
    (package,) = choose(["xmltodict"])
    files = unpack(package, fetch(package, tmp_path))
    assert {"pytest.ini", "xmltodict.py", "tests/test_xmltodict.py", "LICENSE"} <= set(files)
