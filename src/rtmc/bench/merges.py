"""Sample merged cells for reading by eye: do steps with equal keys really do the same?

A cell is merged if at least two rollouts contain it. For each sampled cell two of its rollouts are
shown at their first visit, with the raw calls that led to the state.
"""

import random
from collections.abc import Iterable, Iterator

from rtmc.report.keys_text import call_text, one_line
from rtmc.report.tree_text import short
from rtmc.rollouts import Group, Rollout
from rtmc.signatures import CodingSigner

__all__ = ["sample"]

_Visit = tuple[Rollout, int]


def sample(groups: Iterable[Group], level: str, size: int, seed: int) -> Iterator[str]:
    """Write ``size`` merged cells, drawn without replacement, as lines.

    Args:
        groups: where to draw from.
        level: level of the keys.
        size: number of cells.
        seed: of the draw.
    """
    signer = CodingSigner((level,))
    merged: list[tuple[str, str, str, list[_Visit]]] = []
    for group in groups:
        cells: dict[tuple[str, str], list[_Visit]] = {}
        for rollout in group.rollouts:
            seen = set()
            for t, step in enumerate(signer.steps(rollout)):
                cell = (step.states[0], step.actions[0])
                if cell not in seen:
                    seen.add(cell)
                    cells.setdefault(cell, []).append((rollout, t))
        merged += [(group.problem_id, *cell, v) for cell, v in cells.items() if len(v) > 1]
    chance = random.Random(seed)
    drawn = chance.sample(range(len(merged)), min(size, len(merged)))
    yield f"{len(merged)} merged cells at level {level}; {len(drawn)} drawn with seed {seed}"
    for number, at in enumerate(sorted(drawn), start=1):
        problem, state, action, visits = merged[at]
        yield f"\n{number}. {problem}  ({len(visits)} rollouts)"
        yield f"   state   {short(state, 300)}"
        yield f"   action  {short(action, 200)}"
        for rollout, t in chance.sample(visits, 2):
            yield f"   {rollout.rollout_id}, t={t}"
            for before in range(t + 1):
                mark = ">" if before == t else " "
                for call in rollout.steps[before].calls:
                    yield f"     {mark} {one_line(call_text(call), 400 if before == t else 110)}"
            output = rollout.steps[t].calls[0].output if rollout.steps[t].calls else ""
            yield f"       = {one_line(output or '', 200)}"
