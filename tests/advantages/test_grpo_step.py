"""GRPO with step rewards: every number here is worked by hand above its assert."""

from math import sqrt

import numpy as np
import pytest

from oracle import Attempt, Options, Turn, library, walk


def advantages(*group, **options):
    return library([list(group)], Options(estimator="grpo_step", **options)).advantages


@pytest.mark.parametrize(
    ("std", "divisor"),
    [
        # γ = 1/2: G = 1/2, 1 and 0: mean 1/2 over three STEPS, squares 0 + 1/4 + 1/4 = 1/2
        ("population", sqrt(0.5 / 3) + 1e-6),
        ("sample", sqrt(0.5 / 2) + 1e-6),
        ("none", 1.0),
    ],
)
def test_steps_are_compared_with_all_steps_of_the_group(std, divisor):
    got = advantages(walk(1, "s:a t:b"), walk(0, "u:c"), gamma=0.5, beta=0.0, std=std)
    expected = np.array([0, 1 / 2, -1 / 2]) / divisor
    np.testing.assert_allclose(np.concatenate(got), expected, rtol=0, atol=1e-12)


def test_the_bonus_and_rewards_of_steps_enter_the_returns():
    # γ = 1/2, β = 1/10. The loser is paid 1/10 for a validation at its second step and 1/5 there:
    # r = 0, 3/10: G = 3/20, 3/10. The winner: G = 1. mean = 1.45/3
    loser = Attempt(0, (Turn("s", "a"), Turn("t", "b", 0.2, 1)))
    got = advantages(walk(1, "u:c"), loser, gamma=0.5, beta=0.1, std="none")
    mean = 1.45 / 3
    np.testing.assert_allclose(
        np.concatenate(got), [1 - mean, 0.15 - mean, 0.3 - mean], rtol=0, atol=1e-12
    )


def test_masked_steps_vote():
    # γ = 1: G = 1; 0; 0, 0 (masked): mean 1/4 over four steps
    group = (walk(1, "s:a"), walk(0, "s:b"), walk(0, "s:a s:b", incomplete=True))
    got = advantages(*group, gamma=1.0, beta=0.0, std="none", incomplete="mask")
    expected = [3 / 4, -1 / 4, np.nan, np.nan]
    np.testing.assert_allclose(np.concatenate(got), expected, rtol=0, atol=1e-12)
