"""What the reward favours besides success: the validation bonus, and length."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, log

import msgspec
import numpy as np

from rtmc.batch import Floats, sum_by
from rtmc.guidance.measured import Measured, Sums, measured, ratio
from rtmc.guidance.sample import Sample
from rtmc.guidance.support import RANGES, ranges
from rtmc.returns import discounted_returns, validation_bonus

__all__ = ["Bonus", "Length", "bonus", "bonus_sums", "length", "length_sums"]


class Bonus(msgspec.Struct, frozen=True):
    """Who earns the validation bonus, and how much it weighs.

    Attributes:
        passing: validated code changes a rollout, without limit, of those that passed.
        failing: the same of the others.
        failing_more: failing − passing within live groups, pooled.
        paid_passing: bonus paid under ``max_bonuses`` to a rollout that passed, mean.
        paid_failing: the same of the others.
        share_of_reward: bonus paid / (bonus paid + |outcomes|).
        share_of_advantage: Σ |A − A at β = 0| / Σ |A| over live groups.
        largest_unlimited: most that ``max_bonuses none`` would pay a rollout.
        over_half: rollouts to which it would pay more than half of an outcome.
        outcome: the range of the outcomes of all groups, to compare with.
    """

    passing: Measured
    failing: Measured
    failing_more: Measured
    paid_passing: Measured
    paid_failing: Measured
    share_of_reward: Measured
    share_of_advantage: Measured
    largest_unlimited: float
    over_half: int
    outcome: float


def bonus_sums(sample: Sample) -> Sums:
    """Count validations and bonuses of a group's rollouts."""
    batch, config, size = sample.batch, sample.config, sample.n_rollouts
    own, won = batch.rollout_of_step, sample.passed
    counts = sum_by(sample.validated.astype(np.float64), own, size)
    paid = validation_bonus(sample.validated, batch.starts, config.beta, config.max_bonuses)
    earned = sum_by(paid, own, size)
    passed, failed = won.sum(), (~won).sum()
    both = passed * failed / size  # weight of the difference of two means
    more = counts[~won].mean() - counts[won].mean() if both else 0.0
    moved = total = 0.0
    if sample.live:
        rewards = batch.rewards - paid
        returns = discounted_returns(rewards, batch.starts, batch.discount)
        plain = sample.estimator(replace(batch, rewards=rewards, returns=returns)).advantages
        at = sample.credited
        moved = np.abs(sample.advantages - plain)[at].sum()
        total = np.abs(sample.advantages[at]).sum()
    return {
        "rollouts": np.array([passed, failed], float),
        "counts": np.array([counts[won].sum(), counts[~won].sum()]),
        "paid": np.array([earned[won].sum(), earned[~won].sum()]),
        "difference": np.array([both * more if sample.live else 0.0]),
        "both": np.array([both if sample.live else 0.0]),
        "outcomes": np.array([np.abs(batch.outcomes).sum()]),
        "moved": np.array([moved]),
        "total": np.array([total]),
    }


def bonus(groups: Sequence[Sums], unlimited: Floats, outcome: float) -> Bonus:
    """Give who earns the bonus.

    Args:
        groups: sums of all groups with a voting rollout.
        unlimited: what ``max_bonuses none`` would pay each voting rollout.
        outcome: range of all outcomes.
    """

    def figures(s: Sums) -> Floats:
        paid = s["paid"].sum(-1, keepdims=True)
        return np.concatenate(
            [ratio(s["counts"], s["rollouts"]), ratio(s["difference"], s["both"]),
             ratio(s["paid"], s["rollouts"]), ratio(paid, paid + s["outcomes"]),
             ratio(s["moved"], s["total"])], -1
        )  # fmt: skip

    return Bonus(
        *measured(groups, figures, (7,)),
        largest_unlimited=float(unlimited.max(initial=0.0)),
        over_half=int((unlimited > outcome / 2).sum()) if outcome else 0,
        outcome=outcome,
    )


