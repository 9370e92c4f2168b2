"""Policies: probabilities and slopes against plain Python, and where they start."""

import numpy as np
import pytest

import oracle_bench as slow
from rtmc.bench import policies
from rtmc.bench.conditions import CONDITIONS
from rtmc.bench.policies import phase_of, probabilities
from rtmc.bench.simulate import gradient, rollouts
from rtmc.bench.truth import reachable

KINDS = {"linear": slow.Policy, "network": slow.Network, "table": slow.Table}
WORLDS = {"A": slow.Repair, "E": slow.Errands}


def made(name, kind, noise=0.7):
    """Make a policy of one problem, and the oracle's class of it."""
    c = CONDITIONS[name]
    problem = np.array(c.world.draw(np.random.default_rng(1)), dtype=np.int64)
    own = WORLDS[name](problem)
    if kind == "table":
        policy, problem = policies.table(c.world, problem, reachable(c.world, problem))
    else:
        policy = getattr(policies, kind)(c.world)
    rng = np.random.default_rng(2)
    theta = policy.start(c.linear_start, rng) + noise * rng.normal(size=policy.size)
    return c, policy, problem, theta, KINDS[kind](own, c.world.features, theta)


def chances_of(c, policy, theta, problem, state, third):
    legal, p = np.empty(128, dtype=np.int64), np.empty(128)
    n = probabilities(
        c.world.functions[0], policy.describe, policy.score, theta, problem, state, third, legal,
        p, np.empty(16, dtype=np.int64),
    )  # fmt: skip
    return dict(zip(legal[:n].tolist(), p[:n].tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WORLDS)
def test_probabilities_are_the_softmax_of_the_scores(name, kind):
    c, policy, problem, theta, own = made(name, kind)
    states = np.random.default_rng(0).choice(reachable(c.world, problem), 20)
    for state in states:
        for third in range(3):
            found = chances_of(c, policy, theta, problem, state, third)
            expected = own.chances(own.world.decode(int(state)), third)
            named = {own.world.actions[action]: chance for action, chance in found.items()}
            assert named == pytest.approx(expected, abs=1e-12)
            assert sum(found.values()) == pytest.approx(1)


def test_large_scores_do_not_overflow():
    c, policy, problem, theta, _ = made("E", "linear")
    found = list(chances_of(c, policy, 1e4 * theta, problem, 0, 0).values())
    assert sum(found) == pytest.approx(1)
    assert min(found) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WORLDS)
def test_gradient_is_the_slope_of_the_log_probabilities(name, kind):
    c, policy, problem, theta, own = made(name, kind)
    n = 3
    sample = rollouts(c.world, policy, theta, problem[None], n, c.horizon, 1, 4)
    rng = np.random.default_rng(3)
    weights = rng.normal(size=len(sample.states))
    weights[::5] = 0.0

    def total(parameters):
        theirs = type(own)(own.world, own.names, parameters)
        return sum(
            weight
            * np.log(
                theirs.chances(own.world.decode(int(state)), slow.third_of(int(t), c.horizon))[
                    own.world.actions[action]
                ]
            )
            for weight, state, t, action in zip(
                weights, sample.states, sample.time, sample.actions, strict=True
            )
        ) / n  # fmt: skip

    found = gradient(c.world, policy, theta, sample, c.horizon, weights)
    assert found.shape == (policy.size,)
    # along what the sample has touched: a direction at random lies mostly elsewhere in a table
    for way in (found, found * rng.normal(size=policy.size)):
        way = way / np.linalg.norm(way)
        slope = (total(theta + 1e-5 * way) - total(theta - 1e-5 * way)) / 2e-5
        assert slope == pytest.approx(float(found @ way), rel=1e-6)
        assert abs(slope) > 1e-3


def test_the_table_starts_as_the_linear_policy_is_in_the_first_third():
    c, policy, problem, *_ = made("A", "table")
    linear = np.random.default_rng(3).normal(size=c.policy.size)  # later thirds score otherwise
    theta = policy.start(linear, np.random.default_rng(0))
    for state in np.random.default_rng(0).choice(reachable(c.world, problem), 30):
        expected = chances_of(c, c.policy, linear, problem, state, 0)
        assert chances_of(c, c.policy, linear, problem, state, 1) != expected
        for third in range(3):
            found = chances_of(c, policy, theta, problem, state, third)
            assert found == pytest.approx(expected, abs=1e-12)


def test_the_network_starts_near_the_linear_policy():
    c = CONDITIONS["N"]
    linear = CONDITIONS["A"]
    assert len(c.start) == c.policy.size == 8 * (1 + len(c.world.features))
    problem = np.array(c.world.draw(np.random.default_rng(1)), dtype=np.int64)
    off = []
    for state in np.random.default_rng(0).choice(reachable(c.world, problem), 30):
        found = chances_of(c, c.policy, c.start, problem, state, 0)
        expected = chances_of(linear, linear.policy, linear.start, problem, state, 0)
        off.append(0.5 * sum(abs(found[a] - expected[a]) for a in expected))
    assert np.mean(off) < 0.1
    # another start is another policy: the units are not alike
    assert len(np.unique(c.start[:8])) == 8


@pytest.mark.parametrize("horizon", [3, 4, 5, 12, 20, 24, 40])
def test_thirds_of_the_episode(horizon):
    thirds = [phase_of(t, horizon) for t in range(horizon)]
    assert thirds == [slow.third_of(t, horizon) for t in range(horizon)]
    assert thirds == sorted(thirds)
    assert set(thirds) == {0, 1, 2}
