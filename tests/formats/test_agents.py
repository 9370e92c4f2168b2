"""The formats of particular agents, each on a small file of its own."""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmc.formats import FORMATS, read, read_groups
from rtmc.formats.observations import observe
from rtmc.formats.swe_agent_commands import split_words, tool_call
from rtmc.formats.xml_calls import xml_calls
from rtmc.rollouts import ToolCall


def one(path):
    [group] = read(path)
    [rollout] = group.rollouts
    return rollout


def calls_of(rollout):
    return [call for step in rollout.steps for call in step.calls]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("rtmc.jsonl", "rtmc"),
        ("chat-openai.jsonl", "chat"),
        ("chat-anthropic.jsonl", "chat"),
        ("toy-3.json", "chat"),
        ("mini-v1/toy__calc-1.traj.json", "mini-swe-agent"),
        ("mini-v2/toy__calc-2.traj.json", "mini-swe-agent"),
        ("mini-v2-text/toy__calc-3.traj.json", "mini-swe-agent"),
        ("swe-agent-0/run-1/toy__calc-1.traj", "swe-agent"),
        ("swe-agent-1/toy__calc-1.traj", "swe-agent"),
        ("swe-agent-demo.traj", "swe-agent"),
        ("openhands-completion/toy__calc-1.json", "openhands-completion"),
        ("openhands-logs/toy__calc-4/llm-1100000001.5.json", "openhands-completion"),
        ("openhands-events/output.jsonl", "openhands-events"),
        ("openhands-events/resolver.jsonl", "openhands-events"),
        ("openhands-events/toy-list.json", "openhands-events"),
        ("openhands-events/toy-pairs.json", "openhands-events"),
        ("openhands-sdk/toy-conversation/events.jsonl", "openhands-sdk"),
        ("r2e.jsonl", "r2e-gym"),
        ("swe-smith.jsonl", "swe-smith-xml"),
    ],
)
def test_every_file_is_told_by_its_content_and_reads_alike_when_named(data, path, name):
    reader = read_groups(data / path)
    assert reader.report.files == {name: 1}
    groups = list(reader)
    assert reader.report.skipped == []
    assert read(data / path, format=name) == groups


def test_every_format_has_a_file_here(data):
    assert set(read_groups(data).report.files) == set(FORMATS)


# --- mini-swe-agent ------------------------------------------------------------------------------


def test_case_34_messages_with_no_or_several_fences_ran_nothing(data):
    rollout = one(data / "mini-v1/toy__calc-1.traj.json")
    assert len(rollout.steps) == 7
    calls = calls_of(rollout)
    assert [isinstance(call.arguments, str) for call in calls] == [0, 1, 1, 0, 0, 0, 0]
    assert calls[1].arguments.startswith("Two ways.")
    assert calls[2].arguments == "I think I am done."
    assert (calls[1].is_error, calls[2].is_error, calls[0].is_error) == (True, True, None)
    assert [c.arguments["command"] for c in calls if not isinstance(c.arguments, str)] == [
        "cat calc.py",
        "pytest -x",
        "yes",
        "sed -i 's/-/+/' calc.py",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached",
    ]


def test_mini_swe_agent_1_results(data):
    rollout = one(data / "mini-v1/toy__calc-1.traj.json")
    assert (rollout.problem_id, rollout.model, rollout.root) == (
        "toy__calc-1",
        "toy/model",
        "/testbed",
    )
    assert not rollout.persistent_shell
    assert (rollout.reward, rollout.status, rollout.stop_reason) == (None, "unknown", "Submitted")
    cat, _, _, test, loop, _, end = calls_of(rollout)
    assert (cat.output, cat.exit_code) == ("def add(a, b): return a - b\n", 0)
    assert (test.output, test.exit_code) == ("= FAIL\n90 characters elided\n1 failed\n", 1)
    assert (loop.output, loop.exit_code, loop.timed_out) == ("y\n", None, True)
    assert (end.output, end.timed_out) == ("diff --git a/calc.py b/calc.py\n", False)


def test_mini_swe_agent_2_reads_calls_once_and_results_from_extra(data):
    rollout = one(data / "mini-v2/toy__calc-2.traj.json")
    assert [len(step.calls) for step in rollout.steps] == [2, 1]
    ls, cat, sleep = calls_of(rollout)
    assert (ls.output, ls.exit_code) == ("calc.py\n", 0)
    assert cat.output == "def add\n"
    assert sleep.output.startswith("An error occurred")
    assert (sleep.exit_code, sleep.timed_out, sleep.is_error) == (None, True, True)
    assert rollout.status == "incomplete"


