"""The example group: recorded for real, reproducible, and every strategy shows what it is for."""

import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPT = EXAMPLES / "make_group.py"
COMMITTED = EXAMPLES / "group.jsonl"
EDITS = {"create", "str_replace", "insert", "undo_edit"}

Record = dict[str, Any]


def generate(output: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "-o", str(output)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read(path: Path) -> dict[str, Record]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["rollout_id"]: row for row in rows}


def turns(rollout: Record) -> list[tuple[str, Record, str]]:
    """Return (tool, arguments, observation) of every turn; prose only has tool ""."""
    answers = {m["tool_call_id"]: m["content"] for m in rollout["messages"] if m["role"] == "tool"}
    result = []
    for message in rollout["messages"]:
        if message["role"] != "assistant":
            continue
        if "tool_calls" not in message:
            result.append(("", {}, ""))
            continue
        (call,) = message["tool_calls"]
        arguments = json.loads(call["function"]["arguments"])
        result.append((call["function"]["name"], arguments, answers[call["id"]]))
    return result


def commands(rollout: Record) -> list[str]:
    return [arguments["command"] for tool, arguments, _ in turns(rollout) if tool == "bash"]


def replacements(rollout: Record) -> set[tuple[str, str, str]]:
    """Return (path, old text, new text) of the edits that were carried out."""
    return {
        (arguments["path"], arguments["old_str"], arguments["new_str"])
        for _, arguments, observation in turns(rollout)
        if arguments.get("command") == "str_replace" and "has been edited" in observation
    }


def views(rollout: Record) -> list[Record]:
    return [arguments for _, arguments, _ in turns(rollout) if arguments.get("command") == "view"]


def outcomes(rollout: Record) -> list[bool]:
    """Return the outcome of every test run, in order."""
    return [
        observation.endswith("[Command finished with exit code 0]")
        for tool, arguments, observation in turns(rollout)
        if tool == "bash" and "pytest" in arguments["command"]
    ]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    output = tmp_path_factory.mktemp("fresh") / "group.jsonl"
    return output, generate(output)


@pytest.fixture(scope="module")
def group() -> dict[str, Record]:
    return read(COMMITTED)


def test_the_committed_file_is_what_the_script_records(fresh, group):
    here = {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "pytest": version("pytest"),
    }
    if all(rollout["info"] == here for rollout in group.values()):
        assert fresh[0].read_bytes() == COMMITTED.read_bytes()
    again = read(fresh[0])
    assert list(again) == list(group)
    for name, rollout in group.items():
        for key in ("problem_id", "reward", "status", "root", "persistent_shell"):
            assert again[name][key] == rollout[key], (name, key)
        actions = [(tool, arguments) for tool, arguments, _ in turns(rollout)]
        assert [(tool, arguments) for tool, arguments, _ in turns(again[name])] == actions
        assert outcomes(again[name]) == outcomes(rollout), name


def test_recording_does_not_depend_on_the_surroundings(fresh, tmp_path):
    folder = tmp_path / "another folder with a longer name"
    folder.mkdir()
    output = tmp_path / "again.jsonl"
    generate(
        output,
        TMPDIR=str(folder),
        COLUMNS="211",
        PYTHONHASHSEED="7",
        TZ="Asia/Tokyo",
        PYTEST_ADDOPTS="-v",
        CI="true",
    )
    assert output.read_bytes() == fresh[0].read_bytes()
    assert list(folder.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "again.jsonl"}


def test_one_line_is_printed_for_each_strategy(fresh, group):
    output, printed = fresh
    *lines, last = printed.splitlines()
    assert last == f"wrote {output}"
    assert [line.split() for line in lines] == [
        [name, str(len(turns(rollout))), "steps", "passed" if rollout["reward"] else "failed"]
        for name, rollout in group.items()
    ]


def test_the_readme_lists_every_strategy(group):
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \| (\w+) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE
    )
    assert rows == [
        (name, str(len(turns(rollout))), "passed" if rollout["reward"] else "failed")
        for name, rollout in group.items()
    ]


def test_help_says_what_it_does():
    shown = subprocess.check_output([sys.executable, str(SCRIPT), "--help"], text=True)
    assert "Record a group" in shown


def test_four_pass_and_four_fail(group):
    rewards = {name: rollout["reward"] for name, rollout in group.items()}
    assert rewards == {
        "shell": 1.0,
        "reproduce": 1.0,
        "repeat": 1.0,
        "refused_edit": 1.0,
        "one_place": 0.0,
        "off_by_one": 0.0,
        "edit_tests": 0.0,
        "give_up": 0.0,
    }


def test_the_file_is_small_and_names_nothing_of_the_machine(group):
    text = COMMITTED.read_text(encoding="utf-8")
    assert len(text) < 150_000
    machine = ["/tmp", "/var", "/home", "/root", "/work", "/usr", ".venv", "site-packages"]
    for word in machine:
        assert not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text), word
    assert set(re.findall(r"\bin [\d.]+s\b", text)) == {"in 0.02s"}
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", text)


