"""The paper's experiment at a scale that two cores can run: one policy, six ways to train it.

Each method starts from the same checkpoint and sees, seed by seed, the same problems in the same
order, as many rollouts of each. Its learning rate is chosen on seeds of its own, by the success of
all rollouts that it trained on; fresh seeds run at it. A run's best checkpoint is chosen on
validation problems and tested on others, three runs each: pass@1 is their mean, and most of three
is the paper's vote. The success of the best checkpoint on the very problems it was chosen by is the
paper's way, and stands beside it.
"""

import shutil
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rtmc.batch import Floats
from rtmc.bench import pieces
from rtmc.bench.measures import bootstrap
from rtmc.bench.speed import machine
from rtmc.train.config import TrainConfig
from rtmc.train.toml import load

__all__ = ["METHODS", "SIZES", "Size", "study", "work_of"]

_PAPER = {
    "credit.estimator": "rtmc", "credit.options.repeats": "paper", "credit.max_bonuses": "none",
    "credit.hash_chars": "4",
}  # fmt: skip

METHODS: dict[str, dict[str, str]] = {
    "grpo": {"credit.estimator": "grpo", "credit.beta": "0.0"},
    "grpo_step": {"credit.estimator": "grpo_step", "credit.max_bonuses": "none"},
    "rtmc": _PAPER,
    "rtmc, no smoothing": {**_PAPER, "credit.options.prior": "none"},
    "chain_gae": {"credit.estimator": "chain_gae"},
}
"""What differs from the preset ``tiny``; ``baseline`` is the start checkpoint itself."""

REFERENCE = "grpo"
FRESH_FROM = 100
"""Seeds below choose the rate; those from here on are fresh."""
TASK = "tiny:split=test"
TEST_SEED = 20_261_130


class Budget(msgspec.Struct, frozen=True):
    """What one training run may use, and how it is tested.

    Attributes:
        steps: of a run.
        problems: of a step.
        n: rollouts of each.
        every: steps between two evaluations on the validation problems.
        validation: how many of these.
        test: how many other problems; ``runs`` rollouts of each.
        runs: of each test problem.
    """

    steps: int = 24
    problems: int = 4
    n: int = 8
    every: int = 8
    validation: int = 64
    test: int = 160
    runs: int = 3


class Size(msgspec.Struct, frozen=True):
    """How large the experiment is.

    Attributes:
        budget: of each run.
        rates: learning rates that are tried.
        tuning: seeds for each of them.
        seeds: fresh seeds at the chosen one.
    """

    budget: Budget = Budget()
    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    tuning: int = 2
    seeds: int = 5


SIZES = {
    "smoke": Size(Budget(2, 2, 4, 1, 4, 4, 3), (3e-4,), 1, 2),
    "cores": Size(),
    "paper": Size(Budget(steps=150, problems=8, every=10, validation=256, test=500), tuning=3),
}


class Run(msgspec.Struct, frozen=True):
    """One training run, or the test of the start checkpoint.

    Attributes:
        budget: of the run.
        method: of ``METHODS``, or ``baseline``.
        rate: the learning rate.
        seed: of problems and sampling.
        tested: whether its policies are tested.
    """

    budget: Budget
    method: str
    rate: float
    seed: int
    tested: bool


KEPT = (
    "signal", "groups/mixed", "overlap/content", "overlap/paper", "winners_negative",
    "losers_positive", "rollout/steps", "rollout/incomplete", "entropy", "grad_norm",
    "calls/refused", "credit_share", "seconds/step",
)  # fmt: skip
"""Metrics whose mean over a run's steps is kept."""


def config_of(run: Run) -> TrainConfig:
    """Make the configuration of a run."""
    of = run.budget
    sets = {
        "seed": str(run.seed),
        "rollouts.problems": str(of.problems),
        "rollouts.n": str(of.n),
        "optimizer.steps": str(of.steps),
        "optimizer.learning_rate": repr(run.rate),
        "evaluation.task": f'"{TASK}"',
        "evaluation.problems": str(of.validation),
        "evaluation.every": str(of.every),
        "output.rollouts": "2",
    }
    if not run.tested:
        sets |= {"evaluation.every": str(of.steps), "evaluation.problems": "1"}
    return load("tiny", sets | METHODS[run.method])


