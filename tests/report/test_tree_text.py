"""The terminal tree of the example group, as a golden file, and what folding and cutting do."""

from pathlib import Path

import pytest

import rtmc
from rtmc.report.tree_text import Style, draw, short
from rtmc.rollouts import Group, Rollout, Step, ToolCall

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "example_tree.txt"


def example() -> rtmc.Credit:
    (group,) = rtmc.read(ROOT / "examples" / "group.jsonl")
    return rtmc.credit(group)


def test_tree_of_the_example_group() -> None:
    drawn = "\n".join(draw(example())) + "\n"
    assert drawn == GOLDEN.read_text(encoding="utf-8")


def test_unfolded_tree_has_a_row_for_every_step_of_every_branch() -> None:
    credit = example()
    rows = [line for line in draw(credit, Style(fold=False)) if line[:7].strip()][1:]
    paths = {
        (r.states[: t + 1], r.actions[: t + 1])
        for r in credit.rollouts
        for t in range(len(r.actions))
    }
    assert len(rows) == len(paths)
    assert not any("⋮" in line for line in draw(credit, Style(fold=False)))


def test_every_rollout_ends_once_with_its_outcome() -> None:
    credit = example()
    drawn = draw(credit)
    for r in credit.rollouts:
        ends = [line for line in drawn if f" {r.rollout.rollout_id} {r.rollout.status}" in line]
        assert len(ends) == 1
        assert ("✔" if r.rollout.status == "passed" else "✘") in ends[0]


def test_no_line_is_wider_than_asked() -> None:
    assert max(map(len, draw(example(), Style(width=100)))) <= 100


def test_rollouts_without_credit_show_dashes_not_zeros() -> None:
    calls = (ToolCall("bash", {"command": "ls"}),)
    unknown = Rollout("p", "r", (Step(calls),), reward=None)
    lines = draw(rtmc.credit(Group("p", (unknown,))))
    row = next(line for line in lines if "view:dir@." in line)
    assert row.split()[:4] == ["–", "–", "–", "–"]
    assert "○ r unknown" in lines[-1]


def test_a_rollout_without_steps_ends_at_the_root() -> None:
    lines = draw(rtmc.credit(Group("p", (Rollout("p", "r", (), 1.0, "passed"),))))
    assert lines[-1].endswith("└─ ✔ r passed 1")


@pytest.mark.parametrize(
    ("key", "width", "shown"),
    [
        ("modify:0123456789abcdef@a.py", 80, "modify:0123@a.py"),
        ("create:0123456789abcdef@0123456789abcdef", 80, "create:0123@0123"),
        ("view:full@deadbeef.py", 80, "view:full@deadbeef.py"),  # no digest: 8 digits
        ("search@" + "x" * 50, 20, "search@" + "x" * 12 + "…"),
    ],
)
def test_short(key: str, width: int, shown: str) -> None:
    assert short(key, width) == shown


def test_rollouts_may_be_long_and_many() -> None:
    def walk(name: str, steps: int, reward: float) -> Rollout:
        calls = [ToolCall("bash", {"command": f"cat {name}{t}.py"}) for t in range(steps)]
        return Rollout("p", name, tuple(Step((call,)) for call in calls), reward)

    long = rtmc.credit(Group("p", (walk("a", 3000, 1.0), walk("b", 3000, 0.0))))
    assert len(draw(long, Style(fold=False))) == 2 + 6000 + 2
    # a comb: rollout i leaves the others at step i
    comb = [
        Rollout("p", str(i), (*walk("a", i, 1.0).steps, *walk("z", 1, 1.0).steps), float(i % 2))
        for i in range(150)
    ]
    assert len(draw(rtmc.credit(Group("p", tuple(comb))))) > 150


def test_an_id_cannot_break_its_line() -> None:
    rollout = Rollout("p", "r\n\x1b[31m\u202e" + "x" * 300, (Step(),), 1.0, "passed")
    last = draw(rtmc.credit(Group("p", (rollout,))), Style(width=100))[-1]
    assert last.isprintable()
    assert len(last) <= 100
    assert r"r\n\x1b[31m\u202exxx" in last


def test_an_edge_whose_rollouts_differ_shows_their_mean() -> None:
    (group,) = rtmc.read(ROOT / "examples" / "group.jsonl")
    lines = draw(rtmc.credit(group, rtmc.Config(estimator=rtmc.GRPO(std="none"))))
    assert lines[2].split()[0] == "~+0.000"  # four winners, four losers: ½ and −½
    assert lines[3].split()[0] == "~-0.071"  # three of the seven pass: (3·½ − 4·½) / 7
    finish = next(line for line in lines if "1/1     " in line and "finish" in line)
    assert finish.split()[0] == "+0.500"
