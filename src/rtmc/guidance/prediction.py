"""How well the other rollouts predict a return: at which level, and with how many of them.

One yardstick for both questions: the squared error of V′_{−i}(s_t) as a prediction of G_t of
rollout i, over all steps of live groups, in the unit of the error of p_{−i} alone (the prior, no
states). All levels are judged on the same steps.
"""

from collections.abc import Sequence
from math import nan
from typing import Literal

import msgspec
import numpy as np

from rtmc.advantages import RTMC
from rtmc.batch import Batch, Floats
from rtmc.guidance.measured import WORTH, Measured, Sums, measured, ratio
from rtmc.guidance.sample import LEVELS, Sample, copies

__all__ = ["Growth", "LevelError", "Levels", "growth", "levels", "prediction_sums"]

SPLITS = 2
"""How often the other rollouts are split in halves."""

PRIOR_ONLY = 1e9
"""So many prior visits leave nothing of the state."""


class LevelError(msgspec.Struct, frozen=True):
    """How well states of one level predict returns.

    Attributes:
        error: mean (G_t − V′_{−i}(s_t))².
        saved: 1 − error / error of the prior alone.
        over_own: ``saved`` less that of the level of the settings.
    """

    error: Measured
    saved: Measured
    over_own: Measured


class Levels(msgspec.Struct, frozen=True):
    """The leave-one-out comparison of levels.

    Attributes:
        own: the level of the settings.
        by_level: each level's error.
        prior_error: mean (G_t − p_{−i})².
        best: the level with the lowest error.
        better: ``best`` beats ``own`` by ``WORTH`` and by more than noise (``Measured.exceeds``).
        discounted_prior: what ``prior discounted`` saves at the level of the settings.
        steps: steps that were predicted.
    """

    own: str
    by_level: dict[str, LevelError]
    prior_error: Measured
    best: str
    better: bool
    discounted_prior: Measured
    steps: int


class Growth(msgspec.Struct, frozen=True):
    """What more rollouts would bring, next to a coarser level; in the unit of ``saved``.

    Attributes:
        from_half: error saved by all other rollouts against half of them, at the same level.
        by_doubling: that carried one doubling further, if the error falls as e∞ + c/others.
        by_rate: what the same doubling saves where p_{−i} alone is the prediction: the part of
            the gain that is a better known success rate, not better known states.
        coarser: the best level that overlaps more than the one of the settings; None if there
            is none.
        by_coarser: what that level saves over the one of the settings.
        difference: ``by_doubling`` − ``by_coarser``.
    """

    from_half: Measured
    by_doubling: Measured
    by_rate: Measured
    coarser: str | None
    by_coarser: Measured
    difference: Measured


def prediction_sums(sample: Sample) -> Sums:
    """Sum the squared errors of a live group at each level, and with half of the others."""
    names = _compared(sample.levels[-1])
    credited = sample.credited
    tried = credited & np.isin(sample.batch.rollout_of_step, sample.left_out)
    wrong = [_squares(sample, sample.at(level)) for level in names]
    prior = _squares(sample, sample.at(names[-1]), PRIOR_ONLY)
    carried = _squares(sample, sample.at(names[-1]), prior="discounted")
    half, prior_half, others_half = _halved(sample)
    enough = sample.n_rollouts >= 3  # two others at least
    steps = float(credited.sum())
    return {
        "steps": np.array([steps]),
        "levels": np.array([w[credited].sum() for w in wrong]),
        "prior": np.array([prior[credited].sum()]),
        "discounted": np.array([carried[credited].sum()]),
        "half": np.array([half[tried].sum() if enough else 0.0]),
        "prior_half": np.array([prior_half[tried].sum() if enough else 0.0]),
        "whole": np.array([wrong[-1][tried].sum() if enough else 0.0]),
        "prior_whole": np.array([prior[tried].sum() if enough else 0.0]),
        "per_half": np.array([tried.sum() * others_half]),
        "per_whole": np.array([tried.sum() / (sample.n_rollouts - 1) if enough else 0.0]),
    }


def _compared(own: str) -> tuple[str, ...]:
    """The levels that are compared; that of the settings is last."""
    return (*(level for level in LEVELS if level != own), own)


