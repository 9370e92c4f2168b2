"""Chain GAE: against a slow oracle, worked by hand, its limits, and what must always hold."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_values as slow
import rtmc
from oracle import Attempt, Turn, rollout, walk
from rtmc.advantages import ChainGAE, GraphGAE
from rtmc.errors import OptionError

LEVELS = (0, 1, 2)
PLAIN = ChainGAE(scale=False, pool_actions=False)


def rows_of(estimator, groups, gamma=1.0, flags=False, levels=LEVELS, random=None):
    batch = slow.batch_of(groups, gamma, levels, flags, random=random)
    got = estimator(batch).advantages
    assert got.shape == batch.rewards.shape
    assert np.isfinite(got).all()
    return slow.rows(got, batch)


def close(got, *expected, atol=1e-12):
    assert len(got) == len(expected)
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=atol)


# --- worked by hand ----------------------------------------------------------------------------


def test_from_coarse_to_fine():
    # γ = 1, n₀ = 1, one turn each. p = 0 and 1, and so V⁰: δ = 1, −1.
    # s: both: b = 0. s/x, s/y: (1 + 2) b = ±1: V = 1/3, 2/3. s/x/m, s/y/n: (1 + 4) b = ±2/3:
    # V = 7/15, 8/15; A = 8/15, −8/15, of deviation 8/15
    group = (walk(1, "s/x/m:a"), walk(0, "s/y/n:b"))
    close(rows_of(PLAIN, [group]), [8 / 15], [-8 / 15])
    close(rows_of(ChainGAE(), [group]), [1], [-1])


TWO = (
    Attempt(1, (Turn("s", "a", standing=0), Turn("t", "b", standing=1))),
    Attempt(0, (Turn("s", "a", standing=0),)),
)


@pytest.mark.parametrize(
    ("lam", "pool", "winner", "loser"),
    [
        # γ = ½, n₀ = ρ = 1. V⁰ with flags (test_linear_prior.py): 0, 0; 3/4. δ = 0, 1; −3/4
        # l = 0: 2 b_t = 1, 3 b_s − b_t/2 = −3/4: b = 1/2, −1/6. V = −1/6, 1/2; 7/12
        #        δ = 5/12, 1/2; −7/12
        # l = 1: 3 b_t = 1/2, 4 b_s − b_t/2 = −1/6: b = 1/6, −1/48. V = −3/16, 2/3; 9/16
        #        δ = 25/48, 1/3; −9/16
        # l = 2: 5 b_t = 1/3, 6 b_s − b_t/2 = −1/24: b = 1/15, −1/720. V = −17/90, 11/15; 101/180
        #        δ = 5/9, 4/15; −101/180
        (0.0, False, [5 / 9, 4 / 15], [-101 / 180]),
        # λ = ½: 5/9 + ¼·4/15
        (0.5, False, [28 / 45, 4 / 15], [-101 / 180]),
        # both take a in s: (28/45 − 101/180)/2
        (0.5, True, [11 / 360, 4 / 15], [11 / 360]),
    ],
)
def test_two_states_and_flags(lam, pool, winner, loser):
    estimator = ChainGAE(lam=lam, ridge=1.0, pool_actions=pool, scale=False)
    close(rows_of(estimator, [TWO], 0.5, flags=True), winner, loser)


def test_who_was_cut_off_stays_where_it_was():
    # γ = ½, n₀ = 1, one level. p = 0, 1 and, of the one cut off, ½; V⁰ = 0, 1, ½ (θ = 0: of the
    # third the rows are ½ and −½ at τ = 0). δ = 1, −1, ½·½ − ½ = −¼: its reward −3 is in nothing.
    # s: 3 visits and n₀, once on to itself: (4 − ½) b = −¼: b = −1/14
    # A = 1 + 1/14, −1 + 1/14, and of the third −¼ + (1 − ½)/14
    group = (walk(1, "s:a"), walk(0, "s:a"), walk(-3, "s:b", incomplete=True))
    got = rows_of(PLAIN, [group], 0.5, levels=(2,))
    close(got, [15 / 14], [-13 / 14], [-1 / 4 + 1 / 28])


# --- against the oracle ------------------------------------------------------------------------

STATES = [f"{a}/{b}/{c}" for a in "st" for b in "xy" for c in "mn"]
GAMMAS = st.sampled_from([1.0, 0.9])


@st.composite
def problems(draw, cut=True, min_size=1, outcomes=(0.0, 0.5, 1.0), rewards=(0.0, 0.0, 0.25)):
    """One group whose keys are few, so that states recur within and between attempts."""
    turns = st.builds(
        Turn,
        st.sampled_from(STATES[: draw(st.integers(1, len(STATES)))]),
        st.sampled_from("ab"),
        st.sampled_from(rewards),
        st.sampled_from([0, 0, 1]) if max(rewards) else st.just(0),
        st.integers(0, 3),
    )
    attempts = st.builds(
        Attempt,
        st.sampled_from(outcomes),
        st.lists(turns, max_size=6).map(tuple),
        st.sampled_from([False, False, False, True]) if cut else st.just(False),
    )
    return draw(st.lists(attempts, min_size=min_size, max_size=5))


def few(**options):
    return st.lists(problems(**options), min_size=1, max_size=3)


def many(**options):
    return st.lists(problems(**options), min_size=4, max_size=6)


BOTH = pytest.mark.parametrize("batches", [few, many])
SOME = settings(max_examples=60)


@BOTH
@SOME
@given(
    data=st.data(),
    gamma=GAMMAS,
    flags=st.booleans(),
    lam=st.sampled_from([0.0, 0.5, 1.0]),
    n_prior=st.sampled_from([1.0, 0.25, 4.0]),
    ridge=st.sampled_from([20.0, 1.0]),
    pool=st.booleans(),
    scale=st.booleans(),
    uniform=st.sampled_from(["zero", "keep"]),
)
def test_equals_the_oracle(
    batches, data, gamma, flags, lam, n_prior, ridge, pool, scale, uniform
):  # fmt: skip
    groups = data.draw(batches())
    estimator = ChainGAE(lam, n_prior, ridge, pool, scale, uniform)  # uniform is for credit()
    batch = slow.batch_of(groups, gamma, LEVELS, flags)
    values, advantages = slow.chain_gae(groups, gamma, lam, n_prior, ridge, pool, scale, flags)
    got = estimator(batch)
    close(slow.rows(got.advantages, batch), *advantages, atol=1e-9)
    close(slow.rows(got.state_values, batch), *values, atol=1e-9)


# --- limits ------------------------------------------------------------------------------------


@BOTH
@SOME
@given(data=st.data(), gamma=GAMMAS, flags=st.booleans())
def test_one_level_is_graph_gae(batches, data, gamma, flags):
    groups = data.draw(batches())
    one = rows_of(ChainGAE(0.7, 3.0, 5.0, True, True), groups, gamma, flags, levels=(2,))
    other = rows_of(GraphGAE(0.7, 3.0, 5.0, True, True), groups, gamma, flags, levels=(2,))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@SOME
@given(groups=many(cut=False), gamma=GAMMAS)
def test_levels_that_coincide_add_nothing_to_graph_gae_without_a_prior(groups, gamma):
    """After the first the sum of δ over each state's visits is 0."""
    one = rows_of(ChainGAE(0.7, 1e-9, 5.0, False, False), groups, gamma, levels=(2, 2, 2))
    other = rows_of(GraphGAE(0.7, 1e-9, 5.0, False, False), groups, gamma, levels=(2,))
    close(one, *other, atol=1e-6)


