"""``rtmc bench``: measure rtmc itself."""

import os
from collections.abc import Callable, Iterable
from typing import Any

import click

from rtmc.errors import OptionError

__all__ = ["merges", "page", "rollouts", "sandbox", "signatures", "speed"]


@click.command(epilog="Example: rtmc bench speed rollouts.jsonl --copies 20")
@click.argument("input_", metavar="INPUT", default="")
@click.option("--copies", type=click.IntRange(1), default=20, show_default=True,
              help="How often the input is repeated, every command perturbed.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def speed(input_: str, copies: int, as_json: bool) -> None:
    """Print the figures of speed and memory, as ratios taken in one run.

    INPUT: chat messages as JSON lines; without it, rollouts made up for the purpose.
    """
    from rtmc.bench.speed import measure, table

    _show(measure(input_ or None, copies), table, as_json)


@click.command("report", epilog="Example: rtmc bench report rollouts.jsonl")
@click.argument("input_", metavar="INPUT")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def page(input_: str, as_json: bool) -> None:
    """Print what a report costs: size, time to write it, and how the page answers in Chromium.

    INPUT: one file of rollouts. Needs the extra `bench` and a Chromium.
    """
    from rtmc.bench.report import measure, table

    if not os.path.isfile(input_):
        raise OptionError(f"{input_}: no such file; give one file of rollouts")
    _show(measure(input_), table, as_json)


@click.command(epilog="Example: rtmc bench sandbox --kind warm --many 32")
@click.option("--kind", type=click.Choice(["bwrap", "warm"]), default="bwrap", show_default=True)
@click.option("--many", type=click.IntRange(1), default=32, show_default=True,
              help="How many sandboxes at once.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sandbox(kind: str, many: int, as_json: bool) -> None:
    """Print what a sandbox costs: its start, a command, the state, and many at once.

    Needs bubblewrap.
    """
    from rtmc.bench.sandbox import measure, table

    _show(measure(many, kind), table, as_json)


@click.command(epilog="Example: rtmc bench rollouts --rollouts 64")
@click.option("--rollouts", "count", type=click.IntRange(1), default=64, show_default=True)
@click.option("--workers", type=click.IntRange(1), default=8, show_default=True,
              help="Sandboxes that work at the same time.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def rollouts(count: int, workers: int, as_json: bool) -> None:
    """Print how fast rollouts are, with an agent of rules on real files and real test runs.

    Needs bubblewrap and the extra `agent`.
    """
    from rtmc.bench.rollouts import measure, table

    _show(measure(count, workers), table, as_json)


def _show(
    figures: dict[str, Any], table: Callable[[dict[str, Any]], Iterable[str]], as_json: bool
) -> None:
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(figures).decode())
    else:
        for line in table(figures):
            click.echo(line)


@click.command(
    epilog="Example: rtmc bench merges rollouts.jsonl --sample 100 --seed 0 > merges.txt"
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--level", metavar="LEVEL", default="paper", show_default=True)
@click.option("--sample", "size", type=click.IntRange(1), default=100, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
def merges(inputs: tuple[str, ...], level: str, size: int, seed: int) -> None:
    """Draw steps that were merged, for reading by eye: do they really do the same?"""
    from rtmc.bench.merges import sample
    from rtmc.formats import read_groups

    for line in sample(read_groups(list(inputs)), level, size, seed):
        click.echo(line)


@click.command(epilog="Example: rtmc rollout --task tiny --problems 20 --model scripted -o r.jsonl "
               "&& rtmc bench signatures r.jsonl")  # fmt: skip
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def signatures(inputs: tuple[str, ...], as_json: bool) -> None:
    """Judge the state signatures by the workspaces themselves: precision and recall.

    INPUT: rollouts that record a hash of the workspace at every step, as `rtmc rollout` does.
    """
    from rtmc.bench.signatures import measure, table
    from rtmc.formats import read_groups

    _show(measure(read_groups(list(inputs))), table, as_json)
