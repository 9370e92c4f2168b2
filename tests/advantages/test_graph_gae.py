"""Graph GAE and HGPO: against slow oracles, worked by hand, and what must always hold."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_estimators as slow
import oracle_values as values
from oracle import Attempt, Turn, walk
from rtmc import Config, Group, Rollout, Step, ToolCall, credit
from rtmc.advantages import HGPO, GraphGAE
from rtmc.errors import OptionError

FLOOR = 1e-6


def rows_of(estimator, groups, gamma=1.0, flags=False):
    batch = values.batch_of(groups, gamma, flags=flags)
    return values.rows(estimator(batch).advantages, batch)


# --- oracle ------------------------------------------------------------------------------------


def hgpo(group, gamma, depth=2, divisor="std"):
    total = [[0.0] * len(a.turns) for a in group]
    for k in range(1, depth + 1):
        pools = {}
        for i, attempt in enumerate(group):
            for t, y in enumerate(slow.returns_of(attempt, gamma)):
                seen = tuple(turn.state for turn in attempt.turns[max(0, t - k + 1) : t + 1])
                pools.setdefault(seen, []).append((i, t, y))
        for members in pools.values():
            if len(members) == 1:
                continue
            mean = sum(y for _, _, y in members) / len(members)
            spread = sqrt(sum((y - mean) ** 2 for _, _, y in members) / len(members)) + FLOOR
            for i, t, y in members:
                total[i][t] += (k + 1) * (y - mean) / (spread if divisor == "std" else 1.0)
    weights = sum(k + 1 for k in range(1, depth + 1))
    return [[x / weights for x in row] for row in total]


# --- against them ------------------------------------------------------------------------------

turn = st.builds(
    Turn,
    st.sampled_from("stuv"),
    st.sampled_from("ab"),
    st.sampled_from([0.0, 0.25]),
    standing=st.integers(0, 3),
)
attempt = st.builds(
    Attempt,
    st.sampled_from([0.0, 0.5, 1.0]),
    st.lists(turn, max_size=6).map(tuple),
    st.sampled_from([False, False, True]),
)
group = st.lists(attempt, min_size=1, max_size=5)
gammas = st.sampled_from([1.0, 0.9])


@settings(max_examples=60)
@given(
    groups=st.lists(group, min_size=1, max_size=6),
    gamma=gammas,
    lam=st.sampled_from([0.0, 0.5, 1.0]),
    flags=st.booleans(),
    pool=st.booleans(),
)
def test_graph_gae_equals_its_oracle(groups, gamma, lam, flags, pool):
    estimator = GraphGAE(lam=lam, scale=False, pool_actions=pool)
    _, expected = values.graph_gae(groups, gamma, lam, pool_actions=pool, scale=False, flags=flags)
    for row, numbers in zip(rows_of(estimator, groups, gamma, flags), expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=1e-9)


@given(group, gammas, st.integers(1, 4), st.sampled_from(["std", "none"]))
def test_hgpo_equals_its_oracle(attempts, gamma, depth, divisor):
    got = rows_of(HGPO(depth=depth, divisor=divisor), [attempts], gamma)
    expected = hgpo(attempts, gamma, depth, divisor)
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=1e-8)


def test_the_scale_is_the_deviation_in_groups_of_differing_outcome():
    groups = [(walk(1, "s:a t:b"), walk(0, "s:b")), (walk(1, "s:a"), walk(1, "t:b"))]
    plain = rows_of(GraphGAE(scale=False), groups, 0.9)
    scaled = rows_of(GraphGAE(), groups, 0.9)
    live = np.concatenate(plain[:2])
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(other, one / live.std(), rtol=0, atol=1e-12)


def test_uniform_groups_keep_their_advantages_if_asked():
    steps = (Step((ToolCall("bash", {"command": "ls"}),)), Step((ToolCall("bash"),)))
    groups = [
        Group(
            str(g), tuple(Rollout(str(g), str(i), steps, float(r)) for i, r in enumerate(outcomes))
        )
        for g, outcomes in enumerate(((1, 0), (1, 1), (0, 1), (0, 0), (1,)))
    ]
    zero, keep = (
        credit(groups, Config(estimator=GraphGAE(uniform=uniform))) for uniform in ("zero", "keep")
    )
    for one, other in zip(zero.rollouts, keep.rollouts, strict=True):
        assert one.flags == other.flags
        if "uniform" in one.flags:
            assert (one.advantages == 0).all()
            assert (other.advantages != 0).any()
        else:  # of differing outcome, or alone
            assert np.array_equal(one.advantages, other.advantages)
            assert ("singleton_group" in one.flags) == (one.advantages == 0).all()


def test_pooled_actions_share_their_mean():
    group = (walk(1, "s:a t:b"), walk(0, "s:a u:b"), walk(1, "s:b"))
    plain = rows_of(GraphGAE(scale=False), [group])
    pooled = rows_of(GraphGAE(scale=False, pool_actions=True), [group])
    assert pooled[0][0] == pooled[1][0] == pytest.approx((plain[0][0] + plain[1][0]) / 2)
    assert pooled[2][0] == plain[2][0]


def test_hgpo_by_hand():
    # one state s, G = 1 and 0: mean 1/2, A_1 = ±1/2; the histories of two are the same two steps
    got = rows_of(HGPO(divisor="none"), [(walk(1, "s:a"), walk(0, "s:b"))])
    assert [row.tolist() for row in got] == [[0.5], [-0.5]]
    # t is reached from s and from u: A_1 = ±1/2 with weight 2, A_2 = 0 (nobody shares it) with 3
    got = rows_of(HGPO(divisor="none"), [(walk(1, "s:a t:a"), walk(0, "u:a t:a"))])
    assert got[0][1] == pytest.approx(2 * 0.5 / 5)
    assert got[1][1] == pytest.approx(-2 * 0.5 / 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GraphGAE(lam=2), "lam is 2; expected a number in [0, 1]"),
        (lambda: GraphGAE(n_prior=0), "n_prior is 0; expected a number > 0"),
        (lambda: GraphGAE(ridge=-1), "ridge is -1; expected a number > 0"),
        (lambda: HGPO(depth=0), "depth is 0; expected a number ≥ 1"),
        (lambda: HGPO(divisor="x"), "divisor is 'x'; expected one of std, none"),
    ],
)
def test_refused_options(make, message):
    with pytest.raises(OptionError) as refused:
        make()
    assert str(refused.value) == message
