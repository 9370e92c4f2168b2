"""The shell: one bash that keeps its working directory and environment between calls."""

from typing import Annotated

import msgspec
from msgspec import Meta

from rtmc.agent.tools.base import Observation, Tool, ToolError, Workbench

__all__ = ["BASH"]


class BashArguments(msgspec.Struct, frozen=True):
    """What the shell takes."""

    command: Annotated[str, Meta(description="The command line; several lines are fine.")]


def _run(arguments: BashArguments, bench: Workbench) -> Observation:
    if not arguments.command.strip():
        raise ToolError("the command is empty")
    result = bench.sandbox.run(arguments.command, bench.timeout)
    bench.cwd = result.cwd
    text = result.output
    if result.exit_code:
        text += f"[exit code {result.exit_code}]\n"
    return Observation(
        text or "(no output)", exit_code=result.exit_code, timed_out=result.timed_out
    )


BASH = Tool(
    "bash",
    "Run a command in a shell that keeps its working directory and environment.",
    BashArguments,
    _run,
    in_shell=True,
)
