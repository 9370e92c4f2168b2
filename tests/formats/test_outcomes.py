"""Outcomes from files beside the trajectories and from --outcomes."""

import json

import pytest

from rtmc.errors import FormatError
from rtmc.formats import read, read_groups


def traj(path, *, stop="submitted"):
    """Write a trajectory of SWE-agent, which knows no outcome."""
    path.parent.mkdir(parents=True, exist_ok=True)
    step = {"action": "submit", "observation": "", "response": "r", "thought": "t", "state": "{}"}
    content = {"trajectory": [step], "history": [], "info": {"exit_status": stop}}
    path.write_text(json.dumps(content))
    return path


def rows(path, *rows):
    messages = [{"role": "assistant", "content": "hi"}]
    path.write_text("\n".join(json.dumps({"messages": messages, **row}) for row in rows))
    return path


def dump(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def outcomes(reader):
    return {g.problem_id: [(r.reward, r.status) for r in g.rollouts] for g in reader}


# --- case 38: files found among the inputs -------------------------------------------------------


@pytest.mark.parametrize(
    "report", [{"resolved": True}, {"p-1": {"resolved": True, "tests_status": {}}}]
)
def test_case_38_report_json_flat_or_nested(tmp_path, report):
    traj(tmp_path / "p-1.traj")
    traj(tmp_path / "p-2.traj")
    dump(tmp_path / "logs" / "p-1" / "report.json", report)
    reader = read_groups(tmp_path)
    assert outcomes(reader) == {"p-1": [(1.0, "passed")], "p-2": [(None, "unknown")]}
    assert (reader.report.outcome_files, reader.report.passed_over) == (1, {})


def test_case_38_results_json_lists(tmp_path):
    for number in range(1, 6):
        traj(tmp_path / f"p-{number}.traj")
    lists = {
        "resolved": ["p-1"],
        "unresolved_ids": ["p-2"],
        "empty_error_patch_ids": ["p-3"],
        "completed_ids": ["p-1", "p-2", "p-4"],
    }
    dump(tmp_path / "results.json", lists)
    assert outcomes(read_groups(tmp_path)) == {
        "p-1": [(1.0, "passed")],
        "p-2": [(0.0, "failed")],
        "p-3": [(0.0, "failed")],
        "p-4": [(None, "unknown")],
        "p-5": [(None, "unknown")],
    }


@pytest.mark.parametrize(
    ("reward", "expected"),
    [(0.75, (0.75, "passed")), (0, (0.0, "failed")), (None, (None, "unknown"))],
)
def test_case_38_result_json_of_a_trial(tmp_path, reward, expected):
    trial = tmp_path / "build-it__abc1234"
    traj(trial / "agent" / "p.traj", stop=None)
    rewards = None if reward is None else {"reward": reward}
    result = {
        "task_name": "build-it",
        "trial_name": "build-it__abc1234",
        "verifier_result": {"rewards": rewards},
        "exception_info": None,
    }
    dump(trial / "result.json", result)
    assert outcomes(read_groups(tmp_path)) == {"p": [expected]}


def test_case_38_results_json_of_terminal_bench(tmp_path):
    rows(
        tmp_path / "rows.jsonl",
        {"task_id": "maze", "trial_name": "maze.1"},
        {"task_id": "maze", "trial_name": "maze.2"},
        {"task_id": "maze", "trial_name": "maze.3"},
    )
    results = [
        {"task_id": "maze", "trial_name": "maze.1", "is_resolved": True, "failure_mode": "unset"},
        {"task_id": "maze", "trial_name": "maze.2", "is_resolved": None, "failure_mode": "unset"},
        {
            "task_id": "maze",
            "trial_name": "maze.3",
            "is_resolved": False,
            "failure_mode": "agent_timeout",
        },
    ]
    dump(tmp_path / "results.json", {"results": results})
    [group] = read(tmp_path)
    assert [(r.reward, r.status, r.stop_reason) for r in group.rollouts] == [
        (1.0, "passed", None),
        (None, "unknown", None),
        (0.0, "incomplete", "agent_timeout"),
    ]


def test_case_39_a_known_outcome_wins_over_the_stop_reason(tmp_path):
    traj(tmp_path / "p-1.traj", stop="exit_cost")
    traj(tmp_path / "p-2.traj", stop="exit_cost")
    dump(tmp_path / "results.json", {"resolved_ids": ["p-1"], "unresolved_ids": ["p-2"]})
    groups = read(tmp_path)
    assert outcomes(groups) == {"p-1": [(1.0, "passed")], "p-2": [(0.0, "incomplete")]}
    assert [g.rollouts[0].stop_reason for g in groups] == ["exit_cost", "exit_cost"]


def test_a_report_belongs_to_the_run_it_lies_in(tmp_path):
    for run, resolved in (("run-1", True), ("run-2", False)):
        traj(tmp_path / run / "p-1.traj")
        dump(tmp_path / run / "logs" / "p-1" / "report.json", {"resolved": resolved})
    assert outcomes(read_groups(tmp_path)) == {"p-1": [(1.0, "passed"), (0.0, "failed")]}


def test_a_report_of_one_run_says_nothing_of_another(tmp_path):
    traj(tmp_path / "run-1" / "p-1.traj")
    traj(tmp_path / "run-2" / "p-1.traj")
    dump(tmp_path / "run-1" / "logs" / "p-1" / "report.json", {"resolved": True})
    assert outcomes(read_groups(tmp_path)) == {"p-1": [(1.0, "passed"), (None, "unknown")]}


def test_a_report_that_could_mean_several_rollouts_is_not_guessed_at(tmp_path):
    traj(tmp_path / "trajs" / "a" / "p-1.traj")
    traj(tmp_path / "trajs" / "b" / "p-1.traj")
    dump(tmp_path / "logs" / "p-1" / "report.json", {"resolved": True})
    reader = read_groups(tmp_path)
    assert outcomes(reader) == {"p-1": [(None, "unknown"), (None, "unknown")]}
    assert reader.report.warnings == [
        "1 id whose outcome file fits several rollouts or none; left unknown, give the outcomes "
        "by rollout id with --outcomes (p-1)"
    ]


def test_files_that_disagree_leave_the_outcome_unknown(tmp_path):
    traj(tmp_path / "p-1.traj")
    dump(tmp_path / "a.json", {"resolved_ids": ["p-1"]})
    dump(tmp_path / "b.json", {"unresolved_ids": ["p-1"]})
    reader = read_groups(tmp_path)
    assert outcomes(reader) == {"p-1": [(None, "unknown")]}
    assert len(reader.report.warnings) == 1


def test_the_record_wins_over_a_file_found_beside_it(tmp_path):
    rows(tmp_path / "rows.jsonl", {"problem_id": "p-1", "rollout_id": "r", "reward": 0})
    dump(tmp_path / "results.json", {"resolved_ids": ["p-1"]})
    assert outcomes(read_groups(tmp_path)) == {"p-1": [(0.0, "failed")]}


# --- --outcomes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("o.csv", "id,reward\nr1,1\nr2,0.25\nr3,\n"),
        ("o.csv", "r1,true\nr2,0.25\n\nr3,null\n"),
        ("o.csv", "\ufeffr1,1.0\nr2,0.25\n"),
        ("o.json", '{"r1": true, "r2": 0.25, "r3": null}'),
        ("o.json", '[{"rollout_id": "r1", "reward": 1}, {"id": "r2", "score": 0.25}]'),
        ("o.jsonl", '{"rollout_id": "r1", "resolved": true}\n{"id": "r2", "reward": 0.25}\n'),
    ],
)
def test_shapes_of_explicit_outcomes(tmp_path, name, text):
    path = rows(
        tmp_path / "rows.jsonl",
        {"problem_id": "p", "rollout_id": "r1", "reward": 0},
        {"problem_id": "p", "rollout_id": "r2"},
        {"problem_id": "p", "rollout_id": "r3"},
    )
    (tmp_path / name).write_text(text, encoding="utf-8")
    reader = read_groups(path, outcomes=tmp_path / name)
    assert outcomes(reader) == {"p": [(1.0, "passed"), (0.25, "failed"), (None, "unknown")]}
    assert reader.report.unmatched_outcomes == []


