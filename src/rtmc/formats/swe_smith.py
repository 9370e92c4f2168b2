"""SWE-smith fine-tuning rows: chat messages whose calls are written as text.

The shape is that of ``chat``, which reads them: ``instance_id`` is the problem, ``traj_id`` the
rollout (a row without it is named after its content), and ``resolved`` the outcome, which the older
rows lack.
"""

from dataclasses import replace
from typing import Any

from rtmc.formats.chat import CHAT, is_message_list, messages_in
from rtmc.formats.xml_calls import MARK

__all__ = ["SWE_SMITH_XML"]


def _detect(value: Any, path: str) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("instance_id"), str):
        return False
    messages = messages_in(value)
    return (
        is_message_list(messages)
        and any(m["role"] == "assistant" and MARK in str(m.get("content")) for m in messages)
        and not any(m.get("tool_calls") for m in messages)
    )


SWE_SMITH_XML = replace(
    CHAT,
    name="swe-smith-xml",
    title="SWE-smith fine-tuning rows (calls as <function=…> text)",
    needs="rows with instance_id and messages; outcome from resolved, a sidecar or --outcomes",
    ids="instance_id and traj_id (or a synonym), else a digest of the row",
    detect=_detect,
)
