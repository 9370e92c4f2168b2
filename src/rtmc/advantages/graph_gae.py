"""Graph GAE: a linear prior, corrected on the graph of the group's rollouts, then GAE.

Ours. The prior is fitted on the other problems of the batch and says what a step is worth by how
far it is and how the group fares; the graph says where this state does better or worse than that.
The correction is LSTD(0) around the prior, drawn to zero by n₀ visits; the system is strictly
diagonally dominant, so it always has a solution. Nothing is carried from one update to the next.
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads, check_choices, check_number
from rtmc.advantages.bellman import advantages_of, links, solve
from rtmc.batch import Batch, Floats, Ints, sum_by
from rtmc.returns import outcome_range
from rtmc.tree import build

__all__ = ["GraphGAE"]

FEW_PROBLEMS = 4
MIN_DEVIATION = 1e-8


class GraphGAE(msgspec.Struct, frozen=True):
    """Correct a linear prior on the graph, and take generalised advantages.

        prior    V⁰_t = clip(x_tᵀθ_{−q}, range of outcomes),  x_t = [1, τ, τ², p_{−i} − ½],
                 τ = t over the length of the batch's longest rollout,
                 θ_{−q}: ridge regression of returns on x over the other problems of the batch (the
                 intercept free); with fewer than 4 problems V⁰ = p_{−i} + [τ, τ²]·θ_{−i}, fitted to
                 G − p_{−i} of the group's other rollouts
        offsets  (diag(n + n₀) − γC) b = (Σ_{t: s_t = s} δ⁰_t)_s,  V_t = V⁰_t + b_{s_t}
                 n_s visits, C transition counts, δ⁰_t = r_t + γV⁰_{t+1} − V⁰_t
        A_t    = Σ_{l≥0} (γλ)^l (r_{t+l} + γV_{t+l+1} − V_{t+l}), over the deviation of the batch's
                 advantages in groups of differing outcome; not centred

    p_{−i} is the mean outcome of the group's other rollouts. Every visit counts.

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
    reads: ClassVar[Reads] = Reads(keys=True, levels=("content",), batch=True)

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
        values = self._prior(batch)
        offsets = solve(
            links(batch, tree), advantages_of(batch, values, 0.0), batch.discount, self.n_prior,
            np.zeros(tree.n_states),
        )  # fmt: skip
        values = values + offsets[states]
        advantages = advantages_of(batch, values, self.lam)
        if self.pool_actions:
            cells = tree.cell_of_step
            total = sum_by(advantages, cells, tree.n_cells)
            advantages = (total / np.bincount(cells, minlength=tree.n_cells))[cells]
        if self.scale:
            low, high = outcome_range(batch)
            live = advantages[(high > low)[batch.group_of_step]]
            deviation = live.std() if len(live) else 0.0
            if deviation > MIN_DEVIATION:
                advantages = advantages / deviation
        return Estimate(advantages, state_values=values)

    def _prior(self, batch: Batch) -> Floats:
        """V⁰ of each step."""
        groups, size = batch.group_of_rollout, batch.n_groups
        count = np.bincount(groups, minlength=size)
        total = sum_by(batch.outcomes, groups, size)
        everyone = batch.outcomes.mean() if len(batch.outcomes) else 0.0
        others = np.where(
            count[groups] > 1,
            (total[groups] - batch.outcomes) / np.maximum(count - 1, 1)[groups],
            everyone,
        )[batch.rollout_of_step]
        tau = batch.time / max(int(np.diff(batch.starts).max(initial=1)), 1)
        curve = np.stack([tau, tau * tau], axis=1)
        if size >= FEW_PROBLEMS:
            x = np.column_stack([np.ones_like(tau), curve, others - 0.5])
            fitted = self._left_out(x, batch.returns, batch.group_of_step, size, free=1)
            low, high = batch.outcomes.min(), batch.outcomes.max()
            return np.clip(fitted, low, high)
        # every rollout is judged by the others of its group alone
        values = np.zeros(len(tau))
        low, high = outcome_range(batch)
        for rollout in range(len(batch.outcomes)):
            own = batch.rollout_of_step == rollout
            mates = (batch.group_of_step == groups[rollout]) & ~own
            if not own.any():
                continue
            mean = others[own][0]
            theta = _ridge(curve[mates], batch.returns[mates] - mean, self.ridge)
            bounds = low[groups[rollout]], high[groups[rollout]]
            values[own] = np.clip(mean + curve[own] @ theta, *bounds)
        return values

    def _left_out(self, x: Floats, y: Floats, ids: Ints, size: int, free: int) -> Floats:
        """Fit by the rows of all other ids, and predict each row."""
        k = x.shape[1]
        gram = np.zeros((size, k, k))
        moment = np.zeros((size, k))
        np.add.at(gram, ids, x[:, :, None] * x[:, None, :])
        np.add.at(moment, ids, x * y[:, None])
        penalty = np.diag([0.0] * free + [self.ridge] * (k - free))
        gram = gram.sum(axis=0) - gram + penalty
        moment = moment.sum(axis=0) - moment
        # without any other step the intercept is free of everything: leave it at 0
        gram[:, 0, 0] += (gram[:, 0, 0] == 0).astype(float)
        theta = np.linalg.solve(gram, moment[:, :, None])[:, :, 0]
        return (x * theta[ids]).sum(axis=1)


def _ridge(x: Floats, y: Floats, penalty: float) -> Floats:
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)
