"""Graph GAE: a linear prior, corrected on the graph of the group's rollouts, then GAE.

Ours. The prior is fitted on the other problems of the batch; the graph says where this state does
better or worse than that.
The correction is LSTD(0) around the prior, drawn to zero by n₀ visits; the system is strictly
diagonally dominant, so it always has a solution. Nothing is carried from one update to the next.
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads, check_choices, check_number
from rtmc.advantages.bellman import advantages_of, links, pooled, scaled, solve
from rtmc.advantages.linear_prior import linear_prior
from rtmc.batch import Batch
from rtmc.tree import build

__all__ = ["GraphGAE"]


class GraphGAE(msgspec.Struct, frozen=True):
    """Correct a linear prior on the graph, and take generalised advantages.

        prior    V⁰ of ``rtmc.advantages.linear_prior``
        offsets  (diag(n + n₀) − γC) b = (Σ_{t: s_t = s} δ⁰_t)_s,  V_t = V⁰_t + b_{s_t}
                 n_s visits, C transition counts, δ⁰_t = r_t + γV⁰_{t+1} − V⁰_t
        A_t    = Σ_{l≥0} (γλ)^l (r_{t+l} + γV_{t+l+1} − V_{t+l}), over the deviation of the batch's
                 advantages in groups of differing outcome; not centred

    Every visit counts. A rollout that a limit cut off, and that votes without credit, is no
    failure: its last state follows itself, and its outcome is in nothing.

    Attributes:
        lam: λ in [0, 1].
        n_prior: n₀ > 0.
        ridge: ρ > 0.
        pool_actions: give each step the mean over the visits of its state and action.
        scale: divide by the batch's deviation.
        uniform: ``keep`` leaves groups of one outcome the small advantages that the prior gives
            them; ``zero`` gives them none, as every other estimator does.
    """

    lam: float = 0.5
    n_prior: float = 2.0
    ridge: float = 5.0
    pool_actions: bool = False
    scale: bool = True
    uniform: Literal["zero", "keep"] = "zero"

    name: ClassVar[str] = "graph_gae"
    reads: ClassVar[Reads] = Reads(
        keys=True, levels=("content",), progress=True, cut=True, batch=True
    )

    def __post_init__(self) -> None:
        """Refuse numbers outside their ranges and a misspelt choice."""
        check_choices(self)
        check_number(self, "lam", "in [0, 1]", 0 <= self.lam <= 1)
        check_number(self, "n_prior", "> 0", 0 < self.n_prior < float("inf"))
        check_number(self, "ridge", "> 0", 0 < self.ridge < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Return A, with V of each step."""
        tree = build(batch)
        states = tree.state_of_step
        values = linear_prior(batch, self.ridge)
        offsets = solve(
            links(batch, tree), advantages_of(batch, values, 0.0), batch.discount, self.n_prior,
            np.zeros(tree.n_states),
        )  # fmt: skip
        values = values + offsets[states]
        advantages = advantages_of(batch, values, self.lam)
        if self.pool_actions:
            advantages = pooled(advantages, tree)
        if self.scale:
            advantages = scaled(batch, advantages)
        return Estimate(advantages, state_values=values)
