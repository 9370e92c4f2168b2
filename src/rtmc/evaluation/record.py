"""Evaluate rollouts: count them problem by problem, and make the figures of the counts.

An ``Evaluation`` is what ``rtmc evaluate -o`` writes (schema ``rtmc.evaluation/1``): the counts of
every problem, and the figures, which follow from the counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import fsum
from statistics import median_low

import msgspec

from rtmc.errors import FormatError, OptionError
from rtmc.evaluation import rates
from rtmc.evaluation.rates import Figure, mean_over_problems
from rtmc.outcomes import Incomplete, Unknown, judge
from rtmc.rollouts import Group, Rollout

__all__ = [
    "SCHEMA",
    "Evaluation",
    "Problem",
    "Settings",
    "decode_evaluation",
    "encode_evaluation",
    "evaluate",
    "with_figures",
]

SCHEMA = "rtmc.evaluation/1"

MAJORITY = 3
"""Runs that vote where nobody says otherwise: the paper's three."""


class Problem(msgspec.Struct, frozen=True):
    """The runs of one problem.

    Attributes:
        id: of the problem.
        runs: all of them.
        counted: those in the rate: of known outcome, unless the settings say otherwise.
        passed: of the counted.
        unknown: of unknown outcome, counted or not.
        errors: ended by an error that was not the agent's, counted or not.
        incomplete: stopped by a limit, counted or not.
    """

    id: str
    runs: int
    counted: int
    passed: int
    unknown: int = 0
    errors: int = 0
    incomplete: int = 0

    @property
    def rate(self) -> float | None:
        """Success rate of the counted runs."""
        return self.passed / self.counted if self.counted else None


class Settings(msgspec.Struct, frozen=True):
    """How rollouts were counted.

    Attributes:
        k: for which k there is a pass@k, ascending, 1 among them.
        majority: how many runs vote.
        incomplete: ``fail``: a rollout that a limit stopped is a failure; ``exclude``: not counted.
        unknown: the same for one of unknown outcome, or ended by an error.
    """

    k: tuple[int, ...]
    majority: int
    incomplete: str = "fail"
    unknown: str = "exclude"


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """How well one model did on some problems.

    Attributes:
        schema: of the file; it comes first, so that the first bytes tell what the file is.
        name: of the evaluation.
        model: of the rollouts, None where none is named; several with commas.
        task: what the problems are of.
        settings: how rollouts were counted.
        problems: by id.
        pass_at_k: by k.
        majority: over ``settings.majority`` runs.
        bounds: pass@1 if every run that is not counted had failed, and if it had passed.
        steps: mean a rollout.
        tokens: sampled tokens, mean over the rollouts that record them.
        seconds: wall time, mean over the rollouts that record it for every step.
        stop_reasons: rollouts by stop reason, where one is recorded.
    """

    schema: str = SCHEMA
    name: str
    model: str | None
    task: str | None
    settings: Settings
    problems: tuple[Problem, ...]
    pass_at_k: dict[int, Figure]
    majority: Figure
    bounds: tuple[float, float]
    steps: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    stop_reasons: dict[str, int] = {}


def evaluate(
    groups: Iterable[Group],
    *,
    name: str = "",
    task: str | None = None,
    k: Sequence[int] | None = None,
    majority: int | None = None,
    incomplete: Incomplete = "fail",
    unknown: Unknown = "exclude",
) -> Evaluation:
    """Evaluate rollouts; the groups are read once, and memory holds one.

    Args:
        groups: one a problem.
        name: of the evaluation.
        task: what the problems are of.
        k: for which k to give pass@k; by default 1, 2, 4 … up to what the median problem has.
        majority: how many runs vote; by default 3, or what the median problem has if that is less.
        incomplete: whether rollouts that a limit stopped are failures or not counted.
        unknown: whether rollouts of unknown outcome, or ended by an error, are failures or not
            counted.

    Raises:
        OptionError: no rollout is counted, no problem has the runs that k or majority ask for, or
            two groups are of the same problem.
    """
    problems: dict[str, Problem] = {}
    models: dict[str, None] = {}
    stops: Counter[str] = Counter()
    steps: list[int] = []
    tokens: list[int] = []
    seconds: list[float] = []
    for group in groups:
        if group.problem_id in problems:
            raise OptionError(
                f"two groups of problem {group.problem_id!r}; evaluate each model by itself"
            )
        problems[group.problem_id] = _counted(group, incomplete, unknown)
        for rollout in group.rollouts:
            if rollout.model:
                models[rollout.model] = None
            if rollout.stop_reason:
                stops["error" if _is_error(rollout) else rollout.stop_reason] += 1
            steps.append(len(rollout.steps))
            sampled = [span for step in rollout.steps for span in step.spans]
            if sampled:
                tokens.append(sum(span.end - span.start for span in sampled))
            took = [step.seconds for step in rollout.steps if step.seconds is not None]
            if took and len(took) == len(rollout.steps):
                seconds.append(fsum(took))
    ordered = tuple(problems[key] for key in sorted(problems))
    counted = [problem.counted for problem in ordered if problem.counted]
    if not counted:
        raise OptionError(
            "no rollout with a known outcome; give outcomes with --outcomes, or say --unknown fail"
        )
    return with_figures(
        Evaluation(
            name=name,
            model=", ".join(models) or None,
            task=task,
            settings=Settings(*_sizes(k, majority, median_low(counted)), incomplete, unknown),
            problems=ordered,
            pass_at_k={},
            majority=Figure(None, None, None, 0),
            bounds=(0.0, 1.0),
            steps=_mean(steps),
            tokens=_mean(tokens),
            seconds=_mean(seconds),
            stop_reasons=dict(sorted(stops.items(), key=lambda item: (-item[1], item[0]))),
        )
    )


