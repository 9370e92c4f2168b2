"""The library against the slow oracle, and what must hold whatever the input."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import rtmc
from oracle import Attempt, Options, Turn, library

STATES = ("", "s", "t")
ACTIONS = ("a", "b")
CENTS = st.integers(0, 10_000).map(lambda cents: cents / 100)
REWARDS = st.sampled_from(
    [
        st.sampled_from([0.0, 1.0]),
        st.sampled_from([-1.0, 1.0]),
        CENTS,
        st.sampled_from([0.1, 0.1 + 1e-9, 0.1 - 1e-9]),  # equal, but for a jitter
        st.just(5.0),
    ]
)


@st.composite
def groups(
    draw,
    min_rollouts=1,
    max_rollouts=6,
    min_steps=0,
    step_rewards=True,
    all_known=False,
    rewards=REWARDS,
):
    """One group: keys are few, so that states recur within and between rollouts."""
    rewards = draw(rewards)
    turns = st.builds(
        Turn,
        st.sampled_from(STATES),
        st.sampled_from(ACTIONS),
        st.sampled_from([0.0, 0.0, 0.25, -0.5]) if step_rewards else st.just(0.0),
        st.sampled_from([0, 0, 0, 1, 2]),
    )
    outcomes = rewards if all_known else st.one_of(rewards, rewards, rewards, st.none())
    attempts = st.builds(
        Attempt,
        outcomes,
        st.lists(turns, min_size=min_steps, max_size=12).map(tuple),
        st.just(False) if all_known else st.sampled_from([False, False, False, True]),
    )
    return draw(st.lists(attempts, min_size=min_rollouts, max_size=max_rollouts))


def options(estimator, **fixed):
    given = {
        "estimator": st.just(estimator),
        "gamma": st.sampled_from([0.99, 1.0, 0.5]),
        "beta": st.sampled_from([0.05, 0.0, 0.5]),
        "max_bonuses": st.sampled_from([1, 0, 2, None]),
        "normalize": st.sampled_from(["none", "problem"]),
        "incomplete": st.sampled_from(["fail", "exclude", "mask"]),
        "fail_reward": st.sampled_from([0.0, -1.0, 0.5]),
        "unknown": st.sampled_from(["exclude", "fail"]),
    }
    if estimator == "rtmc":
        given |= {
            "n_prior": st.sampled_from([2.0, 0.0, 0.5]),
            "prior": st.sampled_from(["success_rate", "discounted", "none"]),
            "leave_one_out": st.booleans(),
            "repeats": st.sampled_from(["first", "paper"]),
        }
    else:
        given["std"] = st.sampled_from(["population", "sample", "none"])
    return st.builds(Options, **(given | {name: st.just(value) for name, value in fixed.items()}))


ANY_OPTIONS = st.one_of(options("rtmc"), options("rtmc"), options("grpo"), options("grpo_step"))
BATCHES = st.lists(groups(), min_size=1, max_size=3)


def as_array(row):
    return np.array([np.nan if number is None else number for number in row], dtype=float)


def scale_of(group):
    known = [abs(a.outcome) for a in group if a.outcome is not None]
    return max([1.0, *known])


def assert_close(got, expected, group, divisor=1.0):
    expected = as_array(expected) if isinstance(expected, list) else expected
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_allclose(
        got * divisor, expected * divisor, rtol=0, atol=1e-12 * scale_of(group)
    )


def assert_same_bits(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def assert_equals_oracle(batch, o):
    got = iter(library(batch, o).rollouts)
    for group in batch:
        answer = oracle.credit(group, o)
        for i in range(len(group)):
            one = next(got)
            assert_close(one.advantages, answer.advantages[i], group, answer.divisor)
            if one.verdict.outcome is not None:
                assert set(one.flags) & {"singleton_group", "uniform"} == answer.flags
            if o.estimator == "rtmc" and "singleton_group" not in answer.flags:
                assert_close(one.q_values, answer.q_values[i], group)
                lonely = np.isnan(one.state_values)  # left one out, nobody else: no baseline
                assert o.leave_one_out or np.array_equal(lonely, np.isnan(one.q_values))
                values = np.where(lonely, one.q_values, one.state_values)
                assert_close(values, answer.state_values[i], group)


@settings(max_examples=200)
@given(BATCHES, options("rtmc"))
def test_rtmc_equals_the_oracle(batch, o):
    assert_equals_oracle(batch, o)


@given(BATCHES, options("grpo"))
def test_grpo_equals_the_oracle(batch, o):
    assert_equals_oracle(batch, o)


@given(BATCHES, options("grpo_step"))
def test_grpo_step_equals_the_oracle(batch, o):
    assert_equals_oracle(batch, o)


def assert_permuting_changes_no_bit(group, o, order):
    before = library([group], o).advantages
    after = library([[group[i] for i in order]], o).advantages
    assert_same_bits(after, [before[i] for i in order])


@given(groups(), ANY_OPTIONS, st.randoms(use_true_random=False))
def test_permuting_rollouts_changes_no_bit(group, o, random):
    order = random.sample(range(len(group)), len(group))
    assert_permuting_changes_no_bit(group, o, order)


@given(
    groups(min_rollouts=4, min_steps=4, all_known=True, rewards=st.just(CENTS)),
    ANY_OPTIONS,
    st.permutations(range(6)),
)
def test_permuting_uneven_rewards_changes_no_bit(group, o, order):
    """Cents have no exact binary form: their sums do depend on the order."""
    assert_permuting_changes_no_bit(group, o, [i for i in order if i < len(group)])
    assert_permuting_changes_no_bit(group, o, list(reversed(range(len(group)))))


@given(BATCHES, ANY_OPTIONS, st.randoms(use_true_random=False))
def test_permuting_groups_changes_no_bit(batch, o, random):
    order = random.sample(range(len(batch)), len(batch))
    before = [library([group], o).advantages for group in batch]
    after = library([batch[i] for i in order], o).advantages
    assert_same_bits(after, [row for i in order for row in before[i]])


@given(BATCHES, ANY_OPTIONS)
def test_a_batch_is_each_group_alone(batch, o):
    """Keys are drawn from the same few in all groups: pooling across problems would show."""
    alone = [row for group in batch for row in library([group], o).advantages]
    assert_same_bits(library(batch, o).advantages, alone)


@given(BATCHES, ANY_OPTIONS)
def test_groups_of_one_problem_id_are_still_groups_apart(batch, o):
    made = [
        rtmc.Group("same", tuple(oracle.rollout(attempt, "same", "same") for attempt in group))
        for group in batch
    ]
    got = rtmc.credit(made, oracle.config(o), oracle.ScriptedSigner()).advantages
    assert_same_bits(got, library(batch, o).advantages)


@given(groups(), ANY_OPTIONS)
def test_relabelling_keys_changes_no_bit(group, o):
    states = dict(zip(STATES, ("0", "t", "s"), strict=True))  # other names, in another order
    actions = dict(zip(ACTIONS, ("b", "a"), strict=True))
    relabelled = [
        replace(
            attempt,
            turns=tuple(
                replace(turn, state=states[turn.state], action=actions[turn.action])
                for turn in attempt.turns
            ),
        )
        for attempt in group
    ]
    assert_same_bits(library([relabelled], o).advantages, library([group], o).advantages)


@given(groups(), ANY_OPTIONS)
def test_renaming_ids_changes_no_bit(group, o):
    renamed = rtmc.Group(
        "another",
        tuple(oracle.rollout(a, "another", f"z{len(group) - i}") for i, a in enumerate(group)),
    )
    got = rtmc.credit(renamed, oracle.config(o), oracle.ScriptedSigner()).advantages
    assert_same_bits(got, library([group], o).advantages)


def doubling_options():
    """Without a prior and without what counts single rollouts on purpose."""
    return st.one_of(
        options("rtmc", n_prior=0.0, leave_one_out=False),
        options("grpo", std="population"),
        options("grpo", std="none"),
        options("grpo_step", std="population"),
    )


@given(groups(), doubling_options())
def test_doubling_every_rollout_changes_nothing_without_a_prior(group, o):
    divisor = oracle.credit(group, o).divisor
    before = library([group], o).advantages
    after = library([group + group], o).advantages
    for one, other in zip(after, before + before, strict=True):
        assert_close(one, other, group, divisor)


@given(
    groups(min_rollouts=2),
    options("rtmc", gamma=1.0, beta=0.0, n_prior=0.0),
    st.sampled_from([3.0, -7.5, 100.0]),
)
def test_adding_a_constant_to_all_rewards_changes_nothing(group, o, c):
    moved = [a if a.outcome is None else replace(a, outcome=a.outcome + c) for a in group]
    shifted = replace(o, fail_reward=o.fail_reward + c)
    divisor = oracle.credit(group, o).divisor
    before, after = library([group], o).advantages, library([moved], shifted).advantages
    for one, other in zip(after, before, strict=True):
        assert_close(one, other, moved + group, divisor)


@given(
    groups(min_rollouts=2, min_steps=1, step_rewards=False),
    options("rtmc", gamma=1.0, beta=0.0, leave_one_out=False, repeats="paper", normalize="none"),
    st.sampled_from([0.0, 0.5, 2.0, 100.0]),
)
def test_the_coarsest_keys_collapse_to_grpo(group, o, n_prior):
    coarsest = [
        replace(a, turns=tuple(replace(turn, state="", action=str(i)) for turn in a.turns))
        for i, a in enumerate(group)
    ]
    got = library([coarsest], replace(o, n_prior=n_prior)).advantages
    expected = library([group], replace(o, estimator="grpo", std="none")).advantages
    for one, other in zip(got, expected, strict=True):
        assert_close(one, other, group)


@given(groups(min_rollouts=2), ANY_OPTIONS)
def test_no_credit_is_nan_and_never_zero(group, o):
    """A step has an advantage exactly where its rollout is credited; all are finite."""
    for one in library([group], o).rollouts:
        if one.verdict.credited:
            assert np.isfinite(one.advantages).all()
        else:
            assert np.isnan(one.advantages).all()


@given(groups(min_rollouts=2), ANY_OPTIONS)
def test_a_group_without_signal_is_all_zero(group, o):
    alike = [replace(a, outcome=1.0, incomplete=False) for a in group]
    for one in library([alike], o).rollouts:
        assert not one.advantages.any()
        assert one.flags == ("uniform",)


@given(groups(min_rollouts=2, all_known=True), options("rtmc", repeats="first"))
def test_repeats_never_earn_more_than_the_paper_pays(group, o):
    """``first`` differs from ``paper`` at repeats alone, and only where that would pay again."""
    o = replace(o, normalize="none")
    first, paper = (
        library([group], replace(o, repeats=repeats)).rollouts for repeats in ("first", "paper")
    )
    for one, other in zip(first, paper, strict=True):
        visit = one.first_visit.astype(bool)
        assert np.array_equal(one.advantages[visit], other.advantages[visit])
        assert np.array_equal(one.advantages[~visit], np.minimum(0, other.advantages[~visit]))
