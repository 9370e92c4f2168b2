"""It learns: real repositories, real edits, real pytest, a real trainer."""

import functools
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra train")

from here import warm_works

from rtmc.agent.loop import Limits
from rtmc.agent.models import Sampling, open_model
from rtmc.agent.rollout import roll_out
from rtmc.agent.sandbox import open_sandbox
from rtmc.agent.tasks import Part, open_task
from rtmc.train.run import train
from rtmc.train.toml import load

SIMPLEST = "tiny:modules=1,functions=1,depth=0"
HELD_OUT, RUNS = 128, 4


def solved(model: str) -> float:
    """Give the share of 512 rollouts on problems that are not trained on that pass."""
    task = open_task(f"{SIMPLEST},split=test", functools.partial(open_sandbox, "warm"))
    problems = Part(task.problems, range(HELD_OUT))
    policy = open_model(model, Sampling(max_tokens=40))
    made = roll_out(task, problems, policy, RUNS, seed=1, limits=Limits(steps=16, tokens=900))
    return sum(one.status == "passed" for one in made) / (HELD_OUT * RUNS)


@pytest.mark.skipif(not warm_works(), reason="bubblewrap does not work here")
def test_success_on_held_out_problems_rises(tmp_path: Path) -> None:
    config = load(
        "tiny",
        {
            "task.train": SIMPLEST, "credit.estimator": "rtmc", "optimizer.steps": "8",
            "optimizer.learning_rate": "3e-4", "evaluation.problems": "1", "output.rollouts": "0",
        },
    )  # fmt: skip
    train(config, tmp_path / "run", say=lambda line: None)
    before, after = solved("hf:tiny"), solved(f"hf:{tmp_path / 'run' / 'last'}")
    # the standard error of the difference is at most 0.031
    assert after > before + 0.1, (before, after)
