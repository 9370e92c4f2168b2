"""The loop over scripted models, on real sandboxes."""

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scripts import FIX, REPOSITORY, edit, native, play, xml

from rtmc.agent.loop import CUT, NO_CALL, Limits, recorded
from rtmc.agent.models.base import Completion
from rtmc.agent.models.scripted import fake_logprob, fake_tokens
from rtmc.credit import credit
from rtmc.rollouts import Group, decode_rollout, encode_rollout
from rtmc.signatures.coding import CodingSigner


@pytest.fixture
def repository(bench):
    bench.sandbox.put(REPOSITORY)
    return bench


def outputs(episode):
    return [[call.output for call in step.calls] for step in episode.steps]


def contents(dialogue, role):
    return [message["content"] for message in dialogue.messages if message["role"] == role]


def test_a_bug_is_fixed(repository):
    episode, dialogue = play(repository, FIX)
    assert episode.stop_reason == "finished"
    assert len(episode.steps) == len(FIX)
    calls = [step.calls[0] for step in episode.steps]
    assert [call.name for call in calls] == [
        "str_replace_editor", "str_replace_editor", "bash", "bash", "str_replace_editor",
        "search", "bash", "finish",
    ]  # fmt: skip
    assert calls[0].output.endswith("two levels deep:\ncalc.py\ntest_calc.py")
    assert calls[1].output == "     1\tdef add(a, b):\n     2\t    return a - b"
    assert "FAILED (failures=1)" in calls[2].output
    assert calls[4].output == (
        "edited calc.py; it reads now:\n     1\tdef add(a, b):\n     2\t    return a + b"
    )
    assert calls[5].output == "calc.py:1:def add(a, b):"
    assert "OK" in calls[6].output
    assert [call.exit_code for call in calls] == [None, None, 1, 0, None, 0, 0, None]
    assert not any(call.is_error or call.timed_out for call in calls)
    assert [step.thought for step in episode.steps] == ["Let me look.", *[""] * 6, "Done."]
    assert all(0 <= step.seconds < 60 for step in episode.steps)
    # the first two turns only look, and so do the third (.pyc is not written) and the fourth
    states = [step.env_state for step in episode.steps]
    assert states[0] == states[1] == states[2] == states[3] == states[4]
    assert states[4] != states[5] == states[6] == states[7] == repository.sandbox.state()
    assert dialogue.messages[0]["role"] == "system"
    assert "<function=NAME>" in dialogue.messages[0]["content"]
    assert contents(dialogue, "assistant") == FIX
    assert contents(dialogue, "user")[:2] == ["Fix add.", calls[0].output]


def test_signatures_agree_with_what_the_tools_did(repository):
    episode, _ = play(repository, FIX)
    signed = CodingSigner(("paper",)).steps(recorded(episode, "p", "r"))
    did = [[(e.kind, e.target, e.scope, e.result) for e in step.effects] for step in signed]
    assert did == [
        [("view", ".", "dir", "")],
        [("view", "calc.py", "partial[0]", "")],
        [("test", "test_calc", "", "fail")],
        [("create", "sub", "", ""), ("noop", "", "", "")],
        [("modify", "calc.py", "replace", "")],
        [("search", ".", "", "")],
        [("noop", "", "", ""), ("test", "test_calc", "", "pass")],
        [("finish", "", "", "")],
    ]


def test_signatures_know_the_shells_directory_and_refusals(repository):
    """Paths of the editor are the repository's, wherever the shell is."""
    turns = [
        xml("bash", command="mkdir sub; cd sub; echo 1 > x"),
        edit("view", "calc.py"),
        xml("bash", command="cat x"),
        edit("view", "x"),
        edit("str_replace", "calc.py", old_str="none"),
        xml("bash", command="cat nothing"),
        edit("jump", "calc.py"),
        "<function=bash>ls</function>",
        edit("undo_edit", "calc.py"),
        xml("finish"),
    ]
    episode, _ = play(repository, turns)
    signed = CodingSigner(("paper",)).steps(recorded(episode, "p", "r"))
    did = [(step.effects[-1].kind, step.effects[-1].target, step.effects[-1].result)
           for step in signed[1:]]  # fmt: skip
    assert did == [
        ("view", "calc.py", ""),
        ("view", "sub/x", ""),
        ("view", "x", "err"),
        ("modify", "calc.py", "err"),
        ("view", "sub/nothing", "err"),
        ("malformed", "", ""),
        ("malformed", "", ""),
        ("restore", "calc.py", "err"),
        ("finish", "", ""),
    ]


# --- tokens -------------------------------------------------------------------------------------


