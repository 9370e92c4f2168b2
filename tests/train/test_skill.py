"""Where changes go, told from patches."""

import pytest

from rtmc.agent.tasks import Problem
from rtmc.rollouts import Rollout
from rtmc.train.tiny.skill import skill_of

FACTS = {
    "file": "farm.py",
    "wrong": "    a = x - y  # x plus y",
    "right": "    a = x + y  # x plus y",
}


def patch(path: str, old: str, new: str) -> str:
    return (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n def f(x):\n"
        f"-{old}\n+{new}\n"
    )


def test_each_share_by_hand() -> None:
    problems = [Problem(name, "", must_pass=("t",), facts=FACTS) for name in ("p", "q")]
    wrong, right = FACTS["wrong"], FACTS["right"]
    made = [
        ("p", patch("farm.py", wrong, right), 1.0),
        ("p", patch("farm.py", wrong, "    a = x * y  # x plus y"), 0.0),
        ("q", patch("farm.py", "    b = a", "    b = x"), 0.0),
        ("q", patch("mill.py", wrong, right), 0.0),
        ("p", patch("farm.py", wrong, right) + patch("mill.py", "    b", "    c"), 0.0),
        ("q", "", 0.0),
    ]
    rollouts = [
        Rollout(name, str(number), reward=reward, patch=text)
        for number, (name, text, reward) in enumerate(made)
    ]
    skill = skill_of(problems, rollouts)
    assert skill.solved == pytest.approx(1 / 6)
    assert (skill.changed, skill.right_file) == (pytest.approx(5 / 6), pytest.approx(4 / 6))
    assert skill.right_line == pytest.approx(3 / 6)
    assert skill.right_fix == pytest.approx(1 / 6)
    assert skill.mixed == 0.5
    assert skill.interval[0] < skill.solved < skill.interval[1]
