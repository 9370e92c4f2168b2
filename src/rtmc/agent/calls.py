"""Read the calls of a model's turn: native tool calls, or XML in the text."""

from collections.abc import Sequence
from typing import Any

import msgspec

from rtmc.agent.tools import TOOLS, Tool
from rtmc.formats.xml_calls import MARK, xml_calls
from rtmc.rollouts import ToolCall

__all__ = ["XML_HELP", "calls_of", "describe_in_xml", "trouble"]

XML_HELP = "Call a tool as\n<function=NAME>\n<parameter=KEY>VALUE</parameter>\n</function>"
_PROBE = "<parameter=probe>1</parameter>"


def calls_of(
    text: str, native: Sequence[dict[str, Any]] = (), cut: bool = False
) -> tuple[str, tuple[ToolCall, ...]]:
    """Split a turn into what it says and its calls.

    Native calls are ``{"name", "arguments"}`` as chat endpoints send them, arguments as JSON text.
    What cannot be decoded stays text: such a call is malformed, and is kept.

    Args:
        text: what the model wrote.
        native: its native calls, if it made any; then the text is not searched for calls.
        cut: the turn ended at a token limit: a call that is not ended must not be carried out.
    """
    text = _clean(text)
    if native:
        return text, tuple(_native(call) for call in native)
    if MARK not in text:
        return text, ()
    said, found = xml_calls(text)
    if cut and xml_calls(text + _PROBE)[1] != found:  # what follows would belong to the last call
        found[-1] = ToolCall(found[-1].name, text[text.rindex(MARK) :])
    return said, tuple(found)


def _native(call: dict[str, Any]) -> ToolCall:
    name, arguments = _clean(str(call.get("name") or "")), call.get("arguments")
    try:
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments or {}).decode()
        decoded = msgspec.json.decode(arguments or "{}")
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, dict):
        return ToolCall(name, decoded)
    return ToolCall(name, _clean(str(arguments)))


def _clean(text: str) -> str:
    """Replace halves of characters, which no file and no JSON can hold."""
    return text.encode(errors="replace").decode()


def trouble(call: ToolCall, tools: dict[str, Tool] = TOOLS, cut: bool = False) -> str | None:
    """Say what is wrong with a call that no tool can take, and what to do; None if nothing is.

    Args:
        call: as read.
        tools: by name.
        cut: it stands last in a turn that ended at a token limit.
    """
    if cut and isinstance(call.arguments, str):
        return (
            f"the call of {call.name} was cut off at the limit of a turn, and not carried out; "
            "write less at once"
        )
    if call.name not in tools:
        return f"there is no tool {call.name!r}; the tools are {', '.join(tools)}"
    if isinstance(call.arguments, str):
        return (
            f"the arguments of {call.name} could not be read: {call.arguments[:200]!r}; expected "
            "a JSON object, or <parameter=KEY>VALUE</parameter> in text; "
            f"{tools[call.name].usage()}"
        )
    return None


def describe_in_xml(tools: dict[str, Tool] = TOOLS) -> str:
    """Describe the tools in text, for models without native calls."""
    parts = [XML_HELP, "The tools:"]
    for tool in tools.values():
        parts.append(f"\n{tool.name}: {tool.about}")
        for name, about in tool.parameters.items():
            needed = "" if name in tool.required else " (optional)"
            choices = f" One of {', '.join(about['enum'])}." if "enum" in about else ""
            parts.append(f"  {name}{needed}: {about.get('description', '')}{choices}")
    return "\n".join(parts)