def test_the_token_record_holds_every_turn_once_as_it_was_sampled(repository):
    episode, dialogue = play(repository, FIX)
    rollout = recorded(episode, "p", "r")
    (ids,), (logprobs,) = rollout.token_ids, rollout.logprobs
    assert rollout.sequence_lengths == (len(ids),) == (len(logprobs),)
    sampled = set()
    for turn, step in zip(FIX, rollout.steps, strict=True):
        ((sequence, start, end),) = [(s.sequence, s.start, s.end) for s in step.spans]
        assert sequence == 0
        assert list(ids[start:end]) == fake_tokens(turn)
        assert list(logprobs[start:end]) == [fake_logprob(token) for token in ids[start:end]]
        assert sampled.isdisjoint(range(start, end))
        sampled |= set(range(start, end))
    assert all(logprobs[at] == 0 for at in range(len(ids)) if at not in sampled)
    # so are system, task and observations, once each; nothing was asked after the last of them
    said = [
        message["content"] if message["role"] == "assistant" else f"user {message['content']}"
        for message in dialogue.messages[1:-1]
    ]
    system = f"system {dialogue.messages[0]['content']}"
    assert list(ids) == fake_tokens(" ".join([system, *said]))


def test_a_turn_without_tokens_has_no_span(repository):
    episode, _ = play(repository, ["", xml("finish")])
    assert [len(step.spans) for step in episode.steps] == [0, 1]
    episode, _ = play(repository, [xml("think", thought="x"), xml("finish")], tokens=False)
    rollout = recorded(episode, "p", "r")
    assert [step.spans for step in rollout.steps] == [(), ()]
    assert (rollout.sequence_lengths, rollout.token_ids, rollout.logprobs) == ((), (), ())


# --- malformed turns ----------------------------------------------------------------------------


def test_what_goes_wrong_is_said_and_the_rollout_goes_on(repository):
    turns = [
        "no call at all",
        xml("edit", path="calc.py"),
        "<function=bash>ls</function>",
        edit("view", "../secret"),
        xml("think", thought="x") + edit("view", "none.py") + xml("bash", command="echo on"),
        Completion("I was about to", stop="length"),
        Completion(edit("create", "half.py", file_text="def f(")[:-30], stop="length"),
        xml("bash", command="echo a\0b"),
        Completion("<function=bash>ls</function><function=think>", stop="length"),
        xml("finish"),
    ]
    episode, dialogue = play(repository, turns)
    assert episode.stop_reason == "finished"
    seen = outputs(episode)
    assert seen[0] == []
    assert seen[1] == [
        "there is no tool 'edit'; the tools are str_replace_editor, search, bash, think, finish"
    ]
    assert seen[2][0].startswith("the arguments of bash could not be read: 'ls'; expected")
    assert "leads out of the repository" in seen[3][0]
    assert seen[4][0] == "noted"
    assert seen[4][1].startswith("cannot read none.py: No such file")
    assert seen[4][2] == "on\n"
    assert seen[5] == []
    assert seen[6][0].startswith("the call of str_replace_editor was cut off at the limit")
    assert repository.look("half.py").kind == "nothing"
    assert seen[7] == ["command holds a NUL character; leave it out"]
    assert seen[8][0] == seen[2][0]  # the last call alone was cut
    assert seen[8][1].startswith("the call of think was cut off")
    errors = [[call.is_error for call in step.calls] for step in episode.steps]
    assert errors == [
        [],
        [True],
        [True],
        [True],
        [None, True, None],
        [],
        [True],
        [True],
        [True, True],
        [None],
    ]
    users = contents(dialogue, "user")
    assert users[1] == NO_CALL
    assert users[5] == "\n\n".join(seen[4])
    assert users[6] == CUT
    rollout = recorded(episode, "p", "r", 0.0)
    assert decode_rollout(encode_rollout(rollout)) == rollout


def test_what_stands_behind_a_finish_is_not_carried_out(repository):
    episode, _ = play(repository, [xml("finish") + xml("bash", command="touch made")])
    assert outputs(episode) == [["finished"]]
    assert repository.look("made").kind == "nothing"


def test_a_finish_that_was_refused_is_none(repository):
    turns = [xml("finish", answer="42"), xml("finish", message="now")]
    episode, _ = play(repository, turns)
    assert outputs(episode) == [
        ["there is no parameter 'answer'; finish takes message (optional)"],
        ["finished"],
    ]


def test_a_turn_has_so_many_calls_at_most(repository):
    turns = [xml("bash", command="echo >> log") * 5, xml("finish")]
    episode, _ = play(repository, turns, limits=Limits(calls=3))
    assert episode.stop_reason == "finished"
    assert outputs(episode)[0][2:] == [
        "(no output)", "not carried out, nor what came after it: a turn has at most 3 calls"
    ]  # fmt: skip
    assert repository.sandbox.read("log") == b"\n" * 3


