"""RLOO: the outcome against the mean of the other rollouts.

Source: "Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in
LLMs" (arXiv 2402.14740).
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads
from rtmc.batch import Batch, mean_by

__all__ = ["RLOO"]


class RLOO(msgspec.Struct, frozen=True):
    """Leave the rollout out of its own baseline: A_i = N/(N − 1)·(R_i − mean R).

    The same as R_i minus the mean of the others. A group of one gives 0.
    """

    name: ClassVar[str] = "rloo"
    reads: ClassVar[Reads] = Reads()

    def __call__(self, batch: Batch) -> Estimate:
        """Return the rollout's advantage at each of its steps."""
        groups, size = batch.group_of_rollout, batch.n_groups
        count = np.bincount(groups, minlength=size)
        centred = batch.outcomes - mean_by(batch.outcomes, groups, size)[groups]
        of_rollout = centred * (count / np.maximum(count - 1, 1))[groups]
        return Estimate(of_rollout[batch.rollout_of_step])
