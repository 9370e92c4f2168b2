"""Step-level credit assignment for LLM agents.

    import rtmc

    for group in rtmc.read("rollouts.jsonl"):
        credit = rtmc.credit(group)
        print(group.problem_id, credit.advantages)

``docs/method.md`` ties every formula to its function.
"""

from rtmc.advantages import ESTIMATORS, GRPO, RTMC, GRPOStep
from rtmc.credit import Config, Credit, credit
from rtmc.errors import RtmcError
from rtmc.rollouts import Group, Rollout, Step, ToolCall

__all__ = [
    "ESTIMATORS",
    "GRPO",
    "RTMC",
    "Config",
    "Credit",
    "GRPOStep",
    "Group",
    "Rollout",
    "RtmcError",
    "Step",
    "ToolCall",
    "credit",
]
__version__ = "0.1.0"
