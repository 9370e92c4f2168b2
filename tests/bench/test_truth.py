"""True values and gradients: against every trajectory of tiny problems, and against sampling."""

from functools import cache

import numpy as np
import pytest

import oracle_bench as slow
from rtmc.bench import policies
from rtmc.bench.conditions import CONDITIONS
from rtmc.bench.simulate import rollouts
from rtmc.bench.truth import exact, reachable, sampled_advantages, sampled_gradient
from rtmc.bench.worlds.errands import errands
from rtmc.bench.worlds.repair import repair

# one file of two regions of two patches: the fault is in region 1, patch 0 is right, the search
# points at region 0, region 0 looks suspicious too, and its patch 1 is indicated
ONE_FILE = [1, 2, 2, 1, 0, 0, 0, 1, 1, 1, 0]
TWO_FILES = [2, 1, 2, 0, 1, 1, 0, 1, 1, 1, 0, 0]


def _building():
    """Four rooms in use, one thing where one starts, one at the desk: solved within four steps."""
    rng = np.random.default_rng(4)
    leads = np.zeros((12, 3), dtype=int)
    leads[:4] = [[1, 2, 0], [3, 0, 2], [1, 3, 2], [0, 1, 2]]
    return [0, 1, 1, *leads.ravel(), *rng.integers(2, size=144)]


PROBLEMS = {
    "one file": (repair(1, 2, 2), slow.Repair, ONE_FILE, 4, CONDITIONS["A"]),
    "two files": (repair(2, 1, 2), slow.Repair, TWO_FILES, 4, CONDITIONS["A"]),
    "errands": (errands(), slow.Errands, _building(), 5, CONDITIONS["E"]),
}
KINDS = {"linear": slow.Policy, "network": slow.Network, "table": slow.Table}


@cache
def case(name, kind):
    """Make a policy near a condition's first, and the oracle's of the same parameters."""
    world, make, numbers, horizon, like = PROBLEMS[name]
    problem = np.array(numbers, dtype=np.int64)
    own = make(problem)
    rng = np.random.default_rng(len(name) + len(kind))
    if kind == "table":
        policy, problem = policies.table(world, problem, reachable(world, problem))
    else:
        policy = getattr(policies, kind)(world)
    theta = policy.start(like.linear_start, rng) + rng.normal(0, 0.5, policy.size)
    return world, policy, theta, problem, horizon, KINDS[kind](own, world.features, theta)


@cache
def truth(name, kind, discount):
    *_, horizon, own = case(name, kind)
    return slow.Truth(own.world, own, horizon, discount)


@pytest.mark.parametrize("discount", [1.0, 0.99])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_exact_is_the_average_over_everything_that_can_happen(name, kind, discount):
    world, policy, theta, problem, horizon, own = case(name, kind)
    known = exact(world, policy, theta, problem, horizon, discount)
    expected = truth(name, kind, discount)
    assert 0.001 < expected.success < 0.9
    assert known.success == pytest.approx(expected.success, abs=1e-12)
    gradient = np.zeros(policy.size)
    for k, slope in expected.gradient.items():
        gradient[k] = slope
    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(known.gradient, gradient, rtol=0, atol=1e-12)
    steps = [key for key in expected.ahead if len(key) == 3]
    assert {t for t, *_ in steps} == set(range(horizon))
    for t, state in {key[:2] for key in steps}:
        row = known.index[own.world.encode(state)]
        assert known.values[t, row] == pytest.approx(expected.mean(t, state), abs=1e-10)
    assert not known.values[horizon].any()
    found = known.advantages(
        np.array([t for t, *_ in steps]),
        np.array([own.world.encode(state) for _, state, _ in steps]),
        np.array([own.world.actions.index(action) for *_, action in steps]),
    )
    advantages = [expected.mean(*key) - expected.mean(*key[:2]) for key in steps]
    np.testing.assert_allclose(found, advantages, rtol=0, atol=1e-10)
    assert np.abs(found).max() > 0.05


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["one file", "errands"])
def test_the_gradient_is_the_slope_of_the_success(name, kind):
    world, policy, theta, problem, horizon, _ = case(name, kind)
    rng = np.random.default_rng(1)
    gradient = exact(world, policy, theta, problem, horizon, 0.99).gradient
    for _ in range(3):
        way = rng.normal(size=policy.size)
        up, down = (
            exact(world, policy, theta + h * way, problem, horizon, 0.99).success
            for h in (1e-5, -1e-5)
        )
        assert (up - down) / 2e-5 == pytest.approx(float(gradient @ way), abs=1e-8)


