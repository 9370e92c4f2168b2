"""What is compared: the estimators as they are run, fresh rollouts, and a learned critic."""

from functools import cache

import numpy as np
import pytest

import oracle_bench as slow
from rtmc.advantages import ESTIMATORS, GRPOStep
from rtmc.bench.conditions import CONDITIONS, problems
from rtmc.bench.methods import METHODS, Batchwise, Critic, Vine, fresh
from rtmc.bench.optimiser import Adam
from rtmc.bench.simulate import rollouts
from rtmc.bench.truth import exact

C = CONDITIONS["E"]


@cache
def sample_of(seed, n=4):
    drawn = problems(C.world, np.random.default_rng(seed), 4)
    return rollouts(C.world, C.policy, C.start, drawn, n, C.horizon, 1, seed)


def judge(method, sample, discount=0.99, seed=0):
    return method(sample, C, C.start, discount, seed)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_each_step_a_number(name):
    sample = sample_of(1)
    before = [column.copy() for column in (sample.outcomes, sample.actions, *sample.keys.values())]
    found = judge(fresh(METHODS[name]), sample)
    assert found.shape == sample.actions.shape
    assert np.isfinite(found).all()
    assert found.any()
    assert np.array_equal(judge(fresh(METHODS[name]), sample), found)
    after = (sample.outcomes, sample.actions, *sample.keys.values())
    assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))


def test_every_estimator_of_the_library_is_compared():
    kinds = {type(m.estimator) for m in METHODS.values() if isinstance(m, Batchwise)}
    assert kinds == set(ESTIMATORS.values())


def test_estimators_are_run_with_the_rules_for_groups():
    sample = sample_of(1)
    mean = sample.outcomes.reshape(4, 4).mean(axis=1)
    assert {0.0} < set(mean), "a group fails as a whole"
    expected = (sample.outcomes - mean[sample.of_rollout])[sample.rollout_of_step]
    np.testing.assert_allclose(judge(METHODS["dr_grpo"], sample), expected, atol=1e-12)
    uniform = np.isin(mean, (0, 1))[sample.of_rollout[sample.rollout_of_step]]
    assert 0 < uniform.sum() < len(uniform)
    assert not judge(METHODS["rtmc"], sample)[uniform].any()
    # divided by the deviation of each problem's steps
    plain, divided = (
        judge(Batchwise(METHODS["rtmc"].estimator, normalize=how), sample)
        for how in ("none", "problem")
    )
    for group in np.flatnonzero((mean > 0) & (mean < 1)):
        own = sample.of_rollout[sample.rollout_of_step] == group
        np.testing.assert_allclose(divided[own], plain[own] / plain[own].std(), atol=1e-12)


def test_the_bonus_is_paid_for_validations():
    plain, paid = (Batchwise(GRPOStep(), bonus=bonus) for bonus in (0.0, 0.05))
    assert np.array_equal(judge(plain, sample_of(1)), judge(paid, sample_of(1))), "nothing to test"
    c = CONDITIONS["A"]
    sample = rollouts(c.world, c.policy, c.start, problems(c.world, np.random.default_rng(1), 4),
                      8, c.horizon, 1, 1)  # fmt: skip
    assert sample.validated.any()
    one, two = (method(sample, c, c.start, 0.99, 0) for method in (plain, paid))
    assert not np.array_equal(one, two)


def test_levels_differ():
    sample = sample_of(1)
    paper, content = (judge(METHODS[name], sample) for name in ("rtmc", "rtmc, content"))
    assert not np.array_equal(paper, content)


def test_fresh_rollouts_from_every_state_are_nearly_the_truth():
    # nothing in the errands is left to chance, so that r + γV(s′) is Q itself
    n = 2000
    sample = sample_of(2)
    group = sample.of_rollout[sample.rollout_of_step]
    true = np.zeros(len(group))
    for at, problem in enumerate(sample.problems):
        own = group == at
        known = exact(C.world, C.policy, C.start, problem, C.horizon, 0.9)
        true[own] = known.advantages(sample.time[own], sample.states[own], sample.actions[own])
    found = judge(Vine(n), sample, 0.9)
    assert np.abs(found - true).max() < 5 * (2 * 0.25 / n) ** 0.5
    assert np.abs(found - true).mean() < 0.01
    few = judge(METHODS["vineppo"], sample, 0.9)
    assert np.corrcoef(found, true)[0, 1] > 0.97 > np.corrcoef(few, true)[0, 1]
    assert not np.array_equal(few, judge(METHODS["vineppo"], sample, 0.9, seed=1))


