"""Values on the graph of rollouts, and advantages from them: what several estimators share."""

from typing import NamedTuple

import numpy as np

from rtmc.batch import Batch, Floats, Ints, sum_by
from rtmc.returns import discounted_returns, outcome_range
from rtmc.tree import END, Tree, next_states

__all__ = ["Links", "advantages_of", "links", "pooled", "scaled", "solve"]

MIN_DEVIATION = 1e-8
CLOSE = 1e-14
SWEEPS = 400
"""Enough where rollouts seldom come back to a state; what is left is solved as a linear system."""


class Links(NamedTuple):
    """The graph: what each step's state is followed by.

    Attributes:
        states: shape (S,), in [0, size).
        following: shape (S,), the next state, or ``END``.
        group_of_state: shape (size,); no edge leaves a group.
    """

    states: Ints
    following: Ints
    group_of_state: Ints


def links(batch: Batch, tree: Tree) -> Links:
    """Link the states of a tree; where a rollout was cut off, its last state follows itself."""
    states = tree.state_of_step
    following = next_states(batch, states)
    cut = _cut_ends(batch)
    following[cut] = states[cut]
    return Links(states, following, tree.group_of_state)


def solve(graph: Links, rewards: Floats, discount: float, n_prior: float, prior: Floats) -> Floats:
    """Solve V(s) = (Σ over visits of s (r + γV(s′)) + n₀·p(s)) / (visits + n₀).

    The end has the value 0. All groups are swept at once; those in which values still change by
    more than 1e-14 after 400 sweeps (rollouts that run in circles) are solved as linear systems:
    their matrix is weakly diagonally dominant, and every rollout ends, so that there is one
    solution.

    Args:
        graph: the states and what follows them.
        rewards: r of each step, shape (S,).
        discount: γ.
        n_prior: n₀.
        prior: p of each state, shape (size,).

    Returns:
        V, shape (size,).
    """
    groups, size = graph.group_of_state, len(graph.group_of_state)
    # the same sums whatever the order of the input
    order = np.lexsort((rewards, graph.following, graph.states))
    rewards, states, following = rewards[order], graph.states[order], graph.following[order]
    goes_on = following != END
    sources, targets = states[goes_on], following[goes_on]
    weight = np.bincount(states, minlength=size) + n_prior
    fixed = np.bincount(states, rewards, size) + n_prior * prior
    values = fixed / weight
    moves = np.ones(int(groups.max(initial=-1)) + 1, dtype=bool)
    for _ in range(SWEEPS):
        updated = (fixed + discount * np.bincount(sources, values[targets], size)) / weight
        # a group that has settled rests: groups stay apart
        change = np.where(moves[groups], np.abs(updated - values), 0.0)
        values = np.where(change > 0, updated, values)
        moves = np.zeros_like(moves)
        moves[groups[change > CLOSE]] = True
        if not moves.any():
            return values
    for group in np.flatnonzero(moves):
        here = np.flatnonzero(groups == group)
        place = np.full(size, -1)
        place[here] = np.arange(len(here))
        matrix = np.diag(weight[here])
        inside = place[sources] >= 0
        np.subtract.at(matrix, (place[sources[inside]], place[targets[inside]]), discount)
        values[here] = np.linalg.solve(matrix, fixed[here])
    return values


def advantages_of(batch: Batch, values: Floats, lam: float) -> Floats:
    """Compute A_t = Σ_{l≥0} (γλ)^l δ_{t+l}, δ_t = r_t + γV_{t+1} − V_t, V = 0 after the last step.

    λ = 0 gives δ, λ = 1 gives G_t − V_t. A rollout that was cut off has no outcome, and stays where
    it was: after its last step V is that of its last state.

    Args:
        batch: whose rewards and discount.
        values: V_t of each step's state, shape (S,).
        lam: λ in [0, 1].
    """
    ahead = np.append(values[1:], 0.0)[: len(values)]
    ahead[batch.starts[1:][np.diff(batch.starts) > 0] - 1] = 0.0
    rewards, cut = batch.rewards, _cut_ends(batch)
    if len(cut):
        ahead[cut] = values[cut]
        rewards = rewards.copy()
        rewards[cut] -= batch.outcomes[batch.rollout_of_step[cut]]
    deltas = rewards + batch.discount * ahead - values
    return discounted_returns(deltas, batch.starts, batch.discount * lam) if lam else deltas


def _cut_ends(batch: Batch) -> Ints:
    """Find the last steps of rollouts that were cut off."""
    if batch.cut is None:
        return np.zeros(0, dtype=np.int64)
    return batch.starts[1:][batch.cut & (np.diff(batch.starts) > 0)] - 1


def pooled(advantages: Floats, tree: Tree) -> Floats:
    """Give each step the mean over all visits of its state and action, shape (S,)."""
    cells = tree.cell_of_step
    total = sum_by(advantages, cells, tree.n_cells)
    return (total / np.bincount(cells, minlength=tree.n_cells))[cells]


def scaled(batch: Batch, advantages: Floats) -> Floats:
    """Divide by the deviation over the groups of differing outcome, without centring."""
    low, high = outcome_range(batch)
    live = advantages[(high > low)[batch.group_of_step]]
    deviation = live.std() if len(live) else 0.0
    return advantages / deviation if deviation > MIN_DEVIATION else advantages
