"""Rollouts of problems: seeds, errors, the journal, and the command that is killed and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent / "tasks"))
sys.path.insert(0, str(Path(__file__).parent))

from click.testing import CliRunner
from here import opener, warm_works
from scripts import xml

from rtmc.agent.journal import Journal
from rtmc.agent.loop import Limits
from rtmc.agent.models import MODELS, open_model
from rtmc.agent.models.base import Completion
from rtmc.agent.models.rules import mixed
from rtmc.agent.models.scripted import Scripted
from rtmc.agent.rollout import roll_out, seed_of
from rtmc.agent.tasks import FilesTask, Problem
from rtmc.agent.tasks.tiny import TinyProblems
from rtmc.cli import main
from rtmc.errors import FormatError, OptionError, SandboxError
from rtmc.formats import read_groups
from rtmc.rollouts import Rollout, Step, decode_rollout, encode_rollout

needs_warm = pytest.mark.skipif("not __import__('here').warm_works()", reason="no bubblewrap here")
FINISH = xml("finish")


def without_times(rollout):
    steps = tuple(msgspec.structs.replace(step, seconds=None) for step in rollout.steps)
    return msgspec.json.encode(msgspec.structs.replace(rollout, steps=steps)).decode()


def problem(name, must="test_a.py::test_a"):
    tests = {"test_a.py": b"import a\n\ndef test_a(): assert a.x\n"}
    return Problem(name, f"Solve {name}.", {"a.py": b"x = 0\n"}, tests, (must,))


def test_what_a_rollout_samples_does_not_hang_on_the_others():
    assert seed_of(0, "a", 1) != seed_of(0, "a", 2) != seed_of(1, "a", 1) != seed_of(0, "b", 1)
    assert 0 <= seed_of(-3, "ü", 10**9) < 2**63
    problems = TinyProblems()[:2]
    task = FilesTask("tiny", problems, opener)

    def made(**options):
        found = roll_out(task, problems, Scripted(mixed), 3, **options)
        return {(r.problem_id, r.rollout_id): without_times(r) for r in found}

    whole = made(workers=4)
    done = {place for number, place in enumerate(whole) if number % 2}
    assert made(workers=1, at_once=2, lockstep=False, done=done) == {
        place: text for place, text in whole.items() if place not in done
    }


def test_an_outcome_that_cannot_be_known_is_none():
    class Task(FilesTask):
        def open(self, problem):
            if problem.problem_id == "closed":
                raise SandboxError("no room")
            if problem.problem_id == "bug":
                raise KeyError("x")
            return super().open(problem)

    problems = [
        problem("closed"), problem("bug"), problem("silent"), problem("uncollected", "gone.py::x"),
        problem("failed"),
    ]  # fmt: skip
    turns = {"Solve silent.": Completion("", stop="error: the endpoint is gone")}
    model = Scripted(lambda dialogue: turns.get(dialogue.messages[1]["content"], FINISH))
    found = {r.problem_id: r for r in roll_out(Task("t", problems, opener), problems, model, 1)}
    said = {name: (r.reward, r.status, r.stop_reason) for name, r in found.items()}
    assert said == {
        "closed": (None, "unknown", "error: no room"),
        "bug": (None, "unknown", "error: KeyError: 'x'"),
        "silent": (None, "unknown", "error: the endpoint is gone"),
        "uncollected": (None, "unknown", "finished; pytest could not be called so"),
        "failed": (0.0, "failed", "finished"),
    }


def test_a_limit_is_no_failure_of_the_judge():
    """What a stopped rollout left behind is judged too."""
    mend = xml("bash", command="echo x = 1 > a.py")
    for turn, status in ((mend, "passed"), (xml("think", thought="."), "incomplete")):
        model = Scripted(lambda dialogue, turn=turn: turn)
        task = FilesTask("t", [problem("p")], opener)
        (one,) = roll_out(task, task.problems, model, 1, limits=Limits(steps=2))
        assert (one.status, one.stop_reason, len(one.steps)) == (status, "limit of 2 steps", 2)


def test_what_the_judge_says_is_no_limit_of_the_agent():
    """A test's name may hold the words by which a limit is known."""
    missing = problem("p", "test_a.py::test_limit_of_length")
    task = FilesTask("t", [missing], opener)
    (one,) = roll_out(task, task.problems, Scripted(lambda dialogue: FINISH), 1)
    assert one.stop_reason == (
        "finished; 1 deciding tests are not there: test_a.py::test_limit_of_length …"
    )
    assert one.status == "failed"
    assert decode_rollout(encode_rollout(one)).status == "failed"