def test_explicit_outcomes_win_over_files_and_records(tmp_path):
    rows(tmp_path / "rows.jsonl", {"problem_id": "p-1", "rollout_id": "r", "reward": 0})
    traj(tmp_path / "p-2.traj")
    dump(tmp_path / "results.json", {"unresolved_ids": ["p-2"]})
    explicit = tmp_path.parent / f"{tmp_path.name}.csv"
    explicit.write_text("p-1,1\np-2,1\n")
    reader = read_groups(tmp_path, outcomes=[explicit])
    assert set(outcomes(reader)) == {"p-1", "p-2"}
    assert all(found == [(1.0, "passed")] for found in outcomes(reader).values())


def test_a_directory_of_reports_can_be_given(tmp_path):
    path = traj(tmp_path / "trajs" / "p-1.traj")
    dump(tmp_path / "elsewhere" / "p-1" / "report.json", {"p-1": {"resolved": True}})
    reader = read_groups(path, outcomes=tmp_path / "elsewhere")
    assert outcomes(reader) == {"p-1": [(1.0, "passed")]}


@pytest.mark.parametrize("grouped", [False, True])
def test_ids_without_a_rollout_are_reported(tmp_path, grouped):
    path = rows(tmp_path / "rows.jsonl", {"problem_id": "p", "rollout_id": "r"})
    (tmp_path / "o.csv").write_text("r,1\nx,1\ny,0\n")
    reader = read_groups(path, outcomes=tmp_path / "o.csv", grouped=grouped)
    assert outcomes(reader) == {"p": [(1.0, "passed")]}
    assert reader.report.unmatched_outcomes == ["x", "y"]
    assert reader.report.warnings == ["2 ids in --outcomes without a rollout (x, y)"]


