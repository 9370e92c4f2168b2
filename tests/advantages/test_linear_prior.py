"""The prior that graph_gae and chain_gae share: by hand, against a slow oracle, what must hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_values as slow
from oracle import Attempt, Turn, walk
from rtmc.advantages.linear_prior import linear_prior

UNCHANGED, UNTESTED, PASSED, FAILED = range(4)
PAIR = (walk(1, "s:a"), walk(0, "s:b"))


def flagged(outcome, *standings, cut=False):
    turns = tuple(Turn("s", "a", standing=standing) for standing in standings)
    return Attempt(outcome, turns, cut)


def fitted(groups, ridge, gamma=1.0, flags=False):
    batch = slow.batch_of(groups, gamma, flags=flags)
    values = linear_prior(batch, ridge)
    assert values.shape == batch.rewards.shape
    return slow.rows(values, batch)


def close(got, *expected):
    assert len(got) == len(expected)
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=1e-12)


def same_bits(got, expected):
    assert len(got) == len(expected)
    assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))


# --- worked by hand ----------------------------------------------------------------------------


def test_four_problems():
    # The last problem is judged by three pairs, τ = 0 throughout: rows (1, p − ½) → G are
    # (1, −½) → 1 and (1, ½) → 0, thrice. Intercept ½; slope: Σ x(y − ½) = −3/2 over
    # Σ x² + ρ = 3/2 + 3/2: −1/2. Both passed, so p = 1: V⁰ = ½ − ½·½
    groups = [PAIR, PAIR, PAIR, (walk(1, "s:a"), walk(1, "s:a"))]
    close(fitted(groups, ridge=1.5)[6:], [1 / 4], [1 / 4])


def test_four_problems_with_flags():
    # As before, but winners stand at passed and losers at failed; ½ + u − w/2 for winners, and
    # ½ − u + w/2 for losers. Of e = u − w/2 the cheapest is u = 2e/3, w = −2e/3, at ρ·4e²/3;
    # 6(½ − e)² + ρ·4e²/3 is least where 12(½ − e) = 8ρe/3; ρ = 9/2: e = 1/4, u = 1/6, w = −1/6.
    # V⁰ at p = 1: ½ + u + w/2 = 7/12 where tests passed, ½ − u + w/2 = 1/4 where they failed,
    # and ½ + w/2 = 5/12 where nothing is known
    pair = (flagged(1, PASSED), flagged(0, FAILED))
    last = (flagged(1, PASSED), flagged(1, FAILED), flagged(1, UNTESTED))
    close(fitted([pair] * 3 + [last], 4.5, flags=True)[6:], [7 / 12], [1 / 4], [5 / 12])


def test_a_flag_that_all_share_is_left_to_the_intercept():
    # which costs nothing: as without flags
    pair = (flagged(1, UNCHANGED), flagged(0, UNCHANGED))
    last = (flagged(1, UNCHANGED), flagged(1, UNCHANGED))
    close(fitted([pair] * 3 + [last], 1.5, flags=True)[6:], [1 / 4], [1 / 4])


def test_fewer_than_four_problems():
    # γ = ½, longest 2. Winner: p = 0, the mate's row (0, 0) → 0 − 0: θ = 0, V⁰ = 0.
    # Loser: p = 1, the mate's rows (0, 0) → ½ − 1, (½, ¼) → 1 − 1; at τ = 0: V⁰ = 1
    group = (walk(1, "s:a t:b"), walk(0, "s:a"))
    close(fitted([group], 1.0, 0.5), [0, 0], [1])
    # Both of two turns, γ = 1. Loser: p = 1, the mate's rows (0, 0) → 1 − 1, (½, ¼) → 1 − 1: V⁰ = 1
    close(fitted([(walk(1, "s:a t:b"), walk(0, "s:a t:b"))], 1.0), [0, 0], [1, 1])


def test_fewer_than_four_problems_with_a_curve():
    # γ = ½, longest 2, ρ = 11/16. Of a loser p = ½; the mates' rows (0, 0) → 0 and −½,
    # (½, ¼) → ½ and −½: Xᵀy = 0, θ = 0. Of the winner p = 0, and all mates' rows → 0
    group = (walk(1, "s:a t:b"), walk(0, "s:a t:b"), walk(0, "s:a t:b"))
    close(fitted([group], 11 / 16, 0.5), [0, 0], [1 / 2, 1 / 2], [1 / 2, 1 / 2])
    # Of the loser p = 1; with a bonus in the winner's last turn (½, ¼) → 1.05 − 1:
    # θ = .05·(½, ¼)/(5/16 + ρ) = .05·(½, ¼). At τ = ½ 1 + .05·5/16 is clipped to 1
    paid = Attempt(1, (Turn("s", "a"), Turn("t", "b", 0.0, 1)))
    close(fitted([(paid, walk(0, "s:a t:b"))], 11 / 16, 0.5), [0, 0], [1, 1])
    # where the environment took .05 away, it is less: 1 − .05·(½·½ + ¼·¼)
    fined = Attempt(1, (Turn("s", "a"), Turn("t", "b", -0.05)))
    close(fitted([(fined, walk(0, "s:a t:b"))], 11 / 16, 0.5), [0, 0], [1, 1 - 0.05 * 5 / 16])


def test_fewer_than_four_problems_with_flags():
    # γ = ½, ρ = 1. Winner: the mate's row is unchanged → 0. Loser: p = 1, the mate's rows
    # unchanged → ½ − 1 and untested → 0: θ = (−½)/(1 + ρ) for unchanged: V⁰ = 1 − ¼
    group = (flagged(1, UNCHANGED, UNTESTED), flagged(0, UNCHANGED))
    close(fitted([group], 1.0, 0.5, flags=True), [0, 0], [3 / 4])


def test_alone_p_is_everybodys():
    # groups of one: p = (1 + 0)/2, no mates; clipped into what the group got
    close(fitted([(walk(1, "s:a"),), (walk(0, "s:a"),)], 1.0), [1], [0])


def test_who_was_cut_off_has_no_outcome():
    # Two problems. First: the mate of 1 was cut off, so there is none: p = everybody's mean, of
    # 1, 0, 1: 2/3. Its own p = 1, and so is its mate's return: θ = 0, V⁰ = 1
    groups = [(walk(1, "s:a"), walk(0, "s:b", incomplete=True)), (walk(0, "s:a"), walk(1, "s:a"))]
    close(fitted(groups, 1.0), [2 / 3], [1], [1], [0])
    # four problems: that of the cut attempt teaches the others as if it were not there
    cut = walk(0, "s:b s:b", incomplete=True)
    groups = [PAIR, PAIR, PAIR, (walk(1, "s:a"), walk(1, "s:a"))]
    with_cut = [(*PAIR, cut), *groups[1:]]
    same_bits(fitted(with_cut, 1.5)[-2:], fitted(groups, 1.5)[-2:])


def test_where_all_were_cut_off_nothing_is_known():
    cut = (walk(0, "s:a", incomplete=True), walk(0, "s:a t:b", incomplete=True))
    close(fitted([cut], 1.0), [0], [0, 0])
    close(fitted([cut] * 4, 1.0), *[[0], [0, 0]] * 4)


# --- against the oracle, and what must hold ----------------------------------------------------

turns = st.builds(
    Turn, st.just("s"), st.just("a"), st.sampled_from([0.0, 0.25]), st.sampled_from([0, 0, 1]),
    st.integers(0, 3),
)  # fmt: skip
attempts = st.builds(
    Attempt,
    st.sampled_from([0.0, 1.0, 0.3, -1.0]),
    st.lists(turns, max_size=6).map(tuple),
    st.sampled_from([False, False, False, True]),
)
problems = st.lists(attempts, min_size=1, max_size=5)
FEW, MANY = st.lists(problems, min_size=1, max_size=3), st.lists(problems, min_size=4, max_size=6)


@pytest.mark.parametrize("batches", [FEW, MANY], ids=["few", "many"])
@settings(max_examples=60)
@given(
    data=st.data(),
    gamma=st.sampled_from([1.0, 0.9]),
    ridge=st.sampled_from([20.0, 1.0, 0.1]),
    flags=st.booleans(),
)
def test_equals_the_oracle(batches, data, gamma, ridge, flags):
    groups = data.draw(batches)
    got = fitted(groups, ridge, gamma, flags)
    for row, numbers in zip(got, slow.prior(groups, gamma, ridge, flags), strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=1e-10)


@pytest.mark.parametrize("batches", [FEW, MANY], ids=["few", "many"])
@settings(max_examples=60)
@given(data=st.data(), gamma=st.sampled_from([1.0, 0.9]), flags=st.booleans())
def test_permuting_rollouts_and_problems_changes_no_bit(batches, data, gamma, flags):
    groups = data.draw(batches)
    before = iter(fitted(groups, 3.0, gamma, flags))
    numbers = [[next(before) for _ in group] for group in groups]
    at = [data.draw(st.permutations(range(len(group)))) for group in groups]
    order = data.draw(st.permutations(range(len(groups))))
    after = fitted([[groups[g][i] for i in at[g]] for g in order], 3.0, gamma, flags)
    same_bits(after, [numbers[g][i] for g in order for i in at[g]])


@settings(max_examples=40)
@given(groups=MANY, flags=st.booleans(), outcome=st.sampled_from([0.0, 0.3, 1.0]))
def test_a_problem_is_not_judged_by_its_own_returns(groups, flags, outcome):
    """What an attempt was paid on its way tells nothing of its own problem."""
    paid = tuple(Turn("s", "a", 7.0, standing=k) for k in (0, 1))
    own, free = (
        [[Attempt(outcome, turns), walk(1), walk(0)], *groups]
        for turns in (paid, tuple(Turn("s", "a", standing=k) for k in (0, 1)))
    )
    close(fitted(own, 1.0, flags=flags)[:3], *fitted(free, 1.0, flags=flags)[:3])
