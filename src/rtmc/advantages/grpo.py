"""GRPO: one advantage for every step of a rollout.

Source: "DeepSeekMath" (arXiv 2402.03300), §4.1.2; std none is Dr. GRPO (arXiv 2503.20783).
"""

from typing import ClassVar

import msgspec

from rtmc.advantages.base import Estimate, Reads, Std, centre_and_scale, check_choices
from rtmc.batch import Batch

__all__ = ["GRPO"]


class GRPO(msgspec.Struct, frozen=True):
    """Compare each rollout's outcome with its group: A_i = (R_i − mean R) / (std R + 1e-6).

    Mean and deviation count rollouts, however many steps each has.

    Attributes:
        std: deviation of the group's outcomes: population, sample, or none (no division).
    """

    std: Std = "population"

    name: ClassVar[str] = "grpo"
    reads: ClassVar[Reads] = Reads()

    def __post_init__(self) -> None:
        """Refuse a misspelt choice."""
        check_choices(self)

    def __call__(self, batch: Batch) -> Estimate:
        """Return the rollout's advantage at each of its steps."""
        groups, size = batch.group_of_rollout, batch.n_groups
        mean, scale = centre_and_scale(batch.outcomes, groups, size, self.std)
        of_rollout = (batch.outcomes - mean[groups]) / scale[groups]
        return Estimate(of_rollout[batch.rollout_of_step])
