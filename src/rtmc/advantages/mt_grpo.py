"""MT-GRPO: the outcome's advantage, plus that of the turn's own reward.

Source: "Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit Assignment" (arXiv
2505.11821).

Deviation from the paper, which has two turns: any number, turns of the same index are compared.
"""

from typing import ClassVar

import msgspec

from rtmc.advantages.base import (
    Estimate,
    Reads,
    Std,
    centre_and_scale,
    check_choices,
    check_number,
    outcome_advantages,
)
from rtmc.batch import Batch

__all__ = ["MTGRPO"]


class MTGRPO(msgspec.Struct, frozen=True):
    """Add the standardised reward that the environment gave at the turn.

        A_t = A^E + λ·(r^T_t − mean) / (std + 1e-6), over the group's turns of index t

    Without such rewards it is GRPO.

    Attributes:
        lam: λ ≥ 0.
        std: deviation of both.
    """

    lam: float = 1.0
    std: Std = "population"

    name: ClassVar[str] = "mt_grpo"
    reads: ClassVar[Reads] = Reads(step_rewards=True)

    def __post_init__(self) -> None:
        """Refuse a negative weight and a misspelt choice."""
        check_choices(self)
        check_number(self, "lam", "≥ 0", 0 <= self.lam < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Return the outcome's and the turn's advantage."""
        time = batch.time
        longest = int(time.max(initial=-1)) + 1
        turns = batch.group_of_step * longest + time
        mean, scale = centre_and_scale(
            batch.step_rewards, turns, batch.n_groups * longest, self.std
        )
        own = (batch.step_rewards - mean[turns]) / scale[turns]
        return Estimate(outcome_advantages(batch, self.std) + self.lam * own)
