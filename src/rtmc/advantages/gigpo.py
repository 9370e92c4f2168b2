"""GiGPO: the outcome's advantage, plus the return's within the state.

Source: "Group-in-Group Policy Optimization for LLM Agent Training" (arXiv 2505.10978).
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from rtmc.advantages.base import (
    STD_FLOOR,
    Estimate,
    Reads,
    check_choices,
    check_number,
    outcome_advantages,
)
from rtmc.batch import Batch, moments_by
from rtmc.tree import build

__all__ = ["GiGPO"]


class GiGPO(msgspec.Struct, frozen=True):
    """Add a step's advantage among all visits of its state to the rollout's.

        A_t  = A^E + ω·A^S
        A^E  = (R − mean R) / F
        A^S  = (G_t − mean of G over all visits of the state) / F

    F = std + 1e-6 of the same values, or 1. Every visit counts, repeats too; a state visited once
    gives A^S = 0.

    Attributes:
        omega: ω ≥ 0.
        divisor: F: ``std`` or ``none``.
    """

    omega: float = 1.0
    divisor: Literal["std", "none"] = "std"

    name: ClassVar[str] = "gigpo"
    reads: ClassVar[Reads] = Reads(keys=True)

    def __post_init__(self) -> None:
        """Refuse a negative weight and a misspelt choice."""
        check_choices(self)
        check_number(self, "omega", "≥ 0", 0 <= self.omega < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Return A^E + ω·A^S of each step."""
        tree = build(batch)
        states = tree.state_of_step
        mean, deviation = moments_by(batch.returns, states, tree.n_states)
        of_step = batch.returns - mean[states]
        if self.divisor == "std":
            of_step = of_step / (deviation + STD_FLOOR)[states]
        alone = np.bincount(states, minlength=tree.n_states)[states] == 1
        of_step[alone] = 0.0
        std = "population" if self.divisor == "std" else "none"
        return Estimate(outcome_advantages(batch, std) + self.omega * of_step)
