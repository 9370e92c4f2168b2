"""The standard error of A: by hand, against redrawn outcomes, and against a known truth."""

from functools import cache
from math import exp
from random import Random

import numpy as np
import pytest

import rtmc
from planted import PLAIN, group, sample
from rtmc.guidance.noise import luck, noise, noise_sums
from rtmc.guidance.sample import Sample

LEFT_OUT = rtmc.Config(gamma=1.0, beta=0.0, estimator=rtmc.RTMC(leave_one_out=True))


def test_weights_by_hand() -> None:
    # N = 2, n₀ = 2. Apart: c = (1 − 2/3, −1/3); together in s: c = (1 − 2/4, −2/4); same: 0
    apart = sample(group("p", ("s.x", 1.0), ("a.x", 0.0)))
    assert luck(apart) == pytest.approx([2 / 9, 2 / 9])
    parted = sample(group("p", ("s.x", 1.0), ("s.y", 0.0)))
    assert luck(parted) == pytest.approx([0.5, 0.5])
    same = sample(group("p", ("s.x", 1.0), ("s.x", 0.0)))
    assert luck(same).tolist() == [0, 0]
    # without the own return: V′ = (0 + 2·0)/(1 + 2), all from the other: c = (1, −1)
    assert luck(sample(group("p", ("s.x", 1.0), ("s.y", 0.0)), LEFT_OUT)) == pytest.approx([2, 2])


def walks(random: Random, rollouts: int, steps: int) -> list[str]:
    lengths = [random.randint(1, steps) for _ in range(rollouts)]
    return [
        " ".join(f"{random.choice('stuv')}.{random.choice('xyz')}" for _ in range(length))
        for length in lengths
    ]


@pytest.mark.parametrize(
    "config",
    [
        PLAIN,
        LEFT_OUT,
        rtmc.Config(gamma=1.0, beta=0.0, estimator=rtmc.RTMC(prior="none")),
        rtmc.Config(gamma=1.0, beta=0.0, estimator=rtmc.RTMC(n_prior=5.0)),
        rtmc.Config(gamma=1.0, beta=0.0, estimator=rtmc.RTMC(prior="none", leave_one_out=True)),
        rtmc.Config(gamma=0.8, beta=0.0),
        rtmc.Config(gamma=0.8, beta=0.0, estimator=rtmc.RTMC(leave_one_out=True)),
    ],
)
def test_luck_is_the_sum_of_squares_of_the_weights_of_the_outcomes(config: rtmc.Config) -> None:
    # without a bonus every A is linear in the outcomes: A = Σ_j c_j R_j, c_j = A(R = e_j)
    random = Random(1)
    for _ in range(20):
        n = random.randint(2, 6)
        made = walks(random, n, 5)
        columns = []
        for one in range(n):
            rewards = [float(r == one) for r in range(n)]
            found = sample(group("p", *zip(made, rewards, strict=True)), config)
            columns.append(found.estimator(found.batch).advantages)
        first = found.tree.first_in_cell
        assert luck(found)[first] == pytest.approx((np.array(columns) ** 2).sum(0)[first])


def simulated(seed: int, steps: int, rollouts: int, groups: int, config: rtmc.Config = PLAIN):
    """Draw groups of a world with known values; give the sums, the errors of A, and A."""
    random = Random(seed)
    sums, errors, advantages = [], [], []
    for at in range(groups):
        ease = random.gauss(0, 0.7)
        effects = [random.gauss(0, 0.6) for _ in range(steps)]

        @cache
        def value(t: int, z: float, effects=effects, ease=ease) -> float:
            """V of the world: each step goes up or down, evenly; the last height is the odds."""
            if t == steps:
                return 1 / (1 + exp(-ease - z))
            return sum(value(t + 1, round(z + a * effects[t], 9)) for a in (1, -1)) / 2

        rows, truth = [], []
        for _ in range(rollouts):
            z, path, walk = 0.0, "", []
            for t in range(steps):
                a = random.choice((1, -1))
                walk.append(f"s{path}.{'x' if a > 0 else 'y'}")
                z, path = round(z + a * effects[t], 9), path + "+-"[a < 0]
                truth.append(value(t + 1, z))
            rows.append((" ".join(walk), float(random.random() < value(steps, z))))
        found = sample(group(f"p{at}", *rows), config)
        if not found.live:
            continue
        sums.append(noise_sums(found))
        errors.append(found.advantages - expected(found, np.array(truth), value(0, 0.0)))
        advantages.append(found.advantages)
    return sums, np.concatenate(errors), np.concatenate(advantages)