@BOTH
@SOME
@given(data=st.data(), gamma=GAMMAS, flags=st.booleans())
def test_lambda_one_is_the_return_less_the_value(batches, data, gamma, flags):
    batch = slow.batch_of(data.draw(batches(cut=False)), gamma, LEVELS, flags)
    got = replace_options(PLAIN, lam=1.0)(batch)
    np.testing.assert_allclose(got.advantages, batch.returns - got.state_values, rtol=0, atol=1e-12)


def replace_options(estimator, **changes):
    options = {name: getattr(estimator, name) for name in estimator.__struct_fields__}
    return type(estimator)(**options | changes)


@BOTH
@pytest.mark.parametrize("outcome", [0.0, 1.0, -2.0])
@SOME
@given(data=st.data(), flags=st.booleans())
def test_where_nothing_differs_there_is_no_credit(batches, outcome, data, flags):
    """Of a problem that all solve there is nothing to learn; nor is there from four."""
    groups = data.draw(batches(cut=False, outcomes=(outcome,), rewards=(0.0,)))
    groups = [[a for a in group if a.turns] or [walk(outcome, "s:a")] for group in groups]
    rows = rows_of(ChainGAE(), groups, flags=flags)
    close(rows, *([0.0] * len(row) for row in rows), atol=1e-9)


def test_n_prior_says_how_far_states_are_believed():
    # levels x y: b = ±1/(1 + n₀) and so on; where n₀ is large V stays V⁰: A = 1 − 0, 0 − 1
    group = (walk(1, "s/x/m:a"), walk(0, "s/y/n:b"))
    close(rows_of(replace_options(PLAIN, n_prior=1e12), [group]), [1], [-1], atol=1e-9)
    close(rows_of(replace_options(PLAIN, n_prior=1e-12), [group]), [0], [0], atol=1e-9)