def perform(run: Run, folder: Path, model: str = "hf:tiny") -> dict[str, Any]:
    """Train and test; a run that was stopped goes on.

    Args:
        run: which.
        folder: what is needed to go on is kept there until the run is finished.
        model: the start checkpoint, for the baseline.

    Returns:
        ``curve``: success of the rollouts of each step; ``validation``: pairs of step and success;
        ``best``: of ``runs`` rollouts, how many passed, for each test problem; ``step``: of the
        best checkpoint; ``means``: of ``KEPT``.
    """
    if run.method == "baseline":
        return {"best": test(model, run.budget)}
    from rtmc.train.run import train

    own = folder / f"{run.method.replace(', ', '-')}-{run.rate:g}-{run.seed}".replace(" ", "-")
    store = train(config_of(run), own, say=lambda line: None)
    lines = store.metrics()
    steps = [line for line in lines if "success" in line]
    found: dict[str, Any] = {
        "curve": [line["success"] for line in steps],
        "validation": [
            [one["step"], one["eval_success"]] for one in lines if "eval_success" in one
        ],
        "means": {
            name: round(float(np.mean([line[name] for line in steps if name in line])), 5)
            for name in KEPT
        },
    }
    if run.tested:
        found["step"] = store.best_step
        found["best"] = test(f"hf:{own / 'best'}", run.budget)
    shutil.rmtree(own)
    return found


def test(model: str, budget: Budget) -> list[int]:
    """Say how many of the runs of each test problem passed."""
    import functools

    from rtmc.agent.loop import Limits
    from rtmc.agent.models import Sampling, open_model
    from rtmc.agent.rollout import roll_out
    from rtmc.agent.sandbox import open_sandbox
    from rtmc.agent.tasks import Part, open_task

    rollouts = load("tiny").rollouts
    task = open_task(TASK, functools.partial(open_sandbox, "warm"))
    first = budget.validation
    problems = Part(task.problems, range(first, first + budget.test))
    policy = open_model(model, Sampling(max_tokens=rollouts.max_tokens))
    limits = Limits(steps=rollouts.steps, tokens=rollouts.tokens)
    passed = dict.fromkeys((problem.problem_id for problem in problems), 0)
    for one in roll_out(task, problems, policy, budget.runs, seed=TEST_SEED, limits=limits):
        passed[one.problem_id] += one.status == "passed"
    return list(passed.values())


def work_of(size: Size, methods: Sequence[str]) -> int:
    """Count the runs."""
    return len(methods) * (len(size.rates) * size.tuning + size.seeds) + 1


def study(
    size: Size,
    methods: Sequence[str],
    folder: Path,
    jobs: int,
    tick: Callable[[], object],
) -> dict[str, Any]:
    """Run the experiment, or what is missing of it.

    Args:
        size: how large.
        methods: of ``METHODS``.
        folder: for finished runs (``paper.partial.jsonl``) and those that are under way.
        jobs: processes.
        tick: called for every finished run.

    Returns:
        Settings, machine, the rate of each method, and all results; plain values.
    """
    do = partial(perform, folder=folder / "runs")
    store = pieces.partial(str(folder / "paper"))
    tuning = [
        Run(size.budget, method, rate, seed, tested=False)
        for seed in range(size.tuning)
        for method in methods
        for rate in size.rates
    ]
    tuned = pieces.run(do, tuning, jobs, store, tick)
    scores: dict[str, dict[float, list[float]]] = {}
    for run, result in zip(tuning, tuned, strict=True):
        mean = float(np.mean(result["curve"]))
        scores.setdefault(run.method, {}).setdefault(run.rate, []).append(mean)
    rates = {
        method: max(of, key=lambda rate: float(np.mean(of[rate]))) for method, of in scores.items()
    }
    fresh = [
        Run(size.budget, method, rates[method], FRESH_FROM + seed, tested=True)
        for seed in range(size.seeds)
        for method in methods
    ]
    fresh.append(Run(size.budget, "baseline", 0.0, 0, tested=True))
    results = pieces.run(do, fresh, jobs, store, tick)
    return {
        "settings": msgspec.to_builtins(size),
        "machine": machine(),
        "tuning": {m: {f"{r:g}": values for r, values in of.items()} for m, of in scores.items()},
        "rates": rates,
        "results": [
            {"method": run.method, "seed": run.seed, **result}
            for run, result in zip(fresh, results, strict=True)
        ],
    }


