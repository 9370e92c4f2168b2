"""Chain GAE: a linear prior, corrected on the graph from coarse to fine, then GAE.

Ours. Each level of the chain content → coarse → paper says where its states do better or worse than
the level before. A coarse state collects the evidence of many rollouts; a fine one moves its value
only as far as its own visits outweigh an n₀ that doubles from level to level. Each correction is
LSTD(0) around what is known so far; the system is strictly diagonally dominant, so it always has a
solution. Nothing is carried from one update to the next.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads, check_choices, check_number
from rtmc.advantages.bellman import advantages_of, links, pooled, scaled, solve
from rtmc.advantages.linear_prior import linear_prior
from rtmc.batch import Batch
from rtmc.tree import build

__all__ = ["ChainGAE"]


class ChainGAE(msgspec.Struct, frozen=True):
    """Correct a linear prior along a chain of levels, and take generalised advantages.

        V⁰_t of ``rtmc.advantages.linear_prior``; then for the levels l = 0, 1, 2 of the chain
        (diag(n + 2^l·n₀) − γC) b = (Σ_{t: s_t = s} δ_t)_s,  V_t ← V_t + b_{s_t}
        n_s visits, C transition counts at level l, δ_t = r_t + γV_{t+1} − V_t
        A_t = Σ_{k≥0} (γλ)^k (r_{t+k} + γV_{t+k+1} − V_{t+k}), averaged over the visits of a state
        and action at the finest level, over the deviation of the batch's advantages in groups of
        differing outcome; not centred

    Every visit counts. A group of one has nobody to compare with: A = 0. In a batch of fewer than 4
    problems the prior knows only the group itself. A rollout that a limit cut off, and that votes
    without credit, is no failure: its last state follows itself, and its outcome is in nothing.
    Where a signer has one level alone, that is the whole chain.

    Attributes:
        lam: λ in [0, 1].
        n_prior: n₀ > 0.
        ridge: ρ > 0 of the prior.
        pool_actions: give each step the mean over the visits of its state and action.
        scale: divide by the batch's deviation.
        uniform: ``keep`` leaves groups of one outcome the small advantages that other problems
            teach; ``zero`` gives them none, as every other estimator does.
    """

    lam: float = 0.5
    n_prior: float = 1.0
    ridge: float = 20.0
    pool_actions: bool = True
    scale: bool = True
    uniform: Literal["zero", "keep"] = "keep"

    name: ClassVar[str] = "chain_gae"
    reads: ClassVar[Reads] = Reads(
        keys=True, levels=("content", "coarse", "paper"), progress=True, cut=True, batch=True
    )

    def __post_init__(self) -> None:
        """Refuse numbers outside their ranges and a misspelt choice."""
        check_choices(self)
        check_number(self, "lam", "in [0, 1]", 0 <= self.lam <= 1)
        check_number(self, "n_prior", "> 0", 0 < self.n_prior < float("inf"))
        check_number(self, "ridge", "> 0", 0 < self.ridge < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Return A, with V of each step."""
        values = linear_prior(batch, self.ridge)
        for finer, level in enumerate(self._levels(batch)):
            tree = build(batch, level)
            offsets = solve(
                links(batch, tree), advantages_of(batch, values, 0.0), batch.discount,
                self.n_prior * 2**finer, np.zeros(tree.n_states),
            )  # fmt: skip
            values = values + offsets[tree.state_of_step]
        advantages = advantages_of(batch, values, self.lam)
        if self.pool_actions:
            advantages = pooled(advantages, tree)
        if self.scale:
            advantages = scaled(batch, advantages)
        return Estimate(advantages, state_values=values)

    def _levels(self, batch: Batch) -> Sequence[int]:
        """Say which levels to go through: all that there are."""
        return range(batch.states.shape[1])
