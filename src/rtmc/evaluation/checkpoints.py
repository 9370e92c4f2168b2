"""Pick the best of several checkpoints, and say by how much its figure flatters it."""

from collections.abc import Sequence

import msgspec
import numpy as np

from rtmc.batch import Floats
from rtmc.errors import OptionError
from rtmc.evaluation.rates import Figure, mean_over_problems
from rtmc.evaluation.record import Evaluation

__all__ = ["Best", "best_checkpoint"]

RESAMPLES = 2000


class Best(msgspec.Struct, frozen=True):
    """The checkpoint with the highest pass@1 on the problems that all have counted runs of.

    Attributes:
        at: its place among the checkpoints.
        name: its name.
        pass_at_1: of every checkpoint, on these problems.
        left_out: problems that not all checkpoints have counted runs of.
        optimism: by how much the best one's pass@1 is too high, if the checkpoints differ as seen.
        optimism_if_equal: the same if they do not differ at all: the most it can be.
        again: share of resamples of the problems in which it is the best.
        held_out: its pass@1 on problems that did not pick it, if there are any.
    """

    at: int
    name: str
    pass_at_1: tuple[Figure, ...]
    left_out: tuple[str, ...]
    optimism: float
    optimism_if_equal: float
    again: float
    held_out: Figure | None = None


def best_checkpoint(
    checkpoints: Sequence[Evaluation],
    generator: np.random.Generator,
    held_out: Sequence[Evaluation] = (),
) -> Best:
    """Pick the best checkpoint; of equal ones the first.

    The highest of several noisy figures is too high: it was picked for its luck, too. In 2000
    resamples of the problems (drawn with replacement, the same for all checkpoints) the best of
    the resample is picked anew. With x_b the pass@1 of checkpoint b, x*_b in a resample:

        optimism          = mean of x*_w − x_w over resamples,      w the best in that resample
        optimism_if_equal = mean of max_b (x*_b − x_b)

    The first takes the observed differences for true ones and is too small where they are noise;
    the second takes all of them for noise.

    Args:
        checkpoints: two or more.
        generator: for the resamples.
        held_out: the same checkpoints, in their order, on other problems.

    Raises:
        OptionError: they share no problem, were counted differently, are not two, or ``held_out``
            has another length or a problem that was used to pick.
    """
    if len(checkpoints) < 2:
        raise OptionError(f"{len(checkpoints)} checkpoint to pick from; expected two or more")
    if len({(one.settings.incomplete, one.settings.unknown) for one in checkpoints}) > 1:
        raise OptionError(
            "the checkpoints were counted with different --incomplete or --unknown; evaluate "
            "them alike"
        )
    tables = [{p.id: p for p in one.problems if p.counted} for one in checkpoints]
    shared = sorted(set.intersection(*(set(table) for table in tables)))
    if not shared:
        raise OptionError("the checkpoints share no problem with a known outcome")
    rates = np.array([[table[n].passed / table[n].counted for n in shared] for table in tables])
    figures = tuple(
        mean_over_problems(row.tolist(), [table[name].counted for name in shared])
        for row, table in zip(rates, tables, strict=True)
    )
    means = np.array([figure.value for figure in figures])
    at = int(_firmly(means).argmax())
    drawn = generator.multinomial(len(shared), np.full(len(shared), 1 / len(shared)), RESAMPLES)
    luck = rates @ drawn.T / len(shared) - means[:, None]
    picked = _firmly(luck + means[:, None]).argmax(axis=0)
    everything = {p.id for one in checkpoints for p in one.problems}
    return Best(
        at=at,
        name=checkpoints[at].name,
        pass_at_1=figures,
        left_out=tuple(sorted(everything - set(shared))),
        optimism=float(luck[picked, np.arange(RESAMPLES)].mean()),
        optimism_if_equal=float(luck.max(axis=0).mean()),
        again=float((picked == at).mean()),
        held_out=_held_out(held_out, at, len(checkpoints), everything),
    )


def _firmly(means: Floats) -> Floats:
    """Make equal what differs by rounding only, so that of equal ones the first is picked."""
    return np.round(means, 12)


def _held_out(given: Sequence[Evaluation], at: int, expected: int, used: set[str]) -> Figure | None:
    """Give the best checkpoint's figure on problems that did not pick it."""
    if not given:
        return None
    if len(given) != expected:
        raise OptionError(
            f"{len(given)} evaluations on held-out problems for {expected} checkpoints; give one "
            "for each, in the same order"
        )
    for one in given:
        both = sorted(used & {problem.id for problem in one.problems})
        if both:
            raise OptionError(
                f"{one.name}: problem {both[0]!r} was used to pick the checkpoint; held-out "
                "problems must be others"
            )
    return given[at].pass_at_k[1]
