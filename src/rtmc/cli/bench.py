"""``rtmc bench``: measure rtmc itself."""

import click

__all__ = ["speed"]


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