class Length(msgspec.Struct, frozen=True):
    """How the length of a rollout goes with its outcome and with its credit, in live groups.

    Attributes:
        correlation: of length and outcome within groups.
        by_step_index: mean advantage by range of step indices.
        winners_slope: change of a winner's summed advantages by one step more, within groups.
        losers_slope: the same of the others.
        negative: share of the winners' credited steps with A < 0.
        too_far: share of the winners' credited steps so far from the end that the discounted
            outcome is below the prior: k > ln(p/R) / ln γ with k steps to go. There even a step
            that surely leads to success is negative where only this rollout went.
        negative_too_far: share of those with A < 0.
        negative_discounted: ``negative`` under prior discounted.
        median_distance: steps to go at the winners' negative steps, median; −1 if there are none.
    """

    correlation: Measured
    by_step_index: dict[str, Measured]
    winners_slope: Measured
    losers_slope: Measured
    negative: Measured
    too_far: Measured
    negative_too_far: Measured
    negative_discounted: Measured
    median_distance: int


def length_sums(sample: Sample) -> tuple[Sums, Floats]:
    """Sum what lengths and credits of a live group have in common.

    Returns:
        The sums, and how far from the end the winners' negative steps are.
    """
    batch, a = sample.batch, np.nan_to_num(sample.advantages)
    own, at = batch.rollout_of_step, sample.credited
    lengths = np.diff(batch.starts).astype(np.float64)
    summed = sum_by(a, own, sample.n_rollouts)
    credited = np.bincount(own[at], minlength=sample.n_rollouts) > 0
    dl, dr = lengths - lengths.mean(), batch.outcomes - batch.outcomes.mean()
    where = ranges(batch.time) * at[:, None]
    winner = at & sample.passed[own]
    left = lengths[own] - 1 - batch.time
    far = winner & (left > _horizon(sample)[own])
    negative = winner & (sample.advantages < 0)
    discounted = msgspec.structs.replace(sample.estimator, prior="discounted")(batch).advantages
    marked = (winner, negative, far, far & negative, winner & (discounted < 0))
    sums = {
        "outcome": np.array([dl @ dr, dl @ dl, dr @ dr]),
        "a": a @ where,
        "steps": where.sum(0),
        "slopes": np.stack(
            [_covariance(lengths, summed, of & credited) for of in (sample.passed, ~sample.passed)]
        ),
        "winners": np.array([of.sum() for of in marked], float),
    }
    return sums, left[negative]


def _horizon(sample: Sample) -> Floats:
    """From how many steps to go on γ^k R < p, for each rollout; never under other priors."""
    outcomes, discount, estimator = sample.batch.outcomes, sample.batch.discount, sample.estimator
    total, n = outcomes.sum(), len(outcomes)
    p = (total - outcomes) / (n - 1) if estimator.leave_one_out else np.full(n, total / n)
    higher = (outcomes > p) & (p > 0)
    if discount == 1 or estimator.prior != "success_rate" or estimator.n_prior == 0:
        return np.full(n, inf)
    gap = np.where(higher, p, 1.0) / np.where(higher, outcomes, 1.0)
    return np.where(higher, np.log(gap) / log(discount), inf)


def _covariance(x: Floats, y: Floats, of: np.ndarray) -> Floats:
    """Σ (x − x̄)(y − ȳ) and Σ (x − x̄)² over some of the rollouts."""
    if of.sum() < 2:
        return np.zeros(2)
    dx, dy = x[of] - x[of].mean(), y[of] - y[of].mean()
    return np.array([dx @ dy, dx @ dx])


def length(groups: Sequence[Sums], distances: Floats) -> Length:
    """Give what length has to do with outcome and credit.

    Args:
        groups: sums of the live groups.
        distances: steps to go at the winners' negative steps.
    """
    size = len(RANGES)

    def figures(s: Sums) -> Floats:
        cov, var_l, var_r = s["outcome"].T
        r = ratio(cov, np.sqrt(np.maximum(var_l * var_r, 0.0)))
        w = s["winners"]
        slopes = ratio(s["slopes"][:, :, 0], s["slopes"][:, :, 1])
        shares = ratio(w[:, [1, 2, 3, 4]], w[:, [0, 0, 2, 0]])
        return np.concatenate([r[:, None], slopes, shares, ratio(s["a"], s["steps"])], -1)

    found = measured(groups, figures, (7 + size,))
    correlation, winners, losers, negative, too_far, negative_too_far, discounted = found[:7]
    return Length(
        correlation=correlation,
        by_step_index=dict(zip(RANGES, found[7:], strict=True)),
        winners_slope=winners,
        losers_slope=losers,
        negative=negative,
        too_far=too_far,
        negative_too_far=negative_too_far,
        negative_discounted=discounted,
        median_distance=int(np.median(distances)) if len(distances) else -1,
    )
