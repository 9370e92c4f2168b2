"""``rtmc bench quality | learning | results``: the estimators, judged against the truth."""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from rtmc.errors import FormatError, MissingExtraError, OptionError, OutputError

__all__ = ["bar", "learning", "quality", "results"]

SHORT_QUALITY = ("grpo", "grpo_step", "rtmc", "rtmc, content", "gigpo", "graft, content",
                 "pooled_gae", "graph_gae", "chain_gae", "vineppo", "critic")  # fmt: skip
SHORT_LEARNING = ("grpo", "rtmc", "rtmc, paper", "critic", "chain_gae")
NO_EQUAL_ROLLOUTS = ("vineppo",)


def _names(known: Callable[[], Iterable[str]]) -> Callable[..., tuple[str, ...]]:
    """Split a list at semicolons or commas, names with commas inside kept whole."""

    def split(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
        if not value:
            return ()
        _need_numba()
        names = list(known())
        rest, found = value.strip(), []
        while rest:
            fits = [n for n in names if rest.startswith(n) and _ends(rest[len(n) :])]
            if not fits:
                wrong = rest.split(";")[0].split(",")[0].strip()
                raise click.BadParameter(f"{wrong!r} is not one of {'; '.join(names)}")
            longest = max(fits, key=len)
            found.append(longest)
            rest = rest[len(longest) :].lstrip(",; ")
        return tuple(dict.fromkeys(found))

    return split


def _ends(rest: str) -> bool:
    return rest.lstrip()[:1] in ("", ",", ";")


def _need_numba() -> None:
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("numba", "bench") from error


def _conditions() -> Iterable[str]:
    from rtmc.bench.conditions import CONDITIONS

    return CONDITIONS


def _learnable(kind: str) -> list[str]:
    from rtmc.bench.conditions import CONDITIONS

    return [c.name for c in CONDITIONS.values() if kind == "shared" or c.exact]


def _methods() -> Iterable[str]:
    from rtmc.bench.methods import METHODS

    return METHODS


def _sizes(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(size) for size in value.split(",") if size.strip()}))
    except ValueError:
        raise click.BadParameter(f"{value!r}: expected numbers joined by commas") from None
    if value and (not sizes or sizes[0] < 2):
        raise click.BadParameter(f"{value!r}: a group needs at least 2 rollouts")
    return sizes


_conditions_option = click.option(
    "--conditions", metavar="NAME,…", default="", callback=_names(_conditions),
    help="Of A, B, C, D, H, N, E: docs/results.md describes them.  [all]",
)  # fmt: skip
_estimators_option = click.option(
    "--estimators", metavar="NAME,…", default="", callback=_names(_methods),
    help="Of those that are compared.  [a short list; all with --full]",
)  # fmt: skip
_jobs_option = click.option(
    "--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes."
)
_full_option = click.option("--full", is_flag=True, help="The run that docs/results.md reports.")
_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc bench quality\n"
    "  rtmc bench quality --conditions C --rollouts 4,8,16,32 --seeds 40\n"
    "  rtmc bench quality --full -o docs/results/quality.json"
)
@_conditions_option
@_estimators_option
@click.option("--stages", metavar="NAME,…", default="start,half", show_default=True,
              callback=_names(lambda: ("start", "half")), help="Of the policy.")  # fmt: skip
@click.option("--rollouts", "sizes", metavar="N,…", default="", callback=_sizes,
              help="Rollouts a problem.  [4,16; 4,8,16,32,64 with --full]")  # fmt: skip
@click.option("--seeds", type=click.IntRange(2),
              help="Batches of 8 problems.  [8; 24 with --full]")  # fmt: skip
@_full_option
@_jobs_option
@_json_option
@click.option("-o", "--output", metavar="FILE",
              help="Write the JSON there; if it is there already it is only shown, a run that was "
              "stopped goes on.")  # fmt: skip
