"""``rtmc report``: write the page that shows where rollouts part."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmc.cli.evaluate import read_finished
from rtmc.cli.options import (
    config_options,
    make_config,
    make_reader,
    print_skipped,
    progress,
    reading_options,
    refuse_input,
)
from rtmc.errors import FormatError, OptionError

if TYPE_CHECKING:
    from rtmc.config import Config
    from rtmc.formats import GroupReader
    from rtmc.report.page.credited import Credited
    from rtmc.report.page.data import SignedGroup

__all__ = ["report"]


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc report rollouts.jsonl -o report.html\n"
    "  rtmc report credit.jsonl -o report.html      (what `rtmc credit` wrote: no raw texts)\n"
    "  rtmc report runs/ --outcomes report.json --problem django__django-11239 -o one.html\n"
    "  rtmc report before.json after.json           (what `rtmc evaluate -o` wrote)"
)
@reading_options
@config_options
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True,
              help="Where to write the page.")  # fmt: skip
@click.option("--problem", "problems", metavar="ID", multiple=True,
              help="Only this problem. Repeatable.")  # fmt: skip
@click.option("--title", metavar="TEXT", help="What to call it.  [the names of the inputs]")
@click.option("--text-limit", type=click.IntRange(100), default=20_000, show_default=True,
              help="Characters kept of each thought, argument and observation.")  # fmt: skip
def report(
    output: str, problems: tuple[str, ...], title: str | None, text_limit: int, **given: Any
) -> None:
    """Write one HTML page with every group: its tree, its numbers, its texts.

    The page needs no server and no network. Discount, prior and level can be changed in it.
    INPUT: rollouts of any format, or files that `rtmc credit` wrote; or an evaluation that
    `rtmc evaluate` wrote, or two: then the second is compared against the first.
    """
    from rtmc.report.page import open_page

    if _evaluated(given["inputs"], output, title):
        return
    config = make_config(given)
    name = title or ", ".join(Path(path).name for path in given["inputs"])[:120]
    source = _credited(given["inputs"]) or _Rollouts(make_reader(given), config, problems)
    refuse_input(output, source.paths)
    seen: set[str] = set()
    wrote = 0
    with open_page(
        output, source.config, shown_config=source.shown_config, title=name, text_limit=text_limit
    ) as page:
        for signed in source:
            if not problems or signed.group.problem_id in problems:
                page.add(signed)
                seen.add(signed.group.problem_id)
                wrote += 1
        if not wrote:
            raise FormatError(
                f"no problem {', '.join(map(repr, problems))} in the input"
                if problems
                else "no rollout in the input; `rtmc formats` lists what is read"
            )
    if isinstance(source, _Rollouts):
        if config.estimator.reads.batch:
            click.echo(
                f"note: {config.estimator.name} reads a batch; here each group is one. For the "
                "numbers of a batch credit the rollouts, and make the report from that file",
                err=True,
            )
        print_skipped(source.reader)
        for warning in source.reader.report.warnings:
            click.echo(f"warning: {warning}", err=True)
    for problem in problems:
        if problem not in seen:
            click.echo(f"no such problem in the input: {problem!r}", err=True)
    size = Path(output).stat().st_size / 1e6
    groups = f"{wrote} group{'s' * (wrote != 1)}"
    click.echo(f"{output}: {groups}, {size:.1f} MB; open it in a browser")


class _Rollouts:
    """The groups of a reader, signed; those of some problems only, if any are named."""

    shown_config: dict[str, Any] | None = None

    def __init__(self, reader: "GroupReader", config: "Config", problems: Sequence[str]) -> None:
        self.reader = reader
        self.config = config
        self.problems = problems

    @property
    def paths(self) -> Sequence[str]:
        """What is read."""
        return self.reader.paths

    def __iter__(self) -> "Iterator[SignedGroup]":
        from rtmc.report.page.data import sign_group

        for group in progress(self.reader):
            if not self.problems or group.problem_id in self.problems:
                yield sign_group(group, self.config)


def _evaluated(inputs: Sequence[str], output: str, title: str | None) -> bool:
    """Write the page of one or two evaluations, if the inputs are such."""
    found = [one for one in map(read_finished, inputs) if one is not None]
    if not found:
        return False
    if len(found) < len(inputs) or len(found) > 2:
        raise OptionError(
            "a report shows one evaluation, or two compared; "
            f"got {len(inputs)} inputs, {len(found)} of them evaluations"
        )
    _refuse_settings("an evaluation", ("inputs", "title", "output"))
    refuse_input(output, inputs)
    from rtmc.report.evaluation_page import write_evaluation_page

    write_evaluation_page(output, found[-1], found[0] if len(found) == 2 else None, title or "")
    click.echo(f"{output}: {' against '.join(one.name for one in reversed(found))}; "
               "open it in a browser")  # fmt: skip
    return True


def _refuse_settings(what: str, fitting: Sequence[str]) -> None:
    """Refuse options that have no effect on an input."""
    from click.core import ParameterSource

    context = click.get_current_context()
    for parameter in context.command.params:
        typed = context.get_parameter_source(parameter.name or "")
        if typed == ParameterSource.COMMANDLINE and parameter.name not in fitting:
            raise OptionError(
                f"{parameter.opts[0]} has no effect on {what}; "
                "leave it out, or make the report from the rollouts"
            )


def _credited(inputs: Sequence[str]) -> "Credited | None":
    """Open the inputs as credited files, if they are."""
    from rtmc.report.page.credited import Credited, is_credited

    kinds = [is_credited(path) for path in inputs]
    if not any(kinds):
        return None
    if not all(kinds):
        raise OptionError(
            f"{inputs[kinds.index(True)]} was written by `rtmc credit`, "
            f"{inputs[kinds.index(False)]} was not; make a report of each"
        )
    _refuse_settings(
        "a file that `rtmc credit` wrote", ("inputs", "output", "problems", "title", "text_limit")
    )
    return Credited(inputs)