def test_mini_swe_agent_2_text_mode_has_its_own_fence(data):
    rollout = one(data / "mini-v2-text/toy__calc-3.traj.json")
    assert [call.arguments["command"] for call in calls_of(rollout)] == [
        "ls -a",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    ]


# --- SWE-agent -----------------------------------------------------------------------------------


def test_swe_agent_0_state_is_the_one_before_the_action(data):
    rollout = one(data / "swe-agent-0/run-1/toy__calc-1.traj")
    calc = "/toy__calc/calc.py"
    assert [(c.name, c.arguments) for c in calls_of(rollout)] == [
        ("open", {"path": "calc.py", "line": 2}),
        ("goto", {"line": 3, "path": calc}),
        ("scroll_down", {"path": calc}),
        ("search_file", {"query": "return a", "path": calc}),
        ("edit", {"start": 2, "end": 2, "text": "    return a + b", "path": calc}),
        ("set_cursors", {"start": 1, "end": 2, "path": calc}),
        ("edit", {"text": "def add(a, b):\n    return a + b", "path": calc}),
        ("bash", {"command": "cd src && ls"}),
        ("create", {"path": "it s.py"}),
        ("open", "open 'broken"),
        ("submit", {}),
    ]
    assert calls_of(rollout)[7].timed_out
    assert [c.cwd for c in calls_of(rollout)[7:9]] == ["/toy__calc", "/toy__calc/src"]
    assert rollout.root == "/toy__calc"
    # one turn without an action is prose; exit_cost is the harness's own
    assert [len(step.calls) for step in rollout.steps].count(0) == 1
    assert (rollout.stop_reason, rollout.status) == ("submitted (exit_cost)", "incomplete")


def test_swe_agent_1_state_is_the_one_after_the_action(data):
    rollout = one(data / "swe-agent-1/toy__calc-1.traj")
    calc = "/testbed/calc.py"
    assert [(c.name, c.arguments) for c in calls_of(rollout)] == [
        ("create", {"path": "calc.py"}),
        ("insert", {"text": "def add(a, b):\n    return a - b", "line": 1, "path": calc}),
        ("edit", {"search": "a - b", "replace": "a + b", "path": calc}),
        ("edit", {"search": "a", "replace": "b", "replace_all": True, "path": calc}),
        ("str_replace_editor", {"command": "view", "path": calc, "view_range": [1, 2]}),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": calc, "old_str": "it's", "new_str": ""},
        ),
        (
            "str_replace_editor",
            {"command": "insert", "path": calc, "insert_line": 3, "new_str": "x = 1"},
        ),
        ("str_replace_editor", {"command": "undo_edit", "path": calc}),
        ("bash", {"command": "find_file calc.py src && ls"}),
        ("bash", {"command": "sleep 99"}),
        ("submit", {}),
        ("submit", {}),
    ]
    assert [c.cwd for c in calls_of(rollout)[-3:]] == ["/testbed", "/testbed/src", "/testbed/src"]
    assert calls_of(rollout)[9].timed_out
    assert (rollout.model, rollout.root, rollout.reward) == ("toy-model", "/testbed", None)


def test_case_40_the_first_of_two_submits_is_an_ordinary_step(data):
    rollout = one(data / "swe-agent-1/toy__calc-1.traj")
    submits = [i for i, step in enumerate(rollout.steps) if step.calls[0].name == "submit"]
    assert submits == [10, 11]
    assert rollout.steps[10].calls[0].output == "Please review"


def test_a_demonstration_is_read_from_its_history(data):
    rollout = one(data / "swe-agent-demo.traj")
    first, second = calls_of(rollout)
    assert (first.arguments, first.output) == ({"path": "calc.py"}, "[File: calc.py]")
    assert second.arguments == {"search": "a", "replace": "b", "path": "/toy/calc.py"}
    assert (second.cwd, rollout.root) == ("/toy", "/toy")


