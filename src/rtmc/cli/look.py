"""``rtmc show``, ``rtmc keys`` and ``rtmc formats``: look at rollouts and at what is known."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rtmc.cli.options import (
    config_options,
    make_config,
    make_reader,
    print_skipped,
    reading_options,
)
from rtmc.errors import OptionError

if TYPE_CHECKING:
    from rtmc.formats import GroupReader
    from rtmc.rollouts import Group

__all__ = ["formats", "keys", "show"]


def _select(reader: "GroupReader", problem: str | None) -> "Group":
    """Find the group to look at; without a choice, say what there is."""
    seen: list[str] = []
    chosen = None
    for group in reader:
        seen.append(f"{group.problem_id} ({len(group.rollouts)})")
        if problem is None or group.problem_id == problem:
            chosen = chosen or group
            if problem is not None:
                return group
    if chosen is None or len(seen) > 1:
        listed = ", ".join(seen[:8]) + (f" and {len(seen) - 8} more" if len(seen) > 8 else "")
        wanted = f"no problem {problem!r}" if problem else f"{len(seen)} problems"
        raise OptionError(f"{wanted} in the input; say --problem with one of: {listed}")
    return chosen


_COLOURS: dict[str, dict[str, Any]] = {
    "plus": {"fg": "blue", "bold": True},
    "minus": {"fg": "yellow"},
    "pass": {"fg": "green"},
    "fail": {"fg": "red"},
    "open": {"dim": True},
    "dim": {"dim": True},
}


def _painter() -> Callable[[str, str], str]:
    """Colour on a terminal only, blue and yellow, which everybody can tell apart."""
    if not sys.stdout.isatty():
        return lambda text, kind: text
    return lambda text, kind: click.style(text, **_COLOURS[kind])


@click.command(
    epilog="Example: rtmc show rollouts.jsonl --problem django__django-11239 --level work"
)
@reading_options
@config_options
@click.option("--problem", metavar="ID", help="Which group; not needed where there is only one.")
@click.option("--all", "unfolded", is_flag=True, help="Do not fold runs of steps.")
@click.option("--width", type=click.IntRange(60), help="Characters a line.  [terminal, or 120]")
def show(problem: str | None, unfolded: bool, width: int | None, **given: Any) -> None:
    """Draw the rollout tree of one problem, with Q, V′ and A at every step."""
    from rtmc.credit import credit
    from rtmc.diagnostics import diagnose
    from rtmc.report import summary
    from rtmc.report.tree_text import Style, draw

    config = make_config(given)
    group = _select(make_reader(given), problem)
    computed = credit(group, config)
    click.echo(group.problem_id)
    for line in summary.lines(diagnose(computed), config):
        click.echo(line)
    click.echo()
    if width is None:
        from shutil import get_terminal_size

        width = max(get_terminal_size((120, 24)).columns, 60) if sys.stdout.isatty() else 120
    for line in draw(computed, Style(width, not unfolded, _painter())):
        click.echo(line)


# --- keys --------------------------------------------------------------------------------------


@click.command(
    epilog="Example: rtmc keys rollouts.jsonl --problem my-problem --rollout run-3 --level content"
)
@reading_options
@click.option("--problem", metavar="ID", help="Only this problem.")
@click.option("--rollout", metavar="ID", help="Only this rollout.")
@click.option("--level", "level", metavar="LEVEL", default="paper", show_default=True)
@click.option("--hash-chars", type=click.IntRange(1, 16), default=16, show_default=True)
def keys(
    problem: str | None, rollout: str | None, level: str, hash_chars: int, **given: Any
) -> None:
    """Print step by step which signature each step got, and why.

    For people who tune signatures: the raw call, how its shell text was split, each effect with
    what decided its result, and the state in which the step acted.
    """
    from rtmc.report.keys_text import explain
    from rtmc.signatures import CodingSigner

    signer = CodingSigner(tuple(level.split(",")), hash_chars)
    found = False
    reader = make_reader(given)
    for group in reader:
        if problem is not None and group.problem_id != problem:
            continue
        for one in group.rollouts:
            if rollout is None or one.rollout_id == rollout:
                found = True
                for line in explain(one, signer):
                    click.echo(line)
    print_skipped(reader)
    if not found:
        raise OptionError("no such rollout in the input; `rtmc show` lists the problems")


@click.command()
def formats() -> None:
    """List the trajectory formats, what each needs, and where its ids come from."""
    from rtmc.formats import FORMATS

    for name, known in FORMATS.items():
        click.echo(f"{name:<22} {known.title}")
        click.echo(f"{'':<22} needs: {known.needs}")
        click.echo(f"{'':<22} ids:   {known.ids}")
