"""``rtmc figures``: pictures of groups, or of training runs, for a paper or a slide."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmc.cli.options import (
    config_options,
    make_config,
    make_reader,
    print_skipped,
    progress,
    reading_options_for_pictures,
)
from rtmc.errors import FormatError, OptionError, OutputError

if TYPE_CHECKING:
    from rtmc.advantages import Estimator
    from rtmc.batch import Ints
    from rtmc.config import Config
    from rtmc.credit import Credit
    from rtmc.report.figures import Counts, Figure
    from rtmc.rollouts import Group

__all__ = ["FileNames", "figures"]

KINDS = ("png", "svg", "pdf")
SHOWN = 8
NAME_LENGTH = 80


def _kinds(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(kind.strip().lower() for kind in value.split(",")))
    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}")
    return kinds


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc figures rollouts.jsonl -o figures\n"
    "  rtmc figures rollouts.jsonl -o paper --problem django__django-11239 --format pdf --width 7\n"
    "  rtmc figures runs/ --outcomes report.json --level work -o slides --format png,svg\n"
    "  rtmc figures grpo-1 grpo-2 rtmc-1 rtmc-2 -o curves      (folders of rtmc train)"
)
@reading_options_for_pictures
@config_options
@click.option("-o", "--output", metavar="DIR", required=True,
              help="The folder to write to; made if there is none.")  # fmt: skip
@click.option("--format", "kinds", metavar="KIND,…", default="png", show_default=True,
              callback=_kinds, help="png, svg, pdf.")  # fmt: skip
@click.option("--problem", "problems", metavar="ID", multiple=True,
              help="Only this problem, whatever its outcomes. Repeatable.")  # fmt: skip
@click.option("--width", type=click.FloatRange(3, 40), metavar="INCHES",
              help="Width of every figure.  [what its labels need]")  # fmt: skip
@click.option("--dpi", type=click.IntRange(50, 600), default=200, show_default=True,
              help="Dots an inch of a png.")  # fmt: skip
def figures(
    output: str,
    kinds: tuple[str, ...],
    problems: tuple[str, ...],
    width: float | None,
    dpi: int,
    **given: Any,
) -> None:
    """Draw groups, or runs of `rtmc train`, as pictures for a paper or a slide.

    For each group whose rollouts ended differently: tree-PROBLEM, its rollouts merged by state, and
    comparison-PROBLEM, the advantages by GRPO, GRPO+Step and RTMC. Over these: quadrants, how often
    the signs differ from GRPO+Step. Over all groups: overlap, how far the rollouts meet.

    Where every INPUT is the folder of a run: curves, its learning curves. Runs that differ by seed
    alone are one line, the others are named by the settings that differ; options about rollouts
    and credit do not concern them.

    Needs the extra `figures`.
    """
    from rtmc.report.figures import save
    from rtmc.report.runs import is_run

    written: list[str] = []

    def write(name: str, figure: "Figure") -> None:
        from rtmc.atomic import open_atomic

        for kind in kinds:
            with open_atomic(Path(output) / f"{name}.{kind}") as file:
                save(figure, file, kind, dpi)
            written.append(f"{name}.{kind}")

    runs = [path for path in given["inputs"] if is_run(path)]
    if runs and len(runs) < len(given["inputs"]):
        raise OptionError(
            f"{runs[0]} is a run of rtmc train, others of INPUT are not; draw runs by themselves, "
            f"and the rollouts of one from {runs[0]}/rollouts"
        )
    if runs and problems:
        raise OptionError("--problem chooses among groups; runs of rtmc train are drawn whole")
    left_out: list[str] = []
    if runs:
        _draw_runs(runs, write, output, width)
    else:
        left_out = _draw_groups(given, problems, write, output, width)
    click.echo(f"{output}: {len(written)} figures: {_listed(written)}")
    if left_out:
        click.echo(
            f"left out, as their rollouts do not differ in outcome: {_listed(left_out)}; "
            "--problem ID draws one"
        )


Write = Callable[[str, "Figure"], None]


def _draw_runs(runs: Sequence[str], write: Write, output: str, width: float | None) -> None:
    """Draw the learning curves of runs."""
    from rtmc.report.curves import curves
    from rtmc.report.runs import labelled, read_run

    kinds = labelled([read_run(path) for path in runs])
    _make_folder(output)
    write("curves", curves(kinds, width))


def _draw_groups(
    given: dict[str, Any],
    problems: Sequence[str],
    write: Write,
    output: str,
    width: float | None,
) -> list[str]:
    """Draw groups; give the problems that were left out."""
    from rtmc.report.figures import comparison, draw_quadrants, overlap, title, tree

    config = make_config(given)
    reader = make_reader(given)
    _make_folder(output)
    totals, names = _Totals(config), FileNames()
    seen: list[str] = []
    left_out: list[str] = []
    for group in progress(reader):
        seen.append(group.problem_id)
        if problems and group.problem_id not in problems:
            continue
        credits = totals.add(group)
        chosen = credits[config.estimator.name]
        if problems or _mixed(chosen):
            name = names.take(group.problem_id)
            write(f"tree-{name}", tree(chosen, width))
            titled = {title(estimator): one for estimator, one in credits.items()}
            write(f"comparison-{name}", comparison(titled, width))
        else:
            left_out.append(group.problem_id)
    print_skipped(reader)
    for warning in reader.report.warnings:
        click.echo(f"warning: {warning}", err=True)
    if not seen:
        raise FormatError(
            "no rollout in the input; `rtmc formats` lists what is read, --input-format forces one"
        )
    if missing := [problem for problem in problems if problem not in seen]:
        raise OptionError(f"no problem {_listed(missing)} in the input; it has {_listed(seen)}")
    signs = title(config.estimator.name), title(totals.reference)
    write("quadrants", draw_quadrants(totals.quadrants, *signs, width=width))
    write("overlap", overlap(totals.overlaps, width))
    return left_out


def _make_folder(path: str) -> None:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {path}: {error.strerror}; choose another -o"
        ) from error


def _listed(names: Sequence[str]) -> str:
    """List some names, each on one line and not too long."""
    from rtmc.report.tree_text import plain

    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(plain(name, NAME_LENGTH) for name in names[:SHOWN]) + more


class _Totals:
    """What is drawn over all groups: counts that add up, so that no group need be kept."""

    def __init__(self, config: "Config") -> None:
        from rtmc.advantages import GRPO, RTMC, GRPOStep

        chosen = config.estimator
        estimators: dict[str, Estimator] = {"grpo": GRPO(), "grpo_step": GRPOStep()}
        if chosen.name in estimators:
            estimators["rtmc"] = RTMC()
        self.config = config
        self.estimators = estimators | {chosen.name: chosen}
        self.reference = "grpo" if chosen.name == "grpo_step" else "grpo_step"
        self.quadrants: Counts = {}
        self.overlaps: dict[str, Ints] = {}

    def add(self, group: "Group") -> dict[str, "Credit"]:
        """Count a group; give its credit by each estimator."""
        from msgspec.structs import replace

        from rtmc.advantages import GRPO
        from rtmc.credit import credit
        from rtmc.diagnostics import overlap_by_index
        from rtmc.report.figures import count_quadrants
        from rtmc.signatures import LEVELS

        credits = {
            name: credit(group, replace(self.config, estimator=estimator))
            for name, estimator in self.estimators.items()
        }
        chosen = credits[self.config.estimator.name]
        # groups without signal would only add steps of A = 0
        counts = count_quadrants(chosen, credits[self.reference]) if _mixed(chosen) else {}
        for outcome, of in counts.items():
            known = self.quadrants.setdefault(outcome, dict.fromkeys(of, 0))
            for quadrant, count in of.items():
                known[quadrant] += count
        for level in LEVELS[1:]:  # in the first, root, all rollouts are always in one state
            found = overlap_by_index(
                credit(group, replace(self.config, estimator=GRPO(), level=level))
            )
            self.overlaps[level] = _sum(self.overlaps.get(level, found[:, :0]), found)
        return credits


def _sum(one: "Ints", other: "Ints") -> "Ints":
    """Add two tables of counts by step index, of which one may be longer."""
    import numpy as np

    longest = max(one.shape[1], other.shape[1])
    a, b = (np.pad(table, ((0, 0), (0, longest - table.shape[1]))) for table in (one, other))
    return a + b


def _mixed(credit: "Credit") -> bool:
    """Tell whether rollouts of a group ended differently, so that there is credit to draw."""
    votes = [r for r in credit.rollouts if r.verdict.outcome is not None]
    return any(not {"uniform", "singleton_group"} & set(r.flags) for r in votes)


class FileNames:
    """Makes names for files of problem ids: short, of safe characters, and never one twice."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def take(self, problem: str) -> str:
        """Name the next problem; one whose name is taken gets a number."""
        safe = re.sub(r"[^A-Za-z0-9._-]+", "-", problem)[:NAME_LENGTH].strip("-.") or "problem"
        name, number = safe, 1
        while name.lower() in self.taken:  # some file systems ignore case
            number += 1
            name = f"{safe}-{number}"
        self.taken.add(name.lower())
        return name
