"""GRPO with step rewards: the returns-to-go of all steps of a group, standardised.

Source: "RTMC: Step-Level Credit Assignment via Rollout Trees" (arXiv 2604.11037), the baseline
"GRPO + step rewards".
"""

from typing import ClassVar

import msgspec

from rtmc.advantages.base import Estimate, Reads, Std, deviation
from rtmc.batch import Batch, mean_by

__all__ = ["GRPOStep"]


class GRPOStep(msgspec.Struct, frozen=True):
    """Compare each step's return with all of its group: A_t = (G_t − mean G) / (std G + 1e-6).

    The one estimator that counts steps, not rollouts: long rollouts weigh more in mean and
    deviation.

    Attributes:
        std: deviation of the group's returns: population, sample, or none (no division).
    """

    std: Std = "population"

    name: ClassVar[str] = "grpo_step"
    reads: ClassVar[Reads] = Reads()

    def __call__(self, batch: Batch) -> Estimate:
        """Return (G_t − mean G) / (std G + 1e-6) of each step."""
        groups, size = batch.group_of_step, batch.n_groups
        mean = mean_by(batch.returns, groups, size)
        scale = deviation(batch.returns, groups, size, self.std)
        return Estimate((batch.returns - mean[groups]) / scale[groups])
