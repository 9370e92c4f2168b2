"""Figures for a paper or a slide: the tree of a group, estimators compared, overlap.

Each function gives a figure; ``save`` writes it. They need matplotlib (the extra ``figures``) and
touch none of its global state. Colours can be told apart by everybody, and never stand alone.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from rtmc.batch import Floats, Ints
from rtmc.credit import Credit
from rtmc.diagnostics import quadrants
from rtmc.errors import AlignmentError
from rtmc.report.ink import (
    GREY,
    INK,
    NEGATIVE,
    POSITIVE,
    Axes,
    Figure,
    MaxNLocator,
    Rectangle,
    ScalarMappable,
    advantage_colours,
    colour_bar,
    cut,
    flow,
    heading,
    mark,
    open_page,
    save,
    styled,
    text,
    text_width,
    title,
    withStroke,
)
from rtmc.report.tree_figure import tree

__all__ = [
    "Counts", "Figure", "comparison", "count_quadrants", "draw_quadrants", "overlap",
    "quadrant_bars", "save", "title", "tree",
]  # fmt: skip

THRESHOLD = 0.01
"""|A| from which on a sign counts, as in the paper's Figure 5."""
RANK = ("passed", "failed", "incomplete", "unknown")
"""The order of rollouts."""


# --- advantages of several estimators ----------------------------------------------------------

MARGIN, BETWEEN, HEAD, FOOT = 0.25, 0.2, 0.92, 0.75
CELL, ROW, LEAST_ROW, HIGHEST = 0.15, 0.2, 0.08, 40.0
NAME, NOTE = 7.0, 6.2  # sizes of type, in points
NAME_ROOM = 1.6
WIDEST, NARROWEST = 13.0, 4.5


@styled
def comparison(credits: Mapping[str, Credit], width: float | None = None) -> Figure:
    """Draw the advantages of one group by several estimators, side by side (the paper's Figure 4).

    A row is a rollout, those that passed first; a column is a step; all panels have one scale of
    colours. Behind the first panel a dot marks the steps whose sign is the opposite of the first
    panel's, where |A| > 0.01 in both. Steps without credit are hatched.

    Args:
        credits: by the name of the estimator; all of the same one group.
        width: in inches; by default what the steps need, up to 13.

    Raises:
        AlignmentError: the credits are not of the same rollouts.
    """
    first = next(iter(credits.values()))
    for name, credit in credits.items():
        if list(map(len, credit.advantages)) != list(map(len, first.advantages)):
            raise AlignmentError(f"the credit by {name} is not of the same rollouts as the first")
    order = sorted(range(len(first.rollouts)), key=lambda i: RANK.index(_status(first, i)))
    names = [cut(text(first.rollouts[i].rollout.rollout_id), NAME_ROOM, NAME) for i in order]
    rows, longest = max(len(order), 1), max([1, *map(len, first.advantages)])
    left = MARGIN + 0.27 + max((text_width(name, NAME) for name in names), default=0.0)
    gaps = left + MARGIN + BETWEEN * (len(credits) - 1)
    room = max((width or WIDEST) - gaps, 1.0) / len(credits)
    panel = room if width else min(room, max(CELL * longest, 1.5))
    row = min(ROW, max(12 / rows, LEAST_ROW), HIGHEST / rows)
    whole = width or max(gaps + panel * len(credits), NARROWEST)
    notes = []
    if len(credits) > 1:
        notes.append(f"dot: of the sign opposite to {text(next(iter(credits)), 20)}")
    if any(np.isnan(advantages).any() for advantages in first.advantages):
        notes.append("hatched: no credit")
    foot = FOOT + 0.14 * len(notes)
    height = HEAD + row * rows + foot
    figure, page = open_page(whole, height)
    heading(page, first, MARGIN, whole, settings=False)
    colours = advantage_colours(credits.values())
    base = _grid(first, order, longest)
    for k, (name, credit) in enumerate(credits.items()):
        x, grid = left + k * (panel + BETWEEN), _grid(credit, order, longest)
        place = (x / whole, foot / height, panel / whole, row * rows / height)
        axes = figure.add_axes(place, xlim=(0, longest), ylim=(rows, 0))
        _cells(axes, grid, [len(first.advantages[i]) for i in order], colours, panel / longest, row)
        opposite = (grid * base < 0) & (np.minimum(np.abs(grid), np.abs(base)) > THRESHOLD)
        down, along = np.nonzero(opposite)
        size = 72 * 0.28 * min(panel / longest, row)
        axes.plot(along + 0.5, down + 0.5, "o", ms=size, color=INK, mew=0)
        page.text(x, HEAD - 0.1, cut(text(name), panel, 8), fontsize=8, parse_math=False)
    for at, (i, name) in enumerate(zip(order, names, strict=True)):
        y, size = HEAD + row * (at + 0.5), min(NAME, 60 * row)
        glyph, colour = mark(first.rollouts[i])
        page.text(left - 0.2, y, name, fontsize=size, ha="right", va="center", parse_math=False)
        page.text(left - 0.1, y, glyph, fontsize=size + 0.5, color=colour, ha="center", va="center")
    low, long = 0.26 + foot - FOOT, min(2.0, whole - left - 0.5)
    bar = figure.add_axes(((left + 0.1) / whole, low / height, long / whole, 0.08 / height))
    colour_bar(figure, colours, bar, "advantage A, by step")
    for k, note in enumerate(notes):
        y = height - low + 0.24 + 0.14 * k
        page.text(left, y, note, fontsize=NOTE, color=GREY, va="center", parse_math=False)
    return figure


