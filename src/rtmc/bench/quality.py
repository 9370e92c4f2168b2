"""Measure how far estimators are from the truth, where the truth is known.

For each condition, at its first and at its half-trained policy: batches of 8 problems × n rollouts
are drawn from a pool of problems whose true gradients are known. All estimators see the same
batches, so that they are compared pair by pair. The truth is γ-discounted for advantages and the
success itself for gradients.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rtmc.advantages import RECOMMENDED
from rtmc.batch import Floats, Ints
from rtmc.bench.conditions import CONDITIONS, Stage, describe, parameters, problems
from rtmc.bench.measures import Scores, bootstrap, score
from rtmc.bench.methods import METHODS, TRIED, Critic, fresh
from rtmc.bench.pieces import run
from rtmc.bench.simulate import Sample, gradient, rollouts
from rtmc.bench.speed import machine
from rtmc.bench.truth import Exact, exact, sampled_advantages, sampled_gradient

__all__ = ["TRUTH", "Goal", "Piece", "Row", "Settings", "measure", "pieces", "study"]

UNKNOWN = (float("nan"), float("nan"), float("nan"))
Found = dict[tuple[int, str], list[Scores]]
"""Scores of the seeds by (n, estimator)."""

DISCOUNT = 0.99
BATCH = 8
POOL_SEED = 40_000
GRADIENT_ROLLOUTS = 20_000
VALUE_ROLLOUTS = 32
WARM = 16
CHUNK = 5
TRUTH = "true advantages"
"""What the exact values themselves would give: the noise that is left is that of the sample."""


class Settings(msgspec.Struct, frozen=True):
    """What is judged.

    Attributes:
        conditions: names in CONDITIONS.
        stages: of the policy.
        sizes: rollouts a problem.
        estimators: names in METHODS.
        seeds: number of batches.
        pool: problems that batches are drawn from.
    """

    conditions: tuple[str, ...]
    stages: tuple[Stage, ...]
    sizes: tuple[int, ...]
    estimators: tuple[str, ...]
    seeds: int
    pool: int


class Piece(msgspec.Struct, frozen=True):
    """A part of the work: some seeds of one condition at one stage.

    Attributes:
        condition: its name.
        stage: of the policy.
        seeds: first and last + 1.
        sizes: rollouts a problem.
        estimators: names in METHODS.
        pool: problems in the pool.
    """

    condition: str
    stage: Stage
    seeds: tuple[int, int]
    sizes: tuple[int, ...]
    estimators: tuple[str, ...]
    pool: int


class Row(msgspec.Struct, frozen=True):
    """One estimator at one number of rollouts; means over seeds, 95 % intervals by bootstrap.

    ``cosine_to_rtmc`` is the mean difference to plain RTMC on the same batches. The other fields
    are those of ``Scores``; ``bias_error`` is the standard error of the bias over seeds.
    """

    condition: str
    stage: str
    estimator: str
    n: int
    seeds: int
    cosine: float
    low: float
    high: float
    cosine_to_rtmc: float
    to_rtmc_low: float
    to_rtmc_high: float
    fvu: float
    sign: float
    rank: float
    bias: float
    bias_error: float


class Goal(msgspec.Struct, frozen=True):
    """Cosine of an estimator at n rollouts a problem minus plain RTMC's at ``rtmc_n``, paired."""

    condition: str
    stage: str
    estimator: str
    n: int
    rtmc_n: int
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Pool:
    problems: Ints
    gradients: Floats
    exact: list[Exact]


@cache
def _pool(condition: str, stage: Stage, size: int) -> _Pool:
    c, theta = CONDITIONS[condition], parameters(condition, stage)
    drawn = problems(c.world, np.random.default_rng(POOL_SEED), size)
    if c.exact:
        known = [exact(c.world, c.policy, theta, p, c.horizon, DISCOUNT) for p in drawn]
        return _Pool(drawn, np.array([k.gradient for k in known]), known)
    grads = [
        sampled_gradient(c.world, c.policy, theta, p, c.horizon, GRADIENT_ROLLOUTS, POOL_SEED + at)[
            1
        ]
        for at, p in enumerate(drawn)
    ]
    return _Pool(drawn, np.array(grads), [])


def _truth(
    piece: Piece, pool: _Pool, theta: Floats, picked: Ints, sample: Sample, seed: int
) -> tuple[Floats, Floats]:
    c = CONDITIONS[piece.condition]
    if not pool.exact:
        return sampled_advantages(
            c.world, c.policy, theta, sample, c.horizon, DISCOUNT, VALUE_ROLLOUTS, seed
        )
    of_step, time = sample.of_rollout[sample.rollout_of_step], sample.time
    true = np.zeros(len(time))
    for group, problem in enumerate(picked):
        own = of_step == group
        known = pool.exact[problem]
        true[own] = known.advantages(time[own], sample.states[own], sample.actions[own])
    return true, true


