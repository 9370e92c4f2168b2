"""Graph GAE and HGPO: against slow oracles, worked by hand, and what must always hold."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_estimators as slow
from oracle import Attempt, Turn, walk
from rtmc import Config, Group, Rollout, Step, ToolCall, credit
from rtmc.advantages import HGPO, GraphGAE
from rtmc.batch import Batch
from rtmc.errors import OptionError

FLOOR = 1e-6


def batch_of(groups, gamma):
    attempts = [attempt for group in groups for attempt in group]
    of_attempt = [g for g, group in enumerate(groups) for _ in group]
    lengths = [len(a.turns) for a in attempts]
    turns = [(g, turn) for g, a in zip(of_attempt, attempts, strict=True) for turn in a.turns]

    def ids(keys):
        found = {}
        return np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)

    def flat(rows):
        return np.array([x for row in rows for x in row], dtype=np.float64)

    states = ids([(g, turn.state) for g, turn in turns])
    return Batch(
        group_of_rollout=np.array(of_attempt, dtype=np.int64),
        rollout_of_step=np.repeat(np.arange(len(attempts)), lengths),
        starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        states=states[:, None],
        actions=ids([turn.action for _, turn in turns])[:, None],
        outcomes=np.array([a.outcome for a in attempts], dtype=np.float64),
        rewards=flat([slow.rewards_of(a) for a in attempts]),
        returns=flat([slow.returns_of(a, gamma) for a in attempts]),
        step_rewards=flat([[t.reward for t in a.turns] for a in attempts]),
        discount=gamma,
        observations=states,
    )


def rows_of(estimator, groups, gamma=1.0):
    batch = batch_of(groups, gamma)
    return np.split(estimator(batch).advantages, batch.starts[1:-1])


# --- oracles -----------------------------------------------------------------------------------


def ridge(rows, targets, penalties):
    """Solve (XᵀX + diag(penalties))·θ = Xᵀy."""
    k = len(penalties)
    left = [[sum(r[i] * r[j] for r in rows) + (penalties[i] if i == j else 0.0) for j in range(k)]
            for i in range(k)]  # fmt: skip
    right = [sum(r[i] * y for r, y in zip(rows, targets, strict=True)) for i in range(k)]
    return slow.solved(left, right)


def others_mean(groups, g, i):
    mates = [a.outcome for j, a in enumerate(groups[g]) if j != i]
    everyone = [a.outcome for group in groups for a in group]
    return sum(mates) / len(mates) if mates else sum(everyone) / len(everyone)


def prior_values(groups, gamma, rho):
    """V⁰ of every turn: fitted on the other problems, or, where they are few, on the mates."""
    longest = max([len(a.turns) for group in groups for a in group] + [1])
    outcomes = [a.outcome for group in groups for a in group]
    out = []
    for g, group in enumerate(groups):
        for i, attempt in enumerate(group):
            p = others_mean(groups, g, i)
            taus = [t / longest for t in range(len(attempt.turns))]
            if len(groups) >= 4:
                rows, targets = [], []
                for h, other in enumerate(groups):
                    for j, mate in enumerate(other):
                        if h != g:
                            q = others_mean(groups, h, j)
                            for t, y in enumerate(slow.returns_of(mate, gamma)):
                                tau = t / longest
                                rows.append([1.0, tau, tau * tau, q - 0.5])
                                targets.append(y)
                theta = ridge(rows, targets, [0.0, rho, rho, rho])
                low, high = min(outcomes), max(outcomes)
                fitted = [theta[0] + theta[1] * x + theta[2] * x * x + theta[3] * (p - 0.5)
                          for x in taus]  # fmt: skip
            else:
                rows, targets = [], []
                for j, mate in enumerate(group):
                    if j != i:
                        for t, y in enumerate(slow.returns_of(mate, gamma)):
                            rows.append([t / longest, (t / longest) ** 2])
                            targets.append(y - p)
                theta = ridge(rows, targets, [rho, rho])
                low = min(a.outcome for a in group)
                high = max(a.outcome for a in group)
                fitted = [p + theta[0] * x + theta[1] * x * x for x in taus]
            out.append([min(max(v, low), high) for v in fitted])
    return out


def graph_gae(groups, gamma, lam=0.5, n_prior=2.0, rho=5.0, scale=True):
    prior = iter(prior_values(groups, gamma, rho))
    found = []
    for group in groups:
        values = [next(prior) for _ in group]
        states = sorted({turn.state for a in group for turn in a.turns})
        place = {state: k for k, state in enumerate(states)}
        left = [[0.0] * len(states) for _ in states]
        right = [0.0] * len(states)
        for k in range(len(states)):
            left[k][k] = n_prior
        for attempt, v in zip(group, values, strict=True):
            rewards = slow.rewards_of(attempt)
            for t, turn in enumerate(attempt.turns):
                ahead = v[t + 1] if t + 1 < len(v) else 0.0
                k = place[turn.state]
                left[k][k] += 1
                if t + 1 < len(v):
                    left[k][place[attempt.turns[t + 1].state]] -= gamma
                right[k] += rewards[t] + gamma * ahead - v[t]
        offsets = slow.solved(left, right)
        for attempt, v in zip(group, values, strict=True):
            rewards = slow.rewards_of(attempt)
            full = [
                x + offsets[place[turn.state]] for x, turn in zip(v, attempt.turns, strict=True)
            ]
            ahead = [*full[1:], 0.0]
            deltas = [r + gamma * b - a for r, a, b in zip(rewards, full, ahead, strict=False)]
            found.append([sum((gamma * lam) ** k * d for k, d in enumerate(deltas[t:]))
                          for t in range(len(deltas))])  # fmt: skip
    if scale:
        live, at = [], 0
        for group in groups:
            if len({a.outcome for a in group}) > 1:
                live += [x for row in found[at : at + len(group)] for x in row]
            at += len(group)
        if live:
            mean = sum(live) / len(live)
            deviation = sqrt(sum((x - mean) ** 2 for x in live) / len(live))
            if deviation > 1e-8:
                found = [[x / deviation for x in row] for row in found]
    return found


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

turn = st.builds(Turn, st.sampled_from("stuv"), st.sampled_from("ab"), st.sampled_from([0.0, 0.25]))
attempt = st.builds(
    Attempt, st.sampled_from([0.0, 0.5, 1.0]), st.lists(turn, max_size=6).map(tuple)
)
group = st.lists(attempt, min_size=1, max_size=5)
gammas = st.sampled_from([1.0, 0.9])


@settings(max_examples=60)
@given(st.lists(group, min_size=1, max_size=6), gammas, st.sampled_from([0.0, 0.5, 1.0]))
def test_graph_gae_equals_its_oracle(groups, gamma, lam):
    steps = sum(len(a.turns) for g in groups for a in g)
    if len(groups) >= 4 and any(steps == sum(len(a.turns) for a in g) for g in groups):
        return  # nothing to fit on
    got = rows_of(GraphGAE(lam=lam, scale=False), groups, gamma)
    expected = graph_gae(groups, gamma, lam=lam, scale=False)
    for row, numbers in zip(got, expected, strict=True):
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
