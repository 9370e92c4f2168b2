"""GRPO with step rewards: the returns-to-go of all steps of a group, standardised.

Source: "RTMC: Step-Level Credit Assignment via Rollout Trees" (arXiv 2604.11037), the baseline
"GRPO + step rewards".
"""

from typing import ClassVar

import msgspec

from rtmc.advantages.base import Estimate, Reads, Std, centre_and_scale, check_choices
from rtmc.batch import Batch

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

    def __post_init__(self) -> None:
        """Refuse a misspelt choice."""
        check_choices(self)

    def __call__(self, batch: Batch) -> Estimate:
        """Return (G_t − mean G) / (std G + 1e-6) of each step."""
        groups, size = batch.group_of_step, batch.n_groups
        mean, scale = centre_and_scale(batch.returns, groups, size, self.std)
        return Estimate((batch.returns - mean[groups]) / scale[groups])
