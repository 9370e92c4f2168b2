"""How good are the state signatures? Judged by the workspaces themselves, where they are recorded.

A pair is two steps of different rollouts of one problem. A signature merges it if the two state
keys are equal; it should if the workspaces are (``Step.env_state``, a hash of all files):

    precision = pairs that are merged and equal / pairs that are merged
    recall    = pairs that are merged and equal / pairs that are equal

Every rollout begins in the same workspace, so pairs are counted apart in which something has
changed. A signature that also holds what the agent has looked at cannot have full recall: two
agents in one workspace may know different things, and the hash does not say so.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rtmc.rollouts import Group, Rollout
from rtmc.signatures import LEVELS, CodingSigner

__all__ = ["measure", "table"]

PARTS = ("all", "changed")
Cell = tuple[int, str]


def measure(groups: Iterable[Group]) -> dict[str, Any]:
    """Count pairs, level by level.

    Args:
        groups: of rollouts; those that do not record every workspace are left out and counted.
    """
    signer = CodingSigner(LEVELS)
    counts: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    used = left_out = steps = 0
    for group in groups:
        known = [r for r in group.rollouts if r.steps and all(s.env_state for s in r.steps)]
        left_out += len(group.rollouts) - len(known)
        used += len(known)
        steps += sum(len(rollout.steps) for rollout in known)
        if len(known) > 1:
            states = signer.sign(known).states
            for part in PARTS:
                counts[part].append(_pairs_of_group(known, states, part == "changed"))
    rows = [
        _row(part, level, np.array(counts[part])[:, at])
        for part in PARTS
        for at, level in enumerate(LEVELS)
        if counts[part]
    ]
    return {
        "groups": len(counts["all"]),
        "rollouts": used,
        "left_out": left_out,
        "steps": steps,
        "rows": rows,
    }


def _pairs_of_group(rollouts: Sequence[Rollout], states: np.ndarray, changed: bool) -> np.ndarray:
    """Count (merged and equal, merged, equal) for each level, shape (L, 3)."""
    ids = iter(states)
    keyed = [[(next(ids), str(step.env_state)) for step in one.steps] for one in rollouts]
    start = keyed[0][0][1]
    if changed:
        keyed = [[(k, e) for k, e in steps if e != start] for steps in keyed]
    return np.array(
        [
            [
                _pairs([[(key[at], env) for key, env in steps] for steps in keyed]),
                _pairs([[(key[at], "") for key, _ in steps] for steps in keyed]),
                _pairs([[(0, env) for _, env in steps] for steps in keyed]),
            ]
            for at in range(len(LEVELS))
        ]
    )


def _pairs(cells: Sequence[Sequence[Cell]]) -> int:
    """Count pairs of equal cells in different rows: (n² − Σ n_r²) / 2 over the cells."""
    total: Counter[Cell] = Counter()
    same: defaultdict[Cell, int] = defaultdict(int)
    for row in cells:
        for cell, count in Counter(row).items():
            total[cell] += count
            same[cell] += count * count
    return sum(count * count - same[cell] for cell, count in total.items()) // 2


def _row(part: str, level: str, counts: np.ndarray) -> dict[str, Any]:
    """Sum up the groups; errors are jackknife errors over them."""
    both, merged, equal = counts.T
    precision, recall = _ratio(both, merged), _ratio(both, equal)
    return {
        "part": part,
        "level": level,
        "merged_pairs": int(merged.sum()),
        "equal_pairs": int(equal.sum()),
        "precision": precision[0],
        "precision_error": precision[1],
        "recall": recall[0],
        "recall_error": recall[1],
    }


def _ratio(above: np.ndarray, below: np.ndarray) -> tuple[float | None, float | None]:
    if not below.sum():
        return None, None
    value, n = above.sum() / below.sum(), len(above)
    rest = below.sum() - below
    if n < 2 or not rest.all():
        return float(value), None
    without = (above.sum() - above) / rest
    return float(value), float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))


def table(figures: dict[str, Any]) -> list[str]:
    """Write the figures for people."""
    if not figures["rows"]:
        return ["no two rollouts of a problem record their workspaces (env_state at every step)"]
    lines = [
        f"{figures['groups']} groups, {figures['rollouts']} rollouts, {figures['steps']} steps; "
        f"left out for want of env_state: {figures['left_out']}",
        "",
        f"{'':<9}{'pairs of steps in any state':<38}{'after something has changed'}",
        f"{'level':<9}{'merged':>9}{'precision':>14}{'recall':>14} {'merged':>9}{'precision':>14}"
        f"{'recall':>14}",
    ]
    by = {(row["part"], row["level"]): row for row in figures["rows"]}
    for level in LEVELS:
        cells = [
            f"{by[part, level]['merged_pairs']:>9}{_shown(by[part, level], 'precision'):>14}"
            f"{_shown(by[part, level], 'recall'):>14}"
            for part in PARTS
        ]
        lines.append(f"{level:<9}" + " ".join(cells))
    return [*lines, "", "± jackknife error over groups"]


def _shown(row: dict[str, Any], name: str) -> str:
    if row[name] is None:
        return "–"
    error = row[f"{name}_error"]
    return f"{row[name]:.3f}" + (f" ± {error:.3f}" if error is not None else "")
