"""Compare two evaluations on the same problems: what was gained, what was lost, what is noise.

Every test here conditions on how often a problem was solved in both evaluations together and asks
how its passes fall to the two: if nothing changed, every run is as likely in either (Fisher).
"""

from collections.abc import Sequence
from itertools import accumulate
from math import comb, fsum, sqrt

import msgspec
import numpy as np

from rtmc.batch import Floats
from rtmc.errors import OptionError
from rtmc.evaluation.rates import Figure, interval, mean_over_problems
from rtmc.evaluation.record import Evaluation, Problem

__all__ = [
    "LEVEL",
    "Change",
    "Comparison",
    "Flips",
    "adjusted",
    "compare",
    "expected_flips",
    "mid_p",
    "passes_before",
]

LEVEL = 0.05
"""Share of false ones tolerated among the problems called gained or lost."""


class Change(msgspec.Struct, frozen=True):
    """One problem before and after.

    Attributes:
        id: of the problem.
        before: passed and counted runs.
        after: as ``before``.
        p: of Fisher's test, mid-p, two-sided.
        adjusted: p after Benjamini and Hochberg; None where these runs could not show any change.
    """

    id: str
    before: tuple[int, int]
    after: tuple[int, int]
    p: float
    adjusted: float | None

    @property
    def significant(self) -> bool:
        """Whether it is called gained or lost."""
        return self.adjusted is not None and self.adjusted <= LEVEL

    @property
    def difference(self) -> float:
        """Rate after minus rate before."""
        return self.after[0] / self.after[1] - self.before[0] / self.before[1]


class Flips(msgspec.Struct, frozen=True):
    """Problems whose majority turned one way.

    Attributes:
        ids: of the problems.
        expected: how many would have turned so if nothing had changed.
        p: chance of that many or more then, mid-p.
    """

    ids: tuple[str, ...]
    expected: float
    p: float


class Comparison(msgspec.Struct, frozen=True):
    """Two evaluations on the problems that both have counted runs of.

    Attributes:
        before: name of the evaluation compared against.
        after: name of the other.
        only_before: problems that only ``before`` has.
        only_after: problems that only ``after`` has.
        left_out: problems of both without a counted run in one.
        pass_before: pass@1 on the shared problems.
        pass_after: as ``pass_before``.
        difference: after minus before, paired by problem.
        better: problems with a higher rate.
        worse: problems with a lower rate.
        sign_p: of the sign test of ``better`` against ``worse``, mid-p, two-sided.
        gained: no majority before, one after; of all counted runs, a tie being none.
        lost: a majority before, none after.
        changes: all shared problems, by id.
    """

    before: str
    after: str
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    left_out: tuple[str, ...]
    pass_before: Figure
    pass_after: Figure
    difference: Figure
    better: int
    worse: int
    sign_p: float
    gained: Flips
    lost: Flips
    changes: tuple[Change, ...]


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """Compare two evaluations.

    Raises:
        OptionError: they share no problem with counted runs, or counted runs differently.
    """
    for setting in ("incomplete", "unknown"):
        one, other = getattr(before.settings, setting), getattr(after.settings, setting)
        if one != other:
            raise OptionError(
                f"{before.name} was counted with --{setting} {one}, {after.name} with {other}; "
                "evaluate both alike"
            )
    of_before = {problem.id: problem for problem in before.problems}
    of_after = {problem.id: problem for problem in after.problems}
    both = sorted(of_before.keys() & of_after.keys())
    pairs = [(of_before[name], of_after[name]) for name in both]
    pairs = [(one, other) for one, other in pairs if one.counted and other.counted]
    if not pairs:
        raise OptionError(
            f"{before.name} and {after.name} share no problem with a known outcome: "
            f"{_some(of_before)} against {_some(of_after)}"
        )
    shared = {one.id for one, _ in pairs}
    rates = np.array([[one.passed / one.counted, other.passed / other.counted]
                      for one, other in pairs]).T  # fmt: skip
    runs = [sum(one.counted for one, _ in pairs), sum(other.counted for _, other in pairs)]
    better, worse = int((rates[1] > rates[0]).sum()), int((rates[1] < rates[0]).sum())
    return Comparison(
        before=before.name,
        after=after.name,
        only_before=tuple(sorted(of_before.keys() - of_after.keys())),
        only_after=tuple(sorted(of_after.keys() - of_before.keys())),
        left_out=tuple(name for name in both if name not in shared),
        pass_before=mean_over_problems(rates[0].tolist(), [one.counted for one, _ in pairs]),
        pass_after=mean_over_problems(rates[1].tolist(), [other.counted for _, other in pairs]),
        difference=difference(rates[0], rates[1], runs),
        better=better,
        worse=worse,
        sign_p=mid_p(_fair_coin(better + worse), better),
        gained=_flips(pairs, gained=True),
        lost=_flips(pairs, gained=False),
        changes=_changes(pairs),
    )


def _some(problems: dict[str, Problem]) -> str:
    names = sorted(problems)
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


# --- the difference ------------------------------------------------------------------------------


def difference(before: Floats, after: Floats, runs: Sequence[int]) -> Figure:
    """Give the mean paired difference with its 95 % interval.

    From the intervals [l, u] of the two means b and a, and the correlation r of the two rates over
    problems:

        low  = a − b − √((a − l_a)² − 2r(a − l_a)(u_b − b) + (u_b − b)²)
        high = a − b + √((u_a − a)² − 2r(u_a − a)(b − l_b) + (b − l_b)²)

    Newcombe's method for paired proportions; with many problems it is the paired interval
    a − b ± z·SE(differences). r = 0 where one of the two rates is the same for all problems. See
    "Adding Error Bars to Evals" (arXiv 2411.00640) for why to pair.

    Args:
        before: rates, shape (n,).
        after: rates of the same problems, shape (n,).
        runs: counted runs before and after.
    """
    n = len(before)
    b, a = fsum(before) / n, fsum(after) / n
    if n == 1:
        return Figure(a - b, None, None, 1)
    low_b, high_b = interval(before, runs[0])
    low_a, high_a = interval(after, runs[1])
    r = _correlation(before - b, after - a)
    low = _apart(a - low_a, high_b - b, r)
    high = _apart(high_a - a, b - low_b, r)
    return Figure(a - b, a - b - low, a - b + high, n)


