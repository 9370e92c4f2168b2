"""SALT: the outcome's advantage, averaged over the rollouts that take the same edge.

Source: "SALT: Step-level Advantage Assignment for Long-horizon Agents via Trajectory Graph" (arXiv
2510.20022).

Deviation from the paper: an edge's mean counts each rollout once, however often it takes the edge.
"""

from typing import ClassVar

import msgspec
import numpy as np

from rtmc.advantages.base import Estimate, Reads, Std, check_choices, outcome_advantages
from rtmc.batch import Batch, mean_by
from rtmc.tree import build, next_states

__all__ = ["SALT"]


class SALT(msgspec.Struct, frozen=True):
    """Give equal edges (s, a, s′) the mean GRPO advantage of the rollouts that take them.

    Other steps keep their rollout's. The end of a rollout is one state for all of the group.

    Attributes:
        std: deviation of GRPO: population, sample, or none (no division).
    """

    std: Std = "population"

    name: ClassVar[str] = "salt"
    reads: ClassVar[Reads] = Reads(keys=True)

    def __post_init__(self) -> None:
        """Refuse a misspelt choice."""
        check_choices(self)

    def __call__(self, batch: Batch) -> Estimate:
        """Return the mean over each step's edge."""
        tree = build(batch)
        own = outcome_advantages(batch, self.std)
        pairs = np.stack([tree.cell_of_step, next_states(batch, tree.state_of_step)])
        _, edges = np.unique(pairs, axis=1, return_inverse=True)
        size = int(edges.max(initial=-1)) + 1
        _, first = np.unique(batch.rollout_of_step * max(size, 1) + edges, return_index=True)
        return Estimate(mean_by(own[first], edges[first], size)[edges])
