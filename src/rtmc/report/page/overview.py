"""Collect what the page's first view needs of every group: a row each, totals and curves."""

from typing import Any

import msgspec
import numpy as np

from rtmc.batch import Floats, Ints
from rtmc.credit import Credit
from rtmc.diagnostics import Diagnostics, diagnose
from rtmc.report.page.data import SignedGroup

__all__ = ["Overview"]


class Overview(msgspec.Struct):
    """Adds up as groups come; ``values`` gives it as plain values."""

    total: Diagnostics = Diagnostics()
    rows: list[dict[str, Any]] = msgspec.field(default_factory=list)
    shared: dict[str, Floats] = msgspec.field(default_factory=dict)
    steps: Floats = msgspec.field(default_factory=lambda: np.zeros(0))

    def add(self, signed: SignedGroup, computed: Credit) -> None:
        """Take a group, its keys and its credit."""
        found = diagnose(computed)
        self.total += found
        overlap = next(reversed(found.overlap.values()))
        credited = np.concatenate([np.zeros(0), *computed.advantages])
        sizes = np.abs(credited[~np.isnan(credited)])
        self.rows.append(
            {
                "problem": signed.group.problem_id,
                "rollouts": found.rollouts,
                "passed": found.passed,
                "failed": found.failed,
                "incomplete": found.incomplete,
                "unknown": found.unknown,
                "steps": found.steps,
                "overlap": overlap.share,
                "states": overlap.states,
                "singletons": overlap.singletons,
                "branching": overlap.branching,
                "partings": _partings(signed, computed),
                "winnerSteps": found.winner_steps,
                "winnerNegative": found.winner_negative,
                "largest": float(sizes.max(initial=0.0)) if len(sizes) else None,
                "kind": _kind(found),
            }
        )
        time = computed.steps.time
        self.steps = _added(self.steps, np.bincount(time))
        for keys in signed.keys:
            shared = shared_steps(keys.states, computed.steps.rollout_of_step)
            counts = np.bincount(time, shared)
            self.shared[keys.level] = _added(self.shared.get(keys.level, np.zeros(0)), counts)

    def values(self) -> dict[str, Any]:
        """Give rows, totals and the share of shared steps by step index and level."""
        found = self.total
        return {
            "rows": self.rows,
            "totals": {
                "groups": found.groups,
                "rollouts": found.rollouts,
                "passed": found.passed,
                "failed": found.failed,
                "incomplete": found.incomplete,
                "unknown": found.unknown,
                "steps": found.steps,
                "winnerSteps": found.winner_steps,
                "winnerNegative": found.winner_negative,
                "loserSteps": found.loser_steps,
                "loserPositive": found.loser_positive,
                "levels": {
                    level: {"share": o.share, "states": o.states, "singletons": o.singletons}
                    for level, o in found.overlap.items()
                },
            },
            "curve": {
                "steps": self.steps.tolist(),
                "shared": {level: counts.tolist() for level, counts in self.shared.items()},
            },
        }


def _partings(signed: SignedGroup, computed: Credit) -> int:
    """Count the states in which not all rollouts that came by did the same things."""
    keys = signed.chosen
    done: dict[int, dict[int, set[int]]] = {}
    rows = zip(
        keys.states.tolist(), computed.steps.rollout_of_step.tolist(), keys.actions.tolist(),
        strict=True,
    )  # fmt: skip
    for state, rollout, action in rows:
        done.setdefault(state, {}).setdefault(rollout, set()).add(action)
    return sum(len({frozenset(a) for a in by.values()}) > 1 for by in done.values())


def _kind(found: Diagnostics) -> str:
    """Say what a group's outcomes are."""
    if found.empty_groups or not found.rollouts:
        return "unknown"
    if found.singleton_groups:
        return "single"
    if found.uniform_groups:
        return "all passed" if found.passed else "none passed"
    return "mixed"


def shared_steps(states: Ints, rollout_of_step: Ints) -> np.ndarray:
    """Tell of each step whether at least two distinct rollouts reached its state. Shape (S,)."""
    pairs = np.unique(np.stack([states, rollout_of_step]), axis=1)
    reached = np.bincount(pairs[0], minlength=1)
    return reached[states] >= 2


def _added(one: np.ndarray, other: np.ndarray) -> Floats:
    """Add two rows of counts of different length."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    out = longer.astype(np.float64)
    out[: len(shorter)] += shorter
    return out
