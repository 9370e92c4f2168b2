"""What all figures share: fonts, colours, and text that no rollout can break.

The other modules of figures take matplotlib from here, where its absence is explained: it is an
extra.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import IO

import numpy as np

from rtmc.credit import Credit, RolloutCredit
from rtmc.errors import MissingExtraError
from rtmc.report.tree_text import plain

try:
    from matplotlib import font_manager, style
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke
    from matplotlib.textpath import text_to_path
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise MissingExtraError("matplotlib", "figures") from error

__all__ = [
    "FAILED", "GREY", "INK", "NEGATIVE", "PASSED", "POSITIVE", "Axes", "Figure", "LineCollection",
    "MaxNLocator", "Rectangle", "ScalarMappable", "advantage_colours", "colour_bar", "cut", "flow",
    "heading", "mark", "open_page", "save", "styled", "text", "text_width", "title", "withStroke",
]  # fmt: skip

INK, GREY = "#222222", "#707070"
POSITIVE, NEGATIVE = "#1f5fa8", "#c2570c"
PASSED, FAILED = "#1b7837", "#b2182b"
_DIVERGING = [NEGATIVE, "#f0ab72", "#cfcfcf", "#85b6de", POSITIVE]
_FONT = "DejaVu Sans"
_MISSING = "□"

styled = style.context(
    [
        "default",  # whatever the user's matplotlibrc says: a figure looks the same everywhere
        {
            "font.family": _FONT,
            "font.size": 7.5,
            "axes.edgecolor": GREY,
            "axes.labelcolor": INK,
            "axes.linewidth": 0.6,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": 8.5,
            "hatch.linewidth": 0.5,
            "legend.fontsize": 7.5,
            "legend.frameon": False,
            "pdf.fonttype": 42,
            "svg.hashsalt": "rtmc",
            "xtick.color": GREY,
            "ytick.color": GREY,
        },
    ]
)
"""Decorates what makes or saves a figure."""


@styled
def save(figure: Figure, file: IO[bytes], kind: str, dpi: int = 200) -> None:
    """Write a figure as ``png``, ``svg`` or ``pdf``: the same bytes for the same figure."""
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(file, format=kind, dpi=dpi, metadata=dated.get(kind))


@lru_cache(1)
def _glyphs() -> frozenset[int]:
    return frozenset(font_manager.get_font(font_manager.findfont(_FONT)).get_charmap())


def text(written: str, width: int = 400) -> str:
    """Make a text safe to draw: on one line, cut, and □ for what the font has no glyph for."""
    known = _glyphs()
    return "".join(c if ord(c) in known else _MISSING for c in plain(written, width))


@lru_cache(4096)
def text_width(written: str, size: float) -> float:
    """Measure a text in inches."""
    font = font_manager.FontProperties(family=_FONT, size=size)
    return text_to_path.get_text_width_height_descent(written, font, ismath=False)[0] / 72


_TITLES = {"rtmc": "RTMC", "grpo": "GRPO", "grpo_step": "GRPO+Step"}


def title(estimator: str) -> str:
    """Name an estimator as papers do."""
    return _TITLES.get(estimator, estimator)


def mark(rollout: RolloutCredit) -> tuple[str, str]:
    """Give a rollout's outcome as a glyph and a colour."""
    return {"passed": ("✔", PASSED), "failed": ("✘", FAILED)}.get(
        rollout.rollout.status, ("○", GREY)
    )


def advantage_colours(credits: Iterable[Credit]) -> ScalarMappable:
    """Scale advantages to colours: orange −, light grey 0, blue +, alike on both sides of 0.

    No credit (NaN) is dark grey.
    """
    largest = 0.0
    for credit in credits:
        values = np.abs(np.concatenate([np.zeros(1), *credit.advantages]))
        largest = max(largest, float(np.nanmax(values)))
    limit = largest or 1.0
    scale = LinearSegmentedColormap.from_list("advantage", _DIVERGING)
    return ScalarMappable(Normalize(-limit, limit), scale.with_extremes(bad=GREY))


def colour_bar(figure: Figure, colours: ScalarMappable, axes: Axes, label: str) -> None:
    """Explain the colours of advantages, in axes of its own."""
    bar = figure.colorbar(colours, cax=axes, orientation="horizontal")
    limit = float(colours.get_clim()[1] or 1.0)
    bar.set_ticks([-limit, 0, limit], labels=[f"−{limit:.2f}", "0", f"+{limit:.2f}"])
    bar.outline.set_visible(False)
    axes.tick_params(length=2, width=0.5, labelsize=6.2)
    axes.set_title(label, fontsize=6.2, color=GREY, loc="left", pad=2)


def cut(written: str, room: float, size: float) -> str:
    """Shorten a text to a room in inches; to nothing where not even four characters fit."""
    if text_width(written, size) <= room:
        return written
    lengths = range(4, len(written))
    fitting = bisect_right(
        lengths, room, key=lambda length: text_width(written[:length] + "…", size)
    )
    return written[: lengths[fitting - 1]] + "…" if fitting else ""


def open_page(width: float, height: float) -> tuple[Figure, Axes]:
    """Open a figure with axes all over it that measure inches from the upper left corner."""
    figure = Figure((width, height))
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    return figure, page


def heading(axes: Axes, credit: Credit, x: float, width: float, settings: bool = True) -> None:
    """Name the group of a credit, its outcomes and settings, in axes measured in inches."""
    if not credit.rollouts:
        return
    statuses = [r.rollout.status for r in credit.rollouts]
    counts = (f"{statuses.count(s)} {s}" for s in dict.fromkeys(sorted(statuses, key=_ORDER.index)))
    how = f"{title(credit.config.estimator.name)}, " if settings else ""
    level = text(credit.levels[-1])
    lines = (
        (text(credit.rollouts[0].rollout.problem_id), 9.5, INK, 0.22),
        (f"{len(statuses)} rollouts: {', '.join(counts)} · {how}level {level}", 7.0, GREY, 0.42),
    )
    for written, size, colour, y in lines:
        shown = cut(written, width - 2 * x, size)
        axes.text(x, y, shown, fontsize=size, color=colour, va="center", parse_math=False)


_ORDER = ("passed", "failed", "incomplete", "unknown")


def flow(rooms: Sequence[float], width: float) -> list[tuple[float, int]]:
    """Place items in lines of a width, like words: the distance from the left, and the line."""
    places = []
    x, row = 0.0, 0
    for room in rooms:
        if x and x + room > width:
            x, row = 0.0, row + 1
        places.append((x, row))
        x += room + 0.22
    return places
