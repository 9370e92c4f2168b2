"""REINFORCE++-baseline: the outcome against its group, whitened over the whole batch.

Source: "REINFORCE++" (arXiv 2501.03262), the variant with a group baseline.

Deviation from the paper: mean and deviation of the batch count rollouts, not tokens, so that long
rollouts do not weigh more.
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import STD_FLOOR, Estimate, Reads
from rtmc.batch import Batch, mean_by, moments_by

__all__ = ["ReinforcePPBaseline"]


class ReinforcePPBaseline(msgspec.Struct, frozen=True):
    """Subtract the group's mean, then whiten.

        x_i = R_i − mean R,  A_i = (x_i − mean x) / (std x + 1e-6)

    mean x and std x are taken over the rollouts of the batch: results depend on what else is in
    it. A batch of one group differs from GRPO by nothing but rounding.
    """

    name: ClassVar[str] = "reinforce_pp_baseline"
    reads: ClassVar[Reads] = Reads(batch=True)

    def __call__(self, batch: Batch) -> Estimate:
        """Return the rollout's advantage at each of its steps."""
        groups = batch.group_of_rollout
        centred = batch.outcomes - mean_by(batch.outcomes, groups, batch.n_groups)[groups]
        mean, deviation = moments_by(centred, np.zeros(len(centred), dtype=np.int64), 1)
        of_rollout = (centred - mean) / (deviation + STD_FLOOR)
        return Estimate(of_rollout[batch.rollout_of_step])
