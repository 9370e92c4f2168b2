"""The library against the oracle on groups of real agents: every number, every option."""

from pathlib import Path

import numpy as np
import pytest

import oracle
import rtmc
from oracle import Attempt, Options, Turn
from rtmc.rollouts import Group
from rtmc.signatures import CodingSigner

EXAMPLE = Path(__file__).parents[1] / "examples" / "group.jsonl"

OPTIONS = [
    Options(),
    Options(n_prior=0, beta=0, repeats="paper", gamma=1.0),
    Options(prior="discounted", normalize="problem", max_bonuses=None),
    Options(prior="none", incomplete="mask"),
    Options(leave_one_out=True, incomplete="exclude"),
    Options(leave_one_out=True, prior="discounted", unknown="fail"),
    Options(estimator="grpo"),
    Options(estimator="grpo", std="none", unknown="fail", fail_reward=-1.0),
    Options(estimator="grpo_step", normalize="problem"),
]


def attempts(group: Group, level: str) -> list[Attempt]:
    """Give the oracle what the signatures say of a group."""
    signer = CodingSigner((level,))
    return [
        Attempt(
            rollout.reward,
            tuple(
                Turn(signed.states[0], signed.actions[0], step.reward, signed.validated)
                for step, signed in zip(rollout.steps, signer.steps(rollout), strict=True)
            ),
            rollout.status == "incomplete",
        )
        for rollout in group.rollouts
    ]


def assert_agree(groups: list[Group], o: Options, level: str) -> None:
    config = oracle.config(o)
    credit = rtmc.credit(groups, config, CodingSigner((level,)))
    found = iter(credit.rollouts)
    for group in groups:
        answer = oracle.credit(attempts(group, level), o)
        for i in range(len(group.rollouts)):
            one = next(found)
            for ours, theirs in (
                (one.advantages, answer.advantages[i]),
                (one.q_values, answer.q_values[i]),
                (one.state_values, answer.state_values[i]),
            ):
                expected = np.array([np.nan if v is None else v for v in theirs], dtype=float)
                np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)
    assert next(found, None) is None


@pytest.mark.parametrize("o", OPTIONS, ids=str)
@pytest.mark.parametrize("level", ["work", "content", "paper", "full"])
def test_example_group(o: Options, level: str) -> None:
    assert_agree(rtmc.read(EXAMPLE), o, level)


@pytest.mark.parametrize("o", OPTIONS, ids=str)
def test_real_groups(real: Path, o: Options) -> None:
    groups = rtmc.read(real / "groups" / "terminal-bench.jsonl")
    assert len(groups) == 32
    assert_agree(groups, o, "paper")
