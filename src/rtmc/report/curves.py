"""Learning curves (the paper's Figure 2); runs that differ by seed alone are a line with a band."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtmc.batch import Floats
from rtmc.report.ink import (
    GREY,
    INK,
    NEGATIVE,
    POSITIVE,
    Axes,
    Figure,
    MaxNLocator,
    flow,
    styled,
    text,
    text_width,
)
from rtmc.report.runs import Run

__all__ = ["curves"]

SMOOTHED = 5
"""Steps over which what is measured on a batch is averaged: batches differ in difficulty."""
PANELS = {
    "success": "success of all rollouts",
    "eval_success": "success on held-out problems",
    "signal": "groups with signal",
    "entropy": "entropy",
}
_LOOKS = (
    (POSITIVE, "-"), (NEGATIVE, "--"), (INK, "-."), ("#4f9d6b", (0, (4, 1, 1, 1, 1, 1))),
    ("#8a5aa8", ":"), (GREY, (0, (6, 2))),
)  # fmt: skip


@styled
def curves(kinds: Mapping[str, Sequence[Run]], width: float | None = None) -> Figure:
    """Draw success in training and on held-out problems, groups with signal, and entropy.

    A line is the mean of the runs of a kind at the steps that all of them have; the band reaches
    from the lowest to the highest of them.

    Args:
        kinds: runs by what they are called, as from ``labelled``.
        width: in inches.
    """
    whole, left, between, row = width or 7.5, 0.5, 0.55, 1.75
    names = [text(f"{name} ({len(of)})" if len(of) > 1 else name, 80) for name, of in kinds.items()]
    places = flow([0.5 + text_width(name, 7.0) for name in names], whole - 0.5)
    top, foot = 0.3 + 0.2 * (1 + places[-1][1]), 0.62
    height = top + 2 * row + foot + 0.4
    figure = Figure((whole, height))
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, whole), ylim=(height, 0))
    page.set_axis_off()
    looks = [_LOOKS[k % len(_LOOKS)] for k in range(len(names))]
    for name, (x, line), (colour, dashes) in zip(names, places, looks, strict=True):
        y = 0.25 + 0.2 * line
        page.plot([0.3 + x, 0.62 + x], [y, y], color=colour, ls=dashes, lw=1.4)
        page.text(0.7 + x, y, name, fontsize=7, va="center", parse_math=False)
    panel = (whole - left - between - 0.2) / 2
    for k, (metric, title) in enumerate(PANELS.items()):
        x, y = left + (k % 2) * (panel + between), top + 0.2 + (k // 2) * (row + 0.4)
        place = (x / whole, (height - y - row) / height, panel / whole, row / height)
        axes = figure.add_axes(place)
        axes.set_title(title, loc="left", fontsize=7.5, pad=3)
        for of, look in zip(kinds.values(), looks, strict=True):
            _line(
                axes,
                [run.curves[metric] for run in of if metric in run.curves],
                look,
                metric == "eval_success",
            )
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.tick_params(length=2, width=0.5, labelsize=6.2)
        axes.grid(axis="y", lw=0.4, color="#dddddd")
        axes.set_ylim(bottom=0, top=1 if metric == "signal" else None)
    note = f"step; means over {SMOOTHED} steps but for held-out problems"
    if any(len(of) > 1 for of in kinds.values()):
        note += "; bands: lowest and highest run"
    page.text(left, height - 0.16, note, fontsize=6.2, color=GREY, va="center")
    return figure


def _line(
    axes: Axes, found: Sequence[tuple[Floats, Floats]], look: tuple[str, Any], is_exact: bool
) -> None:
    """Draw the mean of some curves and their range."""
    if not found:
        return
    steps = sorted(set.intersection(*(set(at.tolist()) for at, _ in found)))
    if not steps:
        return
    values = np.array([_at(at, of, steps, 1 if is_exact else SMOOTHED) for at, of in found])
    colour, dashes = look
    mark = "o" if is_exact or len(steps) == 1 else None
    axes.plot(steps, values.mean(axis=0), color=colour, ls=dashes, lw=1.3, marker=mark, ms=2.5)
    if len(found) > 1:
        axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.13, lw=0)


def _at(steps: Floats, values: Floats, wanted: Sequence[float], window: int) -> list[float]:
    """Give at each wanted step the mean of it and the steps just before it."""
    found = []
    for step in wanted:
        end = int(np.searchsorted(steps, step, side="right"))
        found.append(float(values[max(0, end - window) : end].mean()))
    return found
