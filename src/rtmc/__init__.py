"""Step-level credit assignment for LLM agents.

    import rtmc

    for group in rtmc.read("rollouts.jsonl"):
        credit = rtmc.credit(group)
        print(group.problem_id, credit.advantages)

``docs/method.md`` ties every formula to its function.

Names are loaded when they are first used, so that ``rtmc --help`` need not wait for numpy.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmc.advantages import ESTIMATORS, GRPO, RTMC, GRPOStep
    from rtmc.config import Config
    from rtmc.credit import Credit, credit
    from rtmc.errors import RtmcError
    from rtmc.formats import read, read_groups
    from rtmc.rollouts import Group, Rollout, Span, Step, ToolCall
    from rtmc.signatures import CodingSigner, KeySigner

__all__ = [
    "ESTIMATORS",
    "GRPO",
    "RTMC",
    "CodingSigner",
    "Config",
    "Credit",
    "GRPOStep",
    "Group",
    "KeySigner",
    "Rollout",
    "RtmcError",
    "Span",
    "Step",
    "ToolCall",
    "credit",
    "read",
    "read_groups",
]
__version__ = "0.1.0"

_HOME = {
    **dict.fromkeys(("ESTIMATORS", "GRPO", "RTMC", "GRPOStep"), "rtmc.advantages"),
    "Config": "rtmc.config",
    **dict.fromkeys(("Credit", "credit"), "rtmc.credit"),
    **dict.fromkeys(("read", "read_groups"), "rtmc.formats"),
    **dict.fromkeys(("Group", "Rollout", "Span", "Step", "ToolCall"), "rtmc.rollouts"),
    **dict.fromkeys(("CodingSigner", "KeySigner"), "rtmc.signatures"),
    "RtmcError": "rtmc.errors",
}


class _Package(ModuleType):
    """Keeps ``rtmc.credit`` the function: importing the submodule would put itself there."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "credit" and isinstance(value, ModuleType):
            value = value.credit
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rtmc' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