def test_nothing_to_estimate():
    assert rows_of(ChainGAE(), [[walk(1), walk(0)]])[0].size == 0
    assert rows_of(ChainGAE(), [[walk(1)]] * 4, flags=True)[3].size == 0
    assert ChainGAE()(slow.batch_of([], levels=LEVELS, flags=True)).advantages.size == 0
    assert rtmc.credit([], rtmc.Config(estimator=ChainGAE())).advantages == []


# --- what must hold ----------------------------------------------------------------------------


@BOTH
@SOME
@given(data=st.data(), gamma=GAMMAS, flags=st.booleans())
def test_permuting_rollouts_and_problems_changes_nothing(batches, data, gamma, flags):
    groups = data.draw(batches())
    before = iter(rows_of(ChainGAE(), groups, gamma, flags))
    numbers = [[next(before) for _ in group] for group in groups]
    at = [data.draw(st.permutations(range(len(group)))) for group in groups]
    order = data.draw(st.permutations(range(len(groups))))
    after = rows_of(ChainGAE(), [[groups[g][i] for i in at[g]] for g in order], gamma, flags)
    close(after, *(numbers[g][i] for g in order for i in at[g]), atol=1e-9)


@BOTH
@SOME
@given(data=st.data(), gamma=GAMMAS, flags=st.booleans(), seed=st.integers(0, 99))
def test_relabelling_keys_changes_nothing(batches, data, gamma, flags, seed):
    groups = data.draw(batches())
    before = rows_of(ChainGAE(), groups, gamma, flags)
    after = rows_of(ChainGAE(), groups, gamma, flags, random=Random(seed))
    close(after, *before, atol=1e-9)


@SOME
@given(groups=few(cut=False, min_size=2), gamma=GAMMAS, flags=st.booleans())
def test_fewer_than_four_problems_do_not_influence_each_other(groups, gamma, flags):
    """But by the length of the longest rollout, which is equal here, and by the scale."""
    longest = walk(0, "s/x/m:a s/x/m:b s/y/n:a s/y/n:b t/x/m:a t/x/m:b")
    groups = [[*group, longest] for group in groups]
    together = rows_of(PLAIN, groups, gamma, flags)
    alone = [row for group in groups for row in rows_of(PLAIN, [group], gamma, flags)]
    close(together, *alone)


@BOTH
@pytest.mark.parametrize("kind", [ChainGAE, GraphGAE])
@SOME
@given(data=st.data(), gamma=GAMMAS, flags=st.booleans())
def test_what_a_cut_rollout_got_is_in_nothing(batches, kind, data, gamma, flags):
    groups = [[*group, walk(0), walk(1)] for group in data.draw(batches(outcomes=(0.0, 1.0)))]
    other = [
        [replace(a, outcome=1 - a.outcome) if a.incomplete else a for a in group]
        for group in groups
    ]
    before = rows_of(kind(), groups, gamma, flags)
    close(rows_of(kind(), other, gamma, flags), *before, atol=1e-9)


def turned(attempt, key):
    return replace(attempt, turns=tuple(replace(t, state=key(t.state)) for t in attempt.turns))


def credited(groups, config, signer=None):
    """Give the groups' advantages through ``credit``."""
    made = [
        rtmc.Group(
            f"p{g}", tuple(rollout(attempt, f"p{g}", f"r{i}") for i, attempt in enumerate(group))
        )
        for g, group in enumerate(groups)
    ]
    return rtmc.credit(made, config, signer or rtmc.KeySigner(keys))


def keys(given):
    return [(step.env_state, step.thought) for step in given.steps]


CHAIN = rtmc.Config(estimator=ChainGAE(), gamma=0.9)


@BOTH
@SOME
@given(data=st.data())
def test_problems_do_not_share_states(batches, data):
    """Whether their keys are equal or not."""
    groups = data.draw(batches(cut=False))
    apart = [[turned(a, f"{g} {{}}".format) for a in group] for g, group in enumerate(groups)]
    got = credited(groups, CHAIN).advantages
    for one, other in zip(got, credited(apart, CHAIN).advantages, strict=True):
        assert np.array_equal(one, other)


# --- through credit ----------------------------------------------------------------------------

# of five problems: differing, passed, failed, one attempt, one left of two
FIVE = [
    (walk(1, "s:a t:b"), walk(0, "s:a u:b"), walk(1, "s:b"), walk(0, "u:a")),
    (walk(1, "s:a t:b"), walk(1, "s:b u:a t:a")),
    (walk(0, "s:a t:b"), walk(0, "s:b")),
    (walk(1, "s:a t:b"),),
    (walk(0, "s:a"), walk(None, "s:b")),
]
FLAGS = [*[()] * 4, *[("uniform",)] * 4, ("singleton_group",), ("singleton_group",),
         ("unknown_outcome", "excluded")]  # fmt: skip


