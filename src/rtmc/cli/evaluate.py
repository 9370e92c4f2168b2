"""``rtmc evaluate``: how many problems are solved, and what was gained and lost."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmc.cli.options import make_reader, print_skipped, progress, reading_options, refuse_input
from rtmc.errors import OptionError, OutputError

if TYPE_CHECKING:
    from rtmc.evaluation import Evaluation

__all__ = ["evaluate", "read_finished"]

_BEGINNING = re.compile(rb'\{\s*"schema"\s*:\s*"rtmc\.evaluation/')


def _sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r}: expected numbers, as in 1,2,4") from None


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc evaluate rollouts.jsonl -o evaluation.json\n"
    "  rtmc evaluate trained.jsonl --against base.jsonl     (gained and lost)\n"
    "  rtmc evaluate step-50/ step-100/ step-150/           (the best checkpoint)\n"
    "  rtmc report evaluation.json -o evaluation.html"
)
@reading_options
@click.option("--against", metavar="PATH",
              help="Compare with these rollouts, or this evaluation: gained and lost.")  # fmt: skip
@click.option("--held-out", multiple=True, metavar="PATH",
              help="Each checkpoint on problems that do not pick the best one; one for every "
                   "INPUT, in the same order.")  # fmt: skip
@click.option("--k", callback=_sizes, metavar="K,...",
              help="For which k to give pass@k.  [1,2,4 … as far as there are runs]")  # fmt: skip
@click.option("--majority", type=int, metavar="M",
              help="Runs that vote for the majority.  [3, or all if fewer]")  # fmt: skip
@click.option("--incomplete", type=click.Choice(["fail", "exclude"]),
              help="Rollouts that a limit stopped: failures, or not counted.  [fail]")  # fmt: skip
@click.option("--unknown", type=click.Choice(["exclude", "fail"]),
              help="Rollouts of unknown outcome, or ended by an error that was not the agent's.  "
                   "[exclude]")  # fmt: skip
@click.option("--predictions", metavar="DIR",
              help="Write the patches of INPUT there as SWE-bench's harness reads them, a file for "
                   "each run, and print the commands that judge them.")  # fmt: skip
@click.option("--dataset", metavar="NAME", default="SWE-bench/SWE-bench_Verified",
              show_default=True, help="Of the predictions.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write the evaluation as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def evaluate(
    inputs: tuple[str, ...],
    against: str | None,
    held_out: tuple[str, ...],
    predictions: str | None,
    dataset: str,
    output: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Say how many problems are solved: pass@k and majority over runs, with 95 % intervals.

    INPUT: the rollouts of one model, of any format (a file or a folder), or an evaluation that
    was written with -o. Several are checkpoints, and the best is picked.
    """
    _refuse_misfits(inputs, against, held_out, output, predictions)

    def load(path: str) -> "Evaluation":
        return _load(path, given, quiet=as_json)

    found = [load(path) for path in inputs]
    if against:
        result, lines = _compared(found[0], load(against))
    elif len(found) > 1:
        result, lines = _picked(found, [load(path) for path in held_out])
    else:
        from rtmc.report.evaluation_text import evaluation_lines

        result, lines = {"evaluations": found}, list(evaluation_lines(found[0]))
    if output:
        _write(output, found[0])
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(result).decode())
        return
    for line in lines:
        click.echo(line)
    if output:
        click.echo(f"  {'written':<17}{output}")
    if predictions:
        for command in _write_predictions(inputs[0], given, predictions, dataset):
            click.echo(f"  {'judge with':<17}{command}")


def _refuse_misfits(
    inputs: Sequence[str],
    against: str | None,
    held_out: Sequence[str],
    output: str | None,
    predictions: str | None,
) -> None:
    """Refuse options that do not go together."""
    if predictions and (len(inputs) > 1 or inputs[0] == "-"):
        raise OptionError("--predictions takes the patches of one INPUT, which is a file or folder")
    if output and len(inputs) > 1:
        raise OptionError("-o writes one evaluation; give one INPUT with it")
    if against and len(inputs) > 1:
        raise OptionError("--against compares one INPUT; for several leave it out")
    if held_out and len(inputs) < 2:
        raise OptionError("--held-out is for several checkpoints; evaluate those problems alone")
    if len(inputs) + bool(against) + len(held_out) > 1 and "-" in (*inputs, against, *held_out):
        raise OptionError("- reads the standard input, which can be one input only")
    refuse_input(output, (*inputs, *held_out, *([against] if against else ())))


