"""Counts in real trajectories, checked against the files by eye."""

import pytest

from rtmc.formats import read, read_groups


def calls_of(rollout):
    return [call for step in rollout.steps for call in step.calls]


def only(path):
    [group] = read(path)
    [rollout] = group.rollouts
    return rollout


def test_terminal_bench(real):
    reader = read_groups(real / "groups" / "terminal-bench.jsonl")
    groups = list(reader)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    assert (len(groups), len(rollouts)) == (32, 132)
    assert sum(len(rollout.steps) for rollout in rollouts) == 2770
    assert [sum(r.reward == x for r in rollouts) for x in (None, 0.0, 1.0)] == [33, 64, 35]
    calls = [call for rollout in rollouts for call in calls_of(rollout)]
    assert len(calls) == 2770
    # 267 steps before the end have no return code; five of them had no command to run
    assert sum(call.timed_out for call in calls) == 262
    assert sum(call.arguments == {"command": None} for call in calls) == 5
    assert not any(rollout.persistent_shell for rollout in rollouts)
    known_and_mixed = [
        group.problem_id
        for group in groups
        if {0.0, 1.0} <= {rollout.reward for rollout in group.rollouts}
    ]
    assert sorted(known_and_mixed) == [
        "blind-maze-explorer-algorithm",
        "blind-maze-explorer-algorithm.easy",
        "cartpole-rl-training",
        "incompatible-python-fasttext",
        "sanitize-git-repo",
    ]
    assert reader.report.skipped == []
    assert read(real / "groups" / "terminal-bench.jsonl") == groups


MINI_1 = {
    "astropy__astropy-7606": (31, 0, 0.0),
    "django__django-11239": (14, 0, 1.0),
    "django__django-11276": (32, 0, 0.0),
    "django__django-14608": (24, 0, 1.0),
    "github_issue": (10, 0, None),
    "matplotlib__matplotlib-26291": (34, 2, 1.0),
    "psf__requests-2931": (32, 1, 1.0),
    "pytest-dev__pytest-7432": (35, 1, 1.0),
    "scikit-learn__scikit-learn-15100": (29, 2, 1.0),
    "sympy__sympy-13852": (27, 0, 0.0),
    "sympy__sympy-22914": (28, 1, 1.0),
}
"""Steps, refused messages, outcome from logs/<id>/report.json."""


def test_mini_swe_agent_1_with_outcomes_joined(real):
    reader = read_groups(real / "mini-swe-agent" / "v1")
    found = {}
    for group in reader:
        [rollout] = group.rollouts
        refused = sum(isinstance(call.arguments, str) for call in calls_of(rollout))
        found[group.problem_id] = (len(rollout.steps), refused, rollout.reward)
        assert not rollout.persistent_shell
    assert found == MINI_1
    assert (reader.report.outcome_files, reader.report.passed_over) == (10, {})
    assert reader.report.warnings == []


def test_mini_swe_agent_2_fixtures(real):
    groups = read(real / "mini-swe-agent" / "v2")
    assert {g.problem_id: len(g.rollouts[0].steps) for g in groups} == {
        "github_issue": 10,
        "local": 2,
    }
    issue = groups[0].rollouts[0]
    assert all(isinstance(call.arguments, dict) for call in calls_of(issue))


def test_swe_agent(real):
    groups = {g.problem_id: g.rollouts for g in read(real / "swe-agent")}
    assert {problem: len(rollouts) for problem, rollouts in groups.items()} == {
        "function_calling_simple": 1,
        "pydicom__pydicom-1458": 1,
        "marshmallow-code__marshmallow-1867": 8,
    }
    replays = groups["marshmallow-code__marshmallow-1867"]
    assert sorted(len(rollout.steps) for rollout in replays) == [11, 11, 11, 11, 12, 12, 13, 14]
    for rollout in replays:
        calls = calls_of(rollout)
        assert all(isinstance(call.arguments, dict) for call in calls)
        assert calls[-1].name == "submit"
        fixes = [c for c in calls if c.name == "edit" and "fields.py" in c.arguments["path"]]
        assert fixes
        assert "round(" in str(fixes[-1].arguments)
        assert (rollout.reward, rollout.stop_reason) == (None, "submitted")
    roots = {rollout.root for rollout in replays}
    assert roots == {"/testbed", "/marshmallow-code__marshmallow"}
    demo = groups["function_calling_simple"][0]
    assert [call.name for call in calls_of(demo)] == ["find_file", "open", "edit", "bash", "submit"]
    assert calls_of(demo)[2].arguments["path"] == "/SWE-agent__test-repo/tests/missing_colon.py"


