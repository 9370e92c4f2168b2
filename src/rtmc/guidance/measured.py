"""A number with its error over groups: the jackknife, and when a difference exceeds its noise.

Steps of a rollout and rollouts of a group are not independent, groups are. So every figure is a
function of sums over groups, and its error comes from leaving out one group after the other.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from statistics import NormalDist

import msgspec
import numpy as np

from rtmc.batch import Floats

__all__ = ["FEW_GROUPS", "WORTH", "Measured", "Sums", "measured", "quantile", "ratio"]

FEW_GROUPS = 5
"""With fewer groups behind it a figure is called weak: its error is itself a guess."""

WORTH = 0.005
"""Share of an error, or correlation, below which a gain is not worth a setting, however sure."""

FAMILY_ERROR = 0.05
"""Chance that any of several compared choices is called better where none is."""

ROUNDING = 1e-12

Sums = Mapping[str, Floats]
"""Named sums, each of shape (groups, …) or, added up over groups, (1, …)."""


class Measured(msgspec.Struct, frozen=True):
    """A figure and its standard error over groups.

    Attributes:
        value: NaN where there is nothing to measure it from.
        error: NaN where fewer than two groups say anything of it.
        groups: how many groups say anything of it.
    """

    value: float = nan
    error: float = nan
    groups: int = 0

    @property
    def known(self) -> bool:
        """Whether there is such a figure at all."""
        return isfinite(self.value)

    @property
    def weak(self) -> bool:
        """Whether fewer than five groups stand behind it."""
        return self.groups < FEW_GROUPS

    def exceeds(self, bound: float, choices: int = 1) -> bool:
        """Tell whether the value lies above a bound by more than noise.

        One-sided t-test over groups at 5 %, shared among ``choices`` (Bonferroni). False where
        the figure is weak.
        """
        if self.weak or not (self.known and isfinite(self.error)):
            return False
        return self.value - bound > quantile(self.groups - 1, choices) * self.error


def quantile(freedom: int, choices: int = 1) -> float:
    """Find t with P(T > t) = 5 % / choices for Student's T of ``freedom`` degrees.

    By the expansion of Abramowitz and Stegun 26.7.5 around the normal quantile, three terms: short
    by 1 % at 4 degrees of freedom and one choice, by 4 % with four.
    """
    z = NormalDist().inv_cdf(1 - FAMILY_ERROR / choices)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def measured(
    groups: Sequence[Sums], statistic: Callable[[Sums], Floats], shape: tuple[int, ...] = ()
) -> list[Measured]:
    """Measure a statistic of sums over groups, with its jackknife error.

        error² = (k − 1)/k · Σ_g (θ_{−g} − mean θ_{−g})²

    over the k groups that have such a figure of their own, or move that of all when left out.

    Args:
        groups: the sums of each group, equal names and shapes.
        statistic: maps sums of shape (B, …) to B values (or B rows of values), NaN where there
            is nothing to divide by.
        shape: of one row of values, where there are several.

    Returns:
        One figure a value, in the order of the row.
    """
    n_values = int(np.prod(shape, dtype=np.int64))
    if not groups:
        return [Measured()] * n_values
    rows = {name: np.stack([np.asarray(g[name], float) for g in groups]) for name in groups[0]}
    total = {name: row.sum(axis=0, keepdims=True) for name, row in rows.items()}
    left = {name: total[name] - row for name, row in rows.items()}
    with np.errstate(invalid="ignore", divide="ignore"):
        whole, without, own = (
            statistic(sums).reshape(-1, n_values) for sums in (total, left, rows)
        )
    return [
        _figure(value, *columns) for value, *columns in zip(whole[0], without.T, own.T, strict=True)
    ]


def _figure(value: float, without: Floats, own: Floats) -> Measured:
    """Combine a value with those without each group, and those of each group alone."""
    if not isfinite(value):
        return Measured()
    moves = ~(np.abs(without - value) <= ROUNDING * max(abs(value), 1.0))
    says = moves | np.isfinite(own)
    k = int(says.sum())
    if k < 2:
        return Measured(float(value), nan, k)
    spread = without[says] - without[says].mean()
    return Measured(float(value), float(np.sqrt((k - 1) / k * (spread * spread).sum())), k)


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide, NaN where there is nothing to divide by."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)