@pytest.mark.parametrize("kind", [ChainGAE, GraphGAE])
def test_uniform_groups_keep_their_advantages_if_asked(kind):
    zero, keep = (
        credited(FIVE, rtmc.Config(estimator=kind(uniform=uniform))) for uniform in ("zero", "keep")
    )
    assert [one.flags for one in zero.rollouts] == FLAGS
    assert [one.flags for one in keep.rollouts] == FLAGS
    for at, (one, other) in enumerate(zip(zero.advantages, keep.advantages, strict=True)):
        if at < 4 or at >= 8:  # of differing outcome, alone, or without a vote
            assert np.array_equal(one, other, equal_nan=True)
        else:
            assert (one == 0).all()
            assert (other != 0).any()
    close(keep.advantages[8:], [0, 0], [0], [np.nan])
    assert np.abs(np.concatenate(keep.advantages[:4])).min() > 0


def test_uniform_groups_keep_them_by_default():
    keep = rtmc.Config(estimator=ChainGAE(uniform="keep"))
    default = rtmc.Config(estimator=ChainGAE())
    for one, other in zip(
        credited(FIVE, keep).advantages, credited(FIVE, default).advantages, strict=True
    ):
        assert np.array_equal(one, other, equal_nan=True)


def test_kept_advantages_stay_as_small_as_they_are():
    plain = credited(FIVE, rtmc.Config(estimator=PLAIN))
    normed = credited(FIVE, rtmc.Config(estimator=PLAIN, normalize="problem"))
    deviation = np.concatenate(plain.advantages[:4]).std()
    assert deviation < 0.9
    close(normed.advantages[:4], *(row / deviation for row in plain.advantages[:4]))
    close(normed.advantages[4:], *plain.advantages[4:])
    assert [one.flags for one in normed.rollouts] == FLAGS


WITH_CUT = [
    (walk(1, "s:a t:b"), walk(0, "s:a u:b"), walk(0, "s:b t:b", incomplete=True)),
    *FIVE[1:3],
    (walk(1, "s:a t:b"), walk(0, "s:b")),
]


@pytest.mark.parametrize("kind", [ChainGAE, GraphGAE])
@pytest.mark.parametrize("uniform", ["zero", "keep"])
def test_incomplete_rollouts(kind, uniform):
    def of(policy, groups=WITH_CUT):
        return credited(groups, rtmc.Config(estimator=kind(uniform=uniform), incomplete=policy))

    # left out: as if it were not there
    out, without = of("exclude"), of("fail", [WITH_CUT[0][:2], *WITH_CUT[1:]])
    assert out.rollouts[2].flags == ("incomplete", "excluded")
    close(out.advantages, *without.advantages[:2], [np.nan] * 2, *without.advantages[2:])
    # a failure: as any other
    failed, same = of("fail"), [replace(a, incomplete=False) for a in WITH_CUT[0]]
    close(failed.advantages, *of("fail", [same, *WITH_CUT[1:]]).advantages)
    # masked: no credit of its own; where it went counts, what it got does not
    masked = of("mask")
    assert masked.rollouts[2].flags == ("incomplete", "masked")
    assert np.isnan(masked.advantages[2]).all()
    elsewhere = np.concatenate([*masked.advantages[:2], *masked.advantages[3:]])
    for other in (failed, out):
        numbers = np.concatenate([*other.advantages[:2], *other.advantages[3:]])
        assert np.abs(elsewhere - numbers).max() > 1e-3


def test_a_state_from_which_only_cut_rollouts_went_on_is_worth_what_was_expected():
    """Not 0, as where they count as failures."""
    expected = []
    for policy in ("mask", "fail"):
        groups = [
            (walk(1, "s:a"), walk(0, "s:a"), walk(0, "s:a v:b", incomplete=True)),
            *[(walk(1, "s:a"), walk(0, "s:b"))] * 3,
        ]
        config = rtmc.Config(estimator=ChainGAE(), gamma=1.0, incomplete=policy)
        expected.append(credited(groups, config).rollouts[2].state_values[1])
    assert expected[0] == pytest.approx(0.5, abs=0.05)
    assert expected[1] < 0.3


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"lam": value}, f"lam is {value}; expected a number in [0, 1]")
          for value in (-0.5, 1.5, float("nan"))),
        *(({name: value}, f"{name} is {value}; expected a number > 0")
          for name in ("n_prior", "ridge") for value in (0, -1.0, float("nan"), float("inf"))),
        ({"uniform": "kept"}, "uniform is 'kept'; expected one of zero, keep"),
    ],
)  # fmt: skip
def test_refused_options(options, message):
    with pytest.raises(OptionError) as refused:
        ChainGAE(**options)
    assert str(refused.value) == message


def test_defaults():
    assert ChainGAE() == ChainGAE(0.5, 1.0, 20.0, True, True, "keep")
    assert rtmc.ESTIMATORS[rtmc.advantages.RECOMMENDED] is ChainGAE
