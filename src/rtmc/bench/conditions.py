"""The conditions under which estimators are judged: a problem family, a first policy, a horizon."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from rtmc.batch import Floats, Ints
from rtmc.bench.optimiser import Adam
from rtmc.bench.policies import Policy, linear, network
from rtmc.bench.simulate import gradient, rollouts
from rtmc.bench.worlds.base import World
from rtmc.bench.worlds.errands import errands
from rtmc.bench.worlds.repair import repair
from rtmc.diagnostics import reached_by
from rtmc.tree import build

__all__ = ["CONDITIONS", "STAGES", "Condition", "Stage", "describe", "parameters", "problems"]

Stage = Literal["start", "half"]
STAGES: tuple[Stage, ...] = ("start", "half")

REPAIRS = {
    "search hinted": 1.8, "search again": -2.0, "search after edit": -1.5,
    "view": -0.7, "view hinted": 0.8, "view pointed": 1.8, "view again": -1.5,
    "view after edit": -1.0,
    "edit": -0.4, "edit suspicious": 0.5, "edit suspicious indicated": 0.3, "edit same": -2.0,
    "edit over untested": -1.5, "edit over passed": -1.5,
    "test": -1.0, "test patched": 0.5, "test unpatched": -1.0, "test again": -1.0,
    "run": -0.5, "run unpatched": -1.5, "run again": -1.0, "think": 0.5,
    "finish unpatched": -2.0, "finish untested": 1.0, "finish passed": 1.0, "finish failed": 0.5,
}  # fmt: skip
LATER = REPAIRS | {name: REPAIRS[name] - 1.5 for name in REPAIRS if name.startswith("finish")}
ERRANDS = {
    "door signed": 0.8, "door back": -1.0, "door to self": -1.0,
    "take there": 1.2, "take nothing": -1.2, "submit none": -3.0, "submit some": -2.5,
    "submit all elsewhere": -1.0, "submit all desk": 1.5, "wait": -1.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """A decision problem and the policy that begins to learn it.

    Attributes:
        name: for people.
        about: one line.
        world: the problem family.
        policy: how scores come from parameters.
        horizon: T, most steps.
        scores: the first scores of the features; others are 0.
        sharpness: what they are multiplied with.
        spellings: in how many ways an action can be written.
        exact: whether the family is small enough for exact values.
    """

    name: str
    about: str
    world: World
    policy: Policy
    horizon: int
    scores: dict[str, float]
    sharpness: float
    spellings: int = 1
    exact: bool = True

    @property
    def linear_start(self) -> Floats:
        """First scores of the features."""
        scores = [self.scores.get(name, 0.0) for name in self.world.features]
        return self.sharpness * np.array(scores)

    @property
    def start(self) -> Floats:
        """First parameters."""
        return self.policy.start(self.linear_start, np.random.default_rng(0))


SMALL, LARGE, ROOMS = repair(3, 2, 2), repair(4, 3, 3), errands()
CONDITIONS: dict[str, Condition] = {
    c.name: c
    for c in (
        Condition("A", "repair 3×2×2", SMALL, linear(SMALL), 12, REPAIRS, 1.2),
        Condition("B", "repair, low overlap", SMALL, linear(SMALL), 12, REPAIRS, 1.1, spellings=2),
        Condition("C", "repair, high overlap", SMALL, linear(SMALL), 12, REPAIRS, 2.3),
        Condition("D", "repair 4×3×3", LARGE, linear(LARGE), 20, REPAIRS, 1.3, exact=False),
        Condition("H", "repair, long", SMALL, linear(SMALL), 40, LATER, 1.0),
        Condition("N", "repair, network policy", SMALL, network(SMALL), 12, REPAIRS, 1.2),
        Condition("E", "errands", ROOMS, linear(ROOMS), 24, ERRANDS, 1.5),
    )
}


def problems(world: World, rng: np.random.Generator, n: int) -> Ints:
    """Draw n problems, shape (n, L)."""
    return np.array([world.draw(rng) for _ in range(n)], dtype=np.int64)


def describe(name: str, stage: Stage) -> dict[str, Any]:
    """Measure what a condition is like: 256 problems × 8 rollouts.

    ``uniform`` is the share of groups of one outcome, ``overlap`` that of the steps after the first
    whose state at least two of the 8 rollouts reached.
    """
    c, theta = CONDITIONS[name], parameters(name, stage)
    drawn = problems(c.world, np.random.default_rng(SEED), 256)
    sample = rollouts(c.world, c.policy, theta, drawn, 8, c.horizon, c.spellings, SEED)
    rate = sample.outcomes.reshape(-1, 8).mean(axis=1)
    later = sample.time > 0
    overlap = {}
    for level in ("paper", "coarse", "content"):
        tree = build(sample.batch((level,)))
        overlap[level] = float((reached_by(tree)[tree.state_of_step] >= 2)[later].mean())
    return {
        "condition": name,
        "about": c.about,
        "stage": stage,
        "success": float(rate.mean()),
        "uniform": float(((rate == 0) | (rate == 1)).mean()),
        "steps": float(np.diff(sample.starts).mean()),
        "most_steps": c.horizon,
        "overlap": overlap,
    }


UPDATES, EVERY, SEED = 100, 5, 20_000


@cache
def parameters(name: str, stage: Stage) -> Floats:
    """Give the parameters of a condition's policy at the start, or half-trained.

    Half-trained is the first time, by plain REINFORCE with large batches (64 problems × 16
    rollouts, R − mean R, 100 updates), that the success on fresh problems has made half of the way
    that it makes in all. No estimator of the comparison is used.
    """
    c = CONDITIONS[name]
    theta = c.start
    if stage == "start":
        return theta
    rng, adam = np.random.default_rng(SEED), Adam(0.05)
    fresh = problems(c.world, rng, 512)
    kept: list[Floats] = []
    solved: list[float] = []
    for update in range(UPDATES + 1):
        if update % EVERY == 0:
            kept.append(theta)
            sample = rollouts(c.world, c.policy, theta, fresh, 8, c.horizon, 1, SEED + update)
            solved.append(float(sample.outcomes.mean()))
        drawn = problems(c.world, rng, 64)
        sample = rollouts(c.world, c.policy, theta, drawn, 16, c.horizon, 1, SEED + update)
        mean = sample.outcomes.reshape(64, 16).mean(axis=1)
        weights = (sample.outcomes - mean[sample.of_rollout])[sample.rollout_of_step]
        theta = adam.step(theta, gradient(c.world, c.policy, theta, sample, c.horizon, weights))
    half = (solved[0] + max(solved)) / 2
    return kept[next(at for at, success in enumerate(solved) if success >= half)]