def test_advantages_of_a_state_are_zero_in_the_mean():
    # Σ_a π(a|s) A_t(s, a) = 0, in a problem as the benchmark has it
    c = CONDITIONS["A"]
    problem = np.array(c.world.draw(np.random.default_rng(3)), dtype=np.int64)
    known = exact(c.world, c.policy, c.start, problem, c.horizon, 0.99)
    own = slow.Repair(problem)
    theirs = slow.Policy(own, c.world.features, c.start)
    rng = np.random.default_rng(0)
    for number in rng.choice(reachable(c.world, problem), 40):
        for t in (0, 5, 11):
            chances = theirs.chances(own.decode(number), slow.third_of(t, 12))
            actions = np.array([own.actions.index(action) for action in chances])
            found = known.advantages(
                np.full_like(actions, t), np.full_like(actions, number), actions
            )
            assert found @ list(chances.values()) == pytest.approx(0, abs=1e-12)


# --- where there are too many states ------------------------------------------------------------


@pytest.mark.parametrize("name", ["A", "E"])
def test_sampled_advantages_are_two_independent_looks_at_the_truth(name):
    c, n = CONDITIONS[name], 400
    rng = np.random.default_rng(11)
    drawn = np.array([c.world.draw(rng) for _ in range(4)], dtype=np.int64)
    sample = rollouts(c.world, c.policy, c.start, drawn, 3, c.horizon, 1, 5)
    group = sample.of_rollout[sample.rollout_of_step]
    true = np.zeros(len(group))
    for at, problem in enumerate(drawn):
        known = exact(c.world, c.policy, c.start, problem, c.horizon, 0.99)
        own = group == at
        true[own] = known.advantages(sample.time[own], sample.states[own], sample.actions[own])
    halves = sampled_advantages(c.world, c.policy, c.start, sample, c.horizon, 0.99, n, 1)
    # a return in [0, 1] has at most the variance 1/4, and Q and V are independent
    for half in halves:
        assert np.abs(half - true).max() < 5 * (2 * 0.25 / n) ** 0.5
    # equal steps share their estimate: count each once
    steps = np.stack([group, sample.time, sample.states, sample.actions])
    once = np.unique(steps, axis=1, return_index=True)[1]
    one, two = (half[once] - true[once] for half in halves)
    assert one.std() > 0.003
    assert two.std() > 0.003
    assert abs(np.corrcoef(one, two)[0, 1]) < 4 / len(once) ** 0.5
    first = sample.time == 0
    same = np.stack([group, sample.actions, halves[0]])[:, first]
    assert len(np.unique(same, axis=1).T) == len(np.unique(same[:2], axis=1).T)
    again = sampled_advantages(c.world, c.policy, c.start, sample, c.horizon, 0.99, n, 1)
    assert all(np.array_equal(a, b) for a, b in zip(halves, again, strict=True))


@pytest.mark.parametrize("name", ["one file", "errands"])
def test_sampled_gradient_is_the_truth_but_for_noise(name):
    world, policy, theta, problem, horizon, _ = case(name, "linear")
    known = exact(world, policy, theta, problem, horizon, 1.0)
    parts, n = 20, 4000
    found = [sampled_gradient(world, policy, theta, problem, horizon, n, s) for s in range(parts)]
    error = (known.success * (1 - known.success) / n / parts) ** 0.5
    assert abs(np.mean([j for j, _ in found]) - known.success) < 4 * error
    gradients = np.array([g for _, g in found])
    off = gradients.mean(axis=0) - known.gradient
    deviation = gradients.std(axis=0, ddof=1) / parts**0.5
    assert (np.abs(off) <= 5 * deviation + 1e-12).all()
    assert deviation.max() < 0.05 * np.abs(known.gradient).max(), "the noise hides nothing"
