"""What the estimators are measured by, worked by hand."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmc.bench.measures import bootstrap, cosine, interval, score, student

NUMBERS = st.lists(
    st.tuples(*(st.integers(-4, 4).map(float) for _ in range(2))), min_size=1, max_size=8
)


def judge(estimate, true, gradient=(1.0,), true_gradient=(1.0,), other=None):
    """Score; ``other`` is a second look at the truth."""
    true = np.array(true, dtype=float)
    return score(
        np.array(estimate, dtype=float),
        (true, true if other is None else np.array(other, dtype=float)),
        np.array(gradient, dtype=float),
        np.array(true_gradient, dtype=float),
    )


def test_cosine():
    assert cosine(np.array([3.0, 4]), np.array([6.0, 8])) == pytest.approx(1)
    assert cosine(np.array([3.0, 4]), np.array([-3.0, -4])) == pytest.approx(-1)
    # (1, 0)·(3, 4) / 5
    assert cosine(np.array([1.0, 0]), np.array([3.0, 4])) == pytest.approx(3 / 5)
    assert cosine(np.zeros(2), np.array([3.0, 4])) == 0
    assert cosine(np.array([3.0, 4]), np.zeros(2)) == 0
    assert judge([1], [1], [1, 0], [3, 4]).cosine == pytest.approx(3 / 5)


def test_unexplained_variance():
    # e·A = 1·1 + 1·0 = 1, |e|² = 2, |A|² = 1: 1 − 1/2
    assert judge([1, 1], [1, 0]).fvu == pytest.approx(1 / 2)
    # any scale is forgiven, and so is the sign, which the sign agreement sees
    assert judge([3, 3], [1, 0]).fvu == pytest.approx(1 / 2)
    assert judge([2, -4, 0], [1, -2, 0]).fvu == pytest.approx(0, abs=1e-12)
    assert judge([-2, 4, 0], [1, -2, 0]).fvu == pytest.approx(0, abs=1e-12)
    # nothing in common
    assert judge([0, 1], [1, 0]).fvu == 1
    # nothing said, nothing to say
    assert judge([0, 0], [1, 0]).fvu == 1
    assert judge([1, 1], [0, 0]).fvu == 1


def test_unexplained_variance_is_free_of_the_noise_of_the_truth():
    # A = (2, 0), seen as (3, 1) and (1, 1): the product of both is 3 + 1 = 4 = |A|² (the squares
    # are 10 and 2), their mean (2, 1). e = (1, 0): 1 − 2²/(1·4) = 0
    assert judge([1, 0], [3, 1], other=[1, 1]).fvu == pytest.approx(0)
    # e = A explains all of A, however noisy both looks are
    rng = np.random.default_rng(0)
    true = rng.normal(size=20_000)
    one, two = (true + rng.normal(size=true.size) for _ in range(2))
    assert judge(true, one, other=two).fvu == pytest.approx(0, abs=0.03)
    half = true + rng.normal(size=true.size)  # |A|²/(|A|² + 1) = 1/2 is explained
    assert judge(half, one, other=two).fvu == pytest.approx(1 / 2, abs=0.03)
    assert judge(half, one, other=one).fvu > 0.65, "one look alone blames its noise on the estimate"


def test_signs():
    # of 4 that count, 2 agree, 1 says nothing: (1 + 1 + 1/2 + 0)/4; |A| ≤ 0.001 do not count
    found = judge([0.2, -9, 0, 1, -5, 7], [1, -1, 1, -1, 0.0009, 0])
    assert found.sign == pytest.approx(2.5 / 4)
    assert judge([1, 1], [0, 0]).sign == 1 / 2, "nothing counts"
    assert judge([0, 0], [1, -1]).sign == 1 / 2


def test_ranks_with_ties():
    # ranks 0, 1½, 1½, 3 and 0, 1, 2½, 2½ about 3/2:
    # (−3/2)² + 0 + 0 + 3/2·1 = 15/4, over √((9/4 + 9/4)(9/4 + 1/4 + 1 + 1)) = 9/2
    assert judge([1, 5, 5, 9], [-1, 0, 3, 3]).rank == pytest.approx(15 / 4 / (9 / 2))
    # any growing function is the same
    assert judge([1, 8, 27], [1, 2, 3]).rank == pytest.approx(1)
    assert judge([3, 2, 1], [1, 2, 3]).rank == pytest.approx(-1)
    assert judge([1, 1, 1], [1, 2, 3]).rank == 0


def test_bias():
    # mean 1 over √((9 + 1)/2)
    assert judge([3, -1], [1, -1]).bias == pytest.approx(1 / sqrt(5))
    assert judge([2, 2], [1, -1]).bias == pytest.approx(1)
    assert judge([-2, -2], [1, -1]).bias == pytest.approx(-1)
    assert judge([0, 0], [1, -1]).bias == 0


def slow_rank(values):
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]


@given(NUMBERS)
def test_ranks_against_counting(pairs):
    one, two = (np.array(slow_rank(column)) for column in zip(*pairs, strict=True))
    expected = 0.0
    if one.std() > 0 and two.std() > 0:
        expected = np.mean((one - one.mean()) * (two - two.mean())) / one.std() / two.std()
    estimate, true = zip(*pairs, strict=True)
    assert judge(estimate, true).rank == pytest.approx(expected, abs=1e-12)


@given(NUMBERS, st.floats(0.1, 10))
def test_no_scale_is_looked_at(pairs, factor):
    estimate, true = (np.array(column) for column in zip(*pairs, strict=True))
    one = judge(estimate, true, estimate, true)
    assert judge(factor * estimate, true, factor * estimate, true) == pytest.approx(one, abs=1e-12)
    assert -1e-12 <= one.fvu <= 1
    assert 0 <= one.sign <= 1
    assert all(-1 - 1e-12 <= x <= 1 + 1e-12 for x in (one.cosine, one.rank, one.bias))
    flipped = judge(-estimate, true, -estimate, true)
    assert (flipped.cosine, flipped.sign, flipped.rank, flipped.bias, flipped.fvu) == pytest.approx(
        (-one.cosine, 1 - one.sign, -one.rank, -one.bias, one.fvu), abs=1e-12
    )


@given(NUMBERS)
def test_the_truth_is_perfect(pairs):
    true = np.array([one for one, _ in pairs])
    if true.any():
        found = judge(true, true, true, true)
        assert found.cosine == pytest.approx(1)
        assert found.fvu == pytest.approx(0, abs=1e-12)
        assert found.sign == 1
        assert found.rank == pytest.approx(1 if len(set(true)) > 1 else 0)


# --- intervals -----------------------------------------------------------------------------------


def test_intervals_of_what_does_not_vary():
    assert bootstrap(np.full(5, 0.25)) == (0.25, 0.25)
    assert bootstrap(np.array([3.0])) == (3, 3)


def test_the_interval_is_that_of_the_mean():
    # one of two values, n = 2: the mean is 0, ½ or 1, with ¼, ½, ¼
    assert bootstrap(np.array([0.0, 1])) == (0, 1)
    rng = np.random.default_rng(0)
    values = rng.normal(3, 2, 400)
    low, high = bootstrap(values)
    # mean ± 1.96·σ/√n, with σ as found
    error = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - error, abs=0.03)
    assert high == pytest.approx(values.mean() + error, abs=0.03)
    assert bootstrap(values) == (low, high), "the resampling is the same each time"
    assert bootstrap(values, seed=1) != (low, high)


def test_intervals_hold_the_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(1)
    held = [low <= 1 <= high
            for low, high in (bootstrap(rng.exponential(1, 40)) for _ in range(300))]  # fmt: skip
    # a little less than 95 %, as percentile intervals of few skewed values are
    assert 0.88 <= np.mean(held) <= 0.98


@pytest.mark.parametrize(
    ("p", "df", "t"),
    [(0.975, 1, 12.7062), (0.975, 4, 2.7764), (0.8, 4, 0.9410), (0.975, 30, 2.0423), (0.5, 3, 0.0)],
)
def test_students_quantiles_are_those_of_the_tables(p: float, df: int, t: float):
    assert student(p, df) == pytest.approx(t, abs=2e-4)


def test_the_interval_of_a_few_values_by_hand():
    low, high = interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == pytest.approx((2 - 4.3027 / sqrt(3), 2 + 4.3027 / sqrt(3)), abs=1e-3)
    assert all(np.isnan(interval(np.array([1.0]))))
