"""pass@k, majority and the interval: by hand, against all subsets, and by simulation."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmc.errors import OptionError
from rtmc.evaluation import majority, pass_at_k
from rtmc.evaluation.rates import Figure, interval, mean_over_problems

# --- by hand -------------------------------------------------------------------------------------


def test_pass_at_k_by_hand() -> None:
    # 5 runs, 2 passed, k = 3: of C(5, 3) = 10 sets only the one of the 3 failures has no pass
    assert pass_at_k(5, 2, 3) == pytest.approx(9 / 10)
    # k = 2: C(3, 2) = 3 of 10 sets have none
    assert pass_at_k(5, 2, 2) == pytest.approx(7 / 10)
    assert pass_at_k(5, 2, 1) == pytest.approx(2 / 5)
    assert pass_at_k(5, 2, 4) == 1.0
    assert pass_at_k(5, 0, 5) == 0.0


def test_majority_by_hand() -> None:
    # 4 runs, 2 passed, sets of 3: each leaves one run out; 2 passes are left in 2 of 4
    assert majority(4, 2, 3) == pytest.approx(1 / 2)
    # sets of 2: both must pass, one of 6
    assert majority(4, 2, 2) == pytest.approx(1 / 6)
    # of all 4 it is a tie, and a tie is no majority
    assert majority(4, 2, 4) == 0.0
    assert majority(4, 3, 4) == 1.0
    assert majority(5, 3, 1) == pytest.approx(3 / 5)


def test_large_numbers_keep_their_digits() -> None:
    # C(n − 1, k)/C(n, k) = 1 − k/n: one pass in a million, by hand
    assert pass_at_k(10**6, 1, 1000) == 1000 / 10**6
    assert majority(10**5, 50_001, 10**5) == 1.0
    # near 1 − (1/2)^100
    assert 0 < 1 - pass_at_k(2000, 1000, 30) < 2**-30


@pytest.mark.parametrize(("n", "c", "size"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_impossible_counts_are_refused(n: int, c: int, size: int) -> None:
    for estimate in (pass_at_k, majority):
        with pytest.raises(OptionError, match="expected"):
            estimate(n, c, size)


# --- against all subsets -------------------------------------------------------------------------


def test_both_are_the_shares_of_all_subsets() -> None:
    for n in range(1, 8):
        for c in range(n + 1):
            runs = [1] * c + [0] * (n - c)
            for k in range(1, n + 1):
                sets = list(combinations(runs, k))
                some = Fraction(sum(any(one) for one in sets), len(sets))
                most = Fraction(sum(2 * sum(one) > k for one in sets), len(sets))
                assert pass_at_k(n, c, k) == float(some)
                assert majority(n, c, k) == float(most)


counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(counts, st.data())
def test_properties(count: tuple[int, int], data: st.DataObject) -> None:
    n, c = count
    k = data.draw(st.integers(1, n))
    found = pass_at_k(n, c, k)
    assert 0 <= found <= 1
    assert pass_at_k(n, c, 1) == c / n == majority(n, c, 1)
    assert majority(n, c, k) <= found
    if k < n:
        assert found <= pass_at_k(n, c, k + 1)
    if c < n:
        assert found <= pass_at_k(n, c + 1, k)
        assert majority(n, c, k) <= majority(n, c + 1, k)


# --- the interval --------------------------------------------------------------------------------


def test_one_run_a_problem_is_wilson_by_hand() -> None:
    # 3 of 10: (.3 + 3.8415/20 ± 1.96·√(.21/10 + 3.8415/400)) / (1 + .38415) = .4921/1.3841 ± …
    low, high = interval(np.array([1.0] * 3 + [0.0] * 7), 10)
    assert (low, high) == pytest.approx((0.1078, 0.6032), abs=5e-5)


def test_several_runs_by_hand() -> None:
    # rates 1, .5, 0, .5 of 2 runs: mean .5, Σ(v − .5)² = .5, SE² = .5/(4·3) = 1/24, so that
    # n_eff = .25·24 = 6 of at most 8 runs: Wilson's interval of 3 of 6
    values = np.array([1.0, 0.5, 0.0, 0.5])
    assert interval(values, 8) == pytest.approx((0.1876, 0.8124), abs=5e-5)
    # all alike: as if every run were a problem, 4 of 8
    assert interval(np.full(4, 0.5), 8) == pytest.approx((0.2152, 0.7848), abs=5e-5)


def test_no_more_problems_than_there_were_runs() -> None:
    # rates ½ ½ ½ ¾ of 4 runs: SE² = (3/64)/12, n_eff = (63/256)·256 = 63, but 16 runs only:
    # Wilson's interval of 9 of 16
    assert interval(np.array([0.5, 0.5, 0.5, 0.75]), 16) == pytest.approx(
        (0.3318, 0.7690), abs=5e-5
    )


def test_all_or_none_has_a_width() -> None:
    # 0 of 10 problems, however often they were run: z²/(n + z²) = 3.8415/13.8415
    low, high = interval(np.zeros(10), 80)
    assert (low, high) == pytest.approx((0.0, 0.2775), abs=5e-5)
    assert interval(np.ones(10), 80) == pytest.approx((1 - high, 1.0))


@given(st.lists(st.integers(0, 4), min_size=2, max_size=40), st.randoms())
def test_interval_holds_its_mean_and_stays_in_bounds(passed: list[int], random) -> None:
    values = np.array(passed) / 4
    low, high = interval(values, 4 * len(values))
    assert 0 <= low <= values.mean() <= high <= 1
    mirrored = interval(1 - values, 4 * len(values))
    assert mirrored == pytest.approx((1 - high, 1 - low))
    random.shuffle(passed)
    assert interval(np.array(passed) / 4, 4 * len(values)) == (low, high)


@pytest.mark.parametrize(
    ("problems", "runs", "a", "b"),
    [(20, 1, 0.3, 0.3), (30, 3, 0.3, 0.3), (30, 8, 2.0, 2.0), (50, 3, 0.2, 1.0), (200, 8, 0.2, 1)],
)
def test_interval_covers_the_truth(problems: int, runs: int, a: float, b: float) -> None:
    assert 0.925 <= covered(problems, runs, a, b) <= 0.985


def test_interval_is_too_short_where_hardly_a_problem_is_ever_solved() -> None:
    # a mean of 2.4 %, most of it from a few problems that a sample may lack
    assert 0.86 <= covered(50, 8, 0.05, 2.0) <= 0.925


def covered(problems: int, runs: int, a: float, b: float) -> float:
    """Draw problems, then their runs: how often does the interval hold the mean of all problems?"""
    random = np.random.default_rng(1)
    repeats = 1000
    rates = random.beta(a, b, (repeats, problems))
    values = random.binomial(runs, rates) / runs
    intervals = (interval(row, problems * runs) for row in values)
    return sum(low <= a / (a + b) <= high for low, high in intervals) / repeats


def test_the_luck_of_runs_alone_would_be_too_little() -> None:
    """The simulation can tell: an interval that takes runs for the sample covers far too rarely."""
    random = np.random.default_rng(1)
    values = random.binomial(8, random.beta(0.3, 0.3, (400, 50))) / 8
    hits = 0
    for row in values:
        as_if_runs = np.repeat([1.0, 0.0], [int(8 * row.sum()), 400 - int(8 * row.sum())])
        low, high = interval(as_if_runs, 400)
        hits += low <= 0.5 <= high
    assert hits / 400 < 0.75


# --- means ---------------------------------------------------------------------------------------


def test_problems_without_enough_runs_are_left_out_and_counted() -> None:
    found = mean_over_problems([1.0, None, 0.0, None], [3, 1, 3, 0])
    assert (found.value, found.problems, found.left_out) == (0.5, 2, 2)
    # of the runs, too, only those of the two problems count
    alike = mean_over_problems([0.5, None, 0.5], [2, 7, 2])
    assert (alike.low, alike.high) == interval(np.array([0.5, 0.5]), 4)


def test_one_problem_or_none_has_no_interval() -> None:
    assert mean_over_problems([0.25], [4]) == Figure(0.25, None, None, 1)
    assert mean_over_problems([None], [0]) == Figure(None, None, None, 0, 1)