# --- the critic ----------------------------------------------------------------------------------


def seen(sample):
    """Which features some legal action has, and a 1, row by row."""
    rows = []
    for problem, start, end in zip(
        sample.problems[sample.of_rollout], sample.starts, sample.starts[1:], strict=False
    ):
        world = slow.Errands(problem)
        for at in range(start, end):
            state = world.decode(int(sample.states[at]))
            third = slow.third_of(at - start, C.horizon)
            names = {n for a in world.legal(state) for n in world.features(state, a, third)}
            rows.append([1.0, *(float(name in names) for name in C.world.features)])
    return np.array(rows)


def generalised(sample, values, discount, lam):
    """A_t = Σ_l (γλ)^l δ_{t+l}, a sum at each step."""
    found = []
    for rollout, (start, end) in enumerate(zip(sample.starts, sample.starts[1:], strict=False)):
        v = [*values[start:end], 0.0]
        steps = end - start
        deltas = [
            (sample.outcomes[rollout] if t == steps - 1 else 0.0) + discount * v[t + 1] - v[t]
            for t in range(steps)
        ]
        found += [
            sum((discount * lam) ** k * d for k, d in enumerate(deltas[t:])) for t in range(steps)
        ]
    return np.array(found)


def returns(sample, discount):
    lengths = np.diff(sample.starts)[sample.rollout_of_step]
    return discount ** (lengths - 1 - sample.time) * sample.outcomes[sample.rollout_of_step]


def test_the_critic_is_least_squares_on_what_came_before():
    critic = Critic(lam=0.8, memory=0.9, ridge=1.0)
    first, second, third = (sample_of(seed) for seed in (1, 2, 3))
    # nothing known: the batch's mean outcome everywhere
    values = np.full(len(first.states), first.outcomes.mean())
    np.testing.assert_allclose(
        judge(critic, first, 0.9), generalised(first, values, 0.9, 0.8), atol=1e-10
    )
    # w = argmin |Xw − G|² + |w|², as least squares with rows for the penalty
    size = 1 + len(C.world.features)

    def fitted(*weighted):
        rows = [weight**0.5 * seen(sample) for weight, sample in weighted]
        goals = [weight**0.5 * returns(sample, 0.9) for weight, sample in weighted]
        return np.linalg.lstsq(
            np.vstack([*rows, np.eye(size)]), np.concatenate([*goals, np.zeros(size)]), rcond=None
        )[0]

    values = np.clip(seen(second) @ fitted((1.0, first)), 0, 1)
    np.testing.assert_allclose(
        judge(critic, second, 0.9), generalised(second, values, 0.9, 0.8), atol=1e-8
    )
    # the older batch counts 0.9
    values = np.clip(seen(third) @ fitted((0.9, first), (1.0, second)), 0, 1)
    np.testing.assert_allclose(
        judge(critic, third, 0.9), generalised(third, values, 0.9, 0.8), atol=1e-8
    )


def test_a_fresh_critic_knows_nothing():
    learned = Critic(lam=0.5, memory=0.7, ridge=2.0, bonus=0.1)
    judge(learned, sample_of(1))
    assert learned.gram is not None
    assert fresh(learned) == Critic(lam=0.5, memory=0.7, ridge=2.0, bonus=0.1)
    assert fresh(METHODS["rtmc"]) is METHODS["rtmc"]


# --- the optimiser -------------------------------------------------------------------------------


def test_adam():
    adam = Adam(0.1)
    # m̂ = g, v̂ = g²: a step of the rate, uphill, whatever the scale
    theta = adam.step(np.zeros(3), np.array([4.0, -0.01, 0]))
    np.testing.assert_allclose(theta, [0.1, -0.1, 0], atol=1e-6)
    # g = 4, then −2: m̂ = (0.36 − 0.2)/0.19, v̂ = (0.999·0.016 + 0.004)/0.001999
    theta = adam.step(theta, np.array([-2.0, -0.01, 0]))
    assert theta[0] == pytest.approx(0.1 + 0.1 * (0.16 / 0.19) / (0.019984 / 0.001999) ** 0.5)
    assert theta[1:] == pytest.approx([-0.2, 0], abs=1e-6)
    one, two = Adam(0.1), Adam(0.1)
    for gradient in ([1.0, 2], [-3.0, 1], [0.5, -1]):
        small = one.step(np.zeros(2), np.array(gradient))
        large = two.step(np.zeros(2), 1000 * np.array(gradient))
        np.testing.assert_allclose(small, large, atol=1e-6)