# --- the journal ---------------------------------------------------------------------------------

ONE = Rollout("a", "0", (Step(thought="é"),), reward=1.0)
TWO = Rollout("a", "1", reward=0.0)


def test_a_journal_goes_on_where_it_was(tmp_path):
    out = str(tmp_path / "r.jsonl")
    with Journal(out, {"n": 2}) as journal:
        journal.add(TWO)
    partial = Path(f"{out}.partial.jsonl")
    whole = partial.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole)):
        partial.write_bytes(whole[:cut])
        with Journal(out, {"n": 2}) as journal:
            assert journal.done == set()
            journal.add(TWO)
            assert partial.read_bytes() == whole
    with Journal(out, {"n": 2}) as journal:
        assert journal.done == {("a", "1")}
        journal.add(ONE)
        assert list(journal.read([("a", "1"), ("a", "0")])) == [TWO, ONE]
        journal.finish([("a", "0"), ("a", "1")])
    assert not partial.exists()
    lines = Path(out).read_bytes().splitlines()
    assert [decode_rollout(line) for line in lines] == [ONE, TWO]


def test_a_journal_of_something_else(tmp_path):
    out = str(tmp_path / "r.jsonl")
    Journal(out, {"n": 2, "seed": 0}).close()
    with pytest.raises(OptionError, match="seed 0 and now 1"):
        Journal(out, {"n": 2, "seed": 1})
    Path(f"{out}.partial.jsonl").write_text("{}\n")
    with pytest.raises(FormatError, match="remove it to begin anew"):
        Journal(out, {"n": 2, "seed": 1})
    Path(out).write_text("mine")
    with pytest.raises(OptionError, match="is there already"):
        Journal(out, {})
    assert Path(out).read_text() == "mine"


# --- the command ---------------------------------------------------------------------------------

COMMAND = ["rollout", "--task", "tiny", "--problems", "3", "--model", "scripted", "-n", "4"]


