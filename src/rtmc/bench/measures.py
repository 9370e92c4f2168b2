"""How near estimated advantages are to the true ones, and intervals by bootstrap."""

from typing import NamedTuple

import numpy as np

from rtmc.batch import Floats

__all__ = ["Scores", "bootstrap", "cosine", "score"]

SMALL = 1e-3
RESAMPLES = 2000


class Scores(NamedTuple):
    """One batch, one estimator.

    Attributes:
        cosine: between the batch's gradient and the true gradient of the same problems.
        fvu: fraction of the variance of true advantages that is left unexplained, 1 − R² after the
            best scaling through 0; 0 is perfect, 1 is as good as nothing.
        sign: share of steps with |A| > 0.001 whose estimate has the same sign; 0 counts half.
        rank: Spearman's correlation over the steps.
        bias: mean estimate over its root mean square; the true mean is 0.
    """

    cosine: float
    fvu: float
    sign: float
    rank: float
    bias: float


def cosine(a: Floats, b: Floats) -> float:
    """cos(a, b); 0 where one of them is 0."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0


def score(
    estimate: Floats, truth: tuple[Floats, Floats], gradient: Floats, true_gradient: Floats
) -> Scores:
    """Judge one batch.

    Args:
        estimate: shape (S,).
        truth: two independent estimates of the true advantages, shape (S,) each, or twice the
            truth: the product of the two is free of their noise, where the square of one is not.
        gradient: of the batch with the estimate.
        true_gradient: of the batch's problems.
    """
    one, two = truth
    true = (one + two) / 2
    explained = float(estimate @ true) ** 2
    power = float(estimate @ estimate) * float(one @ two)
    counted = np.abs(true) > SMALL
    agrees = (np.sign(estimate[counted]) * np.sign(true[counted]) + 1) / 2
    mean_square = float(np.mean(estimate**2))
    return Scores(
        cosine(gradient, true_gradient),
        1 - explained / power if power > 0 else 1.0,
        float(agrees.mean()) if len(agrees) else 0.5,
        _correlation(_ranks(estimate), _ranks(true)),
        float(estimate.mean()) / mean_square**0.5 if mean_square > 0 else 0.0,
    )


def _ranks(values: Floats) -> Floats:
    """Rank from 0, equal values sharing their mean rank."""
    _, of_value, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count + 1) / 2)[of_value]


def _correlation(a: Floats, b: Floats) -> float:
    return cosine(a - a.mean(), b - b.mean())


def bootstrap(values: Floats, seed: int = 0) -> tuple[float, float]:
    """Give the 95 % interval of the mean over seeds, by resampling them."""
    picks = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def student(p: float, df: int) -> float:
    """Give the quantile of Student's t.

    With x = √df·tan θ its density is cos(θ)^(df − 1) up to a factor, which is added up here.
    """
    angles = np.linspace(0, np.pi / 2, 100_001)
    density = np.cos(angles) ** (df - 1)
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return float(df**0.5 * np.tan(np.interp(2 * p - 1, below / below[-1], angles)))


def interval(values: Floats) -> tuple[float, float]:
    """Give the 95 % interval of the mean of a few values: mean ± t·s/√n; NaN for one value."""
    if len(values) < 2:
        return float("nan"), float("nan")
    half = student(0.975, len(values) - 1) * float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean()) - half, float(values.mean()) + half
