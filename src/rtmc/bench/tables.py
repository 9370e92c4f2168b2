"""Write the results of ``rtmc bench quality`` and ``learning`` for people."""

from collections.abc import Iterator
from typing import Any

__all__ = ["learning_table", "quality_table"]

Rows = list[dict[str, Any]]


def quality_table(found: dict[str, Any]) -> Iterator[str]:
    """Cosines of all estimators, one block a condition and stage, best first."""
    rows: Rows = found["rows"]
    sizes = sorted({row["n"] for row in rows})
    most = sizes[-1]
    seeds = rows[0]["seeds"] if rows else 0
    yield f"Cosine between the batch's gradient and the true one: mean of {seeds} batches of 8"
    yield "problems × N rollouts; [95 %]; + and −: better or worse than rtmc on the same batches."
    yield f"At N = {most}: fvu (unexplained variance of A), sign agreement, rank correlation, bias."
    for condition, stage in dict.fromkeys((row["condition"], row["stage"]) for row in rows):
        block = [r for r in rows if r["condition"] == condition and r["stage"] == stage]
        yield ""
        head = "".join(f"{f'N = {n}':<24}" for n in sizes)
        yield f"{f'{condition} {stage}':<24}{head}  fvu  sign  rank   bias"
        by_name: dict[str, dict[int, dict[str, Any]]] = {}
        for row in block:
            by_name.setdefault(row["estimator"], {})[row["n"]] = row
        ordered = sorted(by_name.items(), key=lambda item: -_mean_cosine(item[1]))
        for name, of_n in ordered:
            cells = "".join(f"{_cosine(of_n[n]):<24}" for n in sizes)
            last = of_n[most]
            mark = " ←" if name == found["recommended"] else ""
            yield (
                f"{name:<24}{cells}{last['fvu']:5.2f}  {last['sign']:.2f}  {last['rank']:5.2f}  "
                f"{last['bias']:+.2f}{mark}"
            )
    if found["goals"]:
        yield ""
        yield "Cosine at N rollouts minus plain rtmc's at 4 N, same problems: difference [95 %]"
        for goal in found["goals"]:
            where = f"{goal['condition']} {goal['stage']:<6} {goal['estimator']:<16}"
            sizes_of = f"N = {goal['n']:<3} against {goal['rtmc_n']:<3}"
            found_of = _interval(goal["difference"], goal["low"], goal["high"])
            yield f"{where} {sizes_of} {found_of}"


def _mean_cosine(of_n: dict[int, dict[str, Any]]) -> float:
    return sum(row["cosine"] for row in of_n.values()) / len(of_n)


def _cosine(row: dict[str, Any]) -> str:
    low, high = row["to_rtmc_low"], row["to_rtmc_high"]
    sign = " " if low is None or low <= 0 <= high else "+" if low > 0 else "−"
    return f"{row['cosine']:.3f} [{row['low']:.2f} {row['high']:.2f}] {sign}"


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return ""
    return f"{value:+.3f} [{low:+.3f} {high:+.3f}]"


def learning_table(found: dict[str, Any]) -> Iterator[str]:
    """Area and final success of all methods, one block a condition, best first."""
    rows: Rows = found["rows"]
    yield "Success on held-out problems: mean over the updates (area) and at the end (final), each"
    yield "method at its own tuned rate, fresh seeds; differences paired by seed [95 % interval]."
    for condition, kind in dict.fromkeys((row["condition"], row["kind"]) for row in rows):
        block = [r for r in rows if r["condition"] == condition and r["kind"] == kind]
        yield ""
        yield (
            f"{f'{condition} {kind}':<24}{'rate':<7}{'area':<7}{'− grpo':<24}{'− rtmc':<24}"
            f"{'final':<7}{'− grpo':<24}collapsed"
        )
        for row in sorted(block, key=lambda row: -row["area"][0]):
            mark = " ←" if row["estimator"] == found["recommended"] else ""
            stuck = " ".join(f"{100 * share:.0f}" for share in row["collapsed"])
            yield (
                f"{row['estimator']:<24}{row['rate']:<7g}{row['area'][0]:<7.3f}"
                f"{_interval(*row['area_to_grpo']):<24}{_interval(*row['area_to_rtmc']):<24}"
                f"{row['final'][0]:<7.3f}{_interval(*row['final_to_grpo']):<24}{stuck}{mark}"
            )
    yield ""
    yield "collapsed: per cent of the tuning runs, at each rate of the grid, that end below half of"
    yield "where they began."
