"""Tell from a credit what it rests on: how much the rollouts overlap, and whom it favours."""

import operator
from collections.abc import Sequence
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from rtmc.batch import Floats, Ints, Steps
from rtmc.credit import Credit
from rtmc.tree import Tree, build

__all__ = [
    "INDEX_RANGES",
    "Diagnostics",
    "Overlap",
    "diagnose",
    "overlap",
    "overlap_by_index",
    "quadrants",
    "reached_by",
]

INDEX_RANGES = ((1, 4), (5, 9), (10, 19), (20, None))
"""Ranges of step indices for which overlap is reported; the first step is shared by nature."""

QUADRANTS = ("both +", "both −", "rescued", "penalised", "neutral")


class Overlap(msgspec.Struct, frozen=True):
    """How far the rollouts of a group meet, at one level. All fields add up over groups.

    All rollouts count here, those of unknown outcome too.

    Attributes:
        shared: for each of ``INDEX_RANGES``, steps whose state at least two distinct rollouts
            reached (visits by one rollout don't count).
        steps: for each of ``INDEX_RANGES``, all steps.
        states: distinct states.
        singletons: states that only one rollout reached.
        branching: states in which at least two distinct actions were taken.
    """

    shared: tuple[int, ...]
    steps: tuple[int, ...]
    states: int
    singletons: int
    branching: int

    def __add__(self, other: Self) -> "Overlap":
        return Overlap(
            tuple(map(operator.add, self.shared, other.shared)),
            tuple(map(operator.add, self.steps, other.steps)),
            self.states + other.states,
            self.singletons + other.singletons,
            self.branching + other.branching,
        )

    @property
    def share(self) -> float:
        """Share of the steps after the first whose state several rollouts reached."""
        return sum(self.shared) / max(sum(self.steps), 1)


class Diagnostics(msgspec.Struct, frozen=True):
    """Counts over groups; two of them add up to those of both.

    ``live`` groups have rollouts of different outcomes: only there an advantage can differ from 0,
    but for estimators that keep what they have to say of the others; ``nonzero_steps`` counts it.
    Signs, mean, deviation and error are of the credited steps of live groups. The fields ``a_…``
    are the sums that these need: over steps, of squares, over groups of the squared group sums, of
    sum times count, of squared counts.
    """

    groups: int = 0
    rollouts: int = 0
    steps: int = 0
    passed: int = 0
    failed: int = 0
    incomplete: int = 0
    unknown: int = 0
    excluded: int = 0
    uniform_groups: int = 0
    singleton_groups: int = 0
    empty_groups: int = 0
    unparsed: int = 0
    credited_steps: int = 0
    live_steps: int = 0
    nonzero_steps: int = 0
    winner_steps: int = 0
    winner_negative: int = 0
    loser_steps: int = 0
    loser_positive: int = 0
    bonus: float = 0.0
    overlap: dict[str, Overlap] = {}
    a_sum: float = 0.0
    a_squares: float = 0.0
    a_group_squares: float = 0.0
    a_group_products: float = 0.0
    a_group_counts: float = 0.0

    def __add__(self, other: "Diagnostics") -> "Diagnostics":
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__struct_fields__
            if name != "overlap"
        }
        levels = self.overlap | other.overlap
        both = self.overlap.keys() & other.overlap.keys()
        levels |= {level: self.overlap[level] + other.overlap[level] for level in both}
        return Diagnostics(**sums, overlap=levels)

    @property
    def mean(self) -> float:
        """Mean advantage over the credited steps of live groups."""
        return self.a_sum / max(self.live_steps, 1)

    @property
    def deviation(self) -> float:
        """Population standard deviation of the advantages."""
        spread = self.a_squares / max(self.live_steps, 1) - self.mean * self.mean
        return max(spread, 0.0) ** 0.5

    @property
    def standard_error(self) -> float:
        """Standard error of the mean advantage, groups taken as independent (steps are not)."""
        m = self.mean
        squares = self.a_group_squares - 2 * m * self.a_group_products + m * m * self.a_group_counts
        return max(squares, 0.0) ** 0.5 / max(self.live_steps, 1)