def table(found: dict[str, Any]) -> list[str]:
    """Sum the experiment up as Markdown."""
    size, results = found["settings"]["budget"], found["results"]
    methods = list(found["rates"])
    baseline = next(r for r in results if r["method"] == "baseline")
    of = {m: [r for r in results if r["method"] == m] for m in methods}
    runs = size["runs"]
    lines = [
        f"{size['steps']} steps of {size['problems']} problems × {size['n']} rollouts, "
        f"{found['settings']['seeds']} fresh seeds; "
        f"tested on {size['test']} problems × {runs} runs.",
        "",
        "| method | rate | pass@1, test | minus GRPO | most of three | validation, best step: "
        "the paper's way | validation, last step | training, mean | minus GRPO |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| baseline | | {np.mean(baseline['best']) / runs:.3f} | "
        f"| {_most(baseline['best'], runs):.3f} | | | | |",
    ]
    for m in methods:
        passes = _values(of[m], lambda r: float(np.mean(r["best"])) / runs)
        area = _values(of[m], lambda r: float(np.mean(r["curve"])))
        ref = of[REFERENCE] if REFERENCE in of else of[m]
        lines.append(
            f"| {m} | {found['rates'][m]:g} | {_with_interval(passes)} | "
            + _minus(passes, _values(ref, lambda r: float(np.mean(r["best"])) / runs), m)
            + f" | {np.mean([_most(r['best'], runs) for r in of[m]]):.3f}"
            f" | {np.mean([max(v for _, v in r['validation']) for r in of[m]]):.3f}"
            f" | {np.mean([r['validation'][-1][1] for r in of[m]]):.3f}"
            f" | {_with_interval(area)} | "
            + _minus(area, _values(ref, lambda r: float(np.mean(r["curve"]))), m)
            + " |"
        )
    lines += ["", "| problems of all seeds, by most of three | gained | lost |", "|---|---|---|"]
    start = _solved(baseline["best"], runs)
    for m in methods:
        solved = [_solved(r["best"], runs) for r in of[m]]
        lines.append(f"| {m} against the baseline | {_gained(solved, [start] * len(solved))} |")
        if REFERENCE in of and m != REFERENCE:
            other = [_solved(r["best"], runs) for r in of[REFERENCE]]
            lines.append(f"| {m} against {REFERENCE} | {_gained(solved, other)} |")
    return lines + _rates(found) + _evidence(of)


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
        "of losers' steps, A > 0": "losers_positive", "turns": "rollout/steps",
        "entropy": "entropy", "calls refused": "calls/refused", "seconds a step": "seconds/step",
        "of them credit": "credit_share",
    }  # fmt: skip
    lines = ["", f"| means over training | {' | '.join(shown)} |", "|---|" + "---|" * len(shown)]
    for m, results in of.items():
        means = [np.mean([r["means"][name] for r in results]) for name in shown.values()]
        lines.append(f"| {m} | {' | '.join(f'{mean:.3g}' for mean in means)} |")
    return lines


def detectable(found: dict[str, Any]) -> float | None:
    """Say which difference in pass@1 from GRPO such an experiment finds four times out of five.

    2.8 standard errors (two-sided 5 %, power 80 %) of the mean of paired differences, the median
    over methods.
    """
    runs, errors = found["settings"]["budget"]["runs"], []
    of = {m: [r for r in found["results"] if r["method"] == m] for m in found["rates"]}
    for m in of:
        if m != REFERENCE and REFERENCE in of and len(of[m]) > 1:
            pairs = zip(of[m], of[REFERENCE], strict=True)
            differences = [(np.mean(a["best"]) - np.mean(b["best"])) / runs for a, b in pairs]
            errors.append(float(np.std(differences, ddof=1)) / len(differences) ** 0.5)
    return 2.8 * statistics.median(errors) if errors else None


def _values(results: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], float]) -> Floats:
    return np.array([of(result) for result in results])


def _with_interval(values: Floats) -> str:
    low, high = bootstrap(values)
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def _minus(values: Floats, reference: Floats, method: str) -> str:
    if method == REFERENCE:
        return ""
    low, high = bootstrap(values - reference)
    return f"{(values - reference).mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def _solved(passes: Sequence[int], runs: int) -> np.ndarray:
    return np.array(passes) * 2 > runs


def _most(passes: Sequence[int], runs: int) -> float:
    return float(_solved(passes, runs).mean())


def _gained(solved: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> str:
    pairs = list(zip(solved, other, strict=True))
    gained = sum(int((a & ~b).sum()) for a, b in pairs)
    lost = sum(int((b & ~a).sum()) for a, b in pairs)
    return f"{gained} | {lost}"
