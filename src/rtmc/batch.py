"""Lay out the rollouts of many groups as flat arrays: what every estimator reads.

Ragged data stay flat: R rollouts with S steps in all, step after step, rollout after rollout,
group after group. ``rollout_of_step`` and ``group_of_rollout`` say what belongs where.

Sums over groups, states and cells are taken in the order of the values, not of the input, so that
permuting rollouts or renaming them changes no result, to the last bit.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "Floats", "Ints", "Steps", "mean_by", "moments_by", "sum_by"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps of rollouts and their keys.

    Attributes:
        group_of_rollout: shape (R,), ascending from 0.
        rollout_of_step: shape (S,), ascending; a rollout without steps has none.
        starts: shape (R + 1,), rollout i has the steps ``starts[i] … starts[i + 1] − 1``.
        states: shape (S, L), ids of the states in which each step acted, one column a level;
            never equal across groups.
        actions: shape (S, L), ids of the actions.
    """

    group_of_rollout: Ints
    rollout_of_step: Ints
    starts: Ints
    states: Ints
    actions: Ints

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group_of_rollout[-1]) + 1 if len(self.group_of_rollout) else 0

    @property
    def group_of_step(self) -> Ints:
        """Group of each step, shape (S,)."""
        return self.group_of_rollout[self.rollout_of_step]

    @property
    def time(self) -> Ints:
        """Index of each step in its rollout, shape (S,)."""
        return np.arange(len(self.rollout_of_step)) - self.starts[self.rollout_of_step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Steps):
    """The steps of the rollouts that vote in the statistics, with their rewards.

    Attributes:
        outcomes: shape (R,), undiscounted outcome R of each rollout.
        rewards: shape (S,), r_t with the outcome in the last step and the validation bonus.
        returns: shape (S,), G_t = Σ_{l≥0} γ^l r_{t+l}.
        step_rewards: shape (S,), what the environment gave at the step itself.
        discount: γ, in (0, 1].
        observations: shape (S,), ids of what the agent saw before each step, never equal across
            groups; None where the estimator does not read them.
        progress: shape (S, F), flags of how the work stands before each step, which mean the same
            in all problems; None where nobody reads or offers them.
        cut: shape (R,), True for a rollout that a limit cut off and that votes without credit: its
            outcome, which is in ``rewards`` as any other, is only what a failure would have got;
            None where the estimator takes it for a failure.
    """

    outcomes: Floats
    rewards: Floats
    returns: Floats
    step_rewards: Floats
    discount: float
    observations: Ints | None = None
    progress: Floats | None = None
    cut: NDArray[np.bool_] | None = None


def sum_by(values: Floats, ids: Ints, size: int) -> Floats:
    """Sum values by id, each sum in ascending order of its values.

    Args:
        values: shape (n,).
        ids: shape (n,), in [0, size).
        size: number of sums.

    Returns:
        Sums, shape (size,); 0 where an id does not occur.
    """
    order = np.argsort(values, kind="stable")
    return np.bincount(ids[order], values[order], size).astype(np.float64, copy=False)


def mean_by(values: Floats, ids: Ints, size: int) -> Floats:
    """Average values by id as ``sum_by`` sums them; NaN where an id does not occur."""
    with np.errstate(invalid="ignore"):
        return sum_by(values, ids, size) / np.bincount(ids, minlength=size)


def moments_by(values: Floats, ids: Ints, size: int, sample: bool = False) -> tuple[Floats, Floats]:
    """Take mean and population (or sample) standard deviation of values by id.

    Args:
        values: shape (n,).
        ids: shape (n,), in [0, size).
        size: number of ids.
        sample: divide by n − 1 instead of n.

    Returns:
        Means and deviations, shape (size,) each; NaN where an id does not occur. The deviation of
        a single value is 0.
    """
    order = np.argsort(values, kind="stable")
    values, ids = values[order], ids[order]
    count = np.bincount(ids, minlength=size)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(ids, values, size) / count
        squares = np.bincount(ids, (values - mean[ids]) ** 2, size)
        return mean, np.sqrt(squares / (np.maximum(count - 1, 1) if sample else count))
