"""TEMPO: GRPO, corrected where the prefix tree branches.

Source: "Exploiting Tree Structure for Credit Assignment in RL Training of LLMs" (arXiv 2509.18314).

Deviation from the paper: nodes of the prefix tree are steps, not tokens.
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads, Std, check_choices, outcome_advantages
from rtmc.batch import Batch, mean_by
from rtmc.tree import build

__all__ = ["TEMPO"]


class TEMPO(msgspec.Struct, frozen=True):
    """Add the change of the success rate at branching nodes of the prefix tree.

        A_t = GRPO + (r_t + V(s_{t+1}) − V(s_t)) where s_t has several actions, else GRPO

    A state is the full history (level ``full``), V(s) the mean outcome of the rollouts that share
    it, V after the end 0, and r the outcome at the last step.

    Attributes:
        std: deviation of GRPO.
    """

    std: Std = "population"

    name: ClassVar[str] = "tempo"
    reads: ClassVar[Reads] = Reads(keys=True, levels=("full",))

    def __post_init__(self) -> None:
        """Refuse a misspelt choice."""
        check_choices(self)

    def __call__(self, batch: Batch) -> Estimate:
        """Return GRPO and the correction."""
        tree = build(batch)
        states, rollouts = tree.state_of_step, batch.rollout_of_step
        first = tree.first_in_state
        outcome = batch.outcomes[rollouts]
        values = mean_by(outcome[first], states[first], tree.n_states)[states]
        last = np.arange(len(rollouts)) == batch.starts[rollouts + 1] - 1
        ahead = np.append(values[1:], 0.0)[: len(values)]
        change = np.where(last, outcome, ahead) - values
        branches = np.bincount(tree.state_of_cell, minlength=tree.n_states)[states] > 1
        own = outcome_advantages(batch, self.std)
        return Estimate(own + np.where(branches, change, 0.0), state_values=values)
