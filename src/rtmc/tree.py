"""Merge the rollouts of each group into a tree: states, cells (state, action), and first visits.

Nothing is stored as nodes and pointers: a state is an id, a cell is a pair of ids, and every
statistic of method §2 is a sum over steps by such an id.
"""

from dataclasses import dataclass

import numpy as np

from rtmc.batch import Floats, Ints, Steps, mean_by, sum_by

__all__ = ["END", "Tree", "build", "next_states"]

END = -1
"""The state after a rollout's last step."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Which step visits which state and cell, and which visit is a rollout's first.

    Attributes:
        state_of_step: shape (S,), in [0, number of states).
        cell_of_step: shape (S,), in [0, number of cells); a cell is a pair (s, a).
        state_of_cell: shape (number of cells,).
        group_of_state: shape (number of states,).
        first_in_cell: shape (S,), True at a rollout's first visit of the cell.
        first_in_state: shape (S,), True at a rollout's first visit of the state.
        visits: N(s,a), shape (number of cells,): rollouts that contain the cell.
        state_visits: N(s) = Σ_a N(s,a), shape (number of states,).
    """

    state_of_step: Ints
    cell_of_step: Ints
    state_of_cell: Ints
    group_of_state: Ints
    first_in_cell: np.ndarray
    first_in_state: np.ndarray
    visits: Ints
    state_visits: Ints

    @property
    def n_states(self) -> int:
        """Number of distinct states."""
        return len(self.group_of_state)

    @property
    def n_cells(self) -> int:
        """Number of distinct pairs (state, action)."""
        return len(self.state_of_cell)

    def first_step_in_state(self, steps: Steps) -> Ints:
        """Find, for each step, its rollout's first step in the same state. Shape (S,)."""
        pair = steps.rollout_of_step * self.n_states + self.state_of_step
        _, at, inverse = np.unique(pair, return_index=True, return_inverse=True)
        return at[inverse]

    def q_values(self, returns: Floats) -> Floats:
        """Average returns over rollouts at their first visit: Q(s,a), shape (n_cells,).

        First-visit Monte Carlo is unbiased; its variance is highest where few rollouts come.
        """
        first = self.first_in_cell
        return mean_by(returns[first], self.cell_of_step[first], self.n_cells)

    def state_values(self, returns: Floats) -> Floats:
        """Average Q by visits: V(s) = Σ_a N(s,a)·Q(s,a) / N(s), shape (n_states,)."""
        first = self.first_in_cell
        return sum_by(returns[first], self.state_of_step[first], self.n_states) / self.state_visits


def build(steps: Steps, level: int = -1) -> Tree:
    """Build the tree of every group at once, at one level of its keys.

    Args:
        steps: the rollouts' steps and keys.
        level: column of ``steps.states`` and ``steps.actions``.
    """
    _, state_at, state_of_step = np.unique(
        steps.states[:, level], return_index=True, return_inverse=True
    )
    _, action_of_step = np.unique(steps.actions[:, level], return_inverse=True)
    n_actions = int(action_of_step.max(initial=-1)) + 1
    cells, cell_of_step = np.unique(state_of_step * n_actions + action_of_step, return_inverse=True)
    state_of_cell = cells // max(n_actions, 1)
    first_in_cell = _first_visits(steps.rollout_of_step, cell_of_step, len(cells))
    visits = np.bincount(cell_of_step[first_in_cell], minlength=len(cells))
    return Tree(
        state_of_step=state_of_step,
        cell_of_step=cell_of_step,
        state_of_cell=state_of_cell,
        group_of_state=steps.group_of_step[state_at],
        first_in_cell=first_in_cell,
        first_in_state=_first_visits(steps.rollout_of_step, state_of_step, len(state_at)),
        visits=visits,
        state_visits=np.bincount(state_of_cell, weights=visits, minlength=len(state_at)).astype(
            np.int64
        ),
    )


def next_states(steps: Steps, state_of_step: Ints) -> Ints:
    """Give the state that follows each step in its rollout, ``END`` after the last. Shape (S,)."""
    following = np.append(state_of_step[1:], END)[: len(state_of_step)]
    following[steps.starts[1:][np.diff(steps.starts) > 0] - 1] = END
    return following


def _first_visits(rollout_of_step: Ints, ids: Ints, size: int) -> np.ndarray:
    """Mark each rollout's first step with each id, shape (S,)."""
    first = np.zeros(len(ids), dtype=bool)
    _, at = np.unique(rollout_of_step * size + ids, return_index=True)
    first[at] = True
    return first
