"""``rtmc tasks build | list | show``: make problems for an agent, and look at them."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import click

from rtmc.errors import OptionError

__all__ = ["tasks"]


def _named(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


@click.group()
def tasks() -> None:
    """Make problems for an agent, and look at them."""


@tasks.group()
def build() -> None:
    """Build problems."""


@build.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc tasks build seeded --packages parse,toolz --count 40 -o problems\n"
    "  rtmc tasks build seeded --count 500 --jobs 8 -o problems"
)
@click.option("--packages", metavar="NAME,…", default="", callback=_named,
              help="Packages to inject bugs in.  [all]")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=500, show_default=True,
              help="Problems in all.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True,
              help="Of the order in which bugs are tried, and of the wording.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True,
              help="Sandboxes at a time; the result does not depend on it.")  # fmt: skip
@click.option("-o", "--output", metavar="DIR", required=True,
              help="Folder for the problems; a build that was stopped goes on, and one with "
              "another --count uses what is there.")  # fmt: skip
def seeded(packages: tuple[str, ...], count: int, seed: int, jobs: int, output: str) -> None:
    """Inject bugs into real packages, and keep those that their own tests can tell.

    The packages are pinned sdists that pip downloads. A bug is kept if tests that always passed
    fail each time, and if a short program shows it: the issue is made of that program. Needs the
    extra `agent` and bubblewrap.
    """
    from rtmc.agent.sandbox import open_sandbox
    from rtmc.agent.tasks.seeded import Settings, choose, installed
    from rtmc.agent.tasks.seeded import build as build_seeded

    chosen = tuple(choose(packages))
    for package in chosen:
        if installed(package):
            click.echo(
                f"warning: {package.name} is installed beside rtmc, and an agent in a sandbox of "
                "this Python can read it there",
                err=True,
            )
    with _bar(count) as tick:
        summary = build_seeded(
            Settings(chosen, count, seed, jobs), Path(output), open_sandbox, tick
        )
    tried = sum(summary.tried.values())
    click.echo(f"{count} problems of {tried} bugs that were tried, in {output}")
    for kind, number in summary.tried.items():
        click.echo(f"  {kind:18} {summary.kept.get(kind, 0):5} of {number}")
    for reason, number in sorted(summary.reasons.items(), key=lambda pair: -pair[1]):
        click.echo(f"  not kept, {reason}: {number}")


@tasks.command("list", epilog="Example: rtmc tasks list problems --split held-out")
@click.argument("folder", metavar="DIR")
@click.option("--split", type=click.Choice(["train", "held-out", "all"]), default="all",
              show_default=True, help="Packages to train on, or held out.")  # fmt: skip
def list_(folder: str, split: str) -> None:
    """List the problems of DIR: id, split, kind of bug, and title.

    DIR: as `rtmc tasks build seeded -o` has written it.
    """
    from rtmc.agent.tasks.seeded import read_problems

    for line in read_problems(Path(folder)):
        if split in ("all", line.split):
            title = line.text.splitlines()[0].removeprefix("# ")
            click.echo(f"{line.problem_id:27} {line.split:8} {line.mutation.kind:17} {title}")


@tasks.command(epilog="Example: rtmc tasks show problems parse-df2f5fe50e")
@click.argument("folder", metavar="DIR")
@click.argument("problem_id", metavar="ID")
def show(folder: str, problem_id: str) -> None:
    """Show a problem of DIR: its text, the tests that decide, and the bug.

    DIR: as `rtmc tasks build seeded -o` has written it.
    """
    from rtmc.agent.tasks.seeded import bug_of, read_problems

    for line in read_problems(Path(folder)):
        if line.problem_id == problem_id:
            click.echo(f"{line.text}\n\n--- what the agent is not told\n")
            click.echo(f"{line.mutation.kind}, {line.split}: {line.mutation.description}")
            for name in line.failing:
                click.echo(f"fails: {name}")
            click.echo(bug_of(Path(folder), line))
            return
    raise OptionError(f"no problem {problem_id!r} in {folder}; `rtmc tasks list` shows them")


@contextmanager
def _bar(total: int) -> Generator[Callable[[int], object]]:
    """Count problems on a terminal."""
    from tqdm import tqdm

    hidden = not sys.stderr.isatty()
    with tqdm(total=total, unit=" problems", leave=False, file=sys.stderr, disable=hidden) as bar:
        yield bar.update
