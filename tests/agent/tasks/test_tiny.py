"""Tiny problems: what they promise, checked without pytest on many and with it on some."""

import re
import sys
from collections import Counter
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from here import opener

from rtmc.agent.models.rules import mixed, oracle
from rtmc.agent.models.scripted import Scripted
from rtmc.agent.rollout import roll_out
from rtmc.agent.tasks import FilesTask, open_task
from rtmc.agent.tasks.tiny import Knobs, TinyProblems
from rtmc.agent.tasks.tiny.problems import split_of
from rtmc.agent.tasks.tiny.program import CHOICE, PLAIN, Function, Line, Program, mutations
from rtmc.errors import OptionError

MANY = 300


def sources(problem):
    return {p: d.decode() for p, d in problem.files.items() if not p.startswith("test_")}


def space_of(files):
    """Run modules of functions with unique names as one."""
    text = "\n".join(re.sub(r"^from .*$", "", source, flags=re.M) for source in files.values())
    space = {}
    exec(compile(text, "all", "exec"), space)
    return space


def solved(problem, files):
    """Run the deciding tests without pytest: an independent judge."""
    try:
        space = space_of(files)
        for text in problem.tests.values():
            body = re.sub(r"^from .*$", "", text.decode(), flags=re.M)
            exec(compile(body, "tests", "exec"), space)
        names = [name.split("::")[1] for name in problem.must_pass]
        for name in names:
            space[name]()
    except (AssertionError, NameError, SyntaxError, TypeError, ZeroDivisionError):
        return False
    return True


def mended(problem):
    files, facts = sources(problem), problem.facts
    rows = files[facts["file"]].split("\n")
    assert rows[facts["line"] - 1] == facts["wrong"]
    rows[facts["line"] - 1] = facts["right"]
    return {**files, facts["file"]: "\n".join(rows)}


