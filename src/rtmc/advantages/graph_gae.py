"""Graph GAE: a linear prior, corrected on the graph of the group's rollouts, then GAE.

Ours. ``chain_gae`` with a single level, and weaker priors.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from rtmc.advantages.base import Reads
from rtmc.advantages.chain_gae import ChainGAE
from rtmc.batch import Batch

__all__ = ["GraphGAE"]


class GraphGAE(ChainGAE, frozen=True):
    """Correct a linear prior on the graph, and take generalised advantages.

        prior    V⁰ of ``rtmc.advantages.linear_prior``
        offsets  (diag(n + n₀) − γC) b = (Σ_{t: s_t = s} δ⁰_t)_s,  V_t = V⁰_t + b_{s_t}
                 n_s visits, C transition counts, δ⁰_t = r_t + γV⁰_{t+1} − V⁰_t
        A_t    = Σ_{l≥0} (γλ)^l (r_{t+l} + γV_{t+l+1} − V_{t+l}), over the deviation of the batch's
                 advantages in groups of differing outcome; not centred

    The options are those of ``ChainGAE``; their defaults differ.
    """

    n_prior: float = 2.0
    ridge: float = 5.0
    pool_actions: bool = False
    uniform: Literal["zero", "keep"] = "zero"

    name: ClassVar[str] = "graph_gae"
    reads: ClassVar[Reads] = Reads(
        keys=True, levels=("content",), progress=True, cut=True, batch=True
    )

    def _levels(self, batch: Batch) -> Sequence[int]:
        """Say which level to correct at: the finest."""
        return (-1,)
