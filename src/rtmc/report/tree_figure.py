"""Draw a group's rollouts, merged by state, as a figure (the paper's Figure 3).

All lengths are inches: one unit of the axes is one inch of paper, so that what a label needs can be
measured before it is placed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan
from typing import Literal

import numpy as np

from rtmc.batch import Floats
from rtmc.credit import Credit
from rtmc.report.graph import Chain, Edge, Graph, merge
from rtmc.report.ink import (
    FAILED,
    GREY,
    INK,
    PASSED,
    Axes,
    Figure,
    LineCollection,
    ScalarMappable,
    advantage_colours,
    colour_bar,
    cut,
    flow,
    heading,
    mark,
    open_page,
    styled,
    text,
    text_width,
)
from rtmc.report.tree_text import short

__all__ = ["tree"]

LABEL, NAME = 6.2, 7.2  # sizes of type, in points
ROW, HIGHEST = 0.38, 40.0
"""Height of a row, and of all rows: beyond it they are set closer, and the type with them."""
MARGIN, HEAD = 0.25, 0.58
FOOT_LINE = 0.24
BEND = 0.3
"""How far behind its node a line has come to its own row."""
GAP, STRIP = 0.42, 1.3
"""Least length of a line, and of a folded one."""
WIDEST, NARROWEST = 13.0, 4.5
CHARACTERS = 32
"""Longest label of a line, and of a rollout."""

Line = Edge | Chain


@styled
def tree(credit: Credit, width: float | None = None) -> Figure:
    """Draw the rollouts of a group from left to right, merged where they were in the same state.

    A line is an action; its width grows with the distinct rollouts that took it, its colour is
    their mean advantage. Runs of steps in which nothing parts are one line of one segment a step.

    Args:
        credit: of exactly one group.
        width: in inches; by default what the labels need, up to 13.
    """
    graph = merge(credit)
    names = [text(r.rollout.rollout_id, CHARACTERS) for r in credit.rollouts]
    xs, whole = _fit(graph, names, width)
    legend = _legend(len(credit.rollouts))
    rows = flow([room for room, _ in legend], whole - 2 * MARGIN)
    scale = min(1.0, HIGHEST / (ROW * graph.rows))
    top = HEAD + scale * ROW * graph.rows
    height = top + 0.85 + FOOT_LINE * rows[-1][1]
    figure, page = open_page(whole, height)
    heading(page, credit, MARGIN, whole)
    colours = advantage_colours([credit])
    pen = _Pen(page, graph, credit, xs, colours, scale)
    pen.tree_lines()
    pen.nodes()
    pen.ends(names)
    pen.other_lines()
    pen.scale = 1.0
    for (_, draw), (x, row) in zip(legend, rows, strict=True):
        draw(pen, MARGIN + x, top + 0.15 + FOOT_LINE * row)
    bar = figure.add_axes(((MARGIN + 0.1) / whole, 0.3 / height, 2.2 / whole, 0.08 / height))
    colour_bar(figure, colours, bar, "mean advantage A")
    return figure


# --- where the columns stand -------------------------------------------------------------------


def _fit(graph: Graph, names: Sequence[str], width: float | None) -> tuple[Floats, float]:
    """Place the columns, with labels as long as the width allows; give the width too."""
    most = width or WIDEST

    def ends(xs: Floats) -> list[tuple[float, float]]:
        texts = [MARGIN + 0.12 + text_width(name, NAME) for name in names]
        return [(float(xs[e.column]), room) for e, room in zip(graph.ends, texts, strict=True)]

    xs, right = np.zeros(1), 0.0
    for characters in range(CHARACTERS, -1, -2):
        xs = _columns(graph, characters)
        right = max((x + room for x, room in ends(xs)), default=0.0)
        if right <= most:
            break
    if width is not None or right > most:
        free = (most - room - MARGIN for x, room in ends(xs))
        spans = (x - MARGIN for x, _ in ends(xs))
        shares = [max(f, 0.1) / s for f, s in zip(free, spans, strict=True) if s > 0]
        xs = MARGIN + (xs - MARGIN) * min(shares, default=1.0)
    return xs, width or max(min(right, most), NARROWEST)


def _columns(graph: Graph, characters: int) -> Floats:
    """Place the columns so that every label of the tree has room for so many characters."""
    branching = _branching(graph)
    xs = np.full(graph.columns, MARGIN)
    into: list[list[tuple[int, float]]] = [[] for _ in xs]
    for line in _lines(graph):
        if line.forward:
            source = graph.nodes[line.source]
            need = STRIP if isinstance(line, Chain) else GAP
            if characters and _in_tree(graph, line) and _labelled(line, branching):
                label = short(_action(line), 400)[:characters]
                need = max(need, BEND + 0.15 + text_width(text(label), LABEL))
            into[_column(graph, line.target)].append((source.column, need))
    for column in range(1, len(xs)):
        before = (xs[source] + need for source, need in into[column])
        xs[column] = max([xs[column - 1] + GAP, *before])
    return xs


def _column(graph: Graph, target: int) -> int:
    return graph.ends[-1 - target].column if target < 0 else graph.nodes[target].column


def _lines(graph: Graph) -> list[Line]:
    return [*graph.edges, *graph.chains]


def _in_tree(graph: Graph, line: Line) -> bool:
    return line.target < 0 or graph.nodes[line.target].parent == line.source


def _branching(graph: Graph) -> set[int]:
    """Find the nodes that several lines leave."""
    leaving = Counter(line.source for line in _lines(graph))
    return {source for source, count in leaving.items() if count > 1}


def _labelled(line: Line, branching: set[int]) -> bool:
    return line.rollouts > 1 or line.source in branching


def _action(line: Line) -> str:
    return line.action if isinstance(line, Edge) else line.steps[0].action


# --- what is drawn -----------------------------------------------------------------------------

_Box = tuple[float, float, float, float]


@dataclass(slots=True)
class _Pen:
    """Draws a graph; ``boxes`` are the texts drawn so far, for those that come later to avoid."""

    axes: Axes
    graph: Graph
    credit: Credit
    xs: Floats
    colours: ScalarMappable
    scale: float
    boxes: list[_Box] = field(default_factory=list)

    def at(self, place: int) -> tuple[float, float]:
        """Find a node, or the end of a rollout."""
        found = self.graph.ends[-1 - place] if place < 0 else self.graph.nodes[place]
        return float(self.xs[found.column]), HEAD + self.scale * ROW * (found.row + 0.5)

    def write(
        self,
        x: float,
        y: float,
        written: str,
        size: float = LABEL,
        ha: Literal["left", "center", "right"] = "left",
        va: Literal["top", "center", "bottom"] = "center",
        color: str = INK,
    ) -> None:
        """Write a text beside a line, on white so that no line runs through it."""
        size *= self.scale
        self.axes.text(
            x, y, written, fontsize=size, ha=ha, va=va, color=color, parse_math=False, zorder=5,
            bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.5},
        )  # fmt: skip
        room, half = text_width(written, size), size / 72 / 1.6
        left = x - room * {"left": 0.0, "center": 0.5, "right": 1.0}[ha]
        middle = y + half * {"top": 1, "center": 0, "bottom": -1}[va]
        self.boxes.append((left, middle - half, left + room, middle + half))

    def stroke(self, points: Floats, line: Line, above: float) -> None:
        """Draw a line through points, dotted without credit; a chain as segments, one a step."""
        steps = [line] if isinstance(line, Edge) else line.steps
        pieces = [points] if isinstance(line, Edge) else _segments(points, len(steps))
        self.axes.add_collection(
            LineCollection(
                pieces,
                colors=self.colour(*(step.advantage for step in steps)),
                linewidths=self.level_thickness(line),
                linestyles=[":" if isnan(step.advantage) else "-" for step in steps],
                capstyle="butt",
                zorder=above,
            ),
            autolim=False,
        )

    def colour(self, *advantages: float) -> Floats:
        """Give advantages their colours; no credit is dark grey."""
        return self.colours.to_rgba(np.array(advantages))

    def thickness(self, line: Line) -> float:
        """Give a line its width in points."""
        share = (line.rollouts - 1) / max(len(self.credit.rollouts) - 1, 1)
        return self.scale * (1.6 + 5.4 * share)

    def level_thickness(self, line: Line) -> float:
        """Give a line its width in points where it is level: segments must be seen."""
        least = 4.5 * self.scale if isinstance(line, Chain) else 0.0
        return max(self.thickness(line), least)

    def tree_lines(self) -> None:
        """Draw the lines that the tree consists of: down or up at once, then level."""
        graph = self.graph
        if graph.virtual:
            self.plain_lines(0, [s for s in graph.starts if graph.nodes[s].parent == 0])
        self.plain_lines(0, [-1 - i for i, r in enumerate(self.credit.rollouts) if not r.actions])
        beside: dict[tuple[int, int], list[Line]] = {}
        for line in _lines(graph):
            if _in_tree(graph, line):
                beside.setdefault((line.source, line.target), []).append(line)
        branching = _branching(graph)
        for (source, target), lines in beside.items():
            (x0, y0), (x1, y1) = self.at(source), self.at(target)
            bend = x0 + min(BEND, 0.6 * (x1 - x0))
            stop = x1 - 0.075 if target < 0 else x1
            for k, line in enumerate(lines):
                y = y1 + 0.075 * self.scale * (k - (len(lines) - 1) / 2)
                curve = _bezier((x0, y0), ((x0 + bend) / 2, y0), ((x0 + bend) / 2, y), (bend, y))
                level = np.array([(bend, y), (stop - 0.8 * abs(y - y1), y), (stop, y1)])
                if y == y0:
                    level = np.array([(x0, y), (stop, y)])
                elif isinstance(line, Chain):
                    self.stroke(curve, line.steps[0], 2)
                else:
                    level = np.concatenate([curve, level])
                self.stroke(level, line, 2)
                if isinstance(line, Chain):
                    below = y + self.level_thickness(line) / 144 + 0.015
                    steps = f"{len(line.steps)} steps"
                    if text_width(steps, LABEL - 0.7) < x1 - bend - 0.3:  # beside a badge
                        self.write(bend + 0.03, below, steps, LABEL - 0.7, va="top", color=GREY)
            widest = max(lines, key=lambda line: line.rollouts)
            if any(_labelled(line, branching) for line in lines):
                more = f" +{len(lines) - 1}" if len(lines) > 1 else ""
                label = text(short(_action(widest), CHARACTERS))
                room = x1 - bend - 0.1 - text_width(more, LABEL)
                if label := cut(label, room, LABEL):
                    above = self.level_thickness(widest) / 144 + 0.0375 * (len(lines) - 1) + 0.02
                    self.write(bend + 0.03, y1 - above, label + more, va="bottom")

    def plain_lines(self, source: int, targets: Sequence[int]) -> None:
        """Draw lines that are no step."""
        for target in targets:
            (x0, y0), (x1, y1) = self.at(source), self.at(target)
            points = _bezier((x0, y0), (x0 + BEND, y0), (x0, y1), (x1, y1))
            self.axes.plot(*points.T, color=GREY, linewidth=0.7, linestyle=":", zorder=1)

    def other_lines(self) -> None:
        """Draw the lines that lead back, or to a node that hangs elsewhere in the tree."""
        branching = _branching(self.graph)
        for k, line in enumerate(x for x in _lines(self.graph) if not _in_tree(self.graph, x)):
            (x0, y0), (x1, y1) = self.at(line.source), self.at(line.target)
            # lines between like places stay apart
            bow = self.scale * ROW * (0.7 + 0.12 * (k % 4))
            if line.source == line.target:
                points = _bezier((x0, y0), (x0 + 0.35, y0 - 2 * bow), (x0 - 0.35, y0 - 2 * bow),
                                 (x1, y1))  # fmt: skip
            elif line.forward and y0 != y1:
                points = _bezier((x0, y0), ((x0 + x1) / 2, y0), (x1 - 0.1, (y0 + y1) / 2), (x1, y1))
            else:
                high = min(y0, y1) - bow
                points = _bezier((x0, y0), (x0, high), (x1, high), (x1, y1))
            self.stroke(points, line, 1.5)
            label = text(short(_action(line), CHARACTERS // 2))
            if isinstance(line, Chain):
                label += f" … {len(line.steps)} steps"
            if _labelled(line, branching):
                self.write_where_free(points, label)

    def write_where_free(self, points: Floats, label: str) -> None:
        """Write a label on a curve, if there is a place on it without another text."""
        half, high = self.scale * text_width(label, LABEL) / 2, self.scale * LABEL / 72 / 1.6
        for share in (0.5, 0.4, 0.6, 0.3, 0.7):
            x, y = points[int(share * (len(points) - 1))]
            box = (x - half, y - high, x + half, y + high)
            if box[0] > 0 and not any(_overlap(box, other) for other in self.boxes):
                self.write(x, y, label, ha="center")
                return

    def nodes(self) -> None:
        """Draw the states, each with the steps that stay in it."""
        thickest: dict[int, float] = {}
        for line in _lines(self.graph):
            thickest[line.target] = max(thickest.get(line.target, 0.0), self.level_thickness(line))
        for state, node in self.graph.nodes.items():
            x, y = self.at(state)
            dot = "white" if self.graph.virtual and state == 0 else INK
            self.axes.plot([x], [y], "o", ms=4.2 * self.scale, mfc=dot, mec=INK, mew=0.6, zorder=4)
            if node.stays:
                steps = f"↻{len(node.stays.visits)}"
                below = y + thickest.get(state, 0.0) / 144 + 0.025
                # in the colour of its advantage a text would be hard to read: it is underlined
                room = self.scale * text_width(steps, LABEL - 0.7)
                low = below + 0.105 * self.scale
                under = np.array([(x - room - 0.03, low), (x - 0.03, low)])
                self.axes.plot(
                    *under.T, color=self.colour(node.stays.advantage), linewidth=1.8 * self.scale,
                    solid_capstyle="butt", zorder=3,
                )  # fmt: skip
                self.write(x - 0.03, below, steps, LABEL - 0.7, ha="right", va="top")

    def ends(self, names: Sequence[str]) -> None:
        """Draw the ends, with outcome and name of the rollout."""
        for i, (rollout, name) in enumerate(zip(self.credit.rollouts, names, strict=True)):
            x, y = self.at(-1 - i)
            glyph, colour = mark(rollout)
            self.write(x, y, glyph, 9.5, ha="center", color=colour)
            self.write(x + 0.1, y, name, NAME)


def _bezier(*corners: tuple[float, float]) -> Floats:
    """Follow a cubic curve from the first of four corners to the last, shape (33, 2)."""
    a, b, c, d = np.array(corners)
    t = np.linspace(0, 1, 33)[:, None]
    return (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d


def _segments(points: Floats, count: int) -> list[Floats]:
    """Cut a curve into pieces of one length, with a thin gap behind each that is long enough."""
    along = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    cuts = np.linspace(0, along[-1], count + 1)
    gap = 0.012 if along[-1] / count > 0.04 else 0.0
    pieces = []
    for start, end in pairwise(cuts):
        end -= gap
        inside = along[(along > start) & (along < end)]
        where = np.concatenate([[start], inside, [end]])
        pieces.append(np.column_stack([np.interp(where, along, p) for p in points.T]))
    return pieces


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


# --- the legend --------------------------------------------------------------------------------

_Item = tuple[float, Callable[[_Pen, float, float], None]]


def _legend(rollouts: int) -> list[_Item]:
    """List what has to be explained: the room it takes, and what draws it."""
    items = []
    for count in dict.fromkeys((1, rollouts)):
        edge = Edge(0, "", 0, (), count, 0, 0, 0.0)
        items.append(_sample(edge, f"{count} rollout{'s' * (count != 1)}"))
    steps = tuple(Edge(0, "", 0, (), 1, 0, 0, 0.0) for _ in range(5))
    items.append(_sample(Chain(0, 0, steps), "run of steps without a fork"))
    items += [_words(*words) for words in (
        ("●", INK, "state"), ("↻", INK, "steps that stay in it"),
        ("✔", PASSED, "passed"), ("✘", FAILED, "failed"),
        ("○", GREY, "incomplete or unknown"),
    )]  # fmt: skip
    return items


def _sample(line: Line, meaning: str) -> _Item:
    def draw(pen: _Pen, x: float, y: float) -> None:
        pen.stroke(np.array([(x, y), (x + 0.35, y)]), line, 2)
        pen.write(x + 0.42, y, meaning, color=GREY)

    return 0.42 + text_width(meaning, LABEL), draw


def _words(glyph: str, colour: str, meaning: str) -> _Item:
    def draw(pen: _Pen, x: float, y: float) -> None:
        pen.write(x, y, glyph, color=colour)
        pen.write(x + 0.13, y, meaning, color=GREY)

    return 0.13 + text_width(meaning, LABEL), draw
