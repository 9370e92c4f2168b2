"""Graph Bellman: values that satisfy the Bellman equation on the graph of a group's rollouts.

Source: work of 2026 on advantages from trajectory graphs ("Back to the definition", GRAFT).

Deviations from the literature:
1. The end of a rollout has the value 0 and the outcome is part of the last step's reward; with the
   outcome on a sink node, all values carry a factor γ.
2. ``n_prior`` draws V toward the group's mean outcome, as RTMC does.
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import STD_FLOOR, Estimate, Reads, check_number
from rtmc.advantages.bellman import advantages_of, links, solve
from rtmc.batch import Batch, mean_by, moments_by
from rtmc.tree import build

__all__ = ["GraFT"]


class GraFT(msgspec.Struct, frozen=True):
    """Solve V on the graph and take A = r + γV(s′) − V(s).

        V(s) = (Σ over visits of s (r + γV(s′)) + n₀·p) / (visits + n₀)
        A_t  = Σ_{l≥0} (γλ)^l (r_{t+l} + γV(s_{t+l+1}) − V(s_{t+l}))

    p is the group's mean outcome. With full histories as states, distinct last actions, λ = 0 and
    n₀ = 0 it is RTMC without a prior.

    Attributes:
        lam: λ in [0, 1]; 0 = one step.
        n_prior: n₀ ≥ 0.
        z_score: standardise A within each state.
    """

    lam: float = 0.0
    n_prior: float = 2.0
    z_score: bool = False

    name: ClassVar[str] = "graft"
    reads: ClassVar[Reads] = Reads(keys=True)

    def __post_init__(self) -> None:
        """Refuse numbers outside their ranges."""
        check_number(self, "lam", "in [0, 1]", 0 <= self.lam <= 1)
        check_number(self, "n_prior", "≥ 0", 0 <= self.n_prior < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Solve the graph and return A with V of each step's state."""
        tree = build(batch)
        states, size = tree.state_of_step, tree.n_states
        prior = mean_by(batch.outcomes, batch.group_of_rollout, batch.n_groups)
        values = solve(
            links(batch, tree), batch.rewards, batch.discount, self.n_prior,
            prior[tree.group_of_state],
        )  # fmt: skip
        advantages = advantages_of(batch, values[states], self.lam)
        if self.z_score:
            mean, deviation = moments_by(advantages, states, size)
            advantages = (advantages - mean[states]) / (deviation[states] + STD_FLOOR)
        return Estimate(
            advantages,
            state_values=values[states],
            state_visits=np.bincount(states, minlength=size)[states],
        )
