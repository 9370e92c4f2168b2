"""How far rollouts overlap, and how many of them stand behind each credit."""

from collections.abc import Sequence
from math import comb

import msgspec
import numpy as np

from rtmc.batch import Floats, Ints
from rtmc.diagnostics import INDEX_RANGES, overlap, reached_by
from rtmc.guidance.measured import Measured, Sums, measured, ratio
from rtmc.guidance.sample import LEVELS, Sample

__all__ = [
    "RANGES",
    "SUPPORTS",
    "Overlaps",
    "Support",
    "overlap_sums",
    "overlaps",
    "ranges",
    "support",
    "support_sums",
]

RANGES = ("first", *(f"{low}-{high}" if high else f"{low}+" for low, high in INDEX_RANGES))
"""Names of the ranges of step indices; the first step is one of its own."""

SUPPORTS = ("1", "2", "3-4", "5+")
"""Names of the ranges of numbers of distinct rollouts."""


def ranges(time: Ints) -> Floats:
    """Mark each step's range of indices, shape (S, 5)."""
    starts = np.array([0, *(low for low, _ in INDEX_RANGES)])
    return np.eye(len(starts))[np.searchsorted(starts, time, "right") - 1]


# --- overlap -----------------------------------------------------------------------------------


class Overlaps(msgspec.Struct, frozen=True):
    """Overlap at one level: share of later steps whose state at least two rollouts reached.

    Attributes:
        share: of all steps after the first.
        by_step_index: of those in each of ``diagnostics.INDEX_RANGES``.
    """

    share: Measured
    by_step_index: dict[str, Measured]


def overlap_sums(sample: Sample) -> Sums:
    """Count shared and all steps, by range and level; rollouts of unknown outcome count too."""
    found = [overlap(sample.steps, sample.levels.index(level)) for level in _levels(sample)]
    return {
        "shared": np.array([o.shared for o in found], float),
        "steps": np.array([o.steps for o in found], float),
    }


def overlaps(groups: Sequence[Sums], level: str) -> dict[str, Overlaps]:
    """Give the overlap at each level, the level of the settings among them."""
    names = _levels(level)

    def shares(s: Sums) -> Floats:
        both = [
            np.concatenate([x.sum(-1, keepdims=True), x], -1) for x in (s["shared"], s["steps"])
        ]
        return ratio(*both)

    found = measured(groups, shares, (len(names), len(RANGES)))
    rows = [found[at : at + len(RANGES)] for at in range(0, len(found), len(RANGES))]
    return {
        name: Overlaps(row[0], dict(zip(RANGES[1:], row[1:], strict=True)))
        for name, row in zip(names, rows, strict=True)
    }


def _levels(of: Sample | str) -> tuple[str, ...]:
    own = of if isinstance(of, str) else of.levels[-1]
    return tuple(dict.fromkeys((*LEVELS, own)))


# --- support -----------------------------------------------------------------------------------


class Support(msgspec.Struct, frozen=True):
    """How many distinct rollouts stand behind the credited steps of live groups.

    Attributes:
        behind_q: share of the steps whose (s, a) was taken by 1, 2, 3-4, 5+ rollouts.
        behind_v: the same of the rollouts that reached s.
        q_alone: share of the steps whose (s, a) one rollout took, by range of step indices.
        median_q: median number of rollouts behind Q(s, a).
        no_choice: share of the steps in whose state no other rollout did anything else: there A
            compares with the prior, not with another choice.
        shared: share of the steps whose (s, a) at least two rollouts took.
        shared_at_half: what that share is with half as many other rollouts, exactly (the
            expectation over all choices of them).
    """

    behind_q: dict[str, Measured]
    behind_v: dict[str, Measured]
    q_alone: dict[str, Measured]
    median_q: int
    no_choice: Measured
    shared: Measured
    shared_at_half: Measured


def support_sums(sample: Sample) -> Sums:
    """Count the credited steps of a live group by support and by range of step indices."""
    tree, credited = sample.tree, sample.credited
    m = tree.visits[tree.cell_of_step][credited]
    n = reached_by(tree)[tree.state_of_step][credited]
    where = ranges(sample.batch.time[credited])
    largest = np.bincount(m, minlength=65)[:65]
    largest[64] += (m > 64).sum()
    return {
        "steps": where.sum(0),
        "q": _binned(m).T @ where,
        "v": _binned(n).T @ where,
        "histogram": largest.astype(float),
        "no_choice": np.array([float((m == n).sum())]),
        "half": np.array([_shared_at_half(m, sample.n_rollouts).sum()]),
    }


def support(groups: Sequence[Sums]) -> Support:
    """Give the distribution of support over all groups."""
    bins, size = len(SUPPORTS), len(RANGES)

    def shares(name: str) -> list[Measured]:
        return measured(
            groups, lambda s: ratio(s[name].sum(-1), s["steps"].sum(-1)[:, None]), (bins,)
        )

    alone = measured(groups, lambda s: ratio(s["q"][:, 0], s["steps"]), (size,))
    total = np.sum([g["histogram"] for g in groups], axis=0)
    (shared,) = measured(groups, lambda s: 1 - ratio(s["q"][:, 0].sum(-1), s["steps"].sum(-1)))
    of_all = ("half", "no_choice")
    half, no_choice = (
        measured(groups, lambda s, n=name: ratio(s[n][:, 0], s["steps"].sum(-1)))[0]
        for name in of_all
    )
    return Support(
        behind_q=dict(zip(SUPPORTS, shares("q"), strict=True)),
        behind_v=dict(zip(SUPPORTS, shares("v"), strict=True)),
        q_alone=dict(zip(RANGES, alone, strict=True)),
        median_q=int(np.searchsorted(np.cumsum(total), total.sum() / 2)),
        no_choice=no_choice,
        shared=shared,
        shared_at_half=half,
    )


def _binned(counts: Ints) -> Floats:
    return np.eye(len(SUPPORTS))[np.searchsorted([1, 2, 3, 5], counts, "right") - 1]


def _shared_at_half(m: Ints, n_rollouts: int) -> Floats:
    """P(some of k random others took the cell), k half of the others: 1 − C(N−m, k)/C(N−1, k)."""
    others = n_rollouts - 1
    sizes = (others // 2, others - others // 2)
    table = [
        np.mean([1 - comb(n_rollouts - v, k) / comb(others, k) for k in sizes])
        for v in range(1, n_rollouts + 1)
    ]
    return np.array(table)[m - 1]
