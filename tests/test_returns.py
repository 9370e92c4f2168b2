import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import Attempt, Options, Turn, returns_of
from rtmc.returns import discounted_returns, validation_bonus


def test_returns_are_discounted_backwards_and_end_with_each_rollout():
    # γ = 1/2, rollouts of 3, 0 and 2 steps
    # 4 → 4; 2 + 4/2 = 4; 1 + 4/2 = 3 | 8 → 8; 0 + 8/2 = 4
    rewards = np.array([1.0, 2, 4, 0, 8])
    got = discounted_returns(rewards, np.array([0, 3, 3, 5]), 0.5)
    assert list(got) == [3, 4, 4, 4, 8]
    assert list(rewards) == [1, 2, 4, 0, 8], "the input is left alone"


def test_without_a_discount_returns_are_sums():
    got = discounted_returns(np.array([1.0, 2, 4]), np.array([0, 3]), 1.0)
    assert list(got) == [7, 6, 4]


@pytest.mark.parametrize("starts", [[0], [0, 0], [0, 0, 0]])
def test_no_steps_no_returns(starts):
    assert len(discounted_returns(np.zeros(0), np.array(starts), 0.9)) == 0


@given(st.lists(st.lists(st.integers(-8, 8), max_size=6), max_size=5))
def test_returns_of_ragged_rollouts(rollouts):
    flat = np.array([r for rewards in rollouts for r in rewards], dtype=float)
    starts = np.cumsum([0, *map(len, rollouts)])
    expected = [
        g
        for rewards in rollouts
        for g in returns_of(
            Attempt(0.0, tuple(Turn("", "", float(r)) for r in rewards)), 0.0, Options(gamma=0.5)
        )
    ]
    assert list(discounted_returns(flat, starts, 0.5)) == expected  # γ = 1/2 is exact


VALIDATED = np.array([0, 1, 0, 2, 1, 2, 1])  # rollouts of 5 and 2 steps
STARTS = np.array([0, 5, 7])


@pytest.mark.parametrize(
    ("max_bonuses", "times"),
    [
        (0, [0, 0, 0, 0, 0, 0, 0]),
        (1, [0, 1, 0, 0, 0, 1, 0]),  # the first of each rollout
        (2, [0, 1, 0, 1, 0, 2, 0]),  # one left when two changes are validated at once
        (3, [0, 1, 0, 2, 0, 2, 1]),
        (None, [0, 1, 0, 2, 1, 2, 1]),  # for each change
    ],
)
def test_bonuses_are_paid_in_order_up_to_the_maximum_of_a_rollout(max_bonuses, times):
    got = validation_bonus(VALIDATED, STARTS, 0.5, max_bonuses)
    assert list(got) == [0.5 * t for t in times]


def test_one_bonus_a_rollout_is_the_default():
    assert list(validation_bonus(VALIDATED, STARTS, 1.0)) == [0, 1, 0, 0, 0, 1, 0]


def test_an_edit_test_loop_cannot_farm_the_bonus():
    farm = np.array([0, 1] * 50)
    assert validation_bonus(farm, np.array([0, 100]), 0.05).sum() == 0.05
    assert validation_bonus(farm, np.array([0, 100]), 0.05, None).sum() == pytest.approx(2.5)
