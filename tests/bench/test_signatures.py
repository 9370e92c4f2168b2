"""Precision and recall of the signatures: by hand, and against every pair."""

from itertools import combinations

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rtmc.bench.signatures import LEVELS, measure, table
from rtmc.cli import main
from rtmc.rollouts import Group, Rollout, Step, ToolCall, encode_rollout
from rtmc.signatures import CodingSigner

VIEW, EDIT, OTHER = (
    ToolCall("str_replace_editor", {"command": "view", "path": "a.py"}, "1\tx = 1"),
    ToolCall("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "1",
                                    "new_str": "2"}, "edited"),
    ToolCall("bash", {"command": "sed -i s/1/2/ a.py"}, ""),
)  # fmt: skip


def rollout(name, *steps):
    made = tuple(Step((call,), env_state=state) for call, state in steps)
    return Rollout("p", name, made, reward=1.0)


def rows(groups, part):
    return {row["level"]: row for row in measure(groups)["rows"] if row["part"] == part}


def test_by_hand():
    """Two agents make the same file by an edit and by sed; one of them looks at it first."""
    one = rollout("1", (VIEW, "s"), (EDIT, "s"), (VIEW, "t"))
    two = rollout("2", (OTHER, "s"), (VIEW, "t"))
    found = rows([Group("p", (one, two))], "all")
    # Equal workspaces: steps 0, 1 of one with step 0 of two (s), step 2 with step 1 (t): 3 pairs.
    assert all(row["equal_pairs"] == 3 for row in found.values())
    # root merges all 3 × 2 pairs, half of which are equal
    assert (found["root"]["merged_pairs"], found["root"]["precision"]) == (6, 0.5)
    assert found["root"]["recall"] == 1.0
    # full merges the two beginnings alone
    assert (found["full"]["merged_pairs"], found["full"]["precision"]) == (1, 1.0)
    assert found["full"]["recall"] == 1 / 3
    # content does not see views, so step 1 of one is still at the beginning
    assert (found["content"]["merged_pairs"], found["content"]["recall"]) == (2, 2 / 3)
    changed = rows([Group("p", (one, two))], "changed")
    assert (changed["root"]["merged_pairs"], changed["root"]["precision"]) == (1, 1.0)
    assert (changed["content"]["merged_pairs"], changed["content"]["precision"]) == (0, None)
    assert changed["content"]["recall"] == 0.0


calls = st.sampled_from([VIEW, EDIT, OTHER])
states = st.lists(st.tuples(calls, st.sampled_from("stu")), max_size=5)


@given(st.lists(st.lists(states, max_size=4), max_size=3))
def test_against_every_pair(drawn):
    groups = [
        Group(str(g), tuple(rollout(str(n), *steps) for n, steps in enumerate(one)))
        for g, one in enumerate(drawn)
    ]
    found = {(row["part"], row["level"]): row for row in measure(groups)["rows"]}
    for part in ("all", "changed"):
        for at, level in enumerate(LEVELS):
            both = merged = equal = 0
            for group in groups:
                kept = [one for one in group.rollouts if one.steps]
                ids = iter(CodingSigner(LEVELS).sign(kept).states[:, at]) if kept else iter(())
                start = kept[0].steps[0].env_state if kept else None
                cells = [
                    (n, next(ids), step.env_state)
                    for n, one in enumerate(kept)
                    for step in one.steps
                ]
                for (m, key, env), (n, other, env_2) in combinations(cells, 2):
                    if m == n or (part == "changed" and start in (env, env_2)):
                        continue
                    both += key == other and env == env_2
                    merged += key == other
                    equal += env == env_2
            if (part, level) in found:
                row = found[part, level]
                assert (row["merged_pairs"], row["equal_pairs"]) == (merged, equal)
                assert row["precision"] == (both / merged if merged else None)
                assert row["recall"] == (both / equal if equal else None)
            else:
                assert merged == 0


def test_rollouts_that_do_not_record_are_left_out():
    silent = Rollout("p", "3", (Step((VIEW,)),), reward=0.0)
    group = Group("p", (rollout("1", (VIEW, "s")), rollout("2", (VIEW, "s")), silent))
    assert measure([group])["left_out"] == 1
    assert measure([Group("p", (silent, silent))])["rows"] == []
    assert table(measure([])) == [
        "no two rollouts of a problem record their workspaces (env_state at every step)"
    ]


def test_errors_are_over_groups():
    """Recall of root is 1 in every group: no error. Precision differs from group to group."""
    same = Group("a", (rollout("1", (VIEW, "s")), rollout("2", (VIEW, "s"))))
    unlike = Group("b", (rollout("1", (VIEW, "s")), rollout("2", (VIEW, "t"))))
    row = rows([same, unlike], "all")["root"]
    assert (row["precision"], row["recall"], row["recall_error"]) == (0.5, 1.0, None)
    assert row["precision_error"] == 0.5  # leaving one out gives 0 and 1: sqrt(½ · ½)


def test_the_command(tmp_path):
    path = tmp_path / "r.jsonl"
    both = (rollout("1", (VIEW, "s"), (EDIT, "s")), rollout("2", (VIEW, "s"), (EDIT, "t")))
    path.write_bytes(b"".join(encode_rollout(one) + b"\n" for one in both))
    done = CliRunner().invoke(main, ["bench", "signatures", str(path)])
    assert done.exit_code == 0
    assert done.stdout.startswith("1 groups, 2 rollouts, 4 steps")
    credited = CliRunner().invoke(main, ["credit", str(path), "--level", "exact", "-o", "-"])
    assert credited.exit_code == 0, credited.output
    chained = CliRunner().invoke(main, ["credit", str(path), "--level", "exact,paper", "-o", "-"])
    assert chained.exit_code == 0, chained.output


def test_the_exact_level():
    signed = CodingSigner(("exact",)).sign([rollout("1", (VIEW, "s"), (EDIT, "s"), (VIEW, "t"))])
    assert [signed.state_keys[i] for i in signed.states[:, 0]] == ["s", "s", "t"]
    with pytest.raises(ValueError, match="rollout 3, step 0: no env_state; the level exact needs"):
        CodingSigner(("paper", "exact")).sign([Rollout("p", "3", (Step((VIEW,)),))])
