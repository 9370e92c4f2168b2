"""Draw a group's rollout tree as text.

A node is a state, an edge an action; rollouts share an edge as long as they have passed the same
states by the same actions. Numbers stand in front of every edge, the tree behind them: A, or the
mean marked ~ where the estimator gave its rollouts different ones. Runs of steps in which nothing
parts are folded.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from rtmc.credit import Credit, RolloutCredit

__all__ = ["Style", "draw", "plain", "short"]

HEADER = "      A      Q     V′  N(s,a)/N(s)  passed"
_BLANK = " " * len(HEADER)
FOLD_FROM = 3
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw: width in characters, folding, and a painter of (text, kind) for colours.

    Kinds: ``plus``, ``minus``, ``pass``, ``fail``, ``open``, ``dim``.
    """

    width: int = 120
    fold: bool = True
    paint: Callable[[str, str], str] = field(default=lambda text, kind: text)


@dataclass(slots=True)
class _Chain:
    """Steps ``start … end − 1``, which the same rollouts take in the same states, and what follows.

    ``children`` part at ``end``; ``ending`` are the rollouts that have no more steps there.
    """

    rollouts: list[RolloutCredit]
    start: int
    end: int
    children: list["_Chain"] = field(default_factory=list)
    ending: list[RolloutCredit] = field(default_factory=list)


def draw(credit: Credit, style: Style = Style()) -> list[str]:
    """Draw the tree of a credit of one group, as lines.

    Args:
        credit: of exactly one group.
        style: how to draw.
    """
    root = _grow(list(credit.rollouts))
    lines = [HEADER + "  state ─ action"]
    count = len(credit.rollouts)
    lines.append(_BLANK + "  ●" + style.paint(f" {count} rollout{'s' * (count != 1)}", "dim"))
    pending = _items(root, "")
    while pending:  # a stack, not recursion: rollouts may be long, groups large
        item, lead, below = pending.pop()
        if isinstance(item, RolloutCredit):
            lines.append(f"{_BLANK}  {lead}{_end(item, style, len(lead))}")
        else:
            lines += _chain(item, lead, below, style)
            pending += _items(item, below)
    return lines


def _grow(rollouts: list[RolloutCredit]) -> _Chain:
    """Build the tree: follow all rollouts until they part, then each part."""
    root = _Chain(rollouts, 0, 0)
    open_chains = [root]
    while open_chains:
        chain = open_chains.pop()
        parts, ending = _part(chain.rollouts, chain.end)
        while len(parts) == 1 and not ending and chain is not root:
            chain.end += 1
            parts, ending = _part(chain.rollouts, chain.end)
        chain.children = [_Chain(part, chain.end, chain.end + 1) for part in parts]
        chain.ending = ending
        open_chains += chain.children
    return root


def _part(
    rollouts: list[RolloutCredit], step: int
) -> tuple[list[list[RolloutCredit]], list[RolloutCredit]]:
    """Part rollouts by their state and action at a step, most taken first."""
    parts: dict[tuple[tuple[str, ...], str], list[RolloutCredit]] = {}
    ending: list[RolloutCredit] = []
    for r in rollouts:
        if len(r.actions) > step:
            parts.setdefault((r.states[step], r.actions[step]), []).append(r)
        else:
            ending.append(r)
    return sorted(parts.values(), key=lambda p: (-len(p), p[0].actions[step])), ending


_Item = tuple[_Chain | RolloutCredit, str, str]


def _items(chain: _Chain, indent: str) -> list[_Item]:
    """List what follows a chain, last first, with its branch and the indent below it."""
    items: list[_Item] = []
    following = [*chain.children, *chain.ending]
    for at, item in enumerate(following):
        last = at == len(following) - 1
        items.append(
            (item, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "))
        )
    return items[::-1]


def _chain(chain: _Chain, lead: str, below: str, style: Style) -> list[str]:
    """Draw the steps of a chain, the middle of a long one folded."""
    steps = range(chain.start, chain.end)
    if not style.fold or len(steps) <= FOLD_FROM:
        return [_row(chain, t, lead if t == chain.start else below, style) for t in steps]
    return [
        _row(chain, steps[0], lead, style),
        _folded(chain, steps[1:-1], below, style),
        _row(chain, steps[-1], below, style),
    ]


def _row(chain: _Chain, step: int, prefix: str, style: Style) -> str:
    first = chain.rollouts[0]
    visits, state_visits = first.action_visits[step], first.state_visits[step]
    passed = sum(r.rollout.status == "passed" for r in chain.rollouts)
    ratio = f"{visits:.0f}/{state_visits:.0f}" if visits == visits else "–"
    numbers = (
        f"{_number(first.q_values[step])} {_number(first.state_values[step])}  {ratio:>11}"
        f"  {f'{passed}/{len(chain.rollouts)}':>6}"
    )
    action = short(first.actions[step], style.width - len(HEADER) - len(prefix) - 2)
    return f"{_signed(_advantages(chain, step), style)} {numbers}  {prefix}{action}"


def _folded(chain: _Chain, steps: range, prefix: str, style: Style) -> str:
    values = [value for step in steps for value in _advantages(chain, step)]
    spread = f", A {min(values) + 0:+.3f} … {max(values) + 0:+.3f}" if values else ""
    text = f"⋮  {len(steps)} more step{'s' * (len(steps) != 1)}{spread}"
    return f"{_BLANK}  {prefix}{style.paint(text, 'dim')}"


def _advantages(chain: _Chain, step: int) -> list[float]:
    """The advantages that the rollouts got for a step; those without credit have none."""
    values = (float(r.advantages[step]) for r in chain.rollouts)
    return [value for value in values if value == value]


def _end(rollout: RolloutCredit, style: Style, used: int) -> str:
    status = rollout.rollout.status
    mark = {"passed": "✔", "failed": "✘"}.get(status, "○")
    kind = {"passed": "pass", "failed": "fail"}.get(status, "open")
    reward = "" if rollout.rollout.reward is None else f" {rollout.rollout.reward:g}"
    room = style.width - len(_BLANK) - used - len(status) - len(reward) - 5
    return style.paint(f"{mark} {plain(rollout.rollout.rollout_id, room)} {status}{reward}", kind)


def _signed(values: list[float], style: Style) -> str:
    """Write an advantage; the mean, marked ~, where rollouts got different ones."""
    if not values:
        return f"{'–':>7}"
    value = round(sum(values) / len(values), 3) + 0.0  # never −0
    differ = max(values) - min(values) > SAME
    text = f"{'~' * differ}{value:+.3f}" if value or differ else f"{0:.3f}"
    kind = "plus" if value > 0 else "minus" if value < 0 else ""
    return style.paint(f"{text:>7}", kind) if kind else f"{text:>7}"


def _number(value: float) -> str:
    return f"{'–':>6}" if value != value else f"{value:6.3f}"


_DIGEST = re.compile(r"(?<![0-9A-Za-z])([0-9a-f]{4})[0-9a-f]{12}(?![0-9a-f])")


def short(key: str, width: int) -> str:
    """Write a key for a display: digests of 4 digits, cut to a width."""
    return plain(_DIGEST.sub(r"\1", key), width)


def plain(text: str, width: int) -> str:
    """Write a text on one line without control characters, cut to a width of at least 12."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    width = max(width, 12)
    return text if len(text) <= width else text[: width - 1] + "…"