def test_runs_of_one_instance_stay_apart_by_their_directories(data):
    [group] = read(data / "swe-agent-0")
    ids = [rollout.rollout_id for rollout in group.rollouts]
    assert [i.split("/")[-2:] for i in ids] == [["run-1", "toy__calc-1"], ["run-2", "toy__calc-1"]]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("search_dir 'a b' src\n", ToolCall("search_dir", {"query": "a b", "path": "src"})),
        ("search_dir x", ToolCall("search_dir", {"query": "x"})),
        ("scroll_up", ToolCall("scroll_up", {"path": "/f"})),
        ("insert 'x'", ToolCall("insert", {"text": "x", "path": "/f"})),
        (
            "edit 1:1\nend_of_edit",
            ToolCall("edit", {"start": 1, "end": 1, "text": "", "path": "/f"}),
        ),
        ("open a.py; ls", ToolCall("bash", {"command": "open a.py; ls"})),
        ("edit a && ls", ToolCall("bash", {"command": "edit a && ls"})),
        ("edit '&&' '||'", ToolCall("edit", {"search": "&&", "replace": "||", "path": "/f"})),
        (
            "edit a b False",
            ToolCall("edit", {"search": "a", "replace": "b", "replace_all": False, "path": "/f"}),
        ),
        ("edit onlyone", ToolCall("bash", {"command": "edit onlyone"})),
        ("goto there", ToolCall("bash", {"command": "goto there"})),
        ("submit -f", ToolCall("submit", {})),
        ("str_replace_editor view", ToolCall("bash", {"command": "str_replace_editor view"})),
        (
            "str_replace_editor view /a --view_range 3 -1",
            ToolCall(
                "str_replace_editor", {"command": "view", "path": "/a", "view_range": [3, -1]}
            ),
        ),
        (
            "str_replace_editor str_replace /a --old_str 'x",
            ToolCall("str_replace_editor", "str_replace_editor str_replace /a --old_str 'x"),
        ),
        ("python t.py", ToolCall("bash", {"command": "python t.py"})),
    ],
)
def test_commands_of_the_bundles(action, expected):
    assert tool_call(action, "/f") == expected


@given(st.text(alphabet="ab \n\t'\"\\é-", max_size=12))
def test_split_words_splits_as_shlex_does(text):
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(ValueError, match="not closed"):
            split_words(text)
    else:
        assert split_words(text) == expected


# --- OpenHands -----------------------------------------------------------------------------------


def test_case_35_the_last_action_is_in_the_response_and_the_example_is_none(data):
    rollout = one(data / "openhands-completion/toy__calc-1.json")
    calls = calls_of(rollout)
    assert [call.name for call in calls] == [
        "execute_bash",
        "str_replace_editor",
        "execute_bash",
        "finish",
    ]
    assert not any("/example" in str(call.arguments) for call in calls)
    assert len(rollout.steps) == 5  # one turn is prose only
    assert calls[1].arguments["view_range"] == "[1, 2]"  # as the model wrote it
    assert (calls[0].output, calls[0].exit_code) == ("calc.py", 0)
    assert (calls[2].output, calls[2].exit_code, calls[2].timed_out) == ("Serving", None, True)
    assert rollout.root == "/workspace/toy__calc__1.0"


def test_the_logs_of_one_conversation_are_one_rollout(data):
    reader = read_groups(data / "openhands-logs")
    [group] = reader
    [rollout] = group.rollouts
    assert group.problem_id == "toy__calc-4"
    assert [call.name for call in calls_of(rollout)] == ["terminal", "finish"]
    assert reader.report.joined == 1


def test_conversations_that_begin_alike_and_part_are_two_rollouts(data, tmp_path):
    log = (data / "openhands-logs/toy__calc-4/llm-1100000002.5.json").read_text()
    (tmp_path / "llm-1100000002.5.json").write_text(log)
    other = log.replace('\\"ls\\"', '\\"pwd\\"')
    assert other != log
    (tmp_path / "llm-1100000009.5.json").write_text(other)
    [group] = read(tmp_path)
    assert len(group.rollouts) == 2
    assert group.rollouts[1].rollout_id == group.rollouts[0].rollout_id + "#2"


