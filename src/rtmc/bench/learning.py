"""Learn with each estimator at equal rollouts, and compare the curves seed by seed.

One run: the condition's first policy, Adam at one rate, 60 updates of 32 rollouts each; every 5
updates the success on problems that are not trained on. ``shared`` is the condition's policy, which
generalises: 4 new problems × 8 rollouts an update, 128 other problems to test on. ``table`` has one
number for each state and action of one problem: 2 groups × 16 rollouts of it, tested on itself.

The rate of each method is chosen on seeds of its own, by the mean area under the curve; fresh seeds
run at it. Problems and first parameters of a seed are the same for all methods.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from rtmc.advantages import RECOMMENDED
from rtmc.bench import pieces
from rtmc.bench.conditions import CONDITIONS, Condition, problems
from rtmc.bench.measures import bootstrap
from rtmc.bench.methods import METHODS, fresh
from rtmc.bench.optimiser import Adam
from rtmc.bench.policies import table
from rtmc.bench.simulate import gradient, rollouts
from rtmc.bench.speed import machine
from rtmc.bench.truth import reachable

__all__ = ["RATES", "Outcome", "Runs", "Settings", "learn", "outcomes", "study", "work_of"]

Kind = Literal["shared", "table"]
UNKNOWN = (float("nan"), float("nan"), float("nan"))
Measure = Callable[[Sequence[float]], float]
RATES: dict[Kind, tuple[float, ...]] = {
    "shared": (0.025, 0.05, 0.1, 0.2, 0.4, 0.8),
    "table": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
}
FRESH_FROM = 100
"""Seeds below choose the rate; those from here on are fresh."""
CHUNK = 6
UPDATES, EVERY = 60, 5
GROUPS, ROLLOUTS = {"shared": 4, "table": 2}, {"shared": 8, "table": 16}
HELD_OUT, HELD_OUT_ROLLOUTS = {"shared": 128, "table": 1}, {"shared": 4, "table": 512}
DISCOUNT = 0.99


class Runs(msgspec.Struct, frozen=True):
    """Some seeds of one method at one rate."""

    condition: str
    kind: Kind
    estimator: str
    rate: float
    seeds: tuple[int, int]


class Outcome(msgspec.Struct, frozen=True):
    """One method at its chosen rate, over fresh seeds; 95 % intervals by bootstrap.

    ``area`` is the mean success over the updates, ``final`` that of the last two tests; what ends
    in ``_to_grpo`` and ``_to_rtmc`` is the mean paired difference to that method at its own chosen
    rate, with its interval. ``collapsed`` is the share of the tuning runs at each rate that end
    below half of where they began.
    """

    condition: str
    kind: str
    estimator: str
    rate: float
    seeds: int
    area: tuple[float, float, float]
    final: tuple[float, float, float]
    area_to_grpo: tuple[float, float, float]
    final_to_grpo: tuple[float, float, float]
    area_to_rtmc: tuple[float, float, float]
    final_to_rtmc: tuple[float, float, float]
    tuned: tuple[float, ...]
    collapsed: tuple[float, ...]
    curve: tuple[float, ...]


def learn(condition: Condition, kind: Kind, estimator: str, rate: float, seed: int) -> list[float]:
    """Train one policy; give the success before and after every 5 updates.

    Args:
        condition: what is learned.
        kind: the condition's policy, or a table.
        estimator: a name in METHODS.
        rate: learning rate.
        seed: of problems and rollouts.
    """
    world, policy, horizon = condition.world, condition.policy, condition.horizon
    rng = np.random.default_rng([seed, 1])
    held_out = problems(world, rng, HELD_OUT[kind])
    theta = condition.start
    if kind == "table":
        policy, one = table(world, held_out[0], reachable(world, held_out[0]))
        theta, held_out = policy.start(condition.linear_start, rng), one[None]
        condition = replace(condition, policy=policy)
    adam, method = Adam(rate), fresh(METHODS[estimator])
    success: list[float] = []
    for update in range(UPDATES + 1):
        if update % EVERY == 0:
            test = rollouts(
                world, policy, theta, held_out, HELD_OUT_ROLLOUTS[kind], horizon, 1,
                1000 * seed + update,
            )  # fmt: skip
            success.append(round(float(test.outcomes.mean()), 4))
        drawn = (
            problems(world, rng, GROUPS[kind])
            if kind == "shared"
            else np.repeat(held_out, GROUPS[kind], axis=0)
        )
        sample = rollouts(
            world, policy, theta, drawn, ROLLOUTS[kind], horizon, condition.spellings,
            int(rng.integers(1 << 31)),
        )  # fmt: skip
        weights = method(sample, condition, theta, DISCOUNT, 1000 * seed + update)
        theta = adam.step(theta, gradient(world, policy, theta, sample, horizon, weights))
    return success


def run(piece: Runs) -> list[list[float]]:
    """Run the seeds of a piece."""
    c = CONDITIONS[piece.condition]
    return [learn(c, piece.kind, piece.estimator, piece.rate, s) for s in range(*piece.seeds)]


def area(curve: Sequence[float]) -> float:
    """Mean success over the updates, by trapezia."""
    c = np.asarray(curve)
    return float(((c[1:] + c[:-1]) / 2).mean())


def final(curve: Sequence[float]) -> float:
    """Mean of the last two tests."""
    return float(np.mean(curve[-2:]))


def collapsed(curve: Sequence[float]) -> bool:
    """Tell whether a run ends below half of where it began."""
    return final(curve) < curve[0] / 2


def chosen_rate(by_rate: dict[float, list[list[float]]]) -> float:
    """Choose the rate of the largest mean area."""
    return max(by_rate, key=lambda rate: np.mean([area(curve) for curve in by_rate[rate]]))


def outcomes(
    condition: str,
    kind: Kind,
    tuning: dict[str, dict[float, list[list[float]]]],
    chosen: dict[str, tuple[float, list[list[float]]]],
) -> Iterator[Outcome]:
    """Compare methods.

    Args:
        condition: its name.
        kind: of the policy.
        tuning: curves by method and rate.
        chosen: rate and curves on fresh seeds by method.
    """

    def against(name: str, other: str, measure: Measure) -> tuple[float, float, float]:
        if other not in chosen:
            return UNKNOWN
        mine, theirs = (np.array([measure(c) for c in chosen[m][1]]) for m in (name, other))
        return (float((mine - theirs).mean()), *bootstrap(mine - theirs))

    def own(name: str, measure: Measure) -> tuple[float, float, float]:
        values = np.array([measure(c) for c in chosen[name][1]])
        return (float(values.mean()), *bootstrap(values))

    for name, (rate, curves) in chosen.items():
        by_rate = tuning[name]
        yield Outcome(
            condition, kind, name, rate, len(curves), own(name, area), own(name, final),
            against(name, "grpo", area), against(name, "grpo", final),
            against(name, "rtmc", area), against(name, "rtmc", final),
            tuple(round(float(np.mean([area(c) for c in by_rate[r]])), 4) for r in RATES[kind]),
            tuple(float(np.mean([collapsed(c) for c in by_rate[r]])) for r in RATES[kind]),
            tuple(round(float(m), 4) for m in np.mean(curves, axis=0)),
        )  # fmt: skip


class Settings(msgspec.Struct, frozen=True):
    """What is compared.

    Attributes:
        condition: a name in CONDITIONS.
        kind: of the policy.
        estimators: names in METHODS.
        tuning: seeds that choose the rate.
        fresh: seeds that run at it.
    """

    condition: str
    kind: Kind
    estimators: tuple[str, ...]
    tuning: int
    fresh: int


def work_of(settings: Settings) -> int:
    """Count the pieces."""
    chunks = -(-settings.fresh // CHUNK)
    return len(settings.estimators) * (len(RATES[settings.kind]) + chunks)


def study(
    settings: Settings, jobs: int, store: Path | None, tick: Callable[[], object]
) -> dict[str, Any]:
    """Tune every method, run it on fresh seeds, and compare.

    Args:
        settings: what to compare.
        jobs: processes.
        store: see ``rtmc.bench.pieces.run``.
        tick: called after each piece of ``work_of``.

    Returns:
        ``rows`` (each as ``Outcome``), the curves of the fresh seeds, and what they come from.
    """

    def runs(name: str, rate: float, first: int, end: int) -> Runs:
        return Runs(settings.condition, settings.kind, name, rate, (first, end))

    work = [
        runs(name, rate, 0, settings.tuning)
        for name in settings.estimators
        for rate in RATES[settings.kind]
    ]
    tuning: dict[str, dict[float, list[list[float]]]] = {}
    for piece, curves in zip(work, pieces.run(run, work, jobs, store, tick), strict=True):
        tuning.setdefault(piece.estimator, {})[piece.rate] = curves
    end = FRESH_FROM + settings.fresh
    work = [
        runs(name, chosen_rate(by_rate), first, min(first + CHUNK, end))
        for name, by_rate in tuning.items()
        for first in range(FRESH_FROM, end, CHUNK)
    ]
    chosen: dict[str, tuple[float, list[list[float]]]] = {}
    for piece, curves in zip(work, pieces.run(run, work, jobs, store, tick), strict=True):
        chosen.setdefault(piece.estimator, (piece.rate, []))[1].extend(curves)
    return {
        "recommended": RECOMMENDED,
        "settings": settings,
        "rates": RATES[settings.kind],
        "rollouts_an_update": GROUPS[settings.kind] * ROLLOUTS[settings.kind],
        "updates": UPDATES,
        "discount": DISCOUNT,
        "machine": machine(),
        "rows": list(outcomes(settings.condition, settings.kind, tuning, chosen)),
        "curves": {name: curves for name, (_, curves) in chosen.items()},
    }