@click.option("--figures", "pictures", metavar="DIR", help="Draw figures there.")
def quality(
    conditions: tuple[str, ...], estimators: tuple[str, ...], stages: tuple[str, ...],
    sizes: tuple[int, ...], seeds: int | None, full: bool, jobs: int, as_json: bool,
    output: str | None, pictures: str | None,
) -> None:  # fmt: skip
    """Say how far the estimators are from the truth, on problems whose truth is known.

    For batches of 8 problems × N rollouts: the cosine between the gradient that an estimator gives
    and the true policy gradient, and how its advantages agree with the true ones.
    Needs the extra `bench`.
    """
    _need_numba()
    from rtmc.bench import quality as study
    from rtmc.bench.tables import quality_table

    settings = study.Settings(
        conditions or tuple(_conditions()),
        stages or ("start", "half"),  # ty: ignore[invalid-argument-type]
        sizes or ((4, 8, 16, 32, 64) if full else (4, 16)),
        estimators or (tuple(_methods()) if full else SHORT_QUALITY),
        seeds or (24 if full else 8),
        32 if full else 12,
    )
    _folder(pictures)
    found = _finished(output, settings)
    if found is None:
        with bar(len(study.pieces(settings))) as tick:
            found = study.study(settings, jobs, _store(output), tick)
        _write(found, output)
    _deliver(found, quality_table, as_json)
    if pictures:
        from rtmc.bench.figures import draw_quality

        _draw(draw_quality, [found], pictures)


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc bench learning --conditions A\n"
    "  rtmc bench learning --conditions A,C --kind table --estimators grpo,chain_gae\n"
    "  rtmc bench learning --full -o docs/results"
)
@_conditions_option
@_estimators_option
@click.option("--kind", type=click.Choice(["shared", "table"]), default="shared",
              show_default=True, help="A policy that generalises, or one number for each state "
              "and action of one problem.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(2), help="Fresh seeds.  [8; 24 with --full]")
@click.option("--tuning", type=click.IntRange(1), default=10, show_default=True,
              help="Seeds that choose the rate.")  # fmt: skip
@_full_option
@_jobs_option
@_json_option
@click.option("-o", "--output", metavar="DIR",
              help="Write a JSON file for each condition there; one that is there already is kept, "
              "a run that was stopped goes on.")  # fmt: skip
@click.option("--figures", "pictures", metavar="DIR", help="Draw figures there.")
def learning(
    conditions: tuple[str, ...], estimators: tuple[str, ...], kind: Any, seeds: int | None,
    tuning: int, full: bool, jobs: int, as_json: bool, output: str | None, pictures: str | None,
) -> None:  # fmt: skip
    """Learn with each estimator at equal rollouts, and compare the curves.

    The learning rate of each is chosen on seeds of its own; fresh ones run at it, paired by seed.
    Needs the extra `bench`.
    """
    _need_numba()
    from rtmc.bench import learning as study
    from rtmc.bench.tables import learning_table

    every = tuple(n for n in _methods() if n not in NO_EQUAL_ROLLOUTS)
    if set(estimators) & set(NO_EQUAL_ROLLOUTS):
        raise OptionError("vineppo rolls out from every state: no comparison at equal rollouts")
    chosen = conditions or (tuple(_learnable(kind)) if full else ("A",))
    for name in chosen:
        if name not in _learnable(kind):
            raise OptionError(f"condition {name} has too many states for a table; take another")
    _folder(pictures)
    folder = _folder(output)
    all_settings = [
        study.Settings(
            name, kind, estimators or (every if full else SHORT_LEARNING), tuning,
            seeds or (24 if full else 8),
        )
        for name in chosen
    ]  # fmt: skip
    results: list[dict[str, Any]] = []
    with bar(sum(study.work_of(settings) for settings in all_settings)) as tick:
        for settings in all_settings:
            file = str(folder / f"learning-{settings.condition}-{kind}.json") if folder else None
            found = _finished(file, settings)
            if found is None:
                found = study.study(settings, jobs, _store(file), tick)
                _write(found, file)
            else:
                for _ in range(study.work_of(settings)):
                    tick()
            results.append(found)
    both = {
        "recommended": results[0]["recommended"],
        "rows": [row for found in results for row in found["rows"]],
    }
    _deliver(both, learning_table, as_json)
    if pictures:
        from rtmc.bench.figures import draw_learning

        _draw(draw_learning, results, pictures)


@click.command(epilog="Example: rtmc bench results docs/results")
@click.argument("folder", metavar="DIR")
def results(folder: str) -> None:
    """Sum up finished runs as Markdown tables: those of docs/results.md.

    DIR: holds quality.json and learning-….json, as `--full -o` writes them.
    """
    from rtmc.bench.summary import read, summary

    for line in summary(*read(folder)):
        click.echo(line)


@contextmanager
def bar(total: int):
    """Count finished pieces on a terminal."""
    from tqdm import tqdm

    hidden = not sys.stderr.isatty()
    with tqdm(total=total, unit=" pieces", leave=False, file=sys.stderr, disable=hidden) as shown:
        yield shown.update


def _folder(output: str | None) -> Path | None:
    if output is None:
        return None
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {output}: {error.strerror}") from error
    return Path(output)


def _store(output: str | None) -> Path | None:
    """Say where finished pieces are kept; that it is no place to write is better known now."""
    if output is None:
        return None
    from rtmc.bench.pieces import partial

    try:
        partial(output).open("ab").close()
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}; choose another -o") from error
    return partial(output)


def _finished(file: str | None, settings: Any) -> dict[str, Any] | None:
    """Read what an earlier run with the same settings has written."""
    import msgspec

    if file is None or not Path(file).exists():
        return None
    if Path(file).is_dir():
        raise OutputError(f"{file} is a folder; name a file, as in -o {Path(file, 'quality.json')}")
    try:
        found = msgspec.json.decode(Path(file).read_bytes())
        known = found["settings"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise FormatError(
            f"{file}: no result of rtmc bench; remove it, or choose another -o"
        ) from error
    if known != _plain(settings):
        raise OptionError(f"{file} comes from other settings; remove it, or choose another -o")
    return found


def _plain(found: Any) -> dict[str, Any]:
    import msgspec

    return msgspec.json.decode(msgspec.json.encode(found))


def _write(found: dict[str, Any], output: str | None) -> None:
    """Write a result whole, and drop the pieces it was put together from."""
    if output is None:
        return
    import msgspec

    from rtmc.atomic import open_atomic
    from rtmc.bench.pieces import partial

    with open_atomic(output) as file:
        file.write(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    partial(output).unlink(missing_ok=True)


def _deliver(
    found: dict[str, Any],
    table: Callable[[dict[str, Any]], Iterable[str]],
    as_json: bool,
) -> None:
    plain = _plain(found)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(plain).decode())
    else:
        for line in table(plain):
            click.echo(line)


def _draw(
    draw: Callable[[Sequence[dict[str, Any]], Path], Iterable[Path]],
    results: Sequence[dict[str, Any]],
    pictures: str,
) -> None:
    folder = _folder(pictures)
    assert folder is not None
    for path in draw([_plain(found) for found in results], folder):
        click.echo(f"drew {path}", err=True)