def test_event_stream(data):
    rollout = read(data / "openhands-events/output.jsonl")[0].rollouts[0]
    assert (rollout.rollout_id, rollout.model, rollout.root) == (
        "toy-llm_run_1",
        "toy-llm",
        "/workspace/toy",
    )
    # parallel calls, view, refused call, edit, server, prose, finish
    assert [len(step.calls) for step in rollout.steps] == [2, 1, 1, 1, 1, 0, 1]
    ls, pwd, view, refused, edit, server, finish = calls_of(rollout)
    assert (ls.output, pwd.output, ls.exit_code) == ("calc.py", "/workspace/toy", 0)
    assert view.name == "str_replace_editor"
    assert view.arguments == {
        "command": "view",
        "path": "/workspace/toy/calc.py",
        "view_range": [1, 2],
    }
    assert (refused.arguments, refused.is_error) == ("", True)
    assert edit.arguments == {
        "command": "str_replace",
        "path": "/workspace/toy/calc.py",
        "old_str": "a - b",
        "new_str": "a + b",
    }
    assert (edit.output, edit.is_error) == ("No replacement was performed", True)
    assert (server.exit_code, server.timed_out) == (None, True)
    assert finish.name == "finish"
    assert rollout.reward is None


def test_a_merged_report_is_an_outcome_and_wins_over_the_stop(data):
    rollout = read(data / "openhands-events/output.jsonl")[1].rollouts[0]
    assert (rollout.reward, rollout.status) == (1.0, "passed")
    assert rollout.stop_reason == "RuntimeError: Agent reached maximum iteration"


def test_resolver_rows_have_flat_events_and_no_outcome(data):
    rollout = one(data / "openhands-events/resolver.jsonl")
    assert rollout.problem_id == "toy/calc#5"
    assert [(c.name, c.output) for c in calls_of(rollout)] == [
        ("execute_bash", "calc.py"),
        ("execute_ipython_cell", "[File]"),
        ("finish", None),
    ]
    assert rollout.reward is None  # "success" is what a model thinks of it


def test_bare_lists_and_pairs_of_events(data):
    listed = one(data / "openhands-events/toy-list.json")
    assert [call.name for call in calls_of(listed)] == ["str_replace_editor"]
    paired = one(data / "openhands-events/toy-pairs.json")
    assert [(c.name, c.output) for c in calls_of(paired)] == [
        ("execute_bash", "calc.py"),
        ("finish", ""),
    ]


def test_openhands_sdk(data):
    rollout = one(data / "openhands-sdk/toy-conversation/events.jsonl")
    assert rollout.problem_id == "toy-conversation"
    assert [len(step.calls) for step in rollout.steps] == [2, 1, 1, 1, 0, 1]
    ls, pwd, sleep, several, refused, _finish = calls_of(rollout)
    assert (ls.output, ls.exit_code, pwd.output) == ("calc.py", 0, "/workspace/toy")
    assert (sleep.exit_code, sleep.timed_out) == (None, True)
    assert (several.is_error, several.timed_out) == (True, False)
    assert (refused.name, refused.arguments, refused.is_error) == ("file_editor", "", True)


@pytest.mark.parametrize(
    ("name", "repeated"),
    [
        ("openhands-events/toy-list.json", lambda event: event.get("action") == "read"),
        (
            "openhands-sdk/toy-conversation/events.jsonl",
            lambda event: event.get("kind") in ("ActionEvent", "ObservationEvent"),
        ),
    ],
)
def test_case_36_events_that_occur_twice_count_once(data, tmp_path, name, repeated):
    text = (data / name).read_text()
    lines = name.endswith(".jsonl")
    decode = json.loads
    events = [decode(x) for x in text.splitlines() if x.strip()] if lines else decode(text)
    twice = [event for event in events for _ in range(1 + repeated(event))] + events
    path = tmp_path / name.rpartition("/")[2]
    path.write_text("\n".join(map(json.dumps, twice)) if lines else json.dumps(twice))
    assert one(path).steps == one(data / name).steps


def test_a_broken_line_of_a_conversation_is_named(data, tmp_path):
    path = tmp_path / "events.jsonl"
    lines = (data / "openhands-sdk/toy-conversation/events.jsonl").read_text()
    path.write_text(lines + '{"kind": "ActionEvent"')
    reader = read_groups(path)
    assert list(reader) == []
    number = lines.count("\n") + 1
    assert str(reader.report.skipped[0]) == f"{path}:1: line {number}: Input data was truncated"


# --- others --------------------------------------------------------------------------------------


