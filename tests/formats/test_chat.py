"""Chat rows: OpenAI calls, Anthropic blocks, calls as text, commands in fences."""

import json

import pytest

from rtmc.formats import read, read_groups


def rollout_of(tmp_path, messages, **row):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"problem_id": "p", "rollout_id": "r", "messages": messages, **row}))
    [group] = read(path)
    [rollout] = group.rollouts
    return rollout


def call(call_id, arguments, name="bash"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def turn(*calls, text=""):
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


def result(call_id, text):
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def test_parallel_calls_are_one_step_and_results_find_their_call_by_id(data):
    first = read(data / "chat-openai.jsonl")[0].rollouts[0]
    assert [len(step.calls) for step in first.steps] == [2, 1, 0]
    ls, view = first.steps[0].calls
    assert (ls.name, ls.arguments, ls.output) == ("bash", {"command": "ls"}, "calc.py\n")
    assert (view.name, view.output) == ("view", "def add(a, b): return a - b")
    assert first.steps[0].thought == "Two things at once."
    assert first.steps[2].thought == "Done: add adds."
    assert (first.reward, first.status, first.model, first.root) == (1.0, "passed", "m1", "/repo")


def test_anthropic_blocks(data):
    [group] = read(data / "chat-anthropic.jsonl")
    [rollout] = group.rollouts
    assert (group.problem_id, rollout.rollout_id) == ("toy-1", "7")
    assert (rollout.reward, rollout.status, rollout.stop_reason) == (1.0, "passed", "end_turn")
    look, done = rollout.steps
    assert (look.thought, done.thought) == ("I look.", "Fixed.")
    assert [(c.name, c.output, c.is_error) for c in look.calls] == [
        ("Read", "def add(a, b): return a - b", None),
        ("Bash", "1 failed", True),
    ]


def test_a_bare_list_is_named_after_its_file(data):
    [group] = read(data / "toy-3.json")
    assert group.problem_id == "toy-3"
    assert group.rollouts[0].rollout_id.endswith("formats/toy-3")


def test_a_file_name_that_says_nothing_gives_way_to_the_directory(tmp_path):
    path = tmp_path / "problem-9" / "messages.json"
    path.parent.mkdir()
    path.write_text(json.dumps([{"role": "user", "content": "x"}, turn(call("1", "{}"))]))
    assert read(path)[0].problem_id == "problem-9"


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"command": "ls', '{"command": "ls'),
        (None, ""),
        ("null", "null"),
        ("[1, 2]", "[1, 2]"),
        ([1, 2], "[1,2]"),
        (3, "3"),
        ("{not json}", "{not json}"),
        ('{"command": "ls"}', {"command": "ls"}),
        ({"command": None}, {"command": None}),
        ("", {}),
    ],
)
def test_case_29_malformed_arguments_keep_the_step(tmp_path, arguments, kept):
    messages = [
        turn(call("1", '{"command": "ls"}')),
        result("1", "calc.py"),
        turn(call("2", arguments, name="no_such_tool")),
        result("2", "error"),
        turn(call("3", '{"command": "pwd"}')),
    ]
    steps = rollout_of(tmp_path, messages).steps
    assert len(steps) == 3
    assert steps[1].calls[0].arguments == kept
    assert (steps[1].calls[0].name, steps[1].calls[0].output) == ("no_such_tool", "error")


def test_case_36_turns_replayed_with_their_ids_are_counted_once(tmp_path):
    kept = [turn(call("a", '{"command": "ls"}'), text="look"), result("a", "calc.py")]
    after = [{"role": "user", "content": "Summary of what happened so far."}, *kept]
    messages = [*kept, turn(call("b", '{"command": "pwd"}')), result("b", "/"), *after]
    steps = rollout_of(tmp_path, [*messages, turn(call("c", '{"command": "id"}'))]).steps
    assert [s.calls[0].arguments["command"] for s in steps] == ["ls", "pwd", "id"]


@pytest.mark.parametrize("commands", [("ls", "pwd", "ls", "pwd"), ("ls", "ls", "pwd")])
def test_ids_that_name_several_calls_do_not_make_a_replay(tmp_path, commands):
    # this writer numbers the calls of every message from 0
    messages = []
    for command in commands:
        messages += [turn(call("0", json.dumps({"command": command}))), result("0", command)]
    steps = rollout_of(tmp_path, messages).steps
    assert [step.calls[0].output for step in steps] == list(commands)


