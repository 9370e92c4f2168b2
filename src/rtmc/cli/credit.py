"""``rtmc credit``: every step its advantage, group after group."""

import gc
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from rtmc.cli.options import (
    config_options,
    make_config,
    make_reader,
    print_skipped,
    progress,
    reading_options,
    refuse_input,
)
from rtmc.errors import FormatError

if TYPE_CHECKING:
    from rtmc.config import Config
    from rtmc.diagnostics import Diagnostics
    from rtmc.formats import GroupReader
    from rtmc.output import CreditRecord
    from rtmc.rollouts import Group

__all__ = ["batched", "credit", "credit_batch"]


STEPS_AT_ONCE = 8192
"""A batch is cheaper the larger it is, up to here; memory holds one."""

COLLECTOR = (100_000, 50, 50)
"""Rollouts are many small objects without cycles: the garbage collector would walk them in vain."""


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc credit rollouts.jsonl -o credit.jsonl\n"
    "  rtmc credit runs/ --outcomes report.json -o credit.parquet --jobs 4\n"
    "  rtmc credit rollouts.jsonl --preset paper --gamma 1 -o credit.jsonl\n"
    "  zcat big.jsonl.gz | rtmc credit - --grouped -o - | head -1"
)
@reading_options
@config_options
@click.option("-o", "--output", metavar="FILE",
              help="Where to write: .jsonl, .parquet (extra `parquet`), or - for JSON lines on the "
                   "standard output. Without it only the summary is printed.")  # fmt: skip
@click.option("--batch-groups", type=click.IntRange(1),
              help=f"Groups computed at once: the batch, for estimators that read one. "
                   f"[default: 64; for others fewer that make {STEPS_AT_ONCE} steps]")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--strict", is_flag=True, help="Exit 1 if any record was skipped.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def credit(output: str | None, batch_groups: int | None, jobs: int, strict: bool, as_json: bool,
           **given: Any) -> None:  # fmt: skip
    """Give every step of the rollouts in INPUT its advantage.

    INPUT: files, folders (walked), or - for the standard input. The format is told from the
    content; `rtmc formats` lists them.
    """
    from rtmc.diagnostics import Diagnostics
    from rtmc.output import open_writer, write_lines

    config = make_config(given)
    gc.set_threshold(*COLLECTOR)
    reader = make_reader(given)
    refuse_input(output, reader.paths)
    if not given["grouped"] and not len(reader):
        _explain_nothing(reader)
    found = Diagnostics()
    groups = progress(reader, quiet=as_json)
    if batch_groups is None:
        # who reads a batch gets one whose size does not depend on the rollouts' length
        steps = None if config.estimator.reads.batch else STEPS_AT_ONCE // jobs
        batches = batched(groups, 64, steps)
    else:
        batches = batched(groups, batch_groups)
    done = _credited(batches, config, jobs)
    to_stdout = output == "-"
    if to_stdout:
        for written, counts in done:
            write_lines(sys.stdout.buffer, written)
            found += counts
    elif output is None:
        for _, counts in done:
            found += counts
    else:
        with open_writer(output) as writer:
            for written, counts in done:
                for record in written:
                    writer.write(record)
                found += counts
    _report(reader, found, config, output, as_json, to_stdout)
    if strict and reader.report.skipped:
        click.get_current_context().exit(1)


def _explain_nothing(reader: "GroupReader") -> None:
    """Say why there is nothing to do."""
    print_skipped(reader)
    raise FormatError(
        "no rollout in the input; `rtmc formats` lists what is read, --format forces one"
    )


Done = tuple[list["CreditRecord"], "Diagnostics"]


def _credited(batches: Iterable[list["Group"]], config: "Config", jobs: int) -> Iterator[Done]:
    """Credit groups batch by batch, in order, in one or several processes."""
    if jobs == 1:
        yield from (credit_batch(batch, config) for batch in batches)
        return
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing import get_context

    waiting: deque[Future[Done]] = deque()
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_ignore_interrupts
    )
    try:
        for batch in batches:
            waiting.append(pool.submit(credit_batch, batch, config))
            if len(waiting) > 2 * jobs:  # bounds what is in memory
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def batched(
    groups: Iterable["Group"], size: int, steps: int | None = None
) -> Iterator[list["Group"]]:
    """Cut groups into lists of ``size``; shorter ones, as soon as they hold so many steps."""
    batch: list[Group] = []
    held = 0
    for group in groups:
        batch.append(group)
        held += sum(len(rollout.steps) for rollout in group.rollouts)
        if len(batch) == size or (steps is not None and held >= steps):
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def credit_batch(batch: list["Group"], config: "Config") -> Done:
    """Credit some groups at once; give their records and counts."""
    from rtmc.credit import credit
    from rtmc.diagnostics import diagnose
    from rtmc.output import records

    computed = credit(batch, config)
    return list(records(computed)), diagnose(computed)


def _report(
    reader: "GroupReader",
    found: "Diagnostics",
    config: "Config",
    output: str | None,
    as_json: bool,
    to_stdout: bool,
) -> None:
    """Print the summary; on standard error where the records went to standard output."""
    from rtmc.report import summary

    report = reader.report
    if as_json:
        import msgspec

        values = summary.as_values(found, config)
        values["input"] = {
            "files": report.files,
            "passed_over": report.passed_over,
            "outcome_files": report.outcome_files,
            "records": report.records,
            "joined": report.joined,
            "skipped": [{"source": str(s.source), "reason": s.reason} for s in report.skipped],
            "warnings": report.warnings,
        }
        values["output"] = output
        click.echo(msgspec.json.encode(values).decode(), err=to_stdout)
        return
    print_skipped(reader)
    for warning in report.warnings:
        click.echo(f"warning: {warning}", err=True)
    files = ", ".join(f"{count} {name}" for name, count in report.files.items()) or "none"
    if report.outcome_files:
        files += f", {report.outcome_files} with outcomes"
    click.echo(f"  read           {files}" + _passed_over(report.passed_over), err=to_stdout)
    if report.joined or report.skipped:
        parts = [f"{report.records} read"]
        if report.joined:
            parts.append(f"{report.joined} joined to another of the same rollout")
        if report.skipped:
            parts.append(f"{len(report.skipped)} skipped, see above")
        click.echo(f"  records        {', '.join(parts)}", err=to_stdout)
    for line in summary.lines(found, config):
        click.echo(line, err=to_stdout)
    if output and not to_stdout:
        click.echo(f"  written        {output}", err=to_stdout)


def _passed_over(kinds: dict[str, int]) -> str:
    if not kinds:
        return ""
    parts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"; passed over: {parts}"
