"""``rtmc bench``: measure rtmc itself."""

import click

__all__ = ["merges", "speed"]


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

    figures = measure(input_ or None, copies)
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