def test_demonstrations_are_no_turns(tmp_path):
    shown = {**turn(call("a", '{"command": "rm"}')), "is_demo": True}
    steps = rollout_of(tmp_path, [shown, turn(call("b", '{"command": "ls"}'))]).steps
    assert [step.calls[0].arguments["command"] for step in steps] == ["ls"]


def test_shells_of_mini_swe_agent_are_recognised_in_tool_results(tmp_path):
    run = [
        ("ls", "<returncode>0</returncode>\n<output>\na.py\n</output>"),
        ("kill -9 $$", "<returncode>-9</returncode>\n<output>\n</output>"),
        ("sleep 99", "<output>\n\n</output>"),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "<output>\n</output>"),
    ]
    messages = []
    for number, (command, output) in enumerate(run):
        arguments = json.dumps({"command": command})
        messages += [turn(call(str(number), arguments)), result(str(number), output)]
    rollout = rollout_of(tmp_path, messages)
    assert not rollout.persistent_shell
    calls = [step.calls[0] for step in rollout.steps]
    assert [(c.output, c.exit_code, c.timed_out) for c in calls] == [
        ("a.py\n", 0, False),
        ("", -9, False),
        ("\n", None, True),
        ("", None, False),  # nothing ran: this is the end
    ]


def test_a_row_can_say_whether_its_shell_stays(tmp_path):
    messages = [turn(call("1", '{"command": "ls"}')), result("1", "a.py")]
    assert rollout_of(tmp_path, messages).persistent_shell
    assert not rollout_of(tmp_path, messages, persistent_shell=False).persistent_shell


def test_output_tags_mean_nothing_in_other_rollouts(tmp_path):
    messages = [turn(call("1", '{"command": "cat t.xml"}')), result("1", "<output>\nx</output>")]
    rollout = rollout_of(tmp_path, messages)
    assert rollout.persistent_shell
    assert rollout.steps[0].calls[0].output == "<output>\nx</output>"
    assert not rollout.steps[0].calls[0].timed_out


def test_rows_of_fenced_commands(tmp_path):
    messages = [
        {"role": "assistant", "content": "```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
        {"role": "assistant", "content": "no command"},
    ]
    rollout = rollout_of(tmp_path, messages)
    assert not rollout.persistent_shell
    assert [s.calls[0].arguments for s in rollout.steps] == [{"command": "ls"}, "no command"]


def test_case_30_terminal_noise_is_left_to_the_signatures(tmp_path):
    noisy = "a\r\n\x1b[31mred\x1b[0m\r- \x08\\\x08done"
    messages = [turn(call("1", '{"command": "make"}')), result("1", noisy)]
    assert rollout_of(tmp_path, messages).steps[0].calls[0].output == noisy


def test_trailers_of_openhands_give_exit_code_and_directory(tmp_path):
    trailer = (
        "\n[The command completed with exit code 3.]\n[Current working directory: /w/x]\n"
        "[Python interpreter: /p]\n[Command finished with exit code 3]"
    )
    messages = [
        turn(call("1", '{"command": "make"}')),
        result("1", "out" + trailer),
        turn(call("2", '{"command": "ls"}')),
        result("2", "[The command sat on a line of its own"),
    ]
    first, second = (s.calls[0] for s in rollout_of(tmp_path, messages).steps)
    assert (first.output, first.exit_code, second.cwd) == ("out", 3, "/w/x")
    assert second.output == "[The command sat on a line of its own"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reward": 0.7}, (0.7, "passed")),
        ({"score": 0}, (0.0, "failed")),
        ({"resolved": True, "status": "agent_timeout"}, (1.0, "passed")),
        ({"is_resolved": False, "failure_mode": "agent_timeout"}, (0.0, "incomplete")),
        ({"success": None, "exit_status": "exit_cost"}, (None, "incomplete")),
        ({"reward": None, "status": "unset"}, (None, "unknown")),
    ],
)
def test_case_39_outcome_and_stop_reason(tmp_path, fields, expected):
    rollout = rollout_of(tmp_path, [turn(call("1", "{}"))], **fields)
    assert (rollout.reward, rollout.status) == expected
    stop = next((v for k, v in fields.items() if k in ("status", "failure_mode", "exit_status")), 0)
    assert rollout.stop_reason == (None if stop in (0, "unset") else stop)