def measure(piece: Piece) -> list[tuple[int, str, list[Scores]]]:
    """Score all estimators of a piece, seed by seed: (n, estimator, scores)."""
    found: Found = {}
    pool = _pool(piece.condition, piece.stage, piece.pool)
    for seed in range(*piece.seeds):
        # conditions differ in what they draw; the same problems for all n, which are compared
        name_of = list(piece.condition.encode())
        picked = np.random.default_rng([seed, *name_of]).choice(len(pool.problems), BATCH, False)
        for n in piece.sizes:
            rng = np.random.default_rng([seed, n, *name_of])
            for name, scores in _judge(piece, pool, picked, n, seed, rng):
                found.setdefault((n, name), []).append(scores)
    return [(n, name, scores) for (n, name), scores in found.items()]


def _judge(
    piece: Piece, pool: _Pool, picked: Ints, n: int, seed: int, rng: np.random.Generator
) -> Iterator[tuple[str, Scores]]:
    """Score all estimators on one batch."""
    c, theta = CONDITIONS[piece.condition], parameters(piece.condition, piece.stage)

    def draw(of: Ints) -> Sample:
        seed_of = int(rng.integers(1 << 31))
        return rollouts(c.world, c.policy, theta, of, n, c.horizon, c.spellings, seed_of)

    sample = draw(pool.problems[picked])
    truth = _truth(piece, pool, theta, picked, sample, seed)
    true_gradient = pool.gradients[picked].mean(axis=0)
    for name in (*piece.estimators, TRUTH):
        if name == TRUTH:
            estimate = (truth[0] + truth[1]) / 2
        else:
            method = fresh(METHODS[name])
            if isinstance(method, Critic):  # it has learned from the batches before
                for _ in range(WARM):
                    method(draw(problems(c.world, rng, BATCH)), c, theta, DISCOUNT, seed)
            estimate = method(sample, c, theta, DISCOUNT, seed)
        own = gradient(c.world, c.policy, theta, sample, c.horizon, estimate)
        yield name, score(estimate, truth, own, true_gradient)


def rows(condition: str, stage: str, found: Found) -> Iterator[Row]:
    """Average over seeds."""
    for (n, name), scores in found.items():
        values = np.array(scores)
        low, high = bootstrap(values[:, 0])
        to_rtmc = _difference(found, (n, name), (n, "rtmc"))
        mean = values.mean(axis=0)
        error = values[:, 4].std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
        yield Row(
            condition, stage, name, n, len(values), float(mean[0]), low, high, *to_rtmc,
            *(float(m) for m in mean[1:]), float(error),
        )  # fmt: skip


def goals(condition: str, stage: str, found: Found) -> Iterator[Goal]:
    """Compare with RTMC at four times the rollouts."""
    sizes = sorted({n for n, _ in found})
    for n in sizes:
        for name in (RECOMMENDED, TRUTH):
            if (n, name) in found and (4 * n, "rtmc") in found:
                yield Goal(
                    condition, stage, name, n, 4 * n,
                    *_difference(found, (n, name), (4 * n, "rtmc")),
                )  # fmt: skip


def _difference(
    found: Found, one: tuple[int, str], other: tuple[int, str]
) -> tuple[float, float, float]:
    if other not in found:
        return UNKNOWN
    cosines = np.array([[s[0] for s in found[key]] for key in (one, other)])
    difference = cosines[0] - cosines[1]
    return (float(difference.mean()), *bootstrap(difference))


def pieces(settings: Settings) -> list[Piece]:
    """Cut the work into parts of a few seeds."""
    return [
        Piece(
            condition, stage, (first, min(first + CHUNK, settings.seeds)), settings.sizes,
            settings.estimators, settings.pool,
        )
        for condition in settings.conditions
        for stage in settings.stages
        for first in range(0, settings.seeds, CHUNK)
    ]  # fmt: skip


def study(
    settings: Settings, jobs: int, store: Path | None, tick: Callable[[], object]
) -> dict[str, Any]:
    """Judge all estimators.

    Args:
        settings: what to judge.
        jobs: processes.
        store: see ``rtmc.bench.pieces.run``.
        tick: called after each of ``pieces``.

    Returns:
        ``recommended``, ``rows`` (each as ``Row``), ``goals`` and what they come from.
    """
    work = pieces(settings)
    by_part: dict[tuple[str, Stage], Found] = {}
    for piece, found in zip(work, run(measure, work, jobs, store, tick), strict=True):
        part = by_part.setdefault((piece.condition, piece.stage), {})
        for n, name, scores in found:
            part.setdefault((n, name), []).extend(scores)
    return {
        "recommended": RECOMMENDED,
        "settings": settings,
        "discount": DISCOUNT,
        "problems_a_batch": BATCH,
        "variants_tried": TRIED,
        "machine": machine(),
        "conditions": [describe(*part) for part in by_part],
        "rows": [row for part, found in by_part.items() for row in rows(*part, found)],
        "goals": [goal for part, found in by_part.items() for goal in goals(*part, found)],
    }
