"""RTMC: first-visit Monte Carlo values on the tree of a group's rollouts, A = Q − V′.

Source: "RTMC: Step-Level Credit Assignment via Rollout Trees" (arXiv 2604.11037).

Deviations from the paper, each an option whose paper value is named:
1. ``repeats = first``: a repeat of the same (s, a) within a rollout gets min(0, A) instead of the
   full A once more, so that a winner cannot collect credit by re-running an unchanged test
   (paper: ``repeats = paper``).
2. ``prior = discounted | none`` besides the success rate, and
3. ``leave_one_out``, a baseline without the rollout's own return (paper: off).
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads, check_choices, check_number
from rtmc.batch import Batch, Floats, mean_by, sum_by
from rtmc.returns import first_returns, outcome_range
from rtmc.tree import Tree, build

__all__ = ["RTMC"]


class RTMC(msgspec.Struct, frozen=True):
    """Assign A(s,a) = Q(s,a) − V′(s).

        Q(s,a) = mean over the rollouts that contain (s,a) of G at their first visit
        V(s)   = Σ_a N(s,a)·Q(s,a) / N(s)
        V′(s)  = (N(s)·V(s) + n₀·p) / (N(s) + n₀)                              (Eq. 11)

    At N(s) = 1 the prior has n₀/(1 + n₀) of the weight: 67 % for n₀ = 2. n₀ = 0 gives V′ = V.
    Under one state and one action per rollout with γ = 1, β = 0: A = R − mean R, which is GRPO
    without the deviation.

    Attributes:
        n_prior: n₀ ≥ 0, how many visits the prior is worth.
        prior: p. ``success_rate``: the mean outcome of the group, undiscounted (the paper's), so
            that a winner's step far from the end is negative (more than ln p / ln γ steps: 69 at
            p = .5, γ = .99). ``discounted``: mean G_0 carried forward to the state's mean
            first-visit time, mean(G_0)/γ^t, clipped to the range of the group's outcomes; a
            winner longer than average is still slightly negative. ``none``: V′ = V.
        leave_one_out: leave the rollout's own return out of its baseline:
            V′_{−i}(s) = (Σ_{j≠i} G_j(first visit of s) + n₀·p_{−i}) / (N_{−i}(s) + n₀);
            A = 0 where nothing is left to compare with.
        repeats: ``first`` or ``paper``, see the top of the module.
    """

    n_prior: float = 2.0
    prior: Literal["success_rate", "discounted", "none"] = "success_rate"
    leave_one_out: bool = False
    repeats: Literal["first", "paper"] = "first"

    name: ClassVar[str] = "rtmc"
    reads: ClassVar[Reads] = Reads(keys=True)

    def __post_init__(self) -> None:
        """Refuse a negative weight and a misspelt choice.

        Raises:
            OptionError: n_prior is negative or not finite; prior or repeats is misspelt.
        """
        check_choices(self)
        check_number(self, "n_prior", "≥ 0", 0 <= self.n_prior < float("inf"))

    def __call__(self, batch: Batch) -> Estimate:
        """Build the tree and return Q − V′ of each step, with the parts it came from."""
        tree = build(batch)
        q_of_step = tree.q_values(batch.returns)[tree.cell_of_step]
        v_of_step = (
            self._leave_one_out(batch, tree) if self.leave_one_out else self._smoothed(batch, tree)
        )
        advantages = q_of_step - v_of_step
        advantages[np.isnan(advantages)] = 0.0  # no baseline left: nothing to compare with
        if self.repeats == "first":
            repeated = ~tree.first_in_cell
            advantages[repeated] = np.minimum(0.0, advantages[repeated])
        return Estimate(
            advantages,
            q_of_step,
            v_of_step,
            tree.state_visits[tree.state_of_step],
            tree.visits[tree.cell_of_step],
            tree.first_in_cell,
        )

    def _smoothed(self, batch: Batch, tree: Tree) -> Floats:
        """Compute V′ of each step's state, shape (S,)."""
        values = tree.state_values(batch.returns)
        if self.prior != "none":
            groups, size = batch.group_of_rollout, batch.n_groups
            if self.prior == "success_rate":
                prior = mean_by(batch.outcomes, groups, size)[tree.group_of_state]
            else:
                start = mean_by(first_returns(batch), groups, size)[tree.group_of_state]
                low, high = outcome_range(batch)
                prior = _carried(start, _mean_time(batch, tree), batch.discount)
                prior = np.clip(prior, low[tree.group_of_state], high[tree.group_of_state])
            visits = tree.state_visits
            values = (visits * values + self.n_prior * prior) / (visits + self.n_prior)
        return values[tree.state_of_step]

    def _leave_one_out(self, batch: Batch, tree: Tree) -> Floats:
        """Compute V′_{−i} of each step's state without the step's own rollout, shape (S,)."""
        first, states = tree.first_in_state, tree.state_of_step
        total = sum_by(batch.returns[first], states[first], tree.n_states)[states]
        count = np.bincount(states[first], minlength=tree.n_states)[states]
        own = batch.returns[tree.first_step_in_state(batch)]
        weight = 0.0 if self.prior == "none" else self.n_prior
        with np.errstate(invalid="ignore", divide="ignore"):
            values = (total - own + weight * self._others(batch, tree)) / (count - 1 + weight)
        return np.where(count - 1 + weight > 0, values, np.nan)

    def _others(self, batch: Batch, tree: Tree) -> Floats:
        """Compute the prior p_{−i} from the other rollouts of the group, shape (S,)."""
        groups, size = batch.group_of_rollout, batch.n_groups
        of_rollout = batch.outcomes if self.prior != "discounted" else first_returns(batch)
        total = sum_by(of_rollout, groups, size)[groups] - of_rollout
        others = np.bincount(groups, minlength=size)[groups] - 1
        mean = (total / np.maximum(others, 1))[batch.rollout_of_step]
        if self.prior != "discounted":
            return mean
        low, high = (bound[batch.group_of_step] for bound in outcome_range(batch))
        time = _mean_time(batch, tree)[tree.state_of_step]
        return np.clip(_carried(mean, time, batch.discount), low, high)


def _mean_time(batch: Batch, tree: Tree) -> Floats:
    """Average the step index of the rollouts' first visits of each state, shape (n_states,)."""
    first = tree.first_in_state
    return mean_by(batch.time[first].astype(float), tree.state_of_step[first], tree.n_states)


def _carried(start: Floats, time: Floats, discount: float) -> Floats:
    """Carry a value at time 0 forward to ``time``: start/γ^t, which may be infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(start == 0, 0.0, start * discount**-time)