def _counted(group: Group, incomplete: Incomplete, unknown: Unknown) -> Problem:
    counted = passed = 0
    for rollout in group.rollouts:
        # an error says nothing of the agent, whatever the workspace it left was judged to be
        if _is_error(rollout):
            counted += unknown == "fail"
        elif judge(rollout, incomplete, unknown=unknown).outcome is not None:
            counted += 1
            passed += rollout.status == "passed" and rollout.reward is not None
    return Problem(
        group.problem_id,
        len(group.rollouts),
        counted,
        passed,
        unknown=sum(r.reward is None and not _is_error(r) for r in group.rollouts),
        errors=sum(map(_is_error, group.rollouts)),
        incomplete=sum(r.status == "incomplete" for r in group.rollouts),
    )


def _is_error(rollout: Rollout) -> bool:
    """Tell whether an error ended the rollout that was not the agent's."""
    return (rollout.stop_reason or "").split(":")[0] == "error"


def _sizes(k: Sequence[int] | None, majority: int | None, runs: int) -> tuple[tuple[int, ...], int]:
    """Fill in the sizes that were not given, from the runs of a typical problem."""
    if k is None:
        k = [2**power for power in range(runs.bit_length())]
    return tuple(sorted({1, *k})), min(MAJORITY, runs) if majority is None else majority


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def with_figures(
    given: Evaluation, k: Sequence[int] | None = None, majority: int | None = None
) -> Evaluation:
    """Make the figures of an evaluation from its counts, for another k or majority if given.

    Raises:
        OptionError: no problem has so many counted runs.
    """
    settings = msgspec.structs.replace(
        given.settings,
        k=given.settings.k if k is None else tuple(sorted({1, *k})),
        majority=given.settings.majority if majority is None else majority,
    )
    most = max(problem.counted for problem in given.problems)
    sizes = [("k", size) for size in settings.k] + [("majority", settings.majority)]
    for what, size in sizes:
        if not 1 <= size <= most:
            raise OptionError(
                f"{what} is {size}; expected 1 to {most}, the most counted runs of a problem"
            )
    return msgspec.structs.replace(
        given,
        settings=settings,
        pass_at_k={k: _figure(given.problems, k, rates.pass_at_k) for k in settings.k},
        majority=_figure(given.problems, settings.majority, rates.majority),
        bounds=_bounds(given.problems),
    )


def _figure(
    problems: Sequence[Problem], size: int, estimate: Callable[[int, int, int], float]
) -> Figure:
    return mean_over_problems(
        [estimate(p.counted, p.passed, size) if p.counted >= size else None for p in problems],
        [p.counted for p in problems],
    )


def _bounds(problems: Sequence[Problem]) -> tuple[float, float]:
    worst = fsum(p.passed / p.runs for p in problems) / len(problems)
    best = fsum((p.passed + p.runs - p.counted) / p.runs for p in problems) / len(problems)
    return worst, best


# --- the file ------------------------------------------------------------------------------------


class _Schema(msgspec.Struct):
    schema: str = ""


def encode_evaluation(evaluation: Evaluation) -> bytes:
    """Write an evaluation as one JSON object, which ``decode_evaluation`` reads back equal."""
    return msgspec.json.encode(evaluation) + b"\n"


def decode_evaluation(raw: bytes, path: str = "evaluation") -> Evaluation:
    """Read what ``encode_evaluation`` wrote.

    Args:
        raw: the file.
        path: its name, for errors.

    Raises:
        FormatError: it is not JSON, of another schema, or its counts contradict each other.
    """
    try:
        schema = msgspec.json.decode(raw, type=_Schema).schema
        if schema != SCHEMA:
            raise FormatError(f"{path}: expected schema {SCHEMA!r}, got {schema!r}")
        found = msgspec.json.decode(raw, type=Evaluation)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise FormatError(f"{path}: not an evaluation of schema {SCHEMA}: {error}") from error
    for problem in found.problems:
        if not 0 <= problem.passed <= problem.counted <= problem.runs:
            raise FormatError(
                f"{path}: problem {problem.id!r} has {problem.passed} passed of {problem.counted} "
                f"counted of {problem.runs} runs; expected 0 ≤ passed ≤ counted ≤ runs"
            )
    ids = [problem.id for problem in found.problems]
    if len(set(ids)) < len(ids) or not any(problem.counted for problem in found.problems):
        raise FormatError(f"{path}: expected problems of different ids, one of them with a run")
    return found