def test_one_outcome_for_several_rollouts_is_worth_a_warning(tmp_path):
    path = rows(
        tmp_path / "rows.jsonl",
        {"problem_id": "p", "rollout_id": "a"},
        {"problem_id": "p", "rollout_id": "b"},
    )
    (tmp_path / "o.csv").write_text("p,1\nb,0\n")
    reader = read_groups(path, outcomes=tmp_path / "o.csv")
    assert outcomes(reader) == {"p": [(1.0, "passed"), (0.0, "failed")]}
    assert reader.report.warnings == []
    (tmp_path / "o.csv").write_text("p,1\n")
    reader = read_groups(path, outcomes=tmp_path / "o.csv")
    assert outcomes(reader) == {"p": [(1.0, "passed"), (1.0, "passed")]}
    assert reader.report.warnings == [
        "1 id whose one outcome in --outcomes went to several rollouts (p)"
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("o.csv", "id,reward\nr,good\n", "o.csv:2: expected an id and a reward, got 'r,good'"),
        ("o.csv", "", "o.csv: states no outcome; expected CSV or JSON of id and reward"),
        ("o.json", "[1]", "o.json: entry 1 has no id; expected"),
        ("o.json", '{"r": "x"}', "o.json: the reward of 'r' is 'x', not a number"),
        ("o.json", "{", "o.json: Input data was truncated; expected"),
        ("o.json", "{}", "o.json: states no outcome; expected"),
        ("o.csv", "r,nan\n", "o.csv:1: the reward of 'r' is NaN or infinite; expected a finite"),
        ("o.csv", "id,reward\nr,1\ns,-inf\n", "o.csv:3: the reward of 's' is NaN or infinite"),
        ("o.csv", "id,reward\nr,1e999\n", "o.csv:2: the reward of 'r' is NaN or infinite"),
        ("o.json", '{"r": "nan"}', "o.json: the reward of 'r' is 'nan', not a number"),
        ("o.json", '{"r": 1' + "0" * 400 + "}", "o.json: the reward of 'r' is NaN or infinite"),
        ("o.json", '{"r": 1e999}', "o.json:1: Number out of range - at `$[...]`; expected CSV"),
        (
            "o.jsonl",
            '{"id": "r", "reward": 1}\n{"id": "s", "reward": NaN}',
            "o.jsonl:2: JSON is malformed: invalid character (byte 22): NaN and Infinity "
            "are no JSON; write null for what is not known; expected CSV",
        ),
    ],
)
def test_outcome_files_that_say_nothing(tmp_path, name, text, message):
    path = rows(tmp_path / "rows.jsonl", {"problem_id": "p", "rollout_id": "r"})
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError) as caught:
        read_groups(path, outcomes=tmp_path / name)
    assert message in str(caught.value)


def test_a_missing_outcome_file(tmp_path):
    path = rows(tmp_path / "rows.jsonl", {"problem_id": "p", "rollout_id": "r"})
    with pytest.raises(FormatError, match=r"none\.csv: cannot read the outcomes \(No such file"):
        read_groups(path, outcomes=tmp_path / "none.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="no outcome file in this directory"):
        read_groups(path, outcomes=tmp_path / "empty")
