"""The estimators, one module each, and the literal dict of their names.

``rtmc`` is the paper's method. The first five look at outcomes only and give every step of a
rollout the same; ``grpo_step`` and ``mt_grpo`` read rewards at the steps; the others merge the
rollouts by state.
"""

from rtmc.advantages.base import Estimate, Estimator, Reads
from rtmc.advantages.chain_gae import ChainGAE
from rtmc.advantages.dr_grpo import DrGRPO
from rtmc.advantages.g2po import G2PO
from rtmc.advantages.gigpo import GiGPO
from rtmc.advantages.graft import GraFT
from rtmc.advantages.graph_gae import GraphGAE
from rtmc.advantages.grpo import GRPO
from rtmc.advantages.grpo_step import GRPOStep
from rtmc.advantages.hgpo import HGPO
from rtmc.advantages.maxrl import MaxRL
from rtmc.advantages.mt_grpo import MTGRPO
from rtmc.advantages.pooled_gae import PooledGAE
from rtmc.advantages.reinforce_pp_baseline import ReinforcePPBaseline
from rtmc.advantages.rloo import RLOO
from rtmc.advantages.rtmc import RTMC
from rtmc.advantages.salt import SALT
from rtmc.advantages.tempo import TEMPO

__all__ = [
    "ESTIMATORS",
    "G2PO",
    "GRPO",
    "HGPO",
    "MTGRPO",
    "RECOMMENDED",
    "RLOO",
    "RTMC",
    "SALT",
    "TEMPO",
    "ChainGAE",
    "DrGRPO",
    "Estimate",
    "Estimator",
    "GRPOStep",
    "GiGPO",
    "GraFT",
    "GraphGAE",
    "MaxRL",
    "PooledGAE",
    "Reads",
    "ReinforcePPBaseline",
]

ESTIMATORS: dict[str, type[Estimator]] = {
    "grpo": GRPO,
    "dr_grpo": DrGRPO,
    "rloo": RLOO,
    "reinforce_pp_baseline": ReinforcePPBaseline,
    "maxrl": MaxRL,
    "grpo_step": GRPOStep,
    "mt_grpo": MTGRPO,
    "rtmc": RTMC,
    "gigpo": GiGPO,
    "hgpo": HGPO,
    "salt": SALT,
    "graft": GraFT,
    "g2po": G2PO,
    "tempo": TEMPO,
    "pooled_gae": PooledGAE,
    "graph_gae": GraphGAE,
    "chain_gae": ChainGAE,
}

RECOMMENDED = "chain_gae"
"""The winner of ``rtmc bench quality`` and ``rtmc bench learning``; docs/results.md says when."""