def _correlation(x: Floats, y: Floats) -> float:
    size = sqrt(fsum(x * x) * fsum(y * y))
    return min(max(fsum(x * y) / size, -1.0), 1.0) if size > 0 else 0.0


def _apart(x: float, y: float, r: float) -> float:
    return sqrt(max(x * x - 2 * r * x * y + y * y, 0.0))


# --- tests ---------------------------------------------------------------------------------------


def passes_before(n_before: int, n_after: int, passed: int) -> list[float]:
    """Give the chance of 0 … n_before passes before, if nothing changed.

        P(j) = C(n_before, j)·C(n_after, passed − j) / C(n_before + n_after, passed)

    Args:
        n_before: runs before.
        n_after: runs after.
        passed: passes of both together.
    """
    whole = comb(n_before + n_after, passed)
    return [
        comb(n_before, j) * comb(n_after, passed - j) / whole if j <= passed else 0.0
        for j in range(n_before + 1)
    ]


def mid_p(chances: Sequence[float], observed: int) -> float:
    """Give the two-sided mid-p value of a count.

        p = min(1, 2·min(P(X < x) + P(X = x)/2, P(X > x) + P(X = x)/2))

    Of a discrete test it is nearer to its level than the exact p, which is too large; it can fall
    below by a little.

    Args:
        chances: of 0, 1, 2 … if nothing changed.
        observed: x.
    """
    half = chances[observed] / 2
    below, above = fsum(chances[:observed]), fsum(chances[observed + 1 :])
    return min(1.0, 2 * min(below + half, above + half))


def _fair_coin(n: int) -> list[float]:
    return [comb(n, j) / 2**n for j in range(n + 1)]


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, so that those ≤ q hold a share of at most q false ones.

        p_(i) → min_{j ≥ i} p_(j)·m/j        p_(1) ≤ … ≤ p_(m)

    Benjamini and Hochberg, "Controlling the False Discovery Rate", 1995.

    Returns:
        In the order given.
    """
    m = len(p_values)
    order = sorted(range(m), key=lambda i: -p_values[i])
    steps = (min(1.0, p_values[i] * m / (m - at)) for at, i in enumerate(order))
    found = dict(zip(order, accumulate(steps, min), strict=True))
    return [found[i] for i in range(m)]


def _changes(pairs: Sequence[tuple[Problem, Problem]]) -> tuple[Change, ...]:
    """Test every problem; only those whose runs could show a change share in the adjustment.

    Which these are follows from the totals alone, which the test takes as given (Tarone, "A
    modified Bonferroni method for discrete data", 1990; Gilbert 2005 for false discoveries).
    """
    tests = []
    for one, other in pairs:
        chances = passes_before(one.counted, other.counted, one.passed + other.passed)
        possible = [j for j, chance in enumerate(chances) if chance > 0]
        least = min(mid_p(chances, possible[0]), mid_p(chances, possible[-1]))
        tests.append((mid_p(chances, one.passed), least <= LEVEL))
    found = iter(adjusted([p for p, can_tell in tests if can_tell]))
    return tuple(
        Change(
            one.id,
            (one.passed, one.counted),
            (other.passed, other.counted),
            p,
            next(found) if can_tell else None,
        )
        for (one, other), (p, can_tell) in zip(pairs, tests, strict=True)
    )


# --- majorities that turn ------------------------------------------------------------------------


def expected_flips(n_before: int, n_after: int, passed: int) -> tuple[float, float]:
    """Give the chances that a problem's majority is gained, or lost, if nothing changed.

        gained = Σ_j P(j)·[2j ≤ n_before]·[2(passed − j) > n_after]      P of ``passes_before``

    and lost the other way round. It needs no estimate of the problem's rate: one plugged in would
    make the chance too small, by half with one run each.

    Args:
        n_before: counted runs before.
        n_after: counted runs after.
        passed: passes of both together.
    """
    chances = passes_before(n_before, n_after, passed)
    turns = [(2 * j > n_before, 2 * (passed - j) > n_after) for j in range(n_before + 1)]
    gained = fsum(p for p, turn in zip(chances, turns, strict=True) if turn == (False, True))
    lost = fsum(p for p, turn in zip(chances, turns, strict=True) if turn == (True, False))
    return gained, lost


def _flips(pairs: Sequence[tuple[Problem, Problem]], gained: bool) -> Flips:
    """Count the majorities that turned one way, against what chance would turn."""
    ids = tuple(
        one.id
        for one, other in pairs
        if (_most(one), _most(other)) == (not gained, gained)
    )  # fmt: skip
    which = 0 if gained else 1
    chances = [
        expected_flips(one.counted, other.counted, one.passed + other.passed)[which]
        for one, other in pairs
    ]
    spread = np.ones(1)  # chances of 0, 1, 2 … such problems
    for chance in sorted(chance for chance in chances if chance > 0):
        spread = np.convolve(spread, [1 - chance, chance])
    above = fsum(spread[len(ids) + 1 :]) + spread[len(ids)] / 2
    return Flips(ids, fsum(chances), min(1.0, float(above)))


def _most(problem: Problem) -> bool:
    return 2 * problem.passed > problem.counted
