"""Gained and lost: tests by hand, against brute force, and under no change at all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmc.errors import OptionError
from rtmc.evaluation import Evaluation, compare
from rtmc.evaluation.changes import (
    LEVEL,
    adjusted,
    difference,
    expected_flips,
    mid_p,
    passes_before,
)
from tallies import tallied

# --- by hand -------------------------------------------------------------------------------------


def test_fisher_by_hand() -> None:
    # 3 passes in 3 + 3 runs: C(3, j)·C(3, 3 − j)/20 = 1, 9, 9, 1 twentieths
    chances = passes_before(3, 3, 3)
    assert chances == pytest.approx([1 / 20, 9 / 20, 9 / 20, 1 / 20])
    # mid-p of 0: 2·(1/20)/2; of 1: 2·(1/20 + 9/40)
    assert mid_p(chances, 0) == pytest.approx(0.05)
    assert mid_p(chances, 1) == pytest.approx(0.55)
    assert mid_p([1.0], 0) == 1.0


def test_benjamini_and_hochberg_by_hand() -> None:
    # sorted .01 .02 .03 .5: ·4/1, ·4/2, ·4/3, ·4/4 = .04 .04 .04 .5, each the least from there on
    assert adjusted([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.04, 0.04])
    assert adjusted([0.6, 0.9]) == pytest.approx([0.9, 0.9])
    assert adjusted([]) == []


def test_flips_by_hand() -> None:
    # one run each, one pass of the two: it is the one before or the one after
    assert expected_flips(1, 1, 1) == pytest.approx((0.5, 0.5))
    assert expected_flips(1, 1, 2) == (0, 0)
    # 3 + 3 runs, 3 passes: most before means most not after
    assert expected_flips(3, 3, 3) == pytest.approx((0.5, 0.5))
    # 3 + 3 runs, 2 passes: both before 1·C(3,2)/C(6,2) = 3/15, both after the same
    assert expected_flips(3, 3, 2) == pytest.approx((0.2, 0.2))


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_flips_are_those_of_all_ways_to_deal_out_the_passes(m: int, n: int, data) -> None:
    passed = data.draw(st.integers(0, m + n))
    ways = list(combinations(range(m + n), passed))
    gained = lost = 0
    for way in ways:
        before = 2 * sum(run < m for run in way) > m
        after = 2 * sum(run >= m for run in way) > n
        gained += after and not before
        lost += before and not after
    found = expected_flips(m, n, passed)
    assert found == pytest.approx((gained / len(ways), lost / len(ways)))


def test_a_comparison_by_hand() -> None:
    before = tallied("old", a=(0, 8), b=(8, 8), c=(4, 8), d=(1, 3), only=(1, 1), none=(0, 0))
    after = tallied("new", a=(8, 8), b=(0, 8), c=(4, 8), d=(2, 3), none=(1, 2), other=(1, 1))
    found = compare(before, after)
    assert (found.before, found.after) == ("old", "new")
    assert (found.only_before, found.only_after, found.left_out) == (
        ("only",), ("other",), ("none",)
    )  # fmt: skip
    # rates 0 1 .5 1/3 and 1 0 .5 2/3
    assert found.pass_before.value == pytest.approx(11 / 24)
    assert found.pass_after.value == pytest.approx(13 / 24)
    assert found.difference.value == pytest.approx(1 / 12)
    assert (found.better, found.worse) == (2, 1)
    # 2 of 3 by a fair coin: 2·min(1/8 + 3/16, …) and 2·(1/8 + 3/16) = .625
    assert found.sign_p == pytest.approx(0.625)
    assert found.gained.ids == ("a", "d")
    assert found.lost.ids == ("b",)
    # a and b: 8 of 16 passes, P(most before, not after) = (1 − C(8,4)²/C(16,8))/2; c alike;
    # d: 3 of 6 passes, ½
    turn = (1 - 70**2 / 12870) / 2
    assert found.gained.expected == pytest.approx(3 * turn + 0.5)
    of = {change.id: change for change in found.changes}
    # all 8 on one side: 2·½/C(16, 8); of four that could tell the first two are equal
    assert of["a"].p == pytest.approx(1 / 12870)
    assert of["a"].adjusted == pytest.approx(4 / 2 / 12870)
    assert of["a"].significant
    assert of["b"].significant
    assert not of["c"].significant
    assert of["d"].p == pytest.approx(0.55)
    assert not of["d"].significant
    assert of["b"].difference == -1


def test_what_cannot_show_a_change_takes_no_part() -> None:
    # one pass in 16 runs: at the least 2·½·½ = .5; it would only dilute the others
    plain = {f"same{i}": (0, 8) for i in range(50)}
    before, after = tallied("b", a=(0, 8), **plain), tallied("a", a=(7, 8), **plain)
    change = compare(before, after).changes[0]
    assert change.id == "a"
    assert change.adjusted == change.p < LEVEL
    assert {one.adjusted for one in compare(before, after).changes[1:]} == {None}


def test_number_of_flips_is_judged_by_its_distribution() -> None:
    # two problems of one run each, both lost: P(2) = ¼, mid-p ⅛; gained 0: 1 − ½·P(0) = ⅞
    found = compare(tallied("b", p=(1, 1), q=(1, 1)), tallied("a", p=(0, 1), q=(0, 1)))
    assert found.lost.expected == found.gained.expected == 1.0
    assert found.lost.p == pytest.approx(1 / 8)
    assert found.gained.p == pytest.approx(7 / 8)
    assert found.gained.ids == ()


# --- against itself, and the other way round -----------------------------------------------------

tables = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=2,
)


@settings(max_examples=40)
@given(tables)
def test_against_itself_nothing_changes(table: dict[str, tuple[int, int]]) -> None:
    one = tallied("x", **table)
    found = compare(one, one)
    assert found.gained.ids == found.lost.ids == ()
    assert found.difference.value == 0
    assert found.difference.low <= 0 <= found.difference.high
    assert found.sign_p == 1
    assert not any(change.significant for change in found.changes)


@settings(max_examples=40)
@given(tables, tables)
def test_the_other_way_round_is_the_mirror(one: dict, other: dict) -> None:
    if not one.keys() & other.keys():
        return
    there = compare(tallied("x", **one), tallied("y", **other))
    back = compare(tallied("y", **other), tallied("x", **one))
    assert (back.gained, back.lost) == (there.lost, there.gained)
    assert back.sign_p == pytest.approx(there.sign_p)
    assert [c.p for c in back.changes] == pytest.approx([c.p for c in there.changes])
    if there.difference.low is not None:
        assert there.difference.high is not None
        mirrored = (-there.difference.high, -there.difference.low)
        assert (back.difference.low, back.difference.high) == pytest.approx(mirrored)


def test_newcombe_by_hand() -> None:
    # 10 problems once each: 3 pass both times, 2 only before, 1 only after, 4 never.
    # before .5 in [.2366, .7634], after .4 in [.1682, .6873]; r = (.3 − .2)/√(.25·.24) = .408
    before = np.array([1] * 5 + [0] * 5, dtype=float)
    after = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0], dtype=float)
    found = difference(before, after, [10, 10])
    r = 0.1 / 0.06**0.5
    x, y = 0.4 - 0.1682, 0.7634 - 0.5
    assert found.low == pytest.approx(-0.1 - (x * x - 2 * r * x * y + y * y) ** 0.5, abs=2e-4)
    x, y = 0.6873 - 0.4, 0.5 - 0.2366
    assert found.high == pytest.approx(-0.1 + (x * x - 2 * r * x * y + y * y) ** 0.5, abs=2e-4)


def test_one_problem_has_a_difference_without_an_interval() -> None:
    found = compare(tallied("b", p=(1, 4)), tallied("a", p=(2, 4)))
    assert (found.difference.value, found.difference.low) == (0.25, None)


# --- by simulation -------------------------------------------------------------------------------


def draw(random: np.random.Generator, rates: np.ndarray, runs: int, name: str) -> Evaluation:
    passed = random.binomial(runs, rates)
    return tallied(name, **{f"p{i}": (int(c), runs) for i, c in enumerate(passed)})


@pytest.mark.parametrize(("problems", "runs"), [(30, 1), (40, 3), (100, 4)])
def test_difference_covers_the_truth(problems: int, runs: int) -> None:
    random = np.random.default_rng(2)
    repeats, hits = 600, 0
    for _ in range(repeats):
        base = random.beta(0.4, 0.4, problems)
        better = base**0.7  # mean over all problems by a large sample, below
        values = (random.binomial(runs, rate) / runs for rate in (base, better))
        found = difference(*values, [problems * runs] * 2)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= TRUTH <= found.high
    assert 0.925 <= hits / repeats <= 0.985


_many = np.random.default_rng(5).beta(0.4, 0.4, 500_000)
TRUTH = float((_many**0.7 - _many).mean())


def test_under_no_change_the_numbers_are_those_of_chance() -> None:
    """False alarms at their level, expected flips as many as there are: nothing has changed."""
    random = np.random.default_rng(3)
    repeats = 120
    turned, expected, alarms, lost = [], [], 0, 0
    for _ in range(repeats):
        rates = random.beta(0.6, 0.6, 25)
        found = compare(draw(random, rates, 5, "b"), draw(random, rates, 5, "a"))
        turned.append(len(found.lost.ids))
        expected.append(found.lost.expected)
        alarms += any(change.significant for change in found.changes)
        lost += found.lost.p <= 0.05
    error = np.std(turned) / repeats**0.5
    assert abs(np.mean(turned) - np.mean(expected)) < 3 * error
    assert alarms / repeats < 0.10
    assert lost / repeats < 0.10


def test_a_real_regression_is_found() -> None:
    random = np.random.default_rng(4)
    rates = np.full(30, 0.5)
    worse = rates.copy()
    rates[:4], worse[:4] = 0.99, 0.01
    found = compare(draw(random, rates, 8, "b"), draw(random, worse, 8, "a"))
    assert {"p0", "p1", "p2", "p3"} == {c.id for c in found.changes if c.significant}


# --- what cannot be compared ---------------------------------------------------------------------


def test_no_shared_problem_is_refused() -> None:
    with pytest.raises(OptionError, match=r"b and a share no problem .*: p against q"):
        compare(tallied("b", p=(1, 2)), tallied("a", q=(1, 2)))
    with pytest.raises(OptionError, match="share no problem with a known outcome"):
        compare(tallied("b", p=(1, 2), q=(0, 0)), tallied("a", q=(1, 2)))


def test_unlike_counting_is_refused() -> None:
    with pytest.raises(OptionError, match="b was counted with --unknown exclude, a with fail"):
        compare(tallied("b", p=(1, 2)), tallied("a", unknown="fail", p=(1, 2)))
