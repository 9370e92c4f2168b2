"""Estimate how often problems are solved: pass@k, majority over runs, and 95 % intervals.

Counts in, numbers out. A problem is n counted runs of which c passed; a figure is the mean over
problems, because a benchmark's problems are the sample and its runs are not.
"""

from collections.abc import Sequence
from math import comb, fsum, sqrt
from statistics import NormalDist

import msgspec
import numpy as np

from rtmc.batch import Floats
from rtmc.errors import OptionError

__all__ = ["Figure", "interval", "majority", "mean_over_problems", "pass_at_k"]

Z = NormalDist().inv_cdf(0.975)


class Figure(msgspec.Struct, frozen=True):
    """A mean over problems with its 95 % interval.

    Attributes:
        value: None where no problem has enough counted runs.
        low: None with fewer than two problems.
        high: as ``low``.
        problems: how many it is the mean of.
        left_out: how many have too few counted runs.
    """

    value: float | None
    low: float | None
    high: float | None
    problems: int
    left_out: int = 0


def pass_at_k(n: int, c: int, k: int) -> float:
    """Estimate the chance that at least one of k runs passes, from n ≥ k runs.

        pass@k = 1 − C(n − c, k) / C(n, k)

    the share of all sets of k runs with a pass among them: unbiased, where 1 − (1 − c/n)^k is too
    small. k = 1: c/n. Computed in whole numbers, so that no n is too large for it. See "Evaluating
    Large Language Models Trained on Code" (arXiv 2107.03374), equation 1.

    Args:
        n: counted runs.
        c: those that passed, 0 … n.
        k: 1 … n.

    Raises:
        OptionError: k is not in 1 … n, or c not in 0 … n.
    """
    _check(n, c, k, "k")
    whole = comb(n, k)
    return (whole - comb(n - c, k)) / whole


def majority(n: int, c: int, m: int) -> float:
    """Estimate the chance that most of m runs pass, from n ≥ m runs.

        Σ_{j > m/2} C(c, j)·C(n − c, m − j) / C(n, m)

    the share of all sets of m runs in which more than half passed: unbiased; m = n: 1 or 0 as
    2c > n or not. A tie (even m) is no majority. m = 1: c/n.

    Args:
        n: counted runs.
        c: those that passed, 0 … n.
        m: runs that vote, 1 … n.

    Raises:
        OptionError: m is not in 1 … n, or c not in 0 … n.
    """
    _check(n, c, m, "m")
    passes = range(max(m // 2 + 1, m - (n - c)), min(c, m) + 1)
    return sum(comb(c, j) * comb(n - c, m - j) for j in passes) / comb(n, m)


def _check(n: int, c: int, size: int, name: str) -> None:
    if not 1 <= size <= n:
        raise OptionError(f"{name} is {size}; expected 1 to {n}, the number of counted runs")
    if not 0 <= c <= n:
        raise OptionError(f"{c} of {n} runs passed; expected 0 to {n}")


def interval(values: Floats, runs: int) -> tuple[float, float]:
    """Give the 95 % interval of the mean of values in [0, 1], one a problem.

    Wilson's score interval, with the number of problems that would have the observed error if each
    were run once:

        SE²   = Σ_i (v_i − v̄)² / (n(n − 1))                    over the n problems
        n_eff = v̄(1 − v̄) / SE²,  kept within n … runs;  n where v̄ is 0 or 1
        (v̄ + z²/2n_eff ± z·√(v̄(1 − v̄)/n_eff + z²/4n_eff²)) / (1 + z²/n_eff),  z = 1.96

    SE is the error clustered by problem: it holds the luck of the runs and the luck of which
    problems there are. One run a problem: Wilson's interval itself. Unlike v̄ ± z·SE it never
    leaves [0, 1], and has a width where all problems went alike. See "Adding Error Bars to Evals"
    (arXiv 2411.00640); the effective size in Wilson's interval is that of surveys with
    clusters.

    Args:
        values: shape (n,), n ≥ 2.
        runs: counted runs of all problems.
    """
    n = len(values)
    mean = fsum(values) / n
    squares = fsum((values - mean) ** 2)
    spread = mean * (1 - mean)
    if mean in (0.0, 1.0):
        size = float(n)
    elif squares == 0:
        size = float(runs)
    else:
        size = min(max(spread * n * (n - 1) / squares, n), runs)
    middle = mean + Z * Z / (2 * size)
    half = Z * sqrt(spread / size + Z * Z / (4 * size * size))
    scale = 1 + Z * Z / size
    # at 0 and 1 the two terms are equal, but for rounding
    low = 0.0 if mean == 0.0 else (middle - half) / scale
    high = 1.0 if mean == 1.0 else (middle + half) / scale
    return low, high


def mean_over_problems(values: Sequence[float | None], runs: Sequence[int]) -> Figure:
    """Average over the problems that have a value.

    Args:
        values: one a problem, in [0, 1]; None where it has too few counted runs.
        runs: counted runs of each problem, in the same order.
    """
    known = [(value, n) for value, n in zip(values, runs, strict=True) if value is not None]
    left_out = len(values) - len(known)
    if not known:
        return Figure(None, None, None, 0, left_out)
    rates = np.array([value for value, _ in known])
    mean = fsum(rates) / len(rates)
    if len(rates) == 1:
        return Figure(mean, None, None, 1, left_out)
    low, high = interval(rates, sum(n for _, n in known))
    return Figure(mean, low, high, len(rates), left_out)
