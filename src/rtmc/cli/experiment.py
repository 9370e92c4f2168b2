"""``rtmc experiment``: the paper's experiment, at a scale that two cores can run."""

import os
import re
from pathlib import Path

import click

from rtmc.errors import MissingExtraError, OptionError

__all__ = ["experiment"]


@click.group()
def experiment() -> None:
    """Run an experiment of many training runs, in pieces."""


@experiment.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc experiment paper -o experiment\n"
    "  rtmc experiment paper --size paper --jobs 8 -o experiment\n"
    "  rtmc experiment paper --methods grpo,rtmc --size smoke -o try"
)
@click.option("--size", type=click.Choice(["smoke", "cores", "paper"]), default="cores",
              show_default=True, help="smoke: minutes; cores: 4 to 8 hours of two cores; paper: "
              "150 steps of 64 rollouts.")  # fmt: skip
@click.option("--methods", metavar="NAME,…", help="grpo, grpo_step, rtmc, 'rtmc, no smoothing', "
              "chain_gae; separated by semicolons or commas.  [all]")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1), metavar="N",
              help="Fresh seeds of each method, another number than the size's.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True,
              help="Runs at the same time, one thread each.")  # fmt: skip
@click.option("-o", "--output", required=True, metavar="DIR", type=click.Path(path_type=Path),
              help="Results go there. What was stopped goes on when the command is given "
              "again.")  # fmt: skip
def paper(size: str, methods: str | None, seeds: int | None, jobs: int, output: Path) -> None:
    """Train in the paper's configurations and the recommended one, and compare.

    Six ways from one checkpoint: none, GRPO, GRPO with step rewards, RTMC as the paper has it, RTMC
    without smoothing, and chain_gae. Learning rates are chosen on seeds of their own; fresh seeds
    are paired; policies are tested on problems that neither training nor the choice of the
    checkpoint has seen. Needs the extras `train` and `bench`.
    """
    import importlib.util

    for package, extra in (("trl", "train"), ("matplotlib", "bench")):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads of two runs are in each other's way
    import msgspec

    from rtmc.atomic import open_atomic
    from rtmc.bench.figures import draw_training
    from rtmc.bench.paper import METHODS, SIZES, setups_of, study, work_of
    from rtmc.bench.paper_text import table
    from rtmc.cli.judge import bar

    chosen, settings = _chosen(methods, list(METHODS)), SIZES[size]
    if seeds:
        settings = msgspec.structs.replace(settings, seeds=seeds)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "paper.json"
    found = msgspec.json.decode(path.read_bytes()) if path.exists() else None
    wanted = msgspec.json.decode(
        msgspec.json.encode({"settings": settings, "setups": setups_of(chosen)})
    )
    if found is None or {key: found.get(key) for key in wanted} != wanted:
        if found is not None:
            click.echo(f"{path} is of other settings: running what is missing", err=True)
        with bar(work_of(settings, chosen)) as tick:
            found = study(settings, chosen, output, jobs, tick)
        encoded = msgspec.json.encode(found)
        with open_atomic(path) as file:
            file.write(msgspec.json.format(encoded, indent=1) + b"\n")
        found = msgspec.json.decode(encoded)
    for line in table(found):
        click.echo(line)
    for drawn in draw_training(found, output):
        click.echo(f"drew {drawn}", err=True)


def _chosen(given: str | None, known: list[str]) -> list[str]:
    """Read names that may hold a comma themselves."""
    if given is None:
        return known
    rest, found = given.strip(), []
    while rest or not found:
        fits = [name for name in known if re.match(re.escape(name) + r"\s*([,;]|$)", rest)]
        if not fits:
            raise OptionError(f"--methods: {rest!r} is not one of {'; '.join(known)}")
        found.append(max(fits, key=len))
        rest = rest[len(found[-1]) :].lstrip(",; ")
    return list(dict.fromkeys(found))
