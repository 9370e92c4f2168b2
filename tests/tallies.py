"""Evaluations of given counts, without rollouts."""

from rtmc.evaluation import Evaluation, Figure, Problem, Settings, with_figures


def tallied(
    name: str, *, unknown: str = "exclude", incomplete: str = "fail", **counts: tuple[int, int]
) -> Evaluation:
    """Make an evaluation of passed and counted runs by problem."""
    problems = tuple(
        Problem(key, max(counted, 1), counted, passed)
        for key, (passed, counted) in sorted(counts.items())
    )
    empty = Evaluation(
        name=name,
        model=None,
        task=None,
        settings=Settings((1,), 1, incomplete, unknown),
        problems=problems,
        pass_at_k={},
        majority=Figure(None, None, None, 0),
        bounds=(0.0, 1.0),
    )
    return with_figures(empty)
