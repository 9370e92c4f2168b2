"""A first guess of every state's value: a ridge regression over the other problems of the batch.

It says what a step is worth by how far it is, how the work stands and how the group fares. Its few
coefficients are all that problems share; states are never pooled across problems. Nothing is
carried from one update to the next.
"""

import numpy as np

from rtmc.batch import Batch, Floats, Ints, sum_by
from rtmc.returns import outcome_range

__all__ = ["linear_prior"]

FEW_PROBLEMS = 4


def linear_prior(batch: Batch, ridge: float) -> Floats:
    """Fit V⁰ of each step, without the returns of its own problem.

        V⁰_t = clip(x_tᵀθ_{−q}, range of the batch's outcomes),  x_t = [1, τ, τ², f_t, p_{−i} − ½]

    τ is t over the length of the batch's longest rollout, f_t are the progress flags where there
    are any, p_{−i} is the mean outcome of the group's other rollouts (in a group of one, of all),
    and θ_{−q} the ridge regression of returns on x over the other problems, its intercept free.
    With fewer than 4 problems θ is fitted to what is left of returns after p, without the
    step's own rollout: V⁰_t = clip(p_{−i} + [τ, τ², f_t]·θ_{−i}, range of the group's outcomes).

    Args:
        batch: whose returns.
        ridge: ρ > 0.

    Returns:
        V⁰, shape (S,).
    """
    groups, size = batch.group_of_rollout, batch.n_groups
    count = np.bincount(groups, minlength=size)
    total = sum_by(batch.outcomes, groups, size)
    everyone = batch.outcomes.mean() if len(batch.outcomes) else 0.0
    others = np.where(
        count[groups] > 1,
        (total[groups] - batch.outcomes) / np.maximum(count - 1, 1)[groups],
        everyone,
    )[batch.rollout_of_step]
    tau = batch.time / max(int(np.diff(batch.starts).max(initial=1)), 1)
    curve = np.stack([tau, tau * tau], axis=1)
    if batch.progress is not None:
        curve = np.concatenate([curve, batch.progress], axis=1)
    if size >= FEW_PROBLEMS:
        x = np.column_stack([np.ones_like(tau), curve, others - 0.5])
        fitted = _left_out(x, batch.returns, batch.group_of_step, size, ridge, free=1)
        return np.clip(fitted, batch.outcomes.min(), batch.outcomes.max())
    return _by_the_others(batch, curve, others, ridge)


def _by_the_others(batch: Batch, curve: Floats, others: Floats, ridge: float) -> Floats:
    """Judge each rollout by the others of its group alone."""
    values = np.zeros(len(others))
    low, high = (bound[batch.group_of_step] for bound in outcome_range(batch))
    for rollout in range(len(batch.outcomes)):
        own = batch.rollout_of_step == rollout
        mates = (batch.group_of_step == batch.group_of_rollout[rollout]) & ~own
        if own.any():
            mean = others[own][0]
            gram = curve[mates].T @ curve[mates] + ridge * np.eye(curve.shape[1])
            theta = np.linalg.solve(gram, curve[mates].T @ (batch.returns[mates] - mean))
            values[own] = mean + curve[own] @ theta
    return np.clip(values, low, high)


def _left_out(x: Floats, y: Floats, ids: Ints, size: int, ridge: float, free: int) -> Floats:
    """Fit by the rows of all other ids, and predict each row."""
    k = x.shape[1]
    starts = np.flatnonzero(np.diff(ids, prepend=-1))  # rows lie id by id; some ids have none
    gram, moment = np.zeros((size, k, k)), np.zeros((size, k))
    for start, end in zip(starts, np.append(starts[1:], len(ids)), strict=True):
        gram[ids[start]] = x[start:end].T @ x[start:end]
        moment[ids[start]] = x[start:end].T @ y[start:end]
    penalty = np.diag([0.0] * free + [ridge] * (k - free))
    gram = gram.sum(axis=0) - gram + penalty
    moment = moment.sum(axis=0) - moment
    # without any other step the intercept is free of everything: leave it at 0
    gram[:, 0, 0] += (gram[:, 0, 0] == 0).astype(float)
    theta = np.linalg.solve(gram, moment[:, :, None])[:, :, 0]
    return (x * theta[ids]).sum(axis=1)
