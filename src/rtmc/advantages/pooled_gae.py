"""Pooled GAE: values backed off from fine to coarse states, leaving the own rollout out, then GAE.

Ours. A fine state that few rollouts reach takes its value from the coarser one, that from the start
of the episode; a step that meets nobody adds nothing.
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads, check_number
from rtmc.advantages.bellman import advantages_of
from rtmc.batch import Batch, Floats, sum_by
from rtmc.returns import first_returns, outcome_range
from rtmc.tree import build

__all__ = ["PooledGAE"]


class PooledGAE(msgspec.Struct, frozen=True):
    """Back values off along the chain content → paper, then take generalised advantages.

        V_0(t) = clip(mean_{j≠i} G_0(j) / γ^t, smallest … largest outcome of the group)
        V_l(s) = (N_{−i}(s_l)·mean_{−i} G(s_l) + n₀·V_{l−1}) / (N_{−i}(s_l) + n₀)
        A_t    = Σ_{l≥0} (γλ)^l (r_{t+l} + γV_{t+l+1} − V_{t+l})

    N_{−i} and mean_{−i} are of the other rollouts that visit s_l, by their returns at its first
    visit. V_0 is consistent with the discount: γV_0(t + 1) = V_0(t), so that an unshared step adds
    δ = 0, as long as the clip does not bind. A group of one has nobody to compare with: A = 0.

    Attributes:
        lam: λ in [0, 1].
        n_prior: n₀ > 0.
    """

    lam: float = 0.5
    n_prior: float = 2.0

    name: ClassVar[str] = "pooled_gae"
    reads: ClassVar[Reads] = Reads(keys=True, levels=("content", "paper"))

    def __post_init__(self) -> None:
        """Refuse numbers outside their ranges."""
        check_number(self, "lam", "in [0, 1]", 0 <= self.lam <= 1)
        check_number(self, "n_prior", "> 0", 0 < self.n_prior < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Return A, with V of the finest level."""
        values = self._start(batch)
        for level in range(batch.states.shape[1]):
            values = self._level(batch, level, values)
        advantages = advantages_of(batch, values, self.lam)
        alone = np.bincount(batch.group_of_rollout, minlength=batch.n_groups) == 1
        advantages[alone[batch.group_of_step]] = 0.0
        return Estimate(advantages, state_values=values)

    @staticmethod
    def _start(batch: Batch) -> Floats:
        """V_0 of each step."""
        groups, size = batch.group_of_rollout, batch.n_groups
        start = first_returns(batch)
        count = np.bincount(groups, minlength=size)
        others = (sum_by(start, groups, size)[groups] - start) / np.maximum(count - 1, 1)[groups]
        low, high = (bound[batch.group_of_step] for bound in outcome_range(batch))
        of_step = others[batch.rollout_of_step]
        with np.errstate(over="ignore", invalid="ignore"):
            carried = np.where(of_step == 0, 0.0, of_step * batch.discount**-batch.time)
        return np.clip(carried, low, high)

    def _level(self, batch: Batch, level: int, coarser: Floats) -> Floats:
        """V_l of each step, from V_{l−1}."""
        tree = build(batch, level)
        first, states = tree.first_in_state, tree.state_of_step
        total = sum_by(batch.returns[first], states[first], tree.n_states)[states]
        count = np.bincount(states[first], minlength=tree.n_states)[states] - 1
        own = batch.returns[tree.first_step_in_state(batch)]
        return (total - own + self.n_prior * coarser) / (count + self.n_prior)