def _status(credit: Credit, i: int) -> str:
    return credit.rollouts[i].rollout.status


def _grid(credit: Credit, order: Sequence[int], longest: int) -> Floats:
    """Lay out advantages as rows, shape (rollouts, longest); NaN behind the end of a rollout."""
    grid = np.full((max(len(order), 1), longest), np.nan)
    for at, i in enumerate(order):
        grid[at, : len(credit.advantages[i])] = credit.advantages[i]
    return grid


def _cells(
    axes: Axes, grid: Floats, lengths: Sequence[int], colours: ScalarMappable, cell: float,
    row: float,
) -> None:  # fmt: skip
    """Fill the cells that have an advantage, and hatch those of steps that have none."""
    seams = 0.4 if min(cell, row) > 0.035 else 0.0
    low, high = colours.get_clim()
    blank = colours.cmap.with_extremes(bad="white")
    axes.pcolormesh(
        np.ma.masked_invalid(grid), cmap=blank, vmin=low, vmax=high, edgecolors="white",
        linewidth=seams,
    )  # fmt: skip
    axes.hlines(np.arange(1, len(grid)), 0, grid.shape[1], color="white", linewidth=0.6)
    for at, length in enumerate(lengths):
        if length and np.isnan(grid[at, :length]).all():
            axes.add_patch(Rectangle((0, at), length, 1, fill=False, ec=GREY, hatch="/////", lw=0))
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if s * cell > 0.22)
    at_steps = np.arange(0, grid.shape[1], step)
    axes.set_xticks(at_steps + 0.5, labels=[str(t) for t in at_steps])
    axes.set_yticks([])
    axes.tick_params(length=2, width=0.5, labelsize=NOTE)
    axes.spines[:].set_visible(False)


# --- quadrants ---------------------------------------------------------------------------------

Counts = dict[str, dict[str, int]]
"""Steps by ``passing``/``failing``, then by quadrant."""

_QUADRANT_LOOK = {
    "both +": (POSITIVE, "", "white"),
    "rescued": ("#85b6de", "//", INK),
    "neutral": ("#dedede", "", INK),
    "penalised": ("#f0ab72", "\\\\", INK),
    "both −": (NEGATIVE, "", "white"),
}