def test_r2e_gym(data):
    [group] = read(data / "r2e.jsonl")
    first, second = group.rollouts
    assert group.problem_id == "toy/calc:abc"
    assert [first.rollout_id, second.rollout_id] == ["exp-1", "exp-1#2"]
    assert [len(step.calls) for step in first.steps] == [1, 1, 0, 1]
    ls, view, finish = calls_of(first)
    assert (ls.arguments, ls.output, ls.exit_code) == ({"command": "ls"}, "calc.py\n", 0)
    assert view.arguments == {"command": "view", "path": "/testbed/calc.py"}
    assert finish.name == "finish"
    assert (first.reward, first.status) == (1.0, "passed")
    assert (second.reward, second.status) == (None, "incomplete")


def test_swe_smith_xml(data):
    rollout = one(data / "swe-smith.jsonl")
    ls, create, submit = calls_of(rollout)
    assert (ls.arguments, ls.output) == ({"command": "ls"}, "calc.py\r\n")
    assert create.arguments["file_text"] == "print('<function=x>')"
    assert create.output == "File created"
    assert (submit.name, submit.arguments, submit.output) == ("submit", {}, None)
    assert (rollout.root, rollout.reward) == ("/testbed", None)


def test_swe_smith_rows_of_hugging_face(data, tmp_path):
    """Their messages are JSON text, and they know their id and outcome."""
    row = json.loads((data / "swe-smith.jsonl").read_text())
    row["messages"] = json.dumps(row["messages"])
    rows = [
        {**row, "traj_id": "t1", "resolved": True, "model": "m"},
        {**row, "traj_id": "t2", "resolved": False, "model": "m"},
        row,
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    reader = read_groups(path)
    [group] = reader
    assert reader.report.files == {"swe-smith-xml": 1}
    plain = one(data / "swe-smith.jsonl")
    assert all(rollout.steps == plain.steps for rollout in group.rollouts)
    assert [r.reward for r in group.rollouts] == [1.0, 0.0, None]
    assert [r.rollout_id for r in group.rollouts][:2] == ["t1", "t2"]
    assert "resolved" in FORMATS["swe-smith-xml"].needs
    assert "traj_id" in FORMATS["swe-smith-xml"].ids


@pytest.mark.parametrize(
    ("text", "thought", "calls"),
    [
        ("no call", "no call", []),
        (
            "two <function=a>\n<parameter=x>1</parameter>\n</function>\n<function=b>\n</function>",
            "two",
            [ToolCall("a", {"x": "1"}), ToolCall("b", {})],
        ),
        (
            "<function=a>\n</function>\n<function=b>\n<parameter=x>1</parameter>\n</function>",
            "",
            [ToolCall("a", {}), ToolCall("b", {"x": "1"})],
        ),
        ("<function=a>\n<parameter=x>cut", "", [ToolCall("a", {"x": "cut"})]),
        ("<function=a>\nls\n</function>", "", [ToolCall("a", "ls")]),
        ("<function=a", "", [ToolCall("unknown", "a")]),
        (
            "<function=a>\n<parameter=x>\n\n  y\n\n</parameter>\n</function>",
            "",
            [ToolCall("a", {"x": "\n  y\n"})],
        ),
    ],
)
def test_xml_calls(text, thought, calls):
    assert xml_calls(text) == (thought, calls)


@pytest.mark.parametrize(
    ("text", "output", "code", "timed_out", "is_error"),
    [
        ("plain", "plain", None, False, None),
        ("EXECUTION RESULT of [x]:\nout", "out", None, False, None),
        ("Exit code: 1\nExecution output of [x]:\nout", "out", 1, False, None),
        ("Exit code: 1\nof a script", "Exit code: 1\nof a script", None, False, None),
        ('{"returncode": 2, "output": "out"}', "out", 2, False, None),
        (
            '{"returncode": 0, "output_head": "a", "output_tail": "b", "elided_chars": 7}',
            "a\n7 characters elided\nb",
            0,
            False,
            None,
        ),
        (
            '{"returncode": -1, "output": "", "exception_info": "timed out after 3 s"}',
            "timed out after 3 s",
            None,
            True,
            True,
        ),
        ('{"returncode": "x"', '{"returncode": "x"', None, False, None),
        (
            'old\n[Your command "ls" is NOT executed. The previous command is still running.]\n'
            "[Command finished with exit code -1]",
            "old",
            None,
            False,
            True,
        ),
    ],
)
def test_observations(text, output, code, timed_out, is_error):
    seen = observe(text)
    assert (seen.output, seen.exit_code, seen.timed_out, seen.is_error) == (
        output,
        code,
        timed_out,
        is_error,
    )
