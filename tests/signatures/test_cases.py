"""Commands and observations that other tools got wrong, one test a case."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import rtmc
from rtmc.rollouts import Rollout, Step, ToolCall
from rtmc.signatures import CodingSigner


def bash(command: Any, output: str = "", exit_code: int | None = None, **more: Any) -> Step:
    call = ToolCall("bash", {"command": command}, output=output, exit_code=exit_code, **more)
    return Step((call,))


def tool(name: str, output: str = "", **arguments: Any) -> Step:
    return Step((ToolCall(name, arguments, output=output),))


def keys(*steps: Step, root: str | None = None) -> list[str]:
    rollout = Rollout("p", "r", steps, root=root)
    return [step.actions[0] for step in CodingSigner().steps(rollout)]


def states(*steps: Step, level: str = "paper") -> list[str]:
    return [s.states[0] for s in CodingSigner((level,)).steps(Rollout("p", "r", steps))]


def test_case_24_a_word_inside_an_argument_decides_nothing() -> None:
    assert keys(bash("grep -rn submit_form .")) == ["search@."]


def test_case_25_a_test_behind_cd_assignment_and_pager() -> None:
    command = "cd x && PYTHONPATH=. /usr/bin/python3 -m pytest t.py 2>&1 | tail -20"
    assert keys(bash(command)) == ["test@x/t.py"]


def test_case_26_a_heredoc_and_a_run_are_two_effects() -> None:
    (key,) = keys(bash("cat <<'EOF' > f.py\nprint(1)\nEOF\npython f.py", "1\n", 0))
    created, executed = key.split(" + ")
    assert created.startswith("create:")
    assert created.endswith("@f.py")
    assert executed == "execute@f.py:ok"


def test_case_27_numbered_lines_through_a_pipe() -> None:
    assert keys(bash("nl -ba a.py | sed -n '951,980p'")) == ["view:partial[9]@a.py"]


@pytest.mark.parametrize(
    ("view_range", "scope"),
    [
        ([345, 389], "partial[3]"),
        ("[345, 389]", "partial[3]"),
        ("345 389", "partial[3]"),
        ([345, -1], "partial[3-]"),
        ([1, -1], "full"),
        (None, "full"),
    ],
)
def test_case_28_every_spelling_of_a_view_range(view_range: Any, scope: str) -> None:
    step = tool("str_replace_editor", command="view", path="a.py", view_range=view_range)
    assert keys(step) == [f"view:{scope}@a.py"]


def test_case_28_line_100_is_in_the_first_bucket() -> None:
    assert keys(bash("sed -n '1,100p' a.py")) == ["view:partial[0]@a.py"]
    assert keys(bash("sed -n '1,101p' a.py")) == ["view:partial[0-1]@a.py"]


@pytest.mark.parametrize("arguments", ['{"command": "ls', "null", "[1]", '"ls"'])
def test_case_29_undecodable_arguments_are_malformed_and_kept(arguments: str) -> None:
    steps = (bash("ls"), Step((ToolCall("bash", arguments),)), bash("ls"))
    assert keys(*steps) == ["view:dir@.", "malformed", "view:dir@."]
    assert states(*steps)[1:] == [".:Vd", ".:Vd"]


def test_case_29_a_command_that_is_no_text_is_malformed_an_unknown_tool_is_a_run() -> None:
    assert keys(bash(None)) == ["malformed"]
    assert keys(bash(["ls", 3])) == ["malformed"]
    assert keys(tool("deploy", target="x")) == ["execute@deploy"]


PYTEST = "===== 1 failed, 2 passed in 0.12s ====="


@pytest.mark.parametrize(
    "output",
    [
        f"collected 3 items\r\n\r\n{PYTEST}\r\n",
        f"⠋ working\x08 \x08⠙ working\x08\n\x1b[31m{PYTEST}\x1b[0m\n",
        "\x1b[31m===== \x1b[1m1 failed\x1b[0m, \x1b[32m2 passed\x1b[0m in 0.12s =====\x1b[0m",
        "=" * 140 + " 1 failed, 2 passed in 0.\n12s " + "=" * 140,
    ],
)
def test_case_30_terminal_noise_does_not_change_a_result(output: str) -> None:
    assert keys(bash("pytest t.py", output)) == ["test@t.py:fail"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gdb -batch -ex 'x 0x7f3a11c0' a.out", "gdb -batch -ex 'x 0x7f9b22d4' a.out"),
        ("sqlite3 /tmp/tmpab12cd/x.db .dump", "sqlite3 /tmp/tmpzz98yx/x.db .dump"),
        ("curl -s localhost:8080/health", "curl -s localhost:9191/health"),
        ("kill -9 4711", "kill -9 815"),
        (
            "touch -d 2024-01-02 x && backup 2024-01-02",
            "touch -d 2025-06-07 x && backup 2025-06-07",
        ),
        ("stress --timeout 0.83s", "stress --timeout 1.20s"),
    ],
)
def test_case_31_volatile_text_never_enters_a_key(one: str, other: str) -> None:
    assert keys(bash(one, "took 0.83s", 0)) == keys(bash(other, "took 1.9s", 0))
    assert keys(bash(one, "", 0)) != keys(bash(one, "", 1))


def test_case_42_a_pipes_exit_code_says_nothing_of_the_tests() -> None:
    assert keys(bash("pytest t.py | tail -20", PYTEST, 0)) == ["test@t.py:fail"]
    assert keys(bash("pytest -q || true", "", 0)) == ["test@."]
    assert keys(bash("pytest -q t.py", "", 5)) == ["test@t.py:error"]


def test_parallel_calls_are_one_step_with_all_effects() -> None:
    calls = (
        ToolCall("Read", {"file_path": "a.py"}),
        ToolCall("Read", {"file_path": "b.py", "offset": 150, "limit": 20}),
        ToolCall("Grep", {"pattern": "x", "path": "src"}),
    )
    assert keys(Step(calls)) == ["view:full@a.py + view:partial[1]@b.py + search@src"]
    assert states(Step(calls), bash("ls"))[1] == "a.py:Vf|b.py:V[1]|src:S"


@pytest.mark.parametrize(
    ("command", "output", "exit_code", "key"),
    [
        ("python test_b.py", "Passed: 0/4\nSome tests failed", 0, r"test@test_b\.py:fail"),
        ("python test_b.py", "4/4 tests passed", 0, r"test@test_b\.py:pass"),
        ("python test_b.py", "Traceback (most recent call last):\n…", 0, r"test@test_b\.py"),
        ("openssl x509 -in a.crt -noout -text", "", 0, r"view:output@openssl x509"),
        ("openssl req -new -x509 -out a.crt", "", 0, r"execute:[0-9a-f]{16}:ok"),
        ("conda env create -f e.yml", "", 0, r"execute:[0-9a-f]{16}:ok"),
        ("conda env list", "", 0, r"view:output@conda env"),
        ("git stash list", "", 0, r"view:output@git stash"),
        ("git branch topic", "", 0, r"execute:[0-9a-f]{16}:ok"),
        ("cat a.py b.py > c.py", "", 0, r"create:[0-9a-f]{16}@c\.py"),
        ("xxd -r a > d", "xxd: not found", 127, r"create@d"),
        ("{ echo a; echo b; } > f", "", 0, r"create:[0-9a-f]{16}@f"),
    ],
)
def test_what_reading_real_merges_has_shown(
    command: str, output: str, exit_code: int, key: str
) -> None:
    assert re.fullmatch(key, keys(bash(command, output, exit_code))[0])


def test_what_flows_into_a_file_is_its_identity() -> None:
    assert keys(bash("cat a | sort > b")) != keys(bash("cat z | sort > b"))
    assert keys(bash("{ echo a; } > f")) != keys(bash("{ echo b; } > f"))
    logs = [
        states(bash(f"python {name}.py | tee log"), bash("ls"), level="content")[1] for name in "ab"
    ]
    assert logs[0] != logs[1]


def test_a_stopped_step_times_out() -> None:
    assert keys(bash("python train.py", "epoch 1", timed_out=True)) == ["execute@train.py:timeout"]


def test_keys_follow_cd_only_where_the_shell_stays() -> None:
    steps = (bash("cd src"), bash("cat a.py"))
    kept, forgets = (
        CodingSigner().steps(Rollout("p", "r", steps, persistent_shell=stays))
        for stays in (True, False)
    )
    assert kept[1].actions == ("view:full@src/a.py",)
    assert forgets[1].actions == ("view:full@a.py",)


def test_a_rollout_that_goes_on_after_a_finish_is_elsewhere() -> None:
    steps = (bash("submit"), bash("submit"), bash("ls"))
    for level in ("work", "content", "coarse", "paper"):
        assert states(*steps, level=level) == ["start", "(finish×1)", "(finish×2)"]


def test_the_same_work_through_other_tools_meets(real: Path) -> None:
    """One solution, replayed through eight tool bundles of SWE-agent."""
    groups = rtmc.read(sorted(str(path) for path in (real / "swe-agent").glob("replay*")))
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    assert len(rollouts) == 8
    signed = [CodingSigner(("content",)).steps(rollout) for rollout in rollouts]
    by_action, by_both = defaultdict(set), defaultdict(set)
    for number, steps in enumerate(signed):
        for step in steps:
            by_action[step.actions].add(number)
            by_both[step.states, step.actions].add(number)
    every = [step for steps in signed for step in steps]
    assert sum(len(by_action[s.actions]) > 1 for s in every) / len(every) >= 0.95
    assert sum(len(by_both[s.states, s.actions]) > 1 for s in every) / len(every) >= 0.75
    assert min(len({step.actions for step in steps}) for steps in signed) >= 9
    for rollout, steps in zip(rollouts, signed, strict=True):
        refused = [s.actions[0] for s in steps if s.actions[0].endswith(":err")]
        edits = [s.actions[0] for s in steps if s.actions[0].startswith("modify:")]
        if "from_source" not in rollout.rollout_id or "default" in rollout.rollout_id:
            assert len(refused) == 1
            assert refused[0].removesuffix(":err") not in edits