def count_quadrants(credit: Credit, reference: Credit) -> Counts:
    """Count in which quadrant the steps of two credits of the same rollouts lie.

    Raises:
        AlignmentError: the credits are not of the same rollouts.
    """
    lengths = list(map(len, credit.advantages))
    if lengths != list(map(len, reference.advantages)):
        raise AlignmentError("the reference is not of the same rollouts as the credit")
    passing = [r.rollout.status == "passed" for r in credit.rollouts]
    nothing = np.zeros(0)
    return quadrants(
        np.concatenate([nothing, *credit.advantages]),
        np.concatenate([nothing, *reference.advantages]),
        np.repeat(np.array(passing, dtype=bool), lengths).tolist(),
        THRESHOLD,
    )


def quadrant_bars(credit: Credit, reference: Credit, width: float | None = None) -> Figure:
    """Draw which signs the steps have against a reference (the paper's Figure 5).

    Args:
        credit: of any number of groups.
        reference: of the same, by the estimator to compare with.
        width: in inches.
    """
    names = (title(credit.config.estimator.name), title(reference.config.estimator.name))
    return draw_quadrants(count_quadrants(credit, reference), *names, width=width)


@styled
def draw_quadrants(counts: Counts, name: str, reference: str, width: float | None = None) -> Figure:
    """Draw counted quadrants as two bars, with counts and shares.

    Args:
        counts: from ``count_quadrants``; those of several credits add up.
        name: of the estimator.
        reference: name of the other.
        width: in inches.
    """
    whole, left, high = width or 7.0, 1.15, 0.36
    meaning = {
        "both +": "both +", "rescued": f"rescued: {reference} −, {name} +", "neutral":
        f"neutral: |A| ≤ {THRESHOLD} in either", "penalised": f"penalised: {reference} +, {name} −",
        "both −": "both −",
    }  # fmt: skip
    meaning = {quadrant: text(words) for quadrant, words in meaning.items()}
    places = flow([0.25 + text_width(w, NAME) for w in meaning.values()], whole - 2 * MARGIN)
    top = 0.62 + 0.8 * len(counts)
    height = top + 0.22 * (1 + places[-1][1]) + 0.05
    figure, page = open_page(whole, height)
    headline = cut(f"Signs of the steps: {text(name)} against {text(reference)}", whole - 0.5, 9)
    page.text(MARGIN, 0.24, headline, fontsize=9, va="center", parse_math=False)
    for at, (outcome, of) in enumerate(counts.items()):
        y, total = 0.5 + 0.8 * at, sum(of.values())
        page.text(MARGIN, y + 0.1, outcome, fontsize=8, va="center")
        page.text(MARGIN, y + 0.25, f"{total} steps", fontsize=NOTE, color=GREY, va="center")
        if total:
            _bar(page, of, left, y, whole - left - MARGIN, high)
        else:
            page.text(left, y + high / 2, "none", fontsize=NOTE, color=GREY, va="center")
    for (quadrant, words), (x, line) in zip(meaning.items(), places, strict=True):
        colour, hatch, _ = _QUADRANT_LOOK[quadrant]
        y = top + 0.22 * line
        page.add_patch(Rectangle((MARGIN + x, y - 0.06), 0.18, 0.12, fc=colour, hatch=hatch,
                                 ec="white", lw=0))  # fmt: skip
        page.text(MARGIN + x + 0.24, y, words, fontsize=NAME, va="center", parse_math=False)
    return figure


