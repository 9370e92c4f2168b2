"""HGPO: the return's advantage among steps that share the last observations, over several depths.

Source: "Hierarchy-of-Groups Policy Optimization for Long-Horizon Agentic Tasks" (arXiv 2602.22817).
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from rtmc.advantages.base import STD_FLOOR, Estimate, Reads, check_choices, check_number
from rtmc.batch import Batch, Floats, Ints, moments_by

__all__ = ["HGPO"]


class HGPO(msgspec.Struct, frozen=True):
    """Average the advantages among ever deeper histories, the deeper the heavier.

        A_t = Σ_k w_k·A_k / Σ_k w_k,  w_k = k + 1,  k = 1 … K
        A_k = (G_t − mean of G over the steps that saw the same last k observations) / F

    F = std + 1e-6 of the same values, or 1. A step whose last k observations nobody shares has
    A_k = 0, which stays in the average. Near the start a history is what there is of it.

    Attributes:
        depth: K ≥ 1.
        divisor: F: ``std`` or ``none``.
    """

    depth: int = 2
    divisor: Literal["std", "none"] = "std"

    name: ClassVar[str] = "hgpo"
    reads: ClassVar[Reads] = Reads(observations=True)

    def __post_init__(self) -> None:
        """Refuse a depth below 1 and a misspelt choice."""
        check_choices(self)
        check_number(self, "depth", "≥ 1", self.depth >= 1)

    def __call__(self, batch: Batch) -> Estimate:
        """Return the weighted average of each step."""
        assert batch.observations is not None  # reads says so
        total = np.zeros(len(batch.returns))
        weights = 0
        history = batch.observations
        for k in range(1, self.depth + 1):
            if k > 1:
                history = _longer(history, batch)
            total += (k + 1) * self._within(history, batch)
            weights += k + 1
        return Estimate(total / weights)

    def _within(self, history: Ints, batch: Batch) -> Floats:
        """A_k of each step."""
        _, ids, count = np.unique(history, return_inverse=True, return_counts=True)
        mean, deviation = moments_by(batch.returns, ids, len(count))
        found = batch.returns - mean[ids]
        if self.divisor == "std":
            found = found / (deviation + STD_FLOOR)[ids]
        found[count[ids] == 1] = 0.0
        return found


def _longer(history: Ints, batch: Batch) -> Ints:
    """Number the histories that are one observation longer."""
    before = np.append(-1, history[:-1])[: len(history)]
    before[batch.starts[:-1][np.diff(batch.starts) > 0]] = -1
    assert batch.observations is not None
    pairs = np.stack([before, batch.observations])
    return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