def test_swe_smith(real):
    logs = real / "swe-smith" / "tests" / "test_logs"
    trajectories = {g.problem_id: g.rollouts[0] for g in read(logs / "trajectories")}
    assert {p: len(r.steps) for p, r in trajectories.items()} == {
        "pandas-dev__pandas.95280573.pr_53652": 37,
        "pandas-dev__pandas.95280573.pr_53856": 17,
        "pydantic__pydantic.acb0f10f.pr_8316": 22,
    }
    for rollout in trajectories.values():
        calls = calls_of(rollout)
        assert sum(call.name == "submit" for call in calls) == 2
        assert all(isinstance(call.arguments, dict) for call in calls)
        assert not any("str_replace_editor" in str(c.arguments.get("command")) for c in calls)
    reader = read_groups(logs / "ft_xml_example.jsonl")
    assert reader.report.files == {"swe-smith-xml": 1}
    rows = {g.problem_id: g.rollouts[0] for g in reader}
    assert {p: len(r.steps) for p, r in rows.items()} == {
        "pandas-dev__pandas.95280573.pr_53652": 37,
        "getmoto__moto.694ce1f4.pr_7331": 44,
        "pydantic__pydantic.acb0f10f.pr_8316": 22,
    }
    assert all(calls_of(r)[-1].name == "submit" for r in rows.values())
    # the same runs in both forms: the same tools with the same texts
    for problem in rows.keys() & trajectories.keys():
        written, rendered = calls_of(rows[problem]), calls_of(trajectories[problem])
        assert [c.name for c in written] == [c.name for c in rendered]
        for one, other in zip(written, rendered, strict=True):
            if one.name == "str_replace_editor":
                assert one.arguments["path"] == other.arguments["path"]
                assert str(one.arguments.get("new_str", "")).strip() == (
                    str(other.arguments.get("new_str", "")).strip()
                )


COMPLETIONS = {
    "astropy__astropy-7606": (25, "finish"),
    "django__django-11239": (30, "finish"),
    "django__django-11276": (13, "finish"),
    "django__django-14608": (50, "str_replace_editor"),
    "matplotlib__matplotlib-26291": (21, "finish"),
    "psf__requests-2931": (31, "finish"),
    "pytest-dev__pytest-7432": (25, "finish"),
    "scikit-learn__scikit-learn-15100": (20, "finish"),
    "sympy__sympy-13852": (22, "finish"),
    "sympy__sympy-22914": (21, "finish"),
}
UNRESOLVED = {
    "django__django-11239",
    "psf__requests-2931",
    "pytest-dev__pytest-7432",
    "sympy__sympy-13852",
}


def test_openhands_completions_with_their_last_action(real):
    reader = read_groups(real / "openhands" / "completions")
    rollouts = {g.problem_id: g.rollouts[0] for g in reader}
    assert {
        problem: (len(rollout.steps), calls_of(rollout)[-1].name)
        for problem, rollout in rollouts.items()
    } == COMPLETIONS
    assert {p for p, r in rollouts.items() if r.reward == 0.0} == UNRESOLVED
    assert sum(r.reward == 1.0 for r in rollouts.values()) == 6
    calls = [call for rollout in rollouts.values() for call in calls_of(rollout)]
    # the prompt's example installs a package; no agent did
    assert not any("app.py" in str(call.arguments) and "flask" in str(call.arguments).lower()
                   for call in calls)  # fmt: skip
    assert not any("[The command completed" in (call.output or "") for call in calls)
    shells = [c for c in calls if c.name == "execute_bash" and c.output is not None]
    assert sum(c.exit_code is not None for c in shells) == 124


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("output.jsonl", {"alibaba__fastjson2-2775": 20}),
        (
            "evaluation/benchmarks/multi_swe_bench/examples/output.jsonl",
            {"ponylang__ponyc-4595": 23, "ponylang__ponyc-4593": 34, "ponylang__ponyc-4588": 50},
        ),
        (
            "tests/unit/resolver/mock_output/output.jsonl",
            {"neubig/pr-viewer#5": 4, "neubig/pr-viewer#1": 22},
        ),
        (
            "tests/runtime/trajs",
            {"basic": 2, "basic_gui_mode": 5, "basic_interactions": 3, "wrong_initial_state": 4},
        ),
    ],
)
def test_openhands_event_streams(real, path, steps):
    groups = read(real / "openhands" / path)
    assert {g.problem_id: len(g.rollouts[0].steps) for g in groups} == steps
    assert all(g.rollouts[0].reward is None for g in groups)


def test_openhands_events_keep_the_call_that_the_model_wrote(real):
    rollout = only(real / "openhands" / "tests" / "runtime" / "trajs" / "basic.json")
    create = calls_of(rollout)[0]
    assert create.arguments["command"] == "create"
    assert create.arguments["file_text"].startswith("import random")


@pytest.mark.parametrize(
    ("folder", "logs", "names"),
    [
        (
            "llm-logs",
            6,
            ["str_replace_editor", "terminal", "str_replace_editor", "str_replace_editor",
             "terminal", "finish"],
        ),
        ("nonfncall-llm-logs", 4, ["terminal", "str_replace_editor", "terminal", "finish"]),
    ],
)  # fmt: skip
def test_the_sdk_logs_of_a_conversation_are_one_rollout(real, folder, logs, names):
    reader = read_groups(real / "openhands-sdk" / "llm_data" / folder)
    [group] = reader
    assert [call.name for call in calls_of(group.rollouts[0])] == names
    assert (reader.report.records, reader.report.joined) == (logs, logs - 1)


def test_all_of_it_at_once(real):
    """Two agents on the same instances: each rollout gets the outcome of its own report."""
    reader = read_groups(real)
    groups = {g.problem_id: g.rollouts for g in reader}
    for problem, (_, _, reward) in MINI_1.items():
        if reward is None:
            continue
        mini, openhands = groups[problem]
        assert (mini.reward, openhands.reward) == (reward, float(problem not in UNRESOLVED))
    assert {s.reason.partition(":")[0] for s in reader.report.skipped} == {"no problem id"}
    assert len(reader.report.skipped) == 2
