"""The tools that touch nothing: think, and finish."""

from typing import Annotated

import msgspec
from msgspec import Meta

from rtmc.agent.tools.base import Observation, Tool, Workbench

__all__ = ["FINISH", "THINK"]


class ThinkArguments(msgspec.Struct, frozen=True):
    """What think takes."""

    thought: Annotated[str, Meta(description="What you want to note.")]


class FinishArguments(msgspec.Struct, frozen=True, omit_defaults=True):
    """What finish takes."""

    message: Annotated[str, Meta(description="What was done, for the reader.")] = ""


def _think(arguments: ThinkArguments, bench: Workbench) -> Observation:
    return Observation("noted")


def _finish(arguments: FinishArguments, bench: Workbench) -> Observation:
    return Observation("finished", done=True)


THINK = Tool("think", "Note a thought; nothing happens.", ThinkArguments, _think)
FINISH = Tool("finish", "Say that the task is done; the work is judged then.",
              FinishArguments, _finish)  # fmt: skip
