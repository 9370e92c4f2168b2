"""``rtmc diagnose``: what the estimator can and cannot tell from these rollouts."""

from typing import TYPE_CHECKING, Any

import click

from rtmc.cli.options import (
    config_options,
    make_config,
    make_reader,
    print_skipped,
    progress,
    reading_options,
)

if TYPE_CHECKING:
    from rtmc.config import Config
    from rtmc.formats import GroupReader
    from rtmc.guidance import Guidance

__all__ = ["diagnose"]


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc diagnose rollouts.jsonl\n"
    "  rtmc diagnose runs/ --outcomes report.json --level content\n"
    "  rtmc diagnose rollouts.jsonl --json > guidance.json"
)
@reading_options
@config_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def diagnose(as_json: bool, **given: Any) -> None:
    """Say what the credit of INPUT rests on, how much of it is luck, and what to change.

    Overlap and support, the standard error of an advantage, which level and λ to take, whether
    more rollouts or a coarser level would help more, who earns the validation bonus, and what
    length does. Errors (±) are standard errors over groups.
    """
    from rtmc.guidance import Findings, sample_of
    from rtmc.report.guidance_text import lines

    config = make_config(given)
    reader = make_reader(given)
    found = Findings()
    for group in progress(reader, quiet=as_json):
        found.add(sample_of(group, config))
    if not as_json:
        print_skipped(reader)
        for warning in reader.report.warnings:
            click.echo(f"warning: {warning}", err=True)
    guidance = found.guidance()
    if as_json:
        click.echo(_as_json(guidance, config, reader))
        return
    for line in lines(guidance, config):
        click.echo(line)


def _as_json(guidance: "Guidance", config: "Config", reader: "GroupReader") -> str:
    """Write all figures; one that does not exist is null."""
    import msgspec

    values = msgspec.to_builtins(guidance)
    values["config"] = config.as_dict()
    values["input"] = {
        "files": reader.report.files,
        "skipped": [{"source": str(s.source), "reason": s.reason} for s in reader.report.skipped],
        "warnings": reader.report.warnings,
    }
    return msgspec.json.encode(values).decode()
