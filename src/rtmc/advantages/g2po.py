"""G2PO: the outcome's advantage, plus the gain in value from state to state.

Source: "Group-Graph Policy Optimization for Long-Horizon Agentic Reinforcement Learning" (arXiv
2606.22995).
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import (
    STD_FLOOR,
    Estimate,
    Reads,
    Std,
    check_choices,
    check_number,
    outcome_advantages,
)
from rtmc.batch import Batch, mean_by, moments_by
from rtmc.tree import build

__all__ = ["G2PO"]


class G2PO(msgspec.Struct, frozen=True):
    """Add the standardised gain of each step to the rollout's advantage.

        V(s) = mean over all visits of s of γ^{T−t}·R, T the rollout's last step
        x_t  = V(s_{t+1}) − V(s_t);  R − V(s_T) at the last step
        A_t  = A^E + ω·(x_t − mean x) / (std x + 1e-6), over the steps of the problem

    Attributes:
        omega: ω ≥ 0.
        std: deviation of A^E.
    """

    omega: float = 1.0
    std: Std = "population"

    name: ClassVar[str] = "g2po"
    reads: ClassVar[Reads] = Reads(keys=True)

    def __post_init__(self) -> None:
        """Refuse a negative weight and a misspelt choice."""
        check_choices(self)
        check_number(self, "omega", "≥ 0", 0 <= self.omega < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Return A^E + ω·norm(gain) of each step."""
        tree = build(batch)
        states, rollouts = tree.state_of_step, batch.rollout_of_step
        to_go = batch.starts[rollouts + 1] - 1 - np.arange(len(rollouts))
        outcome = batch.outcomes[rollouts]
        values = mean_by(batch.discount**to_go * outcome, states, tree.n_states)[states]
        last = to_go == 0
        ahead = np.append(values[1:], 0.0)[: len(values)]
        gain = np.where(last, outcome, ahead) - values
        groups = batch.group_of_step
        mean, deviation = moments_by(gain, groups, batch.n_groups)
        gain = (gain - mean[groups]) / (deviation[groups] + STD_FLOOR)
        return Estimate(
            outcome_advantages(batch, self.std) + self.omega * gain, state_values=values
        )
