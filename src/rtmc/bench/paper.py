"""The paper's experiment at a scale that two cores can run: one policy, six ways to train it.

Each method starts from the same checkpoint and sees, seed by seed, the same problems in the same
order, as many rollouts of each. Seeds 0, 1, … only choose its learning rate, by the success of all
rollouts that were trained on; what is reported are runs at that rate with seeds from 100 on, the
same for every method. Where most other methods chose another rate than GRPO, GRPO runs at theirs as
well, so that a difference can be told from one of rates. A run's best checkpoint is chosen on
validation problems and tested on others, three runs each: pass@1 is their mean, and most of three
is the paper's vote. The success of the best checkpoint on the very problems it was chosen by is the
paper's way, and stands beside it. ``paper_text`` sums it up.
"""

import functools
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rtmc.bench import pieces
from rtmc.bench.speed import machine
from rtmc.errors import RolloutError
from rtmc.train.config import TrainConfig
from rtmc.train.toml import load

__all__ = ["METHODS", "REFERENCE", "SIZES", "Size", "setups_of", "study", "work_of"]

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
"""What the others are compared with."""
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
        rates: learning rates that are tried; at 1e-3 the policy is lost within ten steps.
        tuning: seeds for each of them.
        seeds: fresh seeds at the chosen one.
    """

    budget: Budget = Budget()
    rates: tuple[float, ...] = (3e-5, 1e-4, 3e-4, 5e-4)
    tuning: int = 2
    seeds: int = 7


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
        setup: digest of what the method's name stands for, as ``setup_of`` gives it.
    """

    budget: Budget
    method: str
    rate: float
    seed: int
    tested: bool
    setup: str = ""


KEPT = (
    "signal", "groups/mixed", "overlap/content", "overlap/paper", "winners_negative",
    "losers_positive", "advantage/cosine_to_grpo", "rollout/steps", "rollout/incomplete", "entropy",
    "grad_norm", "calls/refused", "credit_share", "seconds/step",
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
        sets["evaluation.task"] = "none"
    return load("tiny", sets | METHODS[run.method])


def setup_of(method: str) -> str:
    """Digest the settings of a method and the start checkpoint: with others, runs are not the same.

    Args:
        method: of ``METHODS``, or ``baseline``.
    """
    from rtmc.agent.models.hf import find

    config = msgspec.structs.replace(load("tiny", METHODS.get(method)), about="")
    found = blake2b(msgspec.json.encode(config), digest_size=8)
    found.update((Path(find(config.model.name)[0]) / "model.safetensors").read_bytes())
    return found.hexdigest()


def perform(run: Run, folder: Path, model: str = "hf:tiny") -> dict[str, Any]:
    """Train and test; a run that was stopped goes on.

    Args:
        run: which.
        folder: what is needed to go on is kept there until the run is finished.
        model: the start checkpoint, for the baseline.

    Returns:
        ``curve``: success of the rollouts of each step; ``validation``: pairs of step and success;
        ``best``: of ``runs`` rollouts, how many passed, for each test problem; ``step``: of the
        best checkpoint; ``means``: of ``KEPT``, but for what no step had.
    """
    if run.method == "baseline":
        return {"best": test(model, run.budget)}
    from rtmc.train.run import train

    name = f"{run.method.replace(', ', '-')}-{run.rate:g}-{run.seed}-{run.setup}"
    own = folder / name.replace(" ", "-")
    store = train(config_of(run), own, say=lambda line: None)
    lines = store.metrics()
    steps = [line for line in lines if "success" in line]
    found: dict[str, Any] = {
        "curve": [line["success"] for line in steps],
        "validation": [
            [one["step"], one["eval_success"]] for one in lines if "eval_success" in one
        ],
        "means": {
            name: round(float(np.mean(values)), 5)
            for name in KEPT
            if (values := [line[name] for line in steps if name in line])
        },
    }
    if run.tested:
        found["step"] = store.best_step
        found["best"] = test(f"hf:{own / 'best'}", run.budget)
    shutil.rmtree(own)
    return found


def test(model: str, budget: Budget) -> list[int]:
    """Say how many of the runs of each test problem passed.

    Raises:
        RolloutError: one ended with an error that is not the agent's.
    """
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
        if one.status == "unknown":
            raise RolloutError(f"{one.problem_id}: {one.stop_reason}; give the command again")
        passed[one.problem_id] += one.status == "passed"
    return list(passed.values())


def setups_of(methods: Sequence[str]) -> dict[str, str]:
    """Give the digest ``setup_of`` each method, and of the baseline."""
    return {method: setup_of(method) for method in (*methods, "baseline")}


def work_of(size: Size, methods: Sequence[str]) -> int:
    """Count the runs, at most: GRPO may have chosen the others' rate."""
    also = REFERENCE in methods and len(methods) > 1
    runs = len(methods) * (len(size.rates) * size.tuning + size.seeds)
    return runs + also * size.seeds + 1


def settled(rates: dict[str, float]) -> dict[str, tuple[str, float]]:
    """Say what runs on fresh seeds: a method and a rate, by the name it is shown with.

    Args:
        rates: that were chosen, by method.

    Returns:
        The methods at their rates; and the reference at that of most others (the first of them
        where they draw), if it chose another.
    """
    rows = {method: (method, rate) for method, rate in rates.items()}
    others = Counter(rate for method, rate in rates.items() if method != REFERENCE)
    if REFERENCE in rates and others:
        ((most, _),) = others.most_common(1)
        if most != rates[REFERENCE]:
            rows[f"{REFERENCE} at {most:g}"] = (REFERENCE, most)
    return rows


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
        Settings, digests of the setups, machine, the rate of each method (and of the reference at
        the others'), and all results; plain values.
    """
    do = functools.partial(perform, folder=folder / "runs")
    store = pieces.partial(str(folder / "paper"))
    setups = setups_of(methods)
    tuning = [
        Run(size.budget, method, rate, seed, tested=False, setup=setups[method])
        for seed in range(size.tuning)
        for method in methods
        for rate in size.rates
    ]
    tuned = pieces.run(do, tuning, jobs, store, tick)
    scores: dict[str, dict[float, list[float]]] = {}
    for run, result in zip(tuning, tuned, strict=True):
        mean = float(np.mean(result["curve"]))
        scores.setdefault(run.method, {}).setdefault(run.rate, []).append(mean)
    rows = settled(
        {m: max(of, key=lambda rate: float(np.mean(of[rate]))) for m, of in scores.items()}
    )
    places = [(name, FRESH_FROM + seed) for seed in range(size.seeds) for name in rows]
    fresh = [
        Run(size.budget, *rows[name], seed, tested=True, setup=setups[rows[name][0]])
        for name, seed in places
    ]
    places.append(("baseline", 0))
    fresh.append(Run(size.budget, "baseline", 0.0, 0, tested=True, setup=setups["baseline"]))
    results = pieces.run(do, fresh, jobs, store, tick)
    return {
        "settings": msgspec.to_builtins(size),
        "setups": setups,
        "machine": machine(),
        "tuning": {m: {f"{r:g}": values for r, values in of.items()} for m, of in scores.items()},
        "rates": {name: rate for name, (_, rate) in rows.items()},
        "results": [
            {"method": name, "seed": seed, **result}
            for (name, seed), result in zip(places, results, strict=True)
        ],
    }