def test_step_rewards(tmp_path):
    messages = [turn(call("1", "{}")), turn(call("2", "{}"))]
    rollout = rollout_of(tmp_path, messages, step_rewards=[0.5, None])
    assert [step.reward for step in rollout.steps] == [0.5, 0.0]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {"messages": [{"role": "assistant", "content": ""}]},
            "no problem id: the row needs one of problem_id, instance_id, task_id, prompt_id, "
            "task, uid",
        ),
        (
            {"problem_id": 1, "messages": [{"role": "user"}], "reward": "good"},
            "reward is 'good'; expected a number, true, false or null",
        ),
        (
            {"problem_id": 1, "messages": [{"role": "user"}], "reward": "nan"},
            "reward is 'nan'; expected a number, true, false or null",
        ),
        (
            {"problem_id": 1, "messages": [{"role": "user"}], "reward": 10**400},
            "reward is not finite; expected a number, true, false or null",
        ),
        (
            {"problem_id": 1, "messages": [{"role": "user"}], "reward": float("-inf")},
            "JSON is malformed: invalid character (byte 61): NaN and Infinity are no JSON; "
            "write null for what is not known",
        ),
        (
            {"problem_id": 1, "messages": "hello"},
            "messages is a text, but not the JSON of a list "
            "(JSON is malformed: invalid character (byte 0))",
        ),
        (
            {"problem_id": 1, "messages": [{"role": "user"}], "step_rewards": [1, 2]},
            "step_rewards has 2 entries for 0 steps",
        ),
        (
            {"problem_id": 1, "messages": [{"role": "user", "content": 5}]},
            "Expected `str | object | array | null`, got `int` - at `$.messages[0].content`",
        ),
    ],
)
def test_why_a_row_is_refused(tmp_path, row, reason):
    path = tmp_path / "rows.jsonl"
    good = {"problem_id": "good", "messages": [{"role": "assistant", "content": "hi"}]}
    path.write_text(json.dumps(row) + "\n" + json.dumps(good) + "\n")
    reader = read_groups(path)
    assert [group.problem_id for group in reader] == ["good"]
    assert [str(skipped) for skipped in reader.report.skipped] == [f"{path}:1: {reason}"]


def rows_of(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"messages": [turn(call("1", "{}"))], **r}) + "\n" for r in rows)
    )
    return path


def ids(groups):
    return {group.problem_id: [r.rollout_id for r in group.rollouts] for group in groups}


def test_uid_is_the_prompt_and_never_a_rollout(tmp_path):
    # two samples of one prompt in verl, named and not named by a problem id
    named = [{"problem_id": "p", "uid": "u", "n": n} for n in range(2)]
    assert [len(names) for names in ids(read(rows_of(tmp_path, *named))).values()] == [2]
    unnamed = [{"uid": "u", "rollout_id": name} for name in "ab"]
    assert ids(read(rows_of(tmp_path, *unnamed))) == {"u": ["a", "b"]}


@pytest.mark.parametrize("name", ["traj_id", "trajectory_id", "trial_name", "id", "sample"])
def test_synonyms_of_the_rollout_id(tmp_path, name):
    rows = [{"problem_id": "p", name: "a"}, {"problem_id": "p", name: "b"}]
    assert ids(read(rows_of(tmp_path, *rows))) == {"p": ["a", "b"]}


def test_messages_may_be_json_text(tmp_path):
    path = rows_of(tmp_path, {"problem_id": "p", "messages": json.dumps([turn(call("1", "{}"))])})
    [group] = read(path)
    assert [len(step.calls) for step in group.rollouts[0].steps] == [1]


def test_a_number_too_large_for_a_reward_is_refused(tmp_path):
    path = rows_of(tmp_path, {"problem_id": "p", "reward": 1}, {"problem_id": "q"})
    path.write_text(path.read_text().replace('"reward": 1', '"reward": 1e999'))
    reader = read_groups(path)
    assert list(ids(reader)) == ["q"]
    assert [str(s) for s in reader.report.skipped] == [
        f"{path}:1: Number out of range - at `$.reward`"
    ]
