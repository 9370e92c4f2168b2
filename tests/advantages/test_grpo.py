"""GRPO: every number here is worked by hand above its assert."""

from math import sqrt

import numpy as np
import pytest

from oracle import Attempt, Options, Turn, library, walk

TRIO = (walk(1, "s:a t:b u:c"), walk(0, "s:a"), walk(0, "s:b s:b"))


def advantages(group, **options):
    return library([list(group)], Options(estimator="grpo", **options)).advantages


@pytest.mark.parametrize(
    ("std", "divisor"),
    [
        # R = 1, 0, 0: mean 1/3, squares 4/9 + 1/9 + 1/9 = 2/3
        ("population", sqrt(2 / 3 / 3) + 1e-6),
        ("sample", sqrt(2 / 3 / 2) + 1e-6),
        ("none", 1.0),
    ],
)
def test_every_step_of_a_rollout_has_its_advantage(std, divisor):
    got = advantages(TRIO, std=std)
    expected = [[2 / 3] * 3, [-1 / 3], [-1 / 3] * 2]
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, np.array(numbers) / divisor, rtol=0, atol=1e-12)


def test_the_default_divides_by_the_population_deviation():
    # R = 1, 0: mean 1/2, deviation 1/2 (sample: .7071)
    got = advantages((walk(1, "s:a"), walk(0, "s:b")))
    assert got[0][0] == pytest.approx(0.5 / (0.5 + 1e-6), abs=1e-12)


def test_bonus_and_step_rewards_do_not_enter():
    # the outcome alone is compared: R = 1, 0, std none
    paid = Attempt(1, (Turn("s", "a", 0.25, 1), Turn("s", "a", 0.25, 1)))
    got = advantages((paid, walk(0, "s:b")), std="none", beta=0.5, max_bonuses=None)
    assert [list(row) for row in got] == [[0.5, 0.5], [-0.5]]


def test_a_rollout_without_steps_votes():
    # R = 1, 0, 0: mean 1/3, though the last has no step
    got = advantages((walk(1, "s:a"), walk(0, "s:a"), walk(0)), std="none")
    np.testing.assert_allclose(np.concatenate(got), [2 / 3, -1 / 3], rtol=0, atol=1e-12)