Found = tuple[dict[str, Any], list[str]]


def _compared(after: "Evaluation", before: "Evaluation") -> Found:
    from rtmc.evaluation import compare
    from rtmc.report.evaluation_text import comparison_lines, evaluation_lines

    found = compare(before, after)
    lines = [*evaluation_lines(after), "", *comparison_lines(found)]
    return {"evaluations": [before, after], "comparison": found}, lines


def _picked(checkpoints: "list[Evaluation]", held_out: "Sequence[Evaluation]") -> Found:
    import numpy as np

    from rtmc.evaluation import best_checkpoint
    from rtmc.report.evaluation_text import checkpoint_lines, evaluation_lines

    best = best_checkpoint(checkpoints, np.random.default_rng(0), held_out)
    lines = [*checkpoint_lines(checkpoints, best), "", *evaluation_lines(checkpoints[best.at])]
    return {"evaluations": checkpoints, "held_out": held_out, "best": best}, lines


def _load(path: str, given: dict[str, Any], quiet: bool) -> "Evaluation":
    """Read a finished evaluation, or evaluate the rollouts of a path."""
    from rtmc.evaluation import evaluate, with_figures

    finished = read_finished(path)
    if finished is not None:
        _refuse_recount(finished, path, given)
        return with_figures(finished, given["k"], given["majority"])
    reader = make_reader({**given, "inputs": (path,)})
    found = evaluate(
        progress(reader, quiet=quiet),
        name="standard input" if path == "-" else path,
        k=given["k"],
        majority=given["majority"],
        incomplete=given["incomplete"] or "fail",
        unknown=given["unknown"] or "exclude",
    )
    print_skipped(reader)
    for warning in reader.report.warnings:
        click.echo(f"warning: {warning}", err=True)
    return found


def read_finished(path: str) -> "Evaluation | None":
    """Read an evaluation that was written with -o; None if the file is something else.

    Raises:
        FormatError: it begins as an evaluation and is none.
    """
    file = Path(path)
    if not file.is_file():
        return None
    with file.open("rb") as handle:
        if not _BEGINNING.match(handle.read(200)):
            return None
    from rtmc.evaluation import decode_evaluation, with_figures

    return with_figures(decode_evaluation(file.read_bytes(), path))


def _refuse_recount(finished: "Evaluation", path: str, given: dict[str, Any]) -> None:
    """Refuse to count a finished evaluation otherwise: it has no rollouts any more."""
    for name in ("incomplete", "unknown"):
        was = getattr(finished.settings, name)
        if given[name] not in (None, was):
            raise OptionError(
                f"{path} was counted with --{name} {was}; evaluate its rollouts for "
                f"--{name} {given[name]}"
            )


def _write(output: str, evaluation: "Evaluation") -> None:
    from rtmc.atomic import open_atomic
    from rtmc.evaluation import encode_evaluation

    with open_atomic(output) as file:
        file.write(encode_evaluation(evaluation))


def _write_predictions(
    path: str, given: dict[str, Any], folder: str, dataset: str
) -> Iterator[str]:
    """Write the patches of rollouts, a file for each run; give the commands that judge them.

    Raises:
        OptionError: no rollout holds a patch.
        OutputError: a file cannot be written.
    """
    from rtmc.atomic import open_atomic
    from rtmc.evaluation import encode_predictions, harness_command, predictions_of_runs

    rollouts = [
        one for group in make_reader({**given, "inputs": (path,)}) for one in group.rollouts
    ]
    patches = {
        (one.problem_id, one.rollout_id): one.patch for one in rollouts if one.patch is not None
    }
    if not patches:
        raise OptionError(f"{path}: no rollout holds a patch; those of rtmc rollout do")
    model = next((one.model for one in rollouts if one.model), "model").replace("/", "__")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from error
    for number, rows in enumerate(predictions_of_runs(patches, model)):
        file = str(Path(folder) / f"predictions-{number}.jsonl")
        with open_atomic(file) as out:
            out.write(encode_predictions(rows))
        yield harness_command(file, dataset, f"{Path(path).stem}-{number}")