def test_native_calls(repository):
    broken = {"id": "x", "name": "bash", "arguments": '{"command": "l'}
    turns = [
        [native("think", thought="x"), native("bash", command="echo é")],
        [broken],
        Completion("looking", ({"name": "search", "arguments": {"pattern": "add\\("}},)),
        [native("finish"), native("bash", command="touch made")],
    ]
    episode, dialogue = play(repository, turns, native_tools=True)
    assert episode.stop_reason == "finished"
    assert outputs(episode)[0] == ["noted", "é\n"]
    assert episode.steps[1].calls[0].arguments == '{"command": "l'
    assert outputs(episode)[2][0].startswith("calc.py:1:def add(a, b):\ntest_calc.py:7:")
    assert outputs(episode)[3] == ["finished"]
    assert "function=" not in dialogue.messages[0]["content"]
    assert dialogue.messages[2:5] == [  # arguments as the model wrote them
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "id_think", "type": "function",
                 "function": {"name": "think", "arguments": '{"thought": "x"}'}},
                {"id": "id_bash", "type": "function",
                 "function": {"name": "bash", "arguments": '{"command": "echo é"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "id_think", "content": "noted"},
        {"role": "tool", "tool_call_id": "id_bash", "content": "é\n"},
    ]  # fmt: skip
    # endpoints refuse a history whose arguments are no JSON object, and calls without an answer
    again = dialogue.messages[5]["tool_calls"][0]["function"]["arguments"]
    assert again == '{"malformed":"{\\"command\\": \\"l"}'
    assert dialogue.messages[7]["tool_calls"][0]["id"] == "call_0"
    called = [c["id"] for m in dialogue.messages for c in m.get("tool_calls", ())]
    assert called == [m["tool_call_id"] for m in dialogue.messages if m["role"] == "tool"]


# --- limits -------------------------------------------------------------------------------------

THINK = xml("think", thought="again")


def slow(_dialogue):
    time.sleep(0.06)
    return THINK


@pytest.mark.parametrize(
    ("turns", "limits", "reason", "steps"),
    [
        ([THINK] * 9, Limits(steps=3), "limit of 3 steps", 3),
        ([THINK] * 99, Limits(tokens=300), "limit of 300 tokens", 99),
        (slow, Limits(seconds=0.1), "limit of 0.1 seconds", 2),
        (["hm"] * 9, Limits(prose=2), "limit of 2 turns without a call", 2),
        (["hm", THINK, "hm", "hm", "hm"], Limits(), "limit of 3 turns without a call", 5),
        ([THINK, Completion("", stop="length")], Limits(), "limit of the model's context", 1),
    ],
)
def test_limits(repository, turns, limits, reason, steps):
    episode, _ = play(repository, turns, limits=limits)
    assert episode.stop_reason == reason
    if callable(turns):
        assert 1 <= len(episode.steps) <= steps
    elif "tokens" in reason:
        ends = [step.spans[0].end for step in episode.steps]
        assert ends[-2] < 300 <= ends[-1] == len(episode.token_ids)
    else:
        assert len(episode.steps) == steps
    for reward in (None, 0.0):
        assert recorded(episode, "p", "r", reward).status == "incomplete"
    assert recorded(episode, "p", "r", 1.0).status == "passed"


def test_the_end_of_a_model_or_a_sandbox_keeps_the_steps(open_bench):
    bench = open_bench()
    episode, _ = play(bench, [THINK])
    assert episode.stop_reason == "error: the script 0 has 1 turns"
    assert len(episode.steps) == 1
    assert recorded(episode, "p", "r").status == "unknown"

    def close(dialogue):
        if len(dialogue.messages) > 2:
            bench.sandbox.close()
        return THINK

    episode, _ = play(bench, close)
    assert episode.stop_reason == "error: the sandbox is closed; open a new one"
    assert len(episode.steps) == 2  # thinking needs no sandbox
    assert len(episode.token_ids) > episode.steps[-1].spans[0].end - 1


# --- onwards ------------------------------------------------------------------------------------


def test_rollouts_go_through_credit_and_a_file(open_bench):
    wrong = [FIX[1], edit("str_replace", "calc.py", old_str="a - b", new_str="b - a"), FIX[-1]]
    rollouts = []
    for number, (turns, reward) in enumerate([(FIX, 1.0), (wrong, 0.0), (FIX[:2] * 3, 0.0)]):
        bench = open_bench()
        bench.sandbox.put(REPOSITORY)
        episode, _ = play(bench, turns, limits=Limits(steps=6 if number == 2 else 40))
        rollout = recorded(episode, "p", f"r{number}", reward, "scripted", "v1")
        assert decode_rollout(encode_rollout(rollout)) == rollout
        rollouts.append(rollout)
    assert [rollout.status for rollout in rollouts] == ["passed", "failed", "incomplete"]
    assert {(rollout.model, rollout.policy_version) for rollout in rollouts} == {("scripted", "v1")}
    result = credit(Group("p", tuple(rollouts)))
    assert result.unparsed == 0
    assert result.advantages[0].sum() > 0
    for rollout, (tokens,) in zip(rollouts, result.to_tokens(), strict=True):
        assert len(tokens.values) == rollout.sequence_lengths[0]
        spanned = sum(span.end - span.start for step in rollout.steps for span in step.spans)
        assert tokens.credited.sum() in (0, spanned)  # 0 where incomplete rollouts do not vote


def test_the_same_world_has_the_same_states(open_bench):
    """In any sandbox, whatever its folder is called."""
    found = []
    for _ in range(2):
        bench = open_bench()
        bench.sandbox.put(REPOSITORY)
        found.append([step.env_state for step in play(bench, FIX)[0].steps])
    assert found[0] == found[1]
