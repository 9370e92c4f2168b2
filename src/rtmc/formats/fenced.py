"""Read commands that a model writes as one fenced block a message (mini-swe-agent).

The harness runs the block of a message that has exactly one. A message with no block or with
several was refused: such a step has one malformed call whose arguments are the message, so that
nothing passes for an action that never ran.
"""

import re
from collections.abc import Sequence

import msgspec

from rtmc.formats.conversation import Extra, Message, plain_text
from rtmc.formats.observations import (
    FINISH_MARKERS,
    Observed,
    mini_wrapped,
    observe,
    unwrap_output,
)
from rtmc.rollouts import Step, ToolCall

__all__ = ["FENCE_OF_TEXT_MODE", "fenced_steps", "is_fenced"]

FENCE_OF_TEXT_MODE = "```mswea_bash_command"
"""Version 2 renamed the fence, as models also quote ordinary ``bash`` blocks."""

_FENCE = "```bash"
_REFUSED = "Please always provide EXACTLY ONE action"


def is_fenced(messages: Sequence[Message]) -> bool:
    """Tell whether these are commands in fences: results of commands, but no calls."""
    return any(
        message.role == "user"
        and isinstance(message.content, str)
        and message.content.startswith("<returncode>")
        for message in messages
    ) and not any(message.tool_calls for message in messages)


def fenced_steps(messages: Sequence[Message]) -> list[Step]:
    """Give one step for each assistant message."""
    texts = [plain_text(message.content) for message in messages]
    fence = FENCE_OF_TEXT_MODE if any(FENCE_OF_TEXT_MODE in text for text in texts) else _FENCE
    block = re.compile(fence + r"[^\S\n]*\n(.*?)\n```", re.DOTALL)
    steps = []
    for index, (message, text) in enumerate(zip(messages, texts, strict=True)):
        if message.role != "assistant":
            continue
        following = messages[index + 1] if index + 1 < len(messages) else None
        if following is not None and following.role == "user":
            answer, extra = texts[index + 1], following.extra
        else:
            answer, extra = None, None
        commands = block.findall(text) if fence in text else []
        if len(commands) == 1:
            call = _ran(commands[0].strip(), answer, extra)
            steps.append(Step((call,), text[: text.find(fence)].rstrip()))
        else:
            refused = answer is not None and answer.startswith(_REFUSED)
            steps.append(Step((ToolCall("bash", text, answer, is_error=refused or None),)))
    return steps


def _ran(command: str, answer: str | None, extra: Extra | None) -> ToolCall:
    arguments = {"command": command}
    if answer is None:
        return ToolCall("bash", arguments)
    seen = observe(answer)
    if extra is not None and isinstance(extra.raw_output, str):
        seen = msgspec.structs.replace(seen, output=extra.raw_output)
    elif mini_wrapped(answer):
        ended = any(mark in command for mark in FINISH_MARKERS)
        seen = Observed(unwrap_output(answer), timed_out=not ended)
    return ToolCall("bash", arguments, seen.output, seen.exit_code, seen.is_error, seen.timed_out)
