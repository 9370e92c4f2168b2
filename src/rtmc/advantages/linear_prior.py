"""A first guess of every state's value: a ridge regression over the other problems of the batch.

It says what a step is worth by how far it is, how the work stands and how the group fares. Its few
coefficients are all that problems share; states are never pooled across problems. Nothing is
carried from one update to the next.
"""

from itertools import pairwise

import numpy as np

from rtmc.batch import Batch, Floats, Ints, sum_by
from rtmc.returns import outcome_range

__all__ = ["linear_prior"]

FEW_PROBLEMS = 4


def linear_prior(batch: Batch, ridge: float) -> Floats:
    """Fit V⁰ of each step, without the returns of its own problem.

        V⁰_t = clip(x_tᵀθ_{−q}, range of the batch's outcomes),  x_t = [1, τ, τ², f_t, p_{−i} − ½]

    τ is t over the length of the batch's longest rollout, f_t are the progress flags where there
    are any, p_{−i} is the mean outcome of the group's other rollouts (where there are none, of
    all), and θ_{−q} the ridge regression of returns on x over the other problems, its intercept
    free. With fewer than 4 problems θ is fitted to what is left of returns after p, without the
    step's own rollout: V⁰_t = clip(p_{−i} + [τ, τ², f_t]·θ_{−i}, range of the group's outcomes).
    Rollouts that were cut off have no outcome: neither p nor θ knows of them.

    Sums are taken in the order of the values: permuting rollouts changes nothing, to the last bit.

    Args:
        batch: whose returns.
        ridge: ρ > 0.

    Returns:
        V⁰, shape (S,).
    """
    groups, size = batch.group_of_rollout, batch.n_groups
    known = np.ones(len(groups)) if batch.cut is None else (~batch.cut).astype(np.float64)
    others = _others(batch, known)
    tau = batch.time / max(int(np.diff(batch.starts).max(initial=1)), 1)
    curve = np.stack([tau, tau * tau], axis=1)
    if batch.progress is not None:
        curve = np.concatenate([curve, batch.progress], axis=1)
    one, of_step = np.ones_like(tau), others[batch.rollout_of_step]
    x = np.column_stack([one, curve, of_step - 0.5] if size >= FEW_PROBLEMS else [one, curve])
    own = _products(np.column_stack([x, batch.returns]), batch.starts) * known[:, None, None]
    in_group = _sums(own, groups, size)
    k = x.shape[1]
    if size >= FEW_PROBLEMS:
        beyond = _sums(in_group, np.zeros(size, dtype=np.int64), 1) - in_group
        gram = beyond[:, :k, :k] + ridge * np.diag([0.0] + [1.0] * (k - 1))
        # without any other step the intercept is free of everything: leave it at 0
        gram[:, 0, 0] += (gram[:, 0, 0] == 0).astype(float)
        theta = np.linalg.solve(gram, beyond[:, :k, k:])[:, :, 0]
        values = (x * theta[batch.group_of_step]).sum(axis=1)
        return np.clip(values, batch.outcomes.min(), batch.outcomes.max())
    mates = in_group[groups] - own
    gram = mates[:, 1:k, 1:k] + ridge * np.eye(k - 1)
    moment = mates[:, 1:k, k] - others[:, None] * mates[:, 1:k, 0]
    theta = np.linalg.solve(gram, moment[:, :, None])[:, :, 0]
    values = of_step + (curve * theta[batch.rollout_of_step]).sum(axis=1)
    low, high = (bound[batch.group_of_step] for bound in outcome_range(batch))
    return np.clip(values, low, high)


def _others(batch: Batch, known: Floats) -> Floats:
    """Average the known outcomes of each rollout's mates, shape (R,); without one, of all."""
    groups, size = batch.group_of_rollout, batch.n_groups
    outcomes = known * batch.outcomes
    count = np.bincount(groups, known, size)[groups] - known
    total = sum_by(outcomes, groups, size)[groups] - outcomes
    everyone = np.sort(outcomes).sum() / max(known.sum(), 1.0)
    return np.where(count > 0, total / np.maximum(count, 1.0), everyone)


def _products(z: Floats, starts: Ints) -> Floats:
    """Sum z_t z_tᵀ over each rollout's steps, shape (R, k, k)."""
    sums = np.zeros((len(starts) - 1, z.shape[1], z.shape[1]))
    for rollout, (start, end) in enumerate(pairwise(starts.tolist())):
        sums[rollout] = z[start:end].T @ z[start:end]
    return sums


def _sums(parts: Floats, ids: Ints, size: int) -> Floats:
    """Sum matrices by id, every entry as ``sum_by`` does. Shape (size, k, k)."""
    n, k, _ = parts.shape
    flat = parts.reshape(n, k * k)
    order = np.argsort(flat, axis=0, kind="stable")
    cells = ids[order] * (k * k) + np.arange(k * k)
    ascending = np.take_along_axis(flat, order, axis=0)
    sums = np.bincount(cells.ravel(), ascending.ravel(), size * k * k)
    return sums.astype(np.float64, copy=False).reshape(size, k, k)