def test_every_rollout_is_a_complete_conversation(group):
    assert {rollout["problem_id"] for rollout in group.values()} == {"dayplan__back-to-back"}
    for name, rollout in group.items():
        roles = [message["role"] for message in rollout["messages"]]
        assert roles[:2] == ["system", "user"]
        assert 5 <= roles.count("assistant") <= 14, name
        assert rollout["messages"][1]["content"] == (EXAMPLES / "issue.md").read_text()
        for tool, _, observation in turns(rollout):
            assert bool(tool) == bool(observation), name
            if tool == "bash":
                assert re.search(r"\[Command finished with exit code \d+\]\Z", observation), name


def test_the_agent_never_sees_the_hidden_tests(group):
    for name, rollout in group.items():
        for tool, arguments, observation in turns(rollout):
            assert "hidden" not in json.dumps(arguments) + observation, (name, tool)


def test_the_same_view_is_reached_through_different_tools(group):
    assert "cat dayplan/schedule.py" in commands(group["shell"])
    assert views(group["one_place"])[0] == {"command": "view", "path": "/repo/dayplan/schedule.py"}
    assert "sed -n 1,39p dayplan/interval.py" in commands(group["shell"])
    assert {"path": "/repo/dayplan/interval.py", "view_range": [1, 39], "command": "view"} in views(
        group["reproduce"]
    )
    assert "cd tests && python -m pytest -q test_schedule.py" in commands(group["shell"])
    assert "pytest -q tests/test_schedule.py" in commands(group["off_by_one"])


def test_winners_make_the_very_same_edits(group):
    edits = replacements(group["reproduce"])
    assert len(edits) == 3
    assert replacements(group["repeat"]) == edits
    (undone,) = replacements(group["refused_edit"]) - edits
    assert undone in replacements(group["edit_tests"])
    assert edits < replacements(group["refused_edit"])


def test_shell_makes_the_edit_by_a_heredoc(group):
    assert all(tool in ("bash", "submit") for tool, _, _ in turns(group["shell"]))
    (heredoc,) = [text for text in commands(group["shell"]) if "<<'EOF'" in text]
    (same,) = [edit for edit in replacements(group["repeat"]) if "interval.py" in edit[0]]
    assert f"'''{same[1]}'''" in heredoc
    assert f"'''{same[2]}'''" in heredoc
    assert sum(text.startswith("sed -i") for text in commands(group["shell"])) == 2


def test_reproduce_verifies_and_removes_its_script(group):
    steps = turns(group["reproduce"])
    runs = [answer for _, args, answer in steps if args.get("command") == "python repro.py"]
    assert [answer[-2] for answer in runs] == ["1", "0"]  # [Command finished with exit code 1]
    assert "create" in [args.get("command") for _, args, _ in steps]
    assert "rm repro.py" in commands(group["reproduce"])


def test_repeat_runs_an_unchanged_test_several_times(group):
    steps = turns(group["repeat"])
    assert steps[1] == steps[2] == steps[3]
    assert outcomes(group["repeat"]) == [False, False, False, True, True, True]


def test_refused_edit_is_corrected(group):
    steps = turns(group["refused_edit"])
    (at,) = [i for i, step in enumerate(steps) if step[2].startswith("No replacement was")]
    refused = steps[at][1]
    assert f"old_str `{refused['old_str']}` did not appear verbatim in" in steps[at][2]
    (corrected,) = [
        args for _, args, _ in steps[at + 1 :] if args.get("new_str") == refused["new_str"]
    ]
    assert corrected["old_str"] != refused["old_str"]
    assert "undo_edit" in [args.get("command") for _, args, _ in steps]


def test_one_place_is_the_winning_change_less_one_file(group):
    missing = replacements(group["repeat"]) - replacements(group["one_place"])
    assert [path for path, _, _ in missing] == ["/repo/dayplan/schedule.py"]
    assert replacements(group["one_place"]) < replacements(group["repeat"])
    assert outcomes(group["one_place"])[-1]


def test_off_by_one_differs_in_the_boundary_only(group):
    edits = replacements(group["off_by_one"])
    assert edits < replacements(group["repeat"])
    assert len(edits) == 2
    (inserted,) = [a["insert_text"] for _, a, _ in turns(group["off_by_one"]) if "insert_text" in a]
    (winning,) = [
        new for path, _, new in replacements(group["repeat"]) if path.endswith("interval.py")
    ]
    assert winning.endswith("\n" + inserted.replace(" + 1", ""))
    assert outcomes(group["off_by_one"])[-1]


def test_edit_tests_changes_a_test_and_never_merge_or_schedule(group):
    assert {path for path, _, _ in replacements(group["edit_tests"])} == {
        "/repo/dayplan/interval.py",
        "/repo/tests/test_schedule.py",
    }
    assert outcomes(group["edit_tests"]) == [False, False, True]


def test_give_up_ends_in_prose_without_a_change(group):
    steps = turns(group["give_up"])
    assert [tool for tool, _, _ in steps[-2:]] == ["", ""]
    assert not any(args.get("command") in EDITS for _, args, _ in steps)
    assert {name: rollout["status"] for name, rollout in group.items()} == {
        name: "gave_up" if name == "give_up" else "submitted" for name in group
    }
