"""Draw a group's rollout tree as text.

A node is a state, an edge an action; rollouts share an edge as long as they have passed the same
states by the same actions. Numbers stand in front of every edge, the tree behind them. Runs of
steps in which nothing parts are folded.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from rtmc.credit import Credit, RolloutCredit

__all__ = ["Style", "draw"]

HEADER = "      A      Q     V′  N(s,a)/N(s)  passed"
FOLD_FROM = 3
SHOWN_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw: width in characters, folding, and a painter of (text, kind) for colours.

    Kinds: ``plus``, ``minus``, ``pass``, ``fail``, ``open``, ``dim``.
    """

    width: int = 120
    fold: bool = True
    paint: Callable[[str, str], str] = field(default=lambda text, kind: text)


@dataclass(slots=True)
class _Edge:
    """Rollouts that take the same action after the same past; the step index is the same too."""

    rollouts: list[RolloutCredit]
    step: int
    children: list["_Edge"] = field(default_factory=list)
    ending: list[RolloutCredit] = field(default_factory=list)

    @property
    def chain(self) -> "_Edge | None":
        """The only edge behind this one, if nothing parts or ends here."""
        return self.children[0] if len(self.children) == 1 and not self.ending else None


def draw(credit: Credit, style: Style = Style()) -> list[str]:
    """Draw the tree of a credit of one group, as lines.

    Args:
        credit: of exactly one group.
        style: how to draw.
    """
    rollouts = list(credit.rollouts)
    children, ending = _split(rollouts, 0)
    lines = [HEADER + "  state ─ action"]
    lines.append(" " * len(HEADER) + "  ●" + style.paint(f" {len(rollouts)} rollouts", "dim"))
    _draw_children(children, ending, "", lines, style)
    return lines


def _split(rollouts: list[RolloutCredit], step: int) -> tuple[list[_Edge], list[RolloutCredit]]:
    """Part rollouts with the same past by their next state and action; most taken first."""
    ending = [r for r in rollouts if len(r.actions) <= step]
    parts: dict[tuple[tuple[str, ...], str], list[RolloutCredit]] = {}
    for r in rollouts:
        if len(r.actions) > step:
            parts.setdefault((r.states[step], r.actions[step]), []).append(r)
    edges = [_Edge(part, step) for part in parts.values()]
    edges.sort(key=lambda edge: (-len(edge.rollouts), edge.rollouts[0].actions[step]))
    for edge in edges:
        edge.children, edge.ending = _split(edge.rollouts, step + 1)
    return edges, ending


def _draw_children(
    children: list[_Edge],
    ending: list[RolloutCredit],
    indent: str,
    lines: list[str],
    style: Style,
) -> None:
    items: list[_Edge | RolloutCredit] = [*children, *ending]
    for at, item in enumerate(items):
        last = at == len(items) - 1
        branch = "└─ " if last else "├─ "
        below = indent + ("   " if last else "│  ")
        if isinstance(item, RolloutCredit):
            lines.append(" " * len(HEADER) + f"  {indent}{branch}{_end(item, style)}")
        else:
            _draw_edge(item, indent + branch, below, lines, style)


def _draw_edge(edge: _Edge, lead: str, below: str, lines: list[str], style: Style) -> None:
    """Draw an edge and the chain behind it, then what parts at the chain's end."""
    chain = [edge]
    while (after := chain[-1].chain) is not None:
        chain.append(after)
    shown: list[_Edge | list[_Edge]] = list(chain)
    if style.fold and len(chain) > FOLD_FROM:
        shown = [chain[0], chain[1:-1], chain[-1]]
    for at, item in enumerate(shown):
        prefix = lead if at == 0 else below
        if isinstance(item, list):
            lines.append(_folded(item, prefix, style))
        else:
            lines.append(_row(item, prefix, style))
    _draw_children(chain[-1].children, chain[-1].ending, below, lines, style)


def _row(edge: _Edge, prefix: str, style: Style) -> str:
    first = edge.rollouts[0]
    step = edge.step
    visits, state_visits = first.action_visits[step], first.state_visits[step]
    passed = sum(r.rollout.status == "passed" for r in edge.rollouts)
    advantage = _advantage(edge)
    ratio = f"{visits:.0f}/{state_visits:.0f}" if visits == visits else "–"
    numbers = (
        f"{_number(first.q_values[step])} {_number(first.state_values[step])}  {ratio:>11}"
        f"  {f'{passed}/{len(edge.rollouts)}':>6}"
    )
    action = short(first.actions[step], style.width - len(HEADER) - len(prefix) - 2)
    return f"{_signed(advantage, style)} {numbers}  {prefix}{action}"


def _folded(edges: list[_Edge], prefix: str, style: Style) -> str:
    values = [v for v in map(_advantage, edges) if v == v]
    spread = f", A {min(values):+.3f} … {max(values):+.3f}" if values else ""
    text = f"⋮  {len(edges)} more step{'s' if len(edges) > 1 else ''}{spread}"
    return " " * len(HEADER) + f"  {prefix}{style.paint(text, 'dim')}"


def _advantage(edge: _Edge) -> float:
    """The advantage of the edge's step, of a rollout that has one."""
    values = [float(r.advantages[edge.step]) for r in edge.rollouts]
    return next((value for value in values if value == value), float("nan"))


def _end(rollout: RolloutCredit, style: Style) -> str:
    status = rollout.rollout.status
    mark = {"passed": "✔", "failed": "✘"}.get(status, "○")
    kind = {"passed": "pass", "failed": "fail"}.get(status, "open")
    reward = "" if rollout.rollout.reward is None else f" {rollout.rollout.reward:g}"
    return style.paint(f"{mark} {rollout.rollout.rollout_id} {status}{reward}", kind)


def _signed(value: float, style: Style) -> str:
    if value != value:
        return f"{'–':>7}"
    text = f"{value:+7.3f}" if value else f"{0:7.3f}"
    return (
        style.paint(text, "plus")
        if value > 0
        else style.paint(text, "minus")
        if value < 0
        else text
    )


def _number(value: float) -> str:
    return f"{'–':>6}" if value != value else f"{value:6.3f}"


def short(key: str, width: int) -> str:
    """Write a key for a display: digests of 4 digits, cut to a width."""
    out: list[str] = []
    at = 0
    while at < len(key):
        end = at
        while end < len(key) and key[end] in "0123456789abcdef":
            end += 1
        if end - at == 16 and (at == 0 or not key[at - 1].isalnum()):
            out.append(key[at : at + SHOWN_DIGITS])
        else:
            end = max(end, at + 1)
            out.append(key[at:end])
        at = end
    text = "".join(out)
    width = max(width, 12)
    return text if len(text) <= width else text[: width - 1] + "…"
