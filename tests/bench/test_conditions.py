"""The conditions: what they start from, what half-trained means, and how they are described."""

from collections import defaultdict

import numpy as np
import pytest

from rtmc.bench import conditions
from rtmc.bench.conditions import CONDITIONS, describe, parameters, problems
from rtmc.bench.simulate import rollouts


def test_policies_start_from_scores_by_name():
    for c in CONDITIONS.values():
        assert set(c.scores) <= set(c.world.features), c.name
        for name, score in zip(c.world.features, c.linear_start, strict=True):
            assert score == pytest.approx(c.sharpness * c.scores.get(name, 0))
        assert len(c.start) == c.policy.size
        assert np.array_equal(c.start, c.start), "the same each time"
        assert np.array_equal(parameters(c.name, "start"), c.start)


def test_half_trained_is_the_first_that_has_made_half_of_the_way(monkeypatch):
    tested = []

    def watched(world, policy, theta, drawn, n, *rest):
        sample = rollouts(world, policy, theta, drawn, n, *rest)
        if len(drawn) == 512:
            tested.append((sample.outcomes.mean(), theta))
        return sample

    monkeypatch.setattr(conditions, "UPDATES", 30)
    monkeypatch.setattr(conditions, "rollouts", watched)
    half = parameters.__wrapped__("E", "half")
    rates = [rate for rate, _ in tested]
    assert len(rates) == 7  # after 0, 5, … 30 updates
    assert max(rates) > rates[0] + 0.1, "it learns"
    at = [np.array_equal(half, theta) for _, theta in tested].index(True)
    middle = (rates[0] + max(rates)) / 2
    assert rates[at] >= middle > max(rates[:at])


def test_conditions_are_described_by_what_happens():
    c, found = CONDITIONS["E"], describe("E", "start")
    drawn = problems(c.world, np.random.default_rng(conditions.SEED), 256)
    sample = rollouts(c.world, c.policy, c.start, drawn, 8, c.horizon, 1, conditions.SEED)
    rates = [outcomes.mean() for outcomes in np.split(sample.outcomes, 256)]
    assert found["success"] == pytest.approx(np.mean(rates))
    assert found["uniform"] == np.mean([rate in (0, 1) for rate in rates])
    assert found["steps"] == len(sample.actions) / 2048
    assert (found["condition"], found["stage"], found["about"]) == ("E", "start", "errands")
    assert found["most_steps"] == 24
    steps = list(zip(sample.rollout_of_step.tolist(), sample.time.tolist(), strict=True))
    for level, share in found["overlap"].items():
        visitors = defaultdict(set)
        for (rollout, _), key in zip(steps, sample.keys[level].tolist(), strict=True):
            visitors[rollout // 8, key].add(rollout)
        shared = [
            len(visitors[rollout // 8, key]) >= 2
            for (rollout, t), key in zip(steps, sample.keys[level].tolist(), strict=True)
            if t > 0
        ]
        assert share == pytest.approx(np.mean(shared)), level
