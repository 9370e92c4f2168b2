"""Draw the results of ``rtmc bench quality | learning`` and ``rtmc experiment paper``."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rtmc.errors import MissingExtraError

__all__ = ["draw_learning", "draw_quality", "draw_training"]

SHOWN = {
    "chain_gae": "#0b62a4",
    "rtmc": "#d1495b",
    "rtmc, content": "#e8a0a8",
    "grpo": "#444444",
    "gigpo": "#8f6bb3",
    "critic": "#3c9d6f",
    "true advantages": "#b0b0b0",
}
"""The estimators that are drawn, and their colours; more would hide each other."""


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("matplotlib", "bench") from error
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "rtmc"  # or the names inside are random
    from matplotlib import pyplot

    return pyplot


def draw_quality(results: Sequence[dict[str, Any]], folder: Path) -> Iterator[Path]:
    """Draw cosine against rollouts a problem, one panel a condition and stage."""
    plt = _pyplot()
    rows = [row for found in results for row in found["rows"]]
    parts = list(dict.fromkeys((row["condition"], row["stage"]) for row in rows))
    stages = list(dict.fromkeys(stage for _, stage in parts))
    conditions = list(dict.fromkeys(condition for condition, _ in parts))
    size = (2.1 * len(conditions) + 0.6, 2.3 * len(stages) + 0.7)
    figure, axes = plt.subplots(
        len(stages), len(conditions), figsize=size, sharex=True, sharey=True, squeeze=False
    )
    sizes = sorted({row["n"] for row in rows})
    for i, stage in enumerate(stages):
        for j, condition in enumerate(conditions):
            ax = axes[i][j]
            for name, colour in SHOWN.items():
                own = [
                    r for r in rows
                    if (r["condition"], r["stage"], r["estimator"]) == (condition, stage, name)
                ]  # fmt: skip
                if not own:
                    continue
                own.sort(key=lambda r: r["n"])
                n = [r["n"] for r in own]
                ax.plot(n, [r["cosine"] for r in own], color=colour, label=name, lw=1.4)
                ax.fill_between(
                    n, [r["low"] for r in own], [r["high"] for r in own], color=colour, alpha=0.12,
                    lw=0,
                )  # fmt: skip
            ax.set_xscale("log", base=2)
            ax.set_xticks(sizes, [str(n) for n in sizes])
            ax.set_ylim(0, 1)
            ax.set_title(f"{condition}, {stage}", fontsize=9)
            _plain(ax)
    _legend(figure, axes)
    figure.supxlabel("rollouts a problem", fontsize=9)
    figure.supylabel("cosine to the true gradient", fontsize=9)
    yield from _save(figure, plt, folder / "quality")


def draw_learning(results: Sequence[dict[str, Any]], folder: Path) -> Iterator[Path]:
    """Draw mean learning curves with 95 % bands over seeds, one panel a condition."""
    import numpy as np

    from rtmc.bench.measures import bootstrap

    plt = _pyplot()
    figure, axes = plt.subplots(
        1, len(results), figsize=(2.3 * len(results) + 0.6, 3.0), sharey=True, squeeze=False
    )
    for ax, found in zip(axes[0], results, strict=True):
        for name, colour in SHOWN.items():
            if name not in found["curves"]:
                continue
            curves = np.array(found["curves"][name])
            updates = np.linspace(0, found["updates"], curves.shape[1])
            bands = np.array([bootstrap(curves[:, at]) for at in range(curves.shape[1])])
            ax.plot(updates, curves.mean(axis=0), color=colour, label=name, lw=1.4)
            ax.fill_between(updates, bands[:, 0], bands[:, 1], color=colour, alpha=0.12, lw=0)
        kind = found["settings"]["kind"]
        ax.set_title(f"{found['settings']['condition']}, {kind}", fontsize=9)
        ax.set_ylim(0, 1)
        _plain(ax)
    _legend(figure, axes)
    figure.supxlabel("updates", fontsize=9)
    figure.supylabel("success on held-out problems", fontsize=9)
    kinds = "-".join(dict.fromkeys(found["settings"]["kind"] for found in results))
    yield from _save(figure, plt, folder / f"learning-{kinds}")


def draw_training(found: dict[str, Any], folder: Path) -> Iterator[Path]:
    """Draw the success of what was trained on, step by step: means and 95 % bands over seeds.

    Each method has a panel of its own, with GRPO behind it.
    """
    import numpy as np

    from rtmc.bench.paper import REFERENCE

    plt = _pyplot()
    names = [name for name in found["rates"] if name != REFERENCE] or [REFERENCE]
    size = (2.1 * len(names) + 0.6, 2.9)
    figure, axes = plt.subplots(1, len(names), figsize=size, sharey=True, squeeze=False)
    others = iter(("#e8963e", "#8f6bb3", "#3c9d6f"))
    for name, ax in zip(names, axes[0], strict=True):
        for method in dict.fromkeys((REFERENCE, name)):
            curves = np.array([r["curve"] for r in found["results"] if r["method"] == method])
            if not curves.size:
                continue
            colour = SHOWN.get(method) or next(others)
            steps, mean, low, high = _band(curves)
            ax.plot(steps, mean, color=colour, lw=1.4, label=method)
            ax.fill_between(steps, low, high, color=colour, alpha=0.15, lw=0)
        ax.set_title(name, fontsize=9)
        ax.set_xlabel("step", fontsize=9)
        ax.xaxis.get_major_locator().set_params(integer=True)
        _plain(ax)
    axes[0][0].set_ylabel("success, mean of 5 steps", fontsize=9)
    axes[0][0].legend(fontsize=8, frameon=False, loc="lower right")
    yield from _save(figure, plt, folder / "paper", top=1)


def _band(curves: Any, width: int = 5) -> tuple[Any, Any, Any, Any]:
    """Smooth the curves of several seeds; give steps, mean, and the 95 % interval of the mean."""
    import numpy as np

    from rtmc.bench.measures import interval

    width = min(width, curves.shape[1])
    smooth = np.array([np.convolve(one, np.ones(width) / width, "valid") for one in curves])
    low, high = np.array([interval(column) for column in smooth.T]).clip(0, 1).T
    return np.arange(width, curves.shape[1] + 1), smooth.mean(axis=0), low, high


def _plain(ax: Any) -> None:
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", lw=0.4, color="#dddddd")


def _legend(figure: Any, axes: Any) -> None:
    """Name each line once, in the order of ``SHOWN``."""
    lines = {
        line.get_label(): line for row in axes for ax in row for line in ax.get_lines()
    }  # the same colour everywhere
    names = [name for name in SHOWN if name in lines]
    figure.legend(
        [lines[name] for name in names], names, loc="upper center", ncols=len(names), fontsize=8,
        frameon=False,
    )  # fmt: skip


def _save(figure: Any, plt: Any, path: Path, top: float = 0.93) -> Iterable[Path]:
    figure.tight_layout(rect=(0, 0, 1, top))
    written = []
    for kind in ("svg", "png"):
        out = path.with_suffix(f".{kind}")
        # without a date the same result gives the same file
        figure.savefig(out, dpi=150, metadata={"Date": None} if kind == "svg" else None)
        written.append(out)
    plt.close(figure)
    return written
