"""SWE-smith fine-tuning rows: chat messages whose calls are written as text.

The shape is that of ``chat``, which reads them; ``instance_id`` is the problem, and a row without
an id of its own is named after its content. The rows hold no outcome.
"""

from dataclasses import replace
from typing import Any

from rtmc.formats.chat import CHAT, is_message_list
from rtmc.formats.xml_calls import MARK

__all__ = ["SWE_SMITH_XML"]


def _detect(value: Any, path: str) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("instance_id"), str)
        and is_message_list(value.get("messages"))
        and any(
            m["role"] == "assistant" and MARK in str(m.get("content")) for m in value["messages"]
        )
        and not any(m.get("tool_calls") for m in value["messages"])
    )


SWE_SMITH_XML = replace(
    CHAT,
    name="swe-smith-xml",
    title="SWE-smith fine-tuning rows (calls as <function=…> text)",
    needs="rows with instance_id and messages; outcome from --outcomes or a sidecar",
    ids="instance_id and a digest of the row",
    detect=_detect,
)
