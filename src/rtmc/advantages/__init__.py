"""The estimators, one module each, and the literal dict of their names."""

from rtmc.advantages.base import Estimate, Estimator, Reads
from rtmc.advantages.grpo import GRPO
from rtmc.advantages.grpo_step import GRPOStep
from rtmc.advantages.rtmc import RTMC

__all__ = ["ESTIMATORS", "GRPO", "RTMC", "Estimate", "Estimator", "GRPOStep", "Reads"]

ESTIMATORS: dict[str, type[RTMC] | type[GRPO] | type[GRPOStep]] = {
    "rtmc": RTMC,
    "grpo": GRPO,
    "grpo_step": GRPOStep,
}