def _bar(
    page: Axes, counts: Mapping[str, int], left: float, y: float, room: float, high: float
) -> None:
    """Draw one stacked bar; what is too narrow for its numbers gets them below."""
    total, x = sum(counts.values()), left
    below: list[tuple[float, str]] = []
    for quadrant, (colour, hatch, ink) in _QUADRANT_LOOK.items():
        if not counts[quadrant]:
            continue
        part = room * counts[quadrant] / total
        percent = 100 * counts[quadrant] / total
        share = f"{percent:.0f} %" if percent >= 0.5 else "< 1 %"
        count = str(counts[quadrant])
        page.add_patch(Rectangle((x, y), part, high, fc=colour, hatch=hatch, ec="white", lw=0.6))
        middle = x + part / 2
        if part > max(text_width(share, 8), text_width(count, NOTE)) + 0.08:
            for written, size, shift in ((share, 8, 0.13), (count, NOTE, 0.26)):
                page.text(middle, y + shift, written, fontsize=size, color=ink, ha="center",
                          va="center", path_effects=_halo(colour) if hatch else None)  # fmt: skip
        else:
            below.append((middle, f"{share} · {count}"))
        x += part
    ends = [text_width(written, NOTE) / 2 for _, written in below]
    centres = spread([middle for middle, _ in below], ends, left, left + room)
    for (middle, written), centre in zip(below, centres, strict=True):
        page.plot([middle, middle, centre], [y + high, y + high + 0.05, y + high + 0.11],
                  color=GREY, linewidth=0.5)  # fmt: skip
        page.text(centre, y + high + 0.18, written, fontsize=NOTE, color=GREY, ha="center",
                  va="center")  # fmt: skip


def _halo(colour: str) -> list[withStroke]:
    return [withStroke(linewidth=2.5, foreground=colour)]


def spread(
    wanted: Sequence[float], halves: Sequence[float], low: float, high: float
) -> list[float]:
    """Place labels in a row, each near its wanted centre, without overlap, from low to high.

    Args:
        wanted: centres, ascending.
        halves: half the width of each label.
        low: where the first may start.
        high: where the last should end.
    """
    gap = 0.08
    centres: list[float] = []
    for centre, half in zip(wanted, halves, strict=True):
        least = centres[-1] + halves[len(centres) - 1] + gap + half if centres else low + half
        centres.append(max(centre, least))
    most = high
    for at in reversed(range(len(centres))):
        centres[at] = min(centres[at], most - halves[at])
        most = centres[at] - halves[at] - gap
    return centres


# --- overlap -----------------------------------------------------------------------------------

_LINES = (
    (POSITIVE, "-"), (NEGATIVE, "--"), (INK, "-."), ("#4f9d6b", (0, (4, 1, 1, 1, 1, 1))),
    ("#8a5aa8", ":"), (GREY, (0, (6, 2))),
)  # fmt: skip


@styled
def overlap(overlaps: Mapping[str, Ints], width: float | None = None) -> Figure:
    """Draw how far the rollouts meet: the share of shared steps by their index, a line a level.

    A step is shared if at least two distinct rollouts reached its state. Below stands how many
    steps there are of each index: where few are left, shares jump.

    Args:
        overlaps: by level, ``rtmc.diagnostics.overlap_by_index``, shape (2, T).
        width: in inches.
    """
    whole, height = width or 6.0, 3.2
    figure = Figure((whole, height))
    left, across = 0.55 / whole, 1 - 1.65 / whole
    upper = figure.add_axes((left, 0.38, across, 0.5), ylim=(-0.02, 1.02))
    lower = figure.add_axes((left, 0.13, across, 0.17), sharex=upper)
    steps = np.zeros(0, dtype=np.int64)
    handles = []
    for k, (shared, steps) in enumerate(overlaps.values()):
        at = np.flatnonzero(steps)
        colour, dashes = _LINES[k % len(_LINES)]
        handles += upper.plot(at, shared[at] / steps[at], color=colour, ls=dashes, lw=1.4)
    if overlaps:
        levels = [text(level, 12) for level in overlaps]
        legend = upper.legend(
            handles, levels, loc="upper left", bbox_to_anchor=(1.01, 1.03), title="level"
        )
        for entry in legend.get_texts():
            entry.set_parse_math(False)
    lower.fill_between(np.arange(len(steps)), steps, color="#c4c4c4", step="mid", linewidth=0)
    lower.set(xlabel="step", ylim=(0, None if steps.any() else 1))
    lower.set_ylabel("steps", fontsize=NOTE)
    upper.set_yticks([0, 0.5, 1])
    upper.set_title("Share of steps whose state ≥ 2 rollouts reached", loc="left", fontsize=9)
    upper.tick_params(labelbottom=False)
    for axes in (upper, lower):
        axes.tick_params(length=2, width=0.5, labelsize=NOTE)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure
