"""Dr. GRPO: the outcome against the group, without the deviation.

Source: "Understanding R1-Zero-Like Training: A Critical Perspective" (arXiv 2503.20783).
"""

from typing import ClassVar

import msgspec

from rtmc.advantages.base import Estimate, Reads
from rtmc.batch import Batch, mean_by

__all__ = ["DrGRPO"]


class DrGRPO(msgspec.Struct, frozen=True):
    """Compare each rollout's outcome with its group: A_i = R_i − mean R.

    A group of one gives 0.
    """

    name: ClassVar[str] = "dr_grpo"
    reads: ClassVar[Reads] = Reads()

    def __call__(self, batch: Batch) -> Estimate:
        """Return the rollout's advantage at each of its steps."""
        groups = batch.group_of_rollout
        of_rollout = batch.outcomes - mean_by(batch.outcomes, groups, batch.n_groups)[groups]
        return Estimate(of_rollout[batch.rollout_of_step])
