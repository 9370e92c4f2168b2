"""Sum up the committed results as Markdown: the tables of docs/results.md."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rtmc.errors import FormatError

__all__ = ["read", "summary"]

Found = dict[str, Any]
Row = dict[str, Any]

SIZE = 8
"""Rollouts a problem in the tables that show one number of them; the paper's."""

ABLATION = (
    ("before training", None),
    ("GRPO", "grpo"),
    ("GRPO + Step", "grpo_step"),
    ("RTMC", "rtmc"),
    ("RTMC, the paper's settings", "rtmc, paper"),
    ("RTMC without smoothing", "rtmc, no smoothing"),
)


def read(folder: str) -> tuple[Found, list[Found], list[Found]]:
    """Read ``quality.json``, all ``learning-….json``, and those of the folder ``every`` in it.

    Raises:
        FormatError: one is missing or is no result of a benchmark.
    """
    here = Path(folder)
    learned, every = (
        [_load(path) for path in sorted(place.glob("learning-*.json"))]
        for place in (here, here / "every")
    )
    return _load(here / "quality.json"), learned, every


def _load(path: Path) -> Found:
    try:
        found = msgspec.json.decode(path.read_bytes())
        found["rows"], found["settings"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise FormatError(
            f"{path}: no result of rtmc bench; expected quality.json and learning-….json, as "
            "--full -o writes them"
        ) from error
    return found


def summary(quality: Found, learned: Sequence[Found], every: Sequence[Found] = ()) -> Iterator[str]:
    """Write all tables.

    Args:
        quality: a result of ``rtmc bench quality``.
        learned: results of ``rtmc bench learning``.
        every: more of them, of all estimators with fewer seeds.
    """
    yield from _conditions(quality)
    for stage in quality["settings"]["stages"]:
        yield from _cosines(quality, stage)
    yield from _by_size(quality)
    yield from _advantages(quality)
    yield from _goals(quality)
    for kind in ("shared", "table"):
        own = [found for found in learned if found["settings"]["kind"] == kind]
        if own:
            yield from _learning(own, kind)
    shared = [found for found in learned if found["settings"]["kind"] == "shared"]
    if shared:
        yield from _ablation(shared)
        yield from _collapses(shared)
    if every:
        yield from _every(every)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"**{title}**"
    yield ""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _conditions(found: Found) -> Iterator[str]:
    by_name: dict[str, dict[str, Row]] = {}
    for row in found["conditions"]:
        by_name.setdefault(row["condition"], {})[row["stage"]] = row

    def both(stages: dict[str, Row], value: Callable[[Row], float], digits: int = 2) -> str:
        return " / ".join(f"{value(row):.{digits}f}" for row in stages.values())

    yield from _table(
        "The conditions, at the first / the half-trained policy (256 problems × 8 rollouts)",
        ("", "problem", "success", "uniform groups", "steps (at most)", "overlap: paper",
         "coarse", "content"),
        [
            (
                name, next(iter(stages.values()))["about"], both(stages, lambda r: r["success"]),
                both(stages, lambda r: r["uniform"]),
                f"{both(stages, lambda r: r['steps'], 0)} "
                f"({next(iter(stages.values()))['most_steps']})",
                *(both(stages, lambda r, at=level: r["overlap"][at])
                  for level in ("paper", "coarse", "content")),
            )
            for name, stages in by_name.items()
        ],
    )  # fmt: skip


def _names(rows: Sequence[Row], value: Callable[[Row], float]) -> list[str]:
    """Estimators by their mean value, highest first."""
    of: dict[str, list[float]] = {}
    for row in rows:
        of.setdefault(row["estimator"], []).append(value(row))
    return sorted(of, key=lambda name: -sum(of[name]) / len(of[name]))


def _label(name: str, found: Found) -> str:
    return f"**{name}**" if name == found["recommended"] else name


def _cosines(found: Found, stage: str) -> Iterator[str]:
    rows = [r for r in found["rows"] if r["n"] == SIZE and r["stage"] == stage]
    conditions = found["settings"]["conditions"]
    at = {(r["estimator"], r["condition"]): r for r in rows}

    def cell(row: Row) -> str:
        low, high = row["to_rtmc_low"], row["to_rtmc_high"]
        mark = " +" if low and low > 0 else " −" if high and high < 0 else ""
        return f"{row['cosine']:.2f}{mark}"

    names = _names(rows, lambda r: r["cosine"])
    policy = "first" if stage == "start" else "half-trained"
    yield from _table(
        f"Cosine to the true gradient at N = {SIZE}, {policy} policy "
        "(+ −: better or worse than rtmc on the same batches, 95 %)",
        ("", *conditions, "mean"),
        [
            (
                _label(name, found), *(cell(at[name, c]) for c in conditions),
                f"{sum(at[name, c]['cosine'] for c in conditions) / len(conditions):.3f}",
            )
            for name in names
        ],
    )  # fmt: skip


def _by_size(found: Found) -> Iterator[str]:
    sizes, stages = found["settings"]["sizes"], found["settings"]["stages"]
    repairs = {row["condition"] for row in found["conditions"] if "repair" in row["about"]}
    rows = [row for row in found["rows"] if row["condition"] in repairs]

    def mean(name: str, stage: str, n: int) -> str:
        own = [
            r["cosine"] for r in rows
            if (r["estimator"], r["stage"], r["n"]) == (name, stage, n)
        ]  # fmt: skip
        return f"{sum(own) / len(own):.3f}"

    yield from _table(
        "Cosine by rollouts a problem, mean of the repair conditions",
        ("", *(f"{stage} {n}" for stage in stages for n in sizes)),
        [
            (_label(name, found), *(mean(name, stage, n) for stage in stages for n in sizes))
            for name in _names(rows, lambda r: r["cosine"])
        ],
    )


def _advantages(found: Found) -> Iterator[str]:
    stages = found["settings"]["stages"]
    rows = [r for r in found["rows"] if r["n"] == SIZE]

    def means(name: str, stage: str) -> list[str]:
        own = [r for r in rows if (r["estimator"], r["stage"]) == (name, stage)]

        def mean(field: str) -> float:
            return sum(r[field] for r in own) / len(own)

        error = sum(r["bias_error"] ** 2 for r in own) ** 0.5 / len(own)
        return [
            f"{mean('fvu'):.2f}", f"{mean('sign'):.2f}", f"{mean('rank'):.2f}",
            f"{mean('bias'):+.3f} ± {error:.3f}",
        ]  # fmt: skip

    columns = ("FVU", "sign", "rank", "bias")
    yield from _table(
        f"The advantages themselves at N = {SIZE}, mean of all conditions",
        ("", *(f"{stage}: {column}" for stage in stages for column in columns)),
        [
            (_label(name, found), *(cell for stage in stages for cell in means(name, stage)))
            for name in _names(rows, lambda r: -r["fvu"])
        ],
    )


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def _goals(found: Found) -> Iterator[str]:
    pairs = list(dict.fromkeys((g["n"], g["rtmc_n"]) for g in found["goals"]))[:2]
    names = list(dict.fromkeys(g["estimator"] for g in found["goals"]))
    parts = dict.fromkeys((g["condition"], g["stage"]) for g in found["goals"])
    at = {(g["condition"], g["stage"], g["estimator"], g["n"]): g for g in found["goals"]}
    yield from _table(
        "Cosine at N rollouts minus plain rtmc's at 4 N, the same problems",
        ("", *(f"{name}: {n} against {m}" for name in names for n, m in pairs)),
        [
            (
                f"{condition} {stage}",
                *(
                    _interval(g["difference"], g["low"], g["high"])
                    for g in (at[condition, stage, name, n] for name in names for n, _ in pairs)
                ),
            )
            for condition, stage in parts
        ],
    )


def _learning(results: Sequence[Found], kind: str) -> Iterator[str]:
    results = sorted(results, key=_order)
    rows = [row for found in results for row in found["rows"]]
    at = {(r["estimator"], r["condition"]): r for r in rows}
    conditions = [found["settings"]["condition"] for found in results]
    names = _names(rows, lambda r: r["area"][0])
    policy = "the policy that generalises" if kind == "shared" else "one number a state and action"

    def table(title: str, field: str) -> Iterator[str]:
        yield from _table(
            f"{title} ({policy})",
            ("", *conditions),
            [
                (
                    _label(name, results[0]),
                    *(_interval(*at[name, c][field]) for c in conditions),
                )
                for name in names
                if not field.endswith(name)
            ],
        )

    yield from table("Area under the learning curve minus GRPO's", "area_to_grpo")
    if kind == "shared":
        yield from table("Area minus plain RTMC's", "area_to_rtmc")
    yield from table("Final success minus GRPO's", "final_to_grpo")


def _every(results: Sequence[Found]) -> Iterator[str]:
    results = sorted(results, key=_order)
    rows = [row for found in results for row in found["rows"]]
    at = {(r["estimator"], r["condition"]): r for r in rows}
    conditions = [found["settings"]["condition"] for found in results]
    seeds = " or ".join(sorted({str(row["seeds"]) for row in rows}))
    yield from _table(
        f"Every estimator: area under the learning curve minus GRPO's ({seeds} fresh seeds)",
        ("", *conditions),
        [
            (
                _label(name, results[0]),
                *(_interval(*at[name, c]["area_to_grpo"]) for c in conditions),
            )
            for name in _names(rows, lambda r: r["area"][0])
            if name != "grpo"
        ],
    )


def _order(found: Found) -> int:
    return "ABCDHNE".index(found["settings"]["condition"])


def _ablation(results: Sequence[Found]) -> Iterator[str]:
    results = sorted(results, key=_order)
    rows = {(r["estimator"], r["condition"]): r for found in results for r in found["rows"]}

    def cell(name: str | None, condition: str) -> str:
        if name is None:
            return f"{rows['grpo', condition]['curve'][0]:.3f}"
        value, low, high = rows[name, condition]["final"]
        return f"{value:.3f} [{low:.3f}, {high:.3f}]"

    conditions = [found["settings"]["condition"] for found in results]
    recommended = results[0]["recommended"]
    yield from _table(
        "The paper's ablation at this scale: final success",
        ("", *conditions),
        [
            (label, *(cell(name, c) for c in conditions))
            for label, name in (*ABLATION, (f"**{recommended}**", recommended))
        ],
    )


def _collapses(results: Sequence[Found]) -> Iterator[str]:
    results = sorted(results, key=_order)
    names = ("grpo", "rtmc", "rtmc, paper", "critic", results[0]["recommended"])
    yield from _table(
        "Tuning runs that end below half of where they began, in per cent, at the rates "
        + ", ".join(f"{rate:g}" for rate in results[0]["rates"]),
        ("", *(found["settings"]["condition"] for found in results)),
        [
            (
                _label(name, results[0]),
                *(
                    " ".join(f"{100 * share:.0f}" for share in row["collapsed"])
                    for found in results
                    for row in found["rows"]
                    if row["estimator"] == name
                ),
            )
            for name in names
        ],
    )
