"""How much of the advantages is luck of the outcomes: the standard error of A = Q − V′."""

from collections.abc import Sequence
from math import nan

import msgspec
import numpy as np

from rtmc.batch import Floats
from rtmc.diagnostics import reached_by
from rtmc.guidance.measured import Measured, Sums, measured, ratio
from rtmc.guidance.sample import Sample
from rtmc.guidance.support import RANGES, ranges

__all__ = ["Noise", "NoiseOfRange", "luck", "noise", "noise_sums"]

ENOUGH = 30.0
"""Degrees of freedom from which on a range of steps is believed about its own variance."""

ROUNDING = 1e-15


class NoiseOfRange(msgspec.Struct, frozen=True):
    """The luck in the advantages of one range of step indices.

    Attributes:
        steps: first visits that get credit.
        freedom: degrees of freedom of the variance within cells: Σ (rollouts − 1) over cells.
        own: whether that is enough to believe it; else the variance of all steps is taken.
        error: √ mean SE².
        deviation: standard deviation of the advantages.
        signal: (deviation² − mean SE²) / deviation², in [0, 1]: what would come back if the same
            rollouts met with fresh luck; NaN where no luck can enter (all did the same).
    """

    steps: int
    freedom: float
    own: bool
    error: Measured
    deviation: Measured
    signal: Measured


class Noise(msgspec.Struct, frozen=True):
    """The luck of the outcomes in A = Q − V′, over first visits in live groups.

    Attributes:
        total: over all steps.
        by_step_index: by range.
        unexplained: share of a group's variance of outcomes that is left within its cells.
        assumed: share of the steps behind whose Q one rollout stands: their luck cannot be seen,
            and is taken to be that of the others.
    """

    total: NoiseOfRange
    by_step_index: dict[str, NoiseOfRange]
    unexplained: Measured
    assumed: float


def luck(sample: Sample) -> Floats:
    """Give Var(A)/v of each step, shape (S,): A as a sum over the outcomes R of the rollouts.

        A(s,a) = Σ_j c_j R_j
        c_j = [j took (s,a)]·γ^k/m − (Σ_a [j took (s,a)]·γ^k + n₀/N) / (N(s) + n₀)
        Var(A) = v·Σ_j c_j²

    m rollouts took (s,a), of N; k is how many steps j had to go at its first visit. Exact where
    the outcome is the only reward and the prior is the success rate; who went where is taken as
    given. Limits: with γ = 1, m = N gives 0, and so does n₀ = 0 where all in s did the same.
    Left out of its own baseline, a rollout's share of V′ goes to the others.
    """
    tree, batch, size = sample.tree, sample.batch, sample.n_rollouts
    own, states, cells = batch.rollout_of_step, tree.state_of_step, tree.cell_of_step
    worth = _worth(sample)
    first = tree.first_in_cell
    took = np.zeros((tree.n_cells, size))
    took[cells[first], own[first]] = worth[first]
    estimator = sample.estimator
    n_prior = 0.0 if estimator.prior == "none" else estimator.n_prior
    if estimator.leave_one_out:
        first = tree.first_in_state
        came = np.zeros((tree.n_states, size))
        came[states[first], own[first]] = worth[first]
        baseline = came[states] + n_prior / max(size - 1, 1)
        baseline[np.arange(len(states)), own] = 0.0
        weight = reached_by(tree)[states] - 1 + n_prior
    else:
        did = np.zeros((tree.n_states, size))
        np.add.at(did, tree.state_of_cell, took)
        baseline = did[states] + n_prior / size
        weight = tree.state_visits[states] + n_prior
    shares = baseline / np.where(weight > 0, weight, 1.0)[:, None]
    weights = (took / tree.visits[:, None])[cells] - shares
    squares = np.where(weight > 0, (weights * weights).sum(1), 0.0)
    return np.where(squares < ROUNDING, 0.0, squares)


def _worth(sample: Sample) -> Floats:
    """Discount the outcome to each step: γ^k with k steps to go, shape (S,)."""
    batch = sample.batch
    return batch.discount ** (np.diff(batch.starts)[batch.rollout_of_step] - 1.0 - batch.time)


def noise_sums(sample: Sample) -> Sums:
    """Sum what the standard errors need, by range of step indices."""
    tree, returns = sample.tree, sample.batch.returns
    first = tree.first_in_cell & sample.credited
    where = ranges(sample.batch.time)
    visits = tree.visits[tree.cell_of_step]
    residual = np.where(tree.first_in_cell, returns - tree.q_values(returns)[tree.cell_of_step], 0)
    freedom = (visits - 1) / visits * tree.first_in_cell
    variance = sample.batch.outcomes.var(ddof=1)
    a = sample.advantages[first]
    return {
        "freedom": freedom @ where,
        "expected": variance * (freedom * _worth(sample) ** 2) @ where,
        "squares": (residual * residual) @ where,
        "steps": first @ where,
        "alone": np.array(float((visits[first] == 1).sum())),
        "a": a @ where[first],
        "a_squares": (a * a) @ where[first],
        "luck": variance * luck(sample)[first] @ where[first],
    }


def noise(groups: Sequence[Sums]) -> Noise:
    """Give standard error, deviation and share of signal, for all steps and by range.

        mean SE² = mean over steps of ρ·v·Σ_j c_j²   (``luck``)
        ρ = Σ over cells and their rollouts (G − Q)² / Σ over the same v·γ^{2k}·(m − 1)/m

    v is the variance of the outcomes of the group (divisor N − 1), so that ρ is the share of it
    that is left once the cell is known.
    """
    freedom = np.sum([g["freedom"] for g in groups], axis=0)
    steps = np.sum([g["steps"] for g in groups], axis=0).astype(int)
    size, enough = len(RANGES), freedom >= ENOUGH

    def figures(s: Sums) -> Floats:
        pooled = ratio(s["squares"].sum(-1), s["expected"].sum(-1))[:, None]
        own = np.where(enough, ratio(s["squares"], s["expected"]), pooled)
        squares = np.where(s["luck"] > 0, own * s["luck"], 0.0)
        parts = [
            np.concatenate([x.sum(-1, keepdims=True), x], -1)
            for x in (s["steps"], s["a"], s["a_squares"], squares, s["luck"])
        ]
        mean, square, error, any_luck = (ratio(x, parts[0]) for x in parts[1:])
        spread = np.maximum(square - mean * mean, 0.0)
        signal = ratio(spread - error, spread * (any_luck > 0))
        return np.concatenate([np.sqrt(error), np.sqrt(spread), signal, pooled], -1)

    found = measured(groups, figures, (3 * (size + 1) + 1,))
    rows = [
        NoiseOfRange(
            steps=int(count),
            freedom=float(free),
            own=bool(free >= ENOUGH),
            error=found[at],
            deviation=found[at + size + 1],
            signal=_clipped(found[at + 2 * (size + 1)]),
        )
        for at, (count, free) in enumerate(
            zip((steps.sum(), *steps), (freedom.sum(), *freedom), strict=True)
        )
    ]
    alone = sum(float(g["alone"]) for g in groups)
    return Noise(
        total=rows[0],
        by_step_index=dict(zip(RANGES, rows[1:], strict=True)),
        unexplained=found[-1],
        assumed=float(alone / steps.sum()) if steps.sum() else nan,
    )


def _clipped(signal: Measured) -> Measured:
    """Keep a share in [0, 1]; its error is that of the share before."""
    value = min(max(signal.value, 0.0), 1.0) if signal.known else nan
    return msgspec.structs.replace(signal, value=value)
