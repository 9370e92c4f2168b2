"""Bonus and length: worked by hand, and planted farming and tilt."""

from math import log
from random import Random

import numpy as np
import pytest

import rtmc
from planted import findings, group, sample
from rtmc.guidance.rewards import bonus, bonus_sums, length, length_sums
from rtmc.rollouts import Group

BONUS = rtmc.Config(gamma=1.0, beta=0.05)


def bonuses(groups: list[Group], config: rtmc.Config = BONUS):
    found = [sample(one, config) for one in groups]
    unlimited = np.concatenate(
        [config.beta * np.bincount(s.batch.rollout_of_step, s.validated) for s in found]
    )
    return bonus([bonus_sums(s) for s in found], unlimited, 1.0)


def test_validations_and_payments_by_hand() -> None:
    # a ! is one change validated for the first time
    found = bonuses([group("p", ("s.x s.!", 1.0), ("s.!! s.! s.x", 0.0), ("s.x", 0.0))])
    assert (found.passing.value, found.failing.value) == (1.0, 1.5)
    assert found.failing_more.value == pytest.approx(0.5)
    assert (found.paid_passing.value, found.paid_failing.value) == (0.05, pytest.approx(0.025))
    assert found.share_of_reward.value == pytest.approx(0.1 / 1.1)
    assert found.largest_unlimited == pytest.approx(0.15)
    assert found.over_half == 0


def test_share_of_the_advantages_by_hand() -> None:
    # one step each: β = .1 moves the loser's return from 0 to .1: Q − V′ with V′ over 4 visits,
    # A = 1 − (1.1 + 1)/4 and .1 − 2.1/4, without it ±½
    config = rtmc.Config(gamma=1.0, beta=0.1)
    found = bonuses([group("p", ("s.x", 1.0), ("s.!", 0.0))], config)
    a = np.array([1 - 2.1 / 4, 0.1 - 2.1 / 4])
    moved = np.abs(a - [0.5, -0.5]).sum() / np.abs(a).sum()
    assert found.share_of_advantage.value == pytest.approx(moved)


def farmers(count: int = 8) -> list[Group]:
    """Failing rollouts validate change after change, passing ones one."""
    rows = [("s.x s.! s.y", 1.0), ("s.x s.! s.z", 1.0)]
    return [
        group(f"p{at}", *rows, *[("s.x" + " s.!" * (10 + (at + r) % 3), 0.0) for r in range(2)])
        for at in range(count)
    ]


def test_farming_is_seen_and_warned_of() -> None:
    unlimited = rtmc.Config(gamma=1.0, beta=0.05, max_bonuses=None)
    found = findings(farmers(), unlimited).guidance()
    assert found.bonus.failing_more.exceeds(0.0)
    assert found.bonus.over_half == 11  # 11 or 12 times .05 is more than half of 1, 10 is not
    assert found.advice[0] == (
        "Bound the bonus with --max-bonuses 1: it pays up to 0.60 a rollout, and more than half "
        "of an outcome to 11."
    )


def test_failing_rollouts_that_are_paid_more_are_warned_of() -> None:
    two = rtmc.Config(gamma=1.0, beta=0.05, max_bonuses=2)
    assert findings(farmers(), two).guidance().advice[0] == (
        "Lower --beta, or set it to 0: failing rollouts validate 10.0 changes more than passing "
        "ones of the same problem, and are paid more for it."
    )
    # bounded by one, both are paid the same
    assert not any("--beta" in line for line in findings(farmers(), BONUS).guidance().advice)


def test_no_warning_where_passing_rollouts_validate_more() -> None:
    groups = [group(f"p{at}", ("s.x s.! s.!", 1.0), ("s.x s.y", 0.0)) for at in range(6)]
    found = findings(groups, BONUS).guidance()
    assert found.bonus.failing_more.value == -2
    assert not any("bonus" in line or "--beta" in line for line in found.advice)


# --- length ------------------------------------------------------------------------------------


def lengths(groups: list[Group], config: rtmc.Config):
    found = [length_sums(sample(one, config)) for one in groups]
    return length([sums for sums, _ in found], np.concatenate([far for _, far in found]))


def alone(name: str, steps: int) -> str:
    return " ".join(f"{name}{t}.x" for t in range(steps))


def test_winners_too_far_from_the_end_by_hand() -> None:
    # γ = .9, p = ½: a lone winner's step is negative with more than ln ½ / ln .9 = 6.58 to go
    config = rtmc.Config(gamma=0.9, beta=0.0)
    found = lengths([group("p", (alone("a", 10), 1.0), (alone("b", 2), 0.0))], config)
    assert log(0.5) / log(0.9) == pytest.approx(6.58, abs=0.01)
    assert found.too_far.value == pytest.approx(3 / 10)  # 9, 8 and 7 to go
    assert found.negative.value == pytest.approx(3 / 10)
    assert found.negative_too_far.value == 1
    assert found.median_distance == 8
    # p = (.9⁹ + 0)/2 carried forward is below every return of the winner
    assert found.negative_discounted.value == 0


@pytest.mark.parametrize(
    "config",
    [
        rtmc.Config(gamma=1.0, beta=0.0),
        rtmc.Config(gamma=0.9, beta=0.0, estimator=rtmc.RTMC(prior="discounted")),
        rtmc.Config(gamma=0.9, beta=0.0, estimator=rtmc.RTMC(prior="none")),
    ],
)
def test_no_step_is_too_far_where_the_prior_is_not_undiscounted(config: rtmc.Config) -> None:
    found = lengths([group("p", (alone("a", 10), 1.0), (alone("b", 2), 0.0))], config)
    assert found.too_far.value == 0
    assert found.negative.value == 0
    assert found.median_distance == -1


def test_slopes_and_correlation_by_hand() -> None:
    # γ = 1, all alone, p = ½: a winner's step is (1 − ½)·2/3 = ⅓, a loser's −⅓
    config = rtmc.Config(gamma=1.0, beta=0.0)
    rows = [(alone("a", 2), 1.0), (alone("b", 5), 1.0), (alone("c", 3), 0.0), (alone("d", 4), 0.0)]
    found = lengths([group("p", *rows)], config)
    assert found.winners_slope.value == pytest.approx(1 / 3)
    assert found.losers_slope.value == pytest.approx(-1 / 3)
    assert found.correlation.value == pytest.approx(0, abs=1e-12)  # 3½ steps either way
    assert found.by_step_index["first"].value == pytest.approx(0)


def test_length_tilt_is_seen_and_a_setting_named() -> None:
    random = Random(2)
    config = rtmc.Config(gamma=0.9, beta=0.0)
    groups = [
        group(
            f"p{at}",
            *[(alone(f"w{r}", random.randint(12, 20)), 1.0) for r in range(3)],
            *[(alone(f"l{r}", random.randint(3, 6)), 0.0) for r in range(2)],
        )
        for at in range(8)
    ]
    found = findings(groups, config).guidance()
    assert found.length.correlation.value > 0.8
    assert found.length.correlation.exceeds(0.0)
    assert found.length.too_far.value > 0.5
    assert found.advice[0].startswith("Try --prior discounted: Q is discounted and the prior is")