def expected(found: Sample, q: np.ndarray, p: float) -> np.ndarray:
    """A of the true values and the visits there were."""
    tree, n_prior = found.tree, found.estimator.n_prior
    n = tree.state_visits[tree.state_of_step]
    total = np.bincount(tree.state_of_step, q)[tree.state_of_step]
    if found.estimator.leave_one_out:
        return q - (total - q + n_prior * p) / (n - 1 + n_prior)
    return q - (total + n_prior * p) / (n + n_prior)


@pytest.mark.parametrize(
    ("steps", "rollouts", "config"), [(6, 8, PLAIN), (3, 4, PLAIN), (6, 8, LEFT_OUT)]
)
def test_error_is_that_against_a_known_truth(steps: int, rollouts: int, config) -> None:
    sums, errors, advantages = simulated(3, steps, rollouts, 100, config)
    found = noise(sums)
    actual = float(np.sqrt((errors**2).mean()))
    assert found.total.error.value == pytest.approx(actual, rel=0.15)
    assert found.total.deviation.value == pytest.approx(advantages.std())
    signal = 1 - actual**2 / advantages.var()
    assert found.total.signal.value == pytest.approx(signal, abs=0.15)


def test_signal_is_all_where_the_first_action_decides_and_none_where_nothing_does() -> None:
    random = Random(5)
    decided, lucky = [], []
    for at in range(30):
        acts = [random.choice("xy") for _ in range(8)]
        for rows, into in (
            ([(f"s.{a}", float(a == "x")) for a in acts], decided),
            ([(f"s.{a}", float(random.random() < 0.5)) for a in acts], lucky),
        ):
            found = sample(group(f"p{at}", *rows))
            if found.live:
                into.append(noise_sums(found))
    assert noise(decided).total.error.value == 0  # within cells all returns are the same
    assert noise(decided).total.signal.value == 1
    assert noise(lucky).total.signal.value < 0.25
    assert noise(lucky).unexplained.value == pytest.approx(1, abs=0.15)


def test_discounted_noise_is_not_taken_for_signal() -> None:
    # early returns are discounted and vary less; late ones, of one rollout each, vary more
    random = Random(8)
    sums = []
    for at in range(60):
        rows = []
        for r in range(8):
            states = ["s" if t < 3 else f"r{r}t{t}" for t in range(16)]
            walk = " ".join(f"{state}.{random.choice('xy')}" for state in states)
            rows.append((walk, float(random.random() < 0.5)))
        one = sample(group(f"p{at}", *rows), rtmc.Config(gamma=0.95, beta=0.0))
        if one.live:
            sums.append(noise_sums(one))
    assert noise(sums).by_step_index["10-19"].signal.value < 0.1


def test_no_signal_is_claimed_where_no_luck_can_enter() -> None:
    # all do the same: whatever A is, it is the doing of prior and discount
    found = noise([noise_sums(sample(group("p", ("s.x", 1.0), ("s.x", 0.0))))])
    assert found.total.error.value == 0
    assert not found.total.signal.known


def test_a_range_with_few_shared_steps_takes_the_variance_of_all() -> None:
    walk = "s.x " + " ".join(f"{{0}}{t}.x" for t in range(30))
    rows = [(walk.format(f"r{r}"), float(r > 2)) for r in range(6)]
    found = noise([noise_sums(sample(group(f"p{g}", *rows))) for g in range(7)])
    assert found.by_step_index["first"].own  # 7 · 5 degrees of freedom
    assert not found.by_step_index["20+"].own
    assert found.by_step_index["20+"].freedom == 0
    assert found.assumed == pytest.approx(30 / 31)
