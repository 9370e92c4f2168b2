"""The paper's experiment summed up: tables, and which difference it could have found."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rtmc.batch import Floats
from rtmc.bench.measures import interval, student
from rtmc.bench.paper import REFERENCE

__all__ = ["detectable", "table"]

PARTS = (
    ("step rewards", "grpo_step", "grpo"),
    ("the tree", "rtmc", "grpo_step"),
    ("smoothing", "rtmc", "rtmc, no smoothing"),
    ("chain_gae in its place", "chain_gae", "rtmc"),
)
"""What a part of a method adds: with it and without it."""


def table(found: dict[str, Any]) -> list[str]:
    """Sum the experiment up as Markdown.

    Args:
        found: of ``rtmc.bench.paper.study``.
    """
    size, results = found["settings"]["budget"], found["results"]
    methods = list(found["rates"])
    baseline = next(r for r in results if r["method"] == "baseline")
    of = {m: [r for r in results if r["method"] == m] for m in methods}
    runs = size["runs"]
    lines = [
        f"{size['steps']} steps of {size['problems']} problems × {size['n']} rollouts, "
        f"{found['settings']['seeds']} fresh seeds; "
        f"tested on {size['test']} problems × {runs} runs. Brackets: 95 % over seeds, on these "
        "test problems.",
        "",
        "| method | rate | pass@1, test | minus GRPO | most of three | validation, best step: "
        "the paper's way | validation, last step | training, mean | minus GRPO |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| baseline | | {np.mean(baseline['best']) / runs:.3f} | "
        f"| {_most(baseline['best'], runs):.3f} | | | | |",
    ]
    passes = {m: _values(of[m], lambda r: float(np.mean(r["best"])) / runs) for m in methods}
    areas = {m: _values(of[m], lambda r: float(np.mean(r["curve"]))) for m in methods}
    for m in methods:
        lines.append(
            f"| {m} | {found['rates'][m]:g} | {_with_interval(passes[m])} | {_minus(passes, m)}"
            f" | {np.mean([_most(r['best'], runs) for r in of[m]]):.3f}"
            f" | {np.mean([max(v for _, v in r['validation']) for r in of[m]]):.3f}"
            f" | {np.mean([r['validation'][-1][1] for r in of[m]]):.3f}"
            f" | {_with_interval(areas[m])} | {_minus(areas, m)} |"
        )
    lines += _parts(passes, areas)
    if (smallest := detectable(found)) is not None:
        found_by = f"differences from GRPO in pass@1, test, of {smallest:.3f} or more"
        lines += ["", f"An experiment of this size finds {found_by} four times out of five."]
    lines += ["", "| problems of all seeds, by most of three | gained | lost |", "|---|---|---|"]
    start = _solved(baseline["best"], runs)
    for m in methods:
        solved = [_solved(r["best"], runs) for r in of[m]]
        lines.append(f"| {m} against the baseline | {_gained(solved, [start] * len(solved))} |")
        if REFERENCE in of and m != REFERENCE:
            other = [_solved(r["best"], runs) for r in of[REFERENCE]]
            lines.append(f"| {m} against {REFERENCE} | {_gained(solved, other)} |")
    return lines + _rates(found) + _evidence(of)


def _parts(passes: dict[str, Floats], areas: dict[str, Floats]) -> list[str]:
    """Show what each part adds, and what is left of a difference at one rate for both."""
    also = next((name for name in passes if name.startswith(f"{REFERENCE} at ")), None)
    parts = [*PARTS]
    if also is not None:
        parts.append((f"the rate{also.removeprefix(REFERENCE)}", also, REFERENCE))
        parts += [(f"{m}, at one rate", m, also) for m in ("grpo_step", "rtmc", "chain_gae")]
    lines = ["", "| adds | | pass@1, test | training, mean |", "|---|---|---|---|"]
    for part, with_it, without in parts:
        if with_it in passes and without in passes:
            cells = [_with_interval(of[with_it] - of[without], "+") for of in (passes, areas)]
            lines.append(f"| {part} | {with_it} − {without} | {' | '.join(cells)} |")
    return lines if len(lines) > 3 else []


def _rates(found: dict[str, Any]) -> list[str]:
    """Show what the rates were chosen by."""
    rates = [f"{rate:g}" for rate in found["settings"]["rates"]]
    lines = ["", f"| training, mean, at | {' | '.join(rates)} |", "|---|" + "---|" * len(rates)]
    for m, of in found["tuning"].items():
        cells = [" ".join(f"{value:.3f}" for value in of[rate]) for rate in rates]
        lines.append(f"| {m} | {' | '.join(cells)} |")
    return lines


def _evidence(of: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Show what tells why a method does well or badly."""
    shown = {
        "groups of mixed outcome": "groups/mixed", "overlap, as the paper signs": "overlap/paper",
        "of winners' steps, A < 0": "winners_negative",
        "of losers' steps, A > 0": "losers_positive",
        "cosine to GRPO's": "advantage/cosine_to_grpo", "turns": "rollout/steps",
        "entropy": "entropy", "calls refused": "calls/refused", "seconds a step": "seconds/step",
        "of them credit": "credit_share",
    }  # fmt: skip
    lines = ["", f"| means over training | {' | '.join(shown)} |", "|---|" + "---|" * len(shown)]
    for m, results in of.items():
        cells = [
            f"{np.mean(values):.3g}"
            if (values := [r["means"][n] for r in results if n in r["means"]])
            else "–"
            for n in shown.values()
        ]
        lines.append(f"| {m} | {' | '.join(cells)} |")
    return lines


def detectable(found: dict[str, Any]) -> float | None:
    """Say which difference in pass@1 from GRPO such an experiment finds four times out of five.

    t₀.₉₇₅ + t₀.₈₀ standard errors (two-sided 5 %, power 80 %) of the mean of paired differences;
    the standard errors' median over methods, each at the rate that it chose.
    """
    runs, errors = found["settings"]["budget"]["runs"], []
    of = {m: [r for r in found["results"] if r["method"] == m] for m in found["tuning"]}
    for m in of:
        if m != REFERENCE and REFERENCE in of and len(of[m]) > 1:
            pairs = zip(of[m], of[REFERENCE], strict=True)
            differences = [(np.mean(a["best"]) - np.mean(b["best"])) / runs for a, b in pairs]
            errors.append(float(np.std(differences, ddof=1)) / len(differences) ** 0.5)
    if not errors:
        return None
    df = found["settings"]["seeds"] - 1
    return (student(0.975, df) + student(0.8, df)) * statistics.median(errors)


def _values(results: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], float]) -> Floats:
    return np.array([of(result) for result in results])


def _with_interval(values: Floats, sign: str = "") -> str:
    low, high = interval(values)
    shown = f"{values.mean():{sign}.3f}"
    return f"{shown} [{low:{sign}.3f}, {high:{sign}.3f}]" if len(values) > 1 else shown


def _minus(values: dict[str, Floats], method: str) -> str:
    """Show the mean of paired differences from the reference."""
    if method == REFERENCE or REFERENCE not in values:
        return ""
    return _with_interval(values[method] - values[REFERENCE], "+")


def _solved(passes: Sequence[int], runs: int) -> np.ndarray:
    return np.array(passes) * 2 > runs


def _most(passes: Sequence[int], runs: int) -> float:
    return float(_solved(passes, runs).mean())


def _gained(solved: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> str:
    pairs = list(zip(solved, other, strict=True))
    gained = sum(int((a & ~b).sum()) for a, b in pairs)
    lost = sum(int((b & ~a).sum()) for a, b in pairs)
    return f"{gained} | {lost}"
