"""``rtmc train``: train an agent with step-level credit."""

from pathlib import Path

import click

from rtmc.errors import OptionError

__all__ = ["train"]


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc train tiny -o run\n"
    "  rtmc train qwen-coder-1.5b --show > mine.toml\n"
    "  rtmc train tiny --set credit.estimator=chain_gae --set optimizer.steps=20 -o run\n"
    "  rtmc report run/rollouts/step-00020.jsonl.gz -o report.html\n"
    "  rtmc rollout --task tiny:split=test --model hf:run/best -o test.jsonl\n"
    "  accelerate launch --num_processes 2 -m rtmc.cli train tiny -o run"
)
@click.argument("name", metavar="CONFIG.toml|NAME")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE",
              help="Replace a value of the configuration, as in credit.estimator=grpo. "
              "`none` takes a value away where there may be none. Repeatable.")  # fmt: skip
@click.option("--show", is_flag=True, help="Print the configuration as TOML and stop: the start of "
              "one of your own.")  # fmt: skip
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path),
              help="Everything goes there. A run that was stopped goes on when the command is "
              "given again.")  # fmt: skip
def train(name: str, sets: tuple[str, ...], show: bool, output: Path | None) -> None:
    """Train an agent with step-level credit, on TRL's GRPO trainer.

    Each step rolls out a few problems N times each, credits every step of the rollouts with any
    estimator, and trains on that. NAME is a configuration that comes with the package: tiny (a
    model of its own, on two CPU cores), smollm2, qwen-coder-1.5b, qwen-coder-7b-lora or paper (for
    GPUs: docs/training.md). Needs the extra `train`.
    """
    from rtmc.train.toml import dumps, load

    given: dict[str, str] = {}
    for one in sets:
        key, equals, value = one.partition("=")
        if not equals:
            raise OptionError(f"--set {one}: expected KEY=VALUE")
        given[key.strip()] = value.strip()
    config = load(name, given)
    if show:
        click.echo(dumps(config), nl=False)
        return
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output'.")
    from rtmc.train.run import train as run

    try:
        store = run(config, output, click.echo)
    except KeyboardInterrupt:
        click.echo(
            f"stopped; the same command goes on from the last checkpoint in {output}", err=True
        )
        raise SystemExit(130) from None
    if not store.writes:
        return
    click.echo(f"  {'metrics':<12}{output}/metrics.jsonl")
    best = f"{output}/best, " if store.best.exists() else ""
    click.echo(f"  {'policies':<12}{best}{output}/last")
    if kept := store.kept():
        click.echo(f"  {'next':<12}rtmc report {kept[-1]} -o report.html")
