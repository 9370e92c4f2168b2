"""MaxRL: the outcome against the group, in units of the success rate.

Source: "Maximum Likelihood Reinforcement Learning" (arXiv 2602.02710), which is for outcomes of 0
and 1.
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads
from rtmc.batch import Batch, mean_by

__all__ = ["MaxRL"]

ROUNDING = 1e-9


class MaxRL(msgspec.Struct, frozen=True):
    """Divide by the success rate: A_i = (R_i − mean R)/mean R; 0 where the mean is not positive.

    Hard problems, where few rollouts pass, count more.
    """

    name: ClassVar[str] = "maxrl"
    reads: ClassVar[Reads] = Reads()

    def __call__(self, batch: Batch) -> Estimate:
        """Return the rollout's advantage at each of its steps."""
        groups = batch.group_of_rollout
        mean = mean_by(batch.outcomes, groups, batch.n_groups)[groups]
        largest = np.zeros(batch.n_groups)
        np.maximum.at(largest, groups, np.abs(batch.outcomes))
        positive = mean > ROUNDING * largest[groups]  # outcomes of both signs may cancel
        of_rollout = np.where(positive, batch.outcomes - mean, 0.0) / np.where(positive, mean, 1.0)
        return Estimate(of_rollout[batch.rollout_of_step])