@needs_warm
def test_the_command(tmp_path):
    out = tmp_path / "r.jsonl"
    done = CliRunner().invoke(main, [*COMMAND, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("12 rollouts of 3 problems\n  passed ")
    rollouts = [decode_rollout(line) for line in out.read_bytes().splitlines()]
    places = [(r.problem_id, r.rollout_id) for r in rollouts]
    assert places == [(f"tiny-train-{p}", str(k)) for p in range(3) for k in range(4)]
    assert all(step.env_state and step.seconds is not None for r in rollouts for step in r.steps)
    assert all(r.token_ids and len(r.token_ids[0]) == len(r.logprobs[0]) for r in rollouts)
    assert len(list(read_groups([str(out)]))) == 3
    credited = CliRunner().invoke(main, ["credit", str(out), "-o", str(tmp_path / "c.jsonl")])
    assert credited.exit_code == 0, credited.output
    paged = CliRunner().invoke(main, ["report", str(out), "-o", str(tmp_path / "r.html")])
    assert paged.exit_code == 0, paged.output
    judged = CliRunner().invoke(main, ["evaluate", str(out), "--json"])
    (evaluation,) = json.loads(judged.stdout)["evaluations"]
    assert [p["runs"] for p in evaluation["problems"]] == [4, 4, 4]


@needs_warm
def test_a_command_that_is_killed_goes_on(tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    assert CliRunner().invoke(main, [*COMMAND, "-o", str(whole)]).exit_code == 0
    argv = [sys.executable, "-m", "rtmc.cli", *COMMAND, "--at-once", "2", "-o", str(cut)]
    partial = Path(f"{cut}.partial.jsonl")
    kills = 0
    while not cut.exists():
        process = subprocess.Popen(argv, stderr=subprocess.PIPE)
        begun = lines = partial.read_bytes().count(b"\n") if partial.exists() else 0
        until = time.monotonic() + 60
        while lines < begun + 3 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
            lines = partial.read_bytes().count(b"\n") if partial.exists() else 0
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        _, said = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), said
    assert kills >= 2
    same = [
        [without_times(decode_rollout(line)) for line in path.read_bytes().splitlines()]
        for path in (whole, cut)
    ]
    assert same[0] == same[1]


@needs_warm
def test_errors_that_are_not_the_agents_are_tried_again(tmp_path, monkeypatch):
    out, broken = tmp_path / "r.jsonl", {True}

    def plays(dialogue):
        gone = Completion("", stop="error: the endpoint is gone")
        return gone if broken and dialogue.seed % 2 else mixed(dialogue)

    monkeypatch.setitem(MODELS, "scripted", lambda *_: Scripted(plays))
    command = [*COMMAND, "-o", str(out)]
    odd = sum(seed_of(0, f"tiny-train-{p}", k) % 2 for p in range(3) for k in range(4))
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert f"rtmc: {odd} of 12 rollouts ended with an error that is not the agent's" in done.stderr
    assert f"{odd} × error: the endpoint is gone" in done.stdout
    assert not out.exists()
    begun = Path(f"{out}.partial.jsonl").read_bytes()
    broken.clear()
    fewer = [*COMMAND[:-1], "2", "-o", str(out)]  # what is there serves another -n as well
    assert CliRunner().invoke(main, fewer).exit_code == 0
    assert out.read_bytes().count(b"\n") == 6
    out.unlink()
    Path(f"{out}.partial.jsonl").write_bytes(begun)
    assert CliRunner().invoke(main, command).exit_code == 0
    whole = out.read_bytes()
    assert b"the endpoint is gone" not in whole
    assert whole.count(b"\n") == 12
    out.unlink()
    broken.add(True)
    done = CliRunner().invoke(main, [*command, "--keep-errors"])
    assert done.exit_code == 0
    assert out.read_bytes().count(b"the endpoint is gone") == odd


@pytest.mark.skipif("__import__('here').warm_works()", reason="bubblewrap works here")
def test_without_a_sandbox_nothing_is_begun(tmp_path):
    done = CliRunner().invoke(main, [*COMMAND, "-o", str(tmp_path / "r.jsonl")])
    assert done.exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--task", "tiny", "--model", "gpt"], "no model 'gpt'; expected scripted, openai:NAME"),
        (["--task", "tiny", "--model", "hf:"], "no model 'hf:'"),
        (["--task", "tiny", "--model", "scripted", "--sandbox", "docker"], "does not run in"),
        (["--task", "seeded:x", "--model", "scripted"], "scripted plays tiny only"),
        (["--task", "seeded", "--model", "openai:m"], "seeded needs the folder"),
        (["--task", "tiny", "--model", "scripted", "--skip", "100000"], "has 100000 problems"),
        (["--task", "swe-bench:x.jsonl,a=b", "--model", "openai:m"], "there is no 'a'"),
    ],
)
def test_options_that_do_not_fit(tmp_path, options, said):
    out = tmp_path / "r.jsonl"
    done = CliRunner().invoke(main, ["rollout", *options, "-o", str(out)])
    assert done.exit_code == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_models_by_name():
    assert open_model("scripted").name == "scripted"
    with pytest.raises(OptionError, match="scripted takes no name"):
        open_model("scripted:x")
    model = open_model("openai:m", base_url="http://localhost:1/v1")
    assert "localhost:1" in repr(model)
    model.close()
    assert warm_works() in (True, False)