def diagnose(credit: Credit) -> Diagnostics:
    """Count what method §9 asks for, over all groups of a credit."""
    batch = credit.batch
    statuses = [r.rollout.status for r in credit.rollouts]
    group_flags: dict[int, set[str]] = {}
    for r in credit.rollouts:
        group_flags.setdefault(r.group, set()).update(r.flags)
    voting_groups = {r.group for r in credit.rollouts if r.verdict.outcome is not None}
    advantages = np.concatenate([np.zeros(0), *credit.advantages])
    group = np.repeat(
        np.array([r.group for r in credit.rollouts], dtype=int),
        [len(r.advantages) for r in credit.rollouts],
    )
    won = np.repeat(
        np.array([status == "passed" for status in statuses], dtype=bool),
        [len(r.advantages) for r in credit.rollouts],
    )
    credited = ~np.isnan(advantages)
    dead = [g for g, flags in group_flags.items() if flags & {"uniform", "singleton_group"}]
    live = credited & ~np.isin(group, dead)
    a, won, group = advantages[live], won[live], group[live]
    sums = np.bincount(group, weights=a, minlength=1)
    counts = np.bincount(group, minlength=1).astype(float)
    return Diagnostics(
        groups=len(group_flags),
        rollouts=len(credit.rollouts),
        steps=len(advantages),
        passed=statuses.count("passed"),
        failed=statuses.count("failed"),
        incomplete=statuses.count("incomplete"),
        unknown=statuses.count("unknown"),
        excluded=sum("excluded" in r.flags for r in credit.rollouts),
        uniform_groups=sum("uniform" in flags for flags in group_flags.values()),
        singleton_groups=sum("singleton_group" in flags for flags in group_flags.values()),
        empty_groups=len(group_flags) - len(voting_groups),
        unparsed=credit.unparsed,
        credited_steps=int(credited.sum()),
        live_steps=len(a),
        nonzero_steps=int((advantages[credited] != 0).sum()),
        winner_steps=int(won.sum()),
        winner_negative=int((won & (a < 0)).sum()),
        loser_steps=int((~won).sum()),
        loser_positive=int((~won & (a > 0)).sum()),
        bonus=float(batch.rewards.sum() - batch.step_rewards.sum() - _paid(credit)),
        overlap={level: overlap(credit.steps, at) for at, level in enumerate(credit.levels)},
        a_sum=float(a.sum()),
        a_squares=float((a * a).sum()),
        a_group_squares=float((sums * sums).sum()),
        a_group_products=float((sums * counts).sum()),
        a_group_counts=float((counts * counts).sum()),
    )


def _paid(credit: Credit) -> float:
    """Sum the outcomes that are part of some step's reward."""
    return float(credit.batch.outcomes[np.diff(credit.batch.starts) > 0].sum())


def overlap(steps: Steps, level: int = -1) -> Overlap:
    """Count how far rollouts meet, at one level of their keys."""
    tree = build(steps, level)
    reached = reached_by(tree)
    actions = np.bincount(tree.state_of_cell, minlength=tree.n_states)
    shared, time = reached[tree.state_of_step] >= 2, steps.time
    return Overlap(
        shared=tuple(int((shared & here).sum()) for here in _ranges(time)),
        steps=tuple(int(here.sum()) for here in _ranges(time)),
        states=tree.n_states,
        singletons=int((reached == 1).sum()),
        branching=int((actions >= 2).sum()),
    )


def reached_by(tree: Tree) -> Ints:
    """Count the distinct rollouts that reached each state, shape (n_states,)."""
    return np.bincount(tree.state_of_step[tree.first_in_state], minlength=tree.n_states)


def overlap_by_index(credit: Credit, level: int = -1) -> Ints:
    """Count steps by their index in the rollout: those in shared states, and all.

    All rollouts count, as in ``Overlap``; counts of two credits add up where they are as long.

    Args:
        credit: of one or several groups.
        level: which level of its keys.

    Returns:
        Shape (2, T), T the length of the longest rollout: steps whose state at least two distinct
        rollouts reached, and all steps.
    """
    tree = build(credit.steps, level)
    shared, time = reached_by(tree)[tree.state_of_step] >= 2, credit.steps.time
    length = int(time.max(initial=-1)) + 1
    return np.stack(
        [np.bincount(time[shared], minlength=length), np.bincount(time, minlength=length)]
    )


def _ranges(time: Ints) -> list[NDArray[np.bool_]]:
    return [
        (time >= low) & (time <= high if high is not None else True) for low, high in INDEX_RANGES
    ]


def quadrants(
    advantages: Floats, reference: Floats, passing: Sequence[bool], threshold: float = 0.01
) -> dict[str, dict[str, int]]:
    """Count in which quadrant each step lies against a reference estimator (the paper's Figure 5).

    rescued: reference −, advantage +. penalised: reference +, advantage −. neutral: |A| ≤
    threshold under either.

    Args:
        advantages: shape (S,), NaN = no credit (left out).
        reference: shape (S,), advantages of the reference on the same steps.
        passing: shape (S,), whether the step's rollout passed.
        threshold: |A| from which on a sign counts.

    Returns:
        Counts by ``passing``/``failing``, then by quadrant.
    """
    plus, minus = advantages > threshold, advantages < -threshold
    ref_plus, ref_minus = reference > threshold, reference < -threshold
    live = ~(np.isnan(advantages) | np.isnan(reference))
    masks = [plus & ref_plus, minus & ref_minus, plus & ref_minus, minus & ref_plus]
    masks.append(live & ~np.logical_or.reduce(masks))
    won = np.asarray(passing, dtype=bool)
    return {
        name: {
            label: int((mask & of & live).sum())
            for label, mask in zip(QUADRANTS, masks, strict=True)
        }
        for name, of in (("passing", won), ("failing", ~won))
    }
