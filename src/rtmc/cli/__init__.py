"""The command line: ``rtmc credit | show | report | figures | diagnose | evaluate | …``.

Imports of what a command needs stand inside it, so that ``rtmc --help`` is quick. Only here does
an ``RtmcError`` become one line and exit 2.
"""

import contextlib
import io
import signal
import sys
from typing import Any

import click

from rtmc import __version__
from rtmc.cli.bench import merges, page, rollouts, sandbox, signatures, speed
from rtmc.cli.credit import credit
from rtmc.cli.diagnose import diagnose
from rtmc.cli.evaluate import evaluate
from rtmc.cli.experiment import experiment
from rtmc.cli.figures import figures
from rtmc.cli.judge import learning, quality, results
from rtmc.cli.look import formats, keys, show
from rtmc.cli.report import report
from rtmc.cli.rollout import rollout
from rtmc.cli.tasks import tasks
from rtmc.cli.train import train
from rtmc.errors import RtmcError

__all__ = ["main"]


def _terminate(number: int, frame: object) -> None:
    sys.exit(128 + number)


class _Commands(click.Group):
    """Turns an error of ours into one line and exit 2, and keeps the order of definition."""

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks ≥ gets a ?
                stream.reconfigure(errors="replace")
        with contextlib.suppress(ValueError):  # not in the main thread: nothing to do
            signal.signal(signal.SIGTERM, _terminate)  # clean up as after Ctrl-C
        try:
            return super().invoke(ctx)
        except RtmcError as error:
            click.echo(f"rtmc: {error}", err=True)
            ctx.exit(2)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: rtmc credit rollouts.jsonl -o credit.jsonl && rtmc show rollouts.jsonl "
    "--problem ID",
)
@click.version_option(__version__, prog_name="rtmc")
def main() -> None:
    """Say which step of an agent's rollouts deserved the credit.

    Merges the rollouts of one problem into a tree of states and actions, and gives every step its
    advantage A = Q − V′.
    """


@main.group(cls=_Commands)
def bench() -> None:
    """Measure rtmc itself."""


bench.add_command(speed)
bench.add_command(merges)
bench.add_command(page)
bench.add_command(sandbox)
bench.add_command(rollouts)
bench.add_command(signatures)
bench.add_command(quality)
bench.add_command(learning)
bench.add_command(results)
for command in (
    rollout,
    train,
    credit,
    show,
    report,
    figures,
    diagnose,
    evaluate,
    experiment,
    tasks,
    keys,
    formats,
    bench,
):
    main.add_command(command)
