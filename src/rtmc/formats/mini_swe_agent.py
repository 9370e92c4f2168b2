"""mini-swe-agent 1 and 2: ``*.traj.json``, or a bare list of its messages.

The problem is ``instance_id`` (else the file name), the rollout the path of the file. The files
hold no outcome: it comes from report.json files or ``--outcomes``. Every command runs in a new
shell.

Version 1 and the text mode of version 2 write commands in fences (``fenced``), version 2 otherwise
as tool calls.
"""

from typing import Any

import msgspec

from rtmc.formats.base import (
    Format,
    Identity,
    first_text,
    is_bare_list,
    problem_of_path,
    rollout_of_path,
)
from rtmc.formats.chat import is_message_list
from rtmc.formats.conversation import Conversation, Message
from rtmc.formats.fenced import FENCE_OF_TEXT_MODE, fenced_steps
from rtmc.rollouts import Rollout, Source, status_of

__all__ = ["MINI_SWE_AGENT"]


class _Environment(msgspec.Struct):
    cwd: str | None = None


class _Model(msgspec.Struct):
    model_name: str | None = None


class _Config(msgspec.Struct):
    environment: _Environment | None = None
    model: _Model | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None
    config: _Config | None = None


class _Head(msgspec.Struct):
    instance_id: Any = None
    info: _Info = msgspec.field(default_factory=_Info)


class _File(_Head):
    messages: list[Message] = msgspec.field(default_factory=list)


_head = msgspec.json.Decoder(_Head)
_file = msgspec.json.Decoder(_File)
_list = msgspec.json.Decoder(list[Message])


def _identity(head: _Head, source: Source) -> Identity:
    problem = first_text(head.instance_id) or problem_of_path(source.path)
    config = head.info.config
    model = config.model.model_name if config and config.model else None
    return Identity(problem, rollout_of_path(source.path), model)


def _identify(raw: bytes, source: Source) -> list[Identity]:
    head = _Head() if is_bare_list(raw) else _head.decode(raw)
    return [_identity(head, source)]


def _read(raw: bytes, source: Source) -> list[Rollout]:
    file = _File(messages=_list.decode(raw)) if is_bare_list(raw) else _file.decode(raw)
    ids = _identity(file, source)
    if any(m.tool_calls for m in file.messages):
        steps = Conversation(file.messages).steps()
    else:
        steps = fenced_steps(file.messages)
    environment = file.info.config.environment if file.info.config else None
    stop = file.info.exit_status
    return [
        Rollout(
            ids.problem_id,
            ids.rollout_id,
            tuple(steps),
            None,
            status_of(None, stop),
            stop,
            ids.model,
            root=environment.cwd if environment else None,
            persistent_shell=False,
            source=source,
        )
    ]


def _detect(value: Any, path: str) -> bool:
    if isinstance(value, dict):
        if str(value.get("trajectory_format", "")).startswith("mini-swe-agent"):
            return True
        info = value.get("info")
        return (
            is_message_list(value.get("messages"))
            and isinstance(info, dict)
            and not info.keys().isdisjoint(("exit_status", "mini_version", "model_stats"))
        )
    if not is_message_list(value):
        return False
    contents = [m.get("content") for m in value if m["role"] in ("system", "user")]
    return any(
        isinstance(c, str) and (c.startswith("<returncode>") or FENCE_OF_TEXT_MODE in c)
        for c in contents
    )


MINI_SWE_AGENT = Format(
    name="mini-swe-agent",
    title="mini-swe-agent 1 and 2 (*.traj.json, or its bare message list)",
    needs="messages with the agent's commands; outcome from report.json files or --outcomes",
    ids="instance_id (else the file name) and the file's path",
    unit="line",
    detect=_detect,
    read=_read,
    identify=_identify,
)