knobs = st.builds(
    Knobs,
    modules=st.integers(2, 5), functions=st.integers(1, 4), lines=st.integers(1, 5),
    depth=st.integers(0, 1), cue=st.sampled_from(["line", "function", "none"]),
    visible=st.sampled_from([0, 0.5, 1]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(knobs, st.sampled_from(["train", "test"]), st.integers(0, 10_000))
def test_what_every_problem_holds(k, split, index):
    problem = TinyProblems(k, split)[index]
    assert problem == TinyProblems(k, split)[index]
    files = sources(problem)
    assert len(files) == k.modules
    assert sum(text.count("def ") for text in files.values()) == k.modules * k.functions
    call, *_ = re.findall(r"\w+\([\d, ]+\)", problem.text)
    numbers = [int(n) for n in re.findall(r"-?\d+", problem.text.replace(call, ""))]
    wrong, right = (eval(call, space_of(each)) for each in (files, mended(problem)))
    assert wrong != right
    assert sorted(numbers) == sorted((wrong, right))
    assert call.startswith(problem.facts["chain"][0] + "(")
    assert not solved(problem, files)
    assert solved(problem, mended(problem))
    assert problem.facts["function"] == problem.facts["chain"][-1]
    assert len(problem.facts["chain"]) == k.depth + 1
    shown = sum(d.count(b"def test_") for p, d in problem.files.items() if p.startswith("test_"))
    if k.visible in (0, 1):
        assert shown == k.visible * len(problem.must_pass)
    said = "".join(files.values())
    assert ("#" in said, '"""' in said) == (k.cue == "line", k.cue == "function")


def test_problems_stay_the_same():
    """A change here changes every published number on them: say so in the CHANGELOG."""
    digest = blake2b(digest_size=8)
    for cue in ("line", "function", "none"):
        for problem in TinyProblems(Knobs(cue=cue, depth=2))[:5]:
            digest.update(repr((problem.text, problem.files, problem.tests)).encode())
    assert digest.hexdigest() == "915dac7ae67bb0e5"


def test_each_function_of_the_chain_calls_the_next():
    for problem in TinyProblems(Knobs(modules=4, functions=2, depth=3))[:20]:
        files = sources(problem)
        bodies = {
            name: body
            for text in files.values()
            for name, body in re.findall(r"def (\w+)\(.*?\):\n((?:    .*\n)+)", text)
        }
        for caller, called in pairwise(problem.facts["chain"]):
            assert f"{called}(" in bodies[caller]


def test_splits_are_disjoint_and_problems_distinct():
    k = Knobs(modules=2, functions=1, lines=1, depth=0)
    texts = {
        split: {tuple(sorted(mended(problem).items())) for problem in TinyProblems(k, split)[:MANY]}
        for split in ("train", "test")
    }
    assert not texts["train"] & texts["test"]
    default = [repr(problem.files) for problem in TinyProblems()[:MANY]]
    assert len(set(default)) == MANY


def test_the_split_of_a_program_does_not_hang_on_its_names():
    def program(one, other):
        first = Function(one, "m", ("x",), (Line("", other, ("x",)),))
        return Program((first, Function(other, "n", ("x",), (Line("", "+", ("x", "1")),))), (one,))

    assert split_of(program("rate", "tax")) == split_of(program("fee", "cost"))
    counted = Counter(
        split_of(Program((Function("f", "m", ("x",), (Line("", "+", ("x", str(n))),)),), ("f",)))
        for n in range(400)
    )
    assert 60 < counted["test"] < 140  # one in four


def test_faults_of_a_function_by_hand():
    line = Line("", "-", ("x", "2"))
    found = {each.code() for _, each in mutations(Function("f", "m", ("x", "y"), (line,)))}
    assert found == {
        "return x + 2", "return x * 2", "return 2 - x", "return y - 2", "return x - 1",
        "return x - 3", "return x - 4",
    }  # fmt: skip
    line = Line("", "if", ("x", "y", "5", "3"))
    found = {each.code() for _, each in mutations(Function("f", "m", ("x", "y"), (line,)))}
    assert "return 3 if y > 5 else x" in found
    assert "return x if y > 6 else 3" in found
    assert {*PLAIN, *CHOICE} == {"+", "-", "*", "max", "min"}


def test_no_fixed_edit_solves_more_than_some():
    """The best edit that is the same whatever the problem: some line of some file, one change."""
    edits = [(" + ", " - "), (" - ", " + "), (" * ", " + "), (" + ", " * "), ("max(", "min("),
             ("min(", "max(")]  # fmt: skip
    edits += [(str(a), str(b)) for a in range(1, 10) for b in (a - 1, a + 1)]
    hits = Counter()
    for problem in TinyProblems()[:MANY]:
        place = sorted(sources(problem)).index(problem.facts["file"])
        wrong, right = (problem.facts[key].split("  #")[0] for key in ("wrong", "right"))
        for old, new in edits:
            if wrong.replace(old, new) == right:
                hits[place, problem.facts["line"], old, new] += 1
    assert max(hits.values()) / MANY < 0.15


def test_the_issue_alone_does_not_tell_the_fix():
    """Who knows only the issue knows a function, and may guess the commonest fault."""
    problems = TinyProblems()[:MANY]
    assert mean(p.facts["function"] in p.text for p in problems) == 0
    guesses = Counter((p.facts["wrong"][4:], p.facts["right"][4:]) for p in problems)
    assert guesses.most_common(1)[0][1] / MANY < 0.05


def rewards(task, problems, model, n=1):
    found = list(roll_out(task, problems, model, n, workers=2))
    assert not [r.stop_reason for r in found if r.status == "unknown"]
    return found


@pytest.mark.parametrize("cue", ["line", "function", "none"])
def test_an_oracle_solves_them_and_doing_nothing_does_not(cue):
    problems = TinyProblems(Knobs(cue=cue))[:3]
    task = FilesTask("tiny", problems, opener)
    by_text = {p.text: p.facts for p in problems}

    def knows(dialogue):
        facts = by_text[dialogue.messages[1]["content"]]
        turns = oracle(facts["file"], facts["line"], facts["right"])
        return turns[sum(m["role"] == "assistant" for m in dialogue.messages)]

    assert [r.reward for r in rewards(task, problems, Scripted(knows))] == [1.0] * 3
    idle = Scripted(lambda dialogue: "<function=finish>\n</function>")
    assert [r.reward for r in rewards(task, problems, idle)] == [0.0] * 3


def test_rules_with_mistakes():
    """Some succeed and some fail; both ways of judging agree; successes take their steps."""
    problems = TinyProblems()[:6]
    found = rewards(FilesTask("tiny", problems, opener), problems, Scripted(mixed), 6)
    share = mean(r.reward for r in found)
    assert 0.2 < share < 0.8
    assert mean(len(r.steps) for r in found if r.reward) >= 6
    used = {
        (call.name, call.arguments.get("command") if call.name == "str_replace_editor" else "")
        for r in found
        for step in r.steps
        for call in step.calls
        if isinstance(call.arguments, dict)
    }
    assert {"search", "bash", "think", "finish", "str_replace_editor"} <= {n for n, _ in used}
    assert {
        ("str_replace_editor", c) for c in ("view", "str_replace", "create", "undo_edit")
    } <= used


def test_rules_without_mistakes_solve_what_says_how_it_should_be(monkeypatch):
    """What a careful reader can do: it finds the fault by the cue alone."""
    monkeypatch.setattr("random.Random.uniform", lambda self, low, high: high)
    for cue in ("line", "function"):
        problems = TinyProblems(Knobs(cue=cue, depth=2))[:4]
        found = rewards(FilesTask("tiny", problems, opener), problems, Scripted(mixed))
        assert [r.reward for r in found] == [1.0] * 4
        assert mean(len(r.steps) for r in found) >= 6


def test_pytest_and_the_independent_judge_agree():
    task = FilesTask("tiny", TinyProblems(), opener)
    for problem in TinyProblems()[10:14]:
        for files in (sources(problem), mended(problem)):
            with task.open(problem) as sandbox:
                sandbox.put({path: text.encode() for path, text in files.items()})
                assert task.judge(problem, sandbox).reward == solved(problem, files)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("tiny:depth=6", "depth is 6; expected 0 to 5"),
        ("tiny:cue=loud", "cue"),
        ("tiny:width=2", "unknown field `width`"),
        ("tiny:split=dev", "split is 'dev'"),
        ("large", "no task 'large'; choose from tiny, seeded"),
    ],
)
def test_what_is_no_task(spec, said):
    with pytest.raises(OptionError, match=re.escape(said)):
        open_task(spec, opener)


def test_a_task_by_name():
    task = open_task("tiny:modules=2,depth=0,cue=none,split=test,visible=1", opener)
    knobs = Knobs(modules=2, depth=0, cue="none", visible=1.0)
    assert task.problems[7] == TinyProblems(knobs, "test")[7]
    assert task.problems[-1].problem_id == "tiny-test-291e6a-99999"
    assert TinyProblems(split="test")[0].problem_id == "tiny-test-0"
    with pytest.raises(IndexError):
        task.problems[100_000]