def _squares(
    sample: Sample,
    batch: Batch,
    n_prior: float | None = None,
    prior: Literal["discounted"] | None = None,
) -> Floats:
    """(G − V′_{−i})² of each step; a baseline needs a prior, whatever the settings say."""
    given = sample.estimator
    estimator = RTMC(
        n_prior=n_prior or given.n_prior or RTMC().n_prior,
        prior=prior or ("success_rate" if given.prior == "none" else given.prior),
        leave_one_out=True,
    )
    values = estimator(batch).state_values
    assert values is not None
    return (batch.returns - values) ** 2


def _halved(sample: Sample) -> tuple[Floats, Floats, float]:
    """(G − V′)² and (G − p)² of each step from half of the others, splits averaged; mean 1/others.

    All are 0 where there are no two others.
    """
    n, size = sample.n_rollouts, len(sample.batch.returns)
    if n < 3:
        return np.zeros(size), np.zeros(size), 0.0
    left_out = sample.left_out
    halves = [h for r in left_out for salt in range(SPLITS) for h in sample.halves(int(r), salt)]
    members = np.stack(halves)
    target = np.repeat(left_out, 2 * SPLITS)
    inverse = float((1 / members.sum(1)).mean())
    members[np.arange(len(members)), target] = True
    batch, step_of, copy_of = copies(sample.at(sample.levels[-1]), members)
    own = sample.batch.rollout_of_step[step_of] == target[copy_of]
    of_state, of_prior = (
        np.bincount(step_of[own], _squares(sample, batch, prior)[own], size) / (2 * SPLITS)
        for prior in (None, PRIOR_ONLY)
    )
    return of_state, of_prior, inverse


def levels(groups: Sequence[Sums], own: str) -> Levels:
    """Compare the levels."""
    names = _compared(own)
    size = len(names)

    def figures(s: Sums) -> Floats:
        error, prior = ratio(s["levels"], s["steps"]), ratio(s["prior"], s["steps"])
        saved = 1 - ratio(s["levels"], s["prior"])
        carried = ratio(s["levels"][:, -1:] - s["discounted"], s["prior"])
        return np.concatenate([error, saved, saved - saved[:, -1:], prior, carried], -1)

    found = measured(groups, figures, (3 * size + 2,))
    by_level = {
        name: LevelError(found[at], found[size + at], found[2 * size + at])
        for at, name in enumerate(names)
    }
    best = min(reversed(names), key=lambda name: by_level[name].error.value)
    over = by_level[best].over_own
    return Levels(
        own=own,
        by_level={name: by_level[name] for name in dict.fromkeys((*LEVELS, own))},
        prior_error=found[-2],
        discounted_prior=found[-1],
        best=best,
        better=over.value >= WORTH and over.exceeds(0.0, size - 1),
        steps=int(sum(g["steps"][0] for g in groups)),
    )


def growth(groups: Sequence[Sums], compared: Levels, share: dict[str, float]) -> Growth:
    """Weigh more rollouts against a coarser level.

    Args:
        groups: sums of the live groups.
        compared: the comparison of levels.
        share: overlap of each level.
    """
    names = _compared(compared.own)
    more = [n for n in names[:-1] if share[n] > share[compared.own]]
    coarser = min(more, key=lambda n: compared.by_level[n].error.value) if more else None

    def figures(s: Sums) -> Floats:
        gain = ratio(s["half"] - s["whole"], s["prior_whole"])
        rate = ratio(s["prior_half"] - s["prior_whole"], s["prior_whole"])
        once_more = ratio(s["per_whole"] / 2, s["per_half"] - s["per_whole"])
        ahead = gain * once_more
        saved = 1 - ratio(s["levels"], s["prior"])
        other = saved[:, [names.index(coarser)]] - saved[:, -1:] if coarser else ahead * nan
        return np.concatenate([gain, ahead, rate * once_more, other, ahead - other], -1)

    from_half, by_doubling, by_rate, by_coarser, difference = measured(groups, figures, (5,))
    return Growth(from_half, by_doubling, by_rate, coarser, by_coarser, difference)
