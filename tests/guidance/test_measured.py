"""The jackknife over groups, and when a difference counts."""

from math import isnan, nan, sqrt

import numpy as np
import pytest

from rtmc.guidance.measured import Measured, measured, quantile, ratio


def mean(sums):
    return ratio(sums["total"], sums["count"])


def groups(*pairs):
    return [{"total": np.array(float(t)), "count": np.array(float(c))} for t, c in pairs]


def test_error_of_a_mean_is_that_of_the_textbook() -> None:
    # 1, 2, 6: mean 3, variance (4 + 1 + 9)/2 = 7, error √(7/3)
    (found,) = measured(groups((1, 1), (2, 1), (6, 1)), mean)
    assert found.value == pytest.approx(3)
    assert found.error == pytest.approx(sqrt(7 / 3))
    assert found.groups == 3


def test_error_of_a_ratio_by_hand() -> None:
    # 4/4 and 2/6: whole 6/10; left out: 2/6 and 4/4; (2 − 1)/2·2·(⅓)² = 1/9
    (found,) = measured(groups((4, 4), (2, 6)), mean)
    assert found.value == pytest.approx(0.6)
    assert found.error == pytest.approx(1 / 3)


def test_a_group_that_says_nothing_does_not_count() -> None:
    (found,) = measured(groups((1, 1), (2, 1), (0, 0), (6, 1)), mean)
    assert (found.groups, found.error) == (3, pytest.approx(sqrt(7 / 3)))


def test_nothing_to_measure_and_one_group() -> None:
    (nothing,) = measured(groups((0, 0), (0, 0)), mean)
    assert not nothing.known
    assert nothing.groups == 0
    (one,) = measured(groups((3, 4)), mean)
    assert one.value == 0.75
    assert isnan(one.error)
    (none,) = measured([], mean)
    assert not none.known


def test_rows_of_several_figures() -> None:
    rows = [{"x": np.array([1.0, 4.0])}, {"x": np.array([3.0, 1.0])}]
    first, second = measured(rows, lambda s: s["x"], (2,))
    assert (first.value, second.value) == (4, 5)
    assert (first.error, second.error) == (pytest.approx(1), pytest.approx(1.5))


@pytest.mark.parametrize(
    ("freedom", "choices", "table"),
    [(4, 1, 2.132), (10, 1, 1.812), (60, 1, 1.671), (4, 4, 3.495), (10, 4, 2.634)],
)
def test_quantiles_are_those_of_the_table(freedom: int, choices: int, table: float) -> None:
    assert quantile(freedom, choices) == pytest.approx(table, rel=0.02)


def test_a_difference_counts_beyond_its_quantile_only() -> None:
    assert Measured(2.2, 1.0, 5).exceeds(0.0)  # 4 degrees of freedom: 2.13
    assert not Measured(2.0, 1.0, 5).exceeds(0.0)
    assert not Measured(2.2, 1.0, 5).exceeds(0.0, choices=4)
    assert not Measured(2.2, 1.0, 5).exceeds(0.5)


def test_what_is_weak_or_unknown_never_counts() -> None:
    assert not Measured(9.0, 0.1, 4).exceeds(0.0)
    assert not Measured(nan, 0.1, 9).exceeds(0.0)
    assert not Measured(9.0, nan, 9).exceeds(0.0)
    assert Measured(9.0, 0.1, 4).weak
    assert not Measured(9.0, 0.1, 5).weak
