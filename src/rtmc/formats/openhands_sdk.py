"""OpenHands SDK: ``events.jsonl``, one conversation a file, one event a line.

The problem is the name of the file's directory (the file name if that says more), the rollout the
path. The file holds no outcome: it comes from ``--outcomes`` or a sidecar. Actions that share a
model response are one step; an event that occurs again (same id) counts once.
"""

from typing import Any

import msgspec

from rtmc.errors import FormatError
from rtmc.formats.base import (
    Format,
    Identity,
    decode_arguments,
    problem_of_path,
    rollout_of_path,
    why,
)
from rtmc.formats.conversation import Block, plain_text, uploaded_root
from rtmc.rollouts import Rollout, Source, Step, ToolCall

__all__ = ["OPENHANDS_SDK"]


class _Call(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    arguments: Any = None


class _CommandMetadata(msgspec.Struct):
    exit_code: int | None = None
    working_dir: str | None = None


class _Observation(msgspec.Struct):
    content: str | list[Block | str] | None = None
    output: str | None = None
    is_error: bool | None = None
    exit_code: int | None = None
    timeout: bool | None = None
    metadata: _CommandMetadata | None = None


class _LlmMessage(msgspec.Struct):
    role: str = ""
    content: str | list[Block | str] | None = None


class _Event(msgspec.Struct):
    kind: str = ""
    id: Any = None
    source: str | None = None
    thought: str | list[Block | str] | None = None
    reasoning_content: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_call: _Call | None = None
    action: Any = None
    llm_response_id: str | None = None
    action_id: Any = None
    observation: _Observation | None = None
    error: str | None = None
    rejection_reason: str | None = None
    llm_message: _LlmMessage | None = None


_event = msgspec.json.Decoder(_Event)


def _identify(raw: bytes, source: Source) -> list[Identity]:
    return [Identity(problem_of_path(source.path), rollout_of_path(source.path))]


def _read(raw: bytes, source: Source) -> list[Rollout]:
    turns: list[tuple[str, list[ToolCall]]] = []
    place: dict[str, tuple[int, int]] = {}
    turn_of_response: dict[str, int] = {}
    seen: set[str] = set()
    root: str | None = None
    cwd: str | None = None
    for number, line in enumerate(raw.splitlines(), source.line):
        if not line.strip():
            continue
        try:
            event = _event.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise FormatError(f"line {number}: {why(error)}") from error
        if event.id is not None:
            if str(event.id) in seen:
                continue
            seen.add(str(event.id))
        if event.kind == "ActionEvent":
            turn = turn_of_response.get(event.llm_response_id or "")
            if turn is None:
                turn = len(turns)
                turns.append((plain_text(event.thought) or event.reasoning_content or "", []))
                if event.llm_response_id:
                    turn_of_response[event.llm_response_id] = turn
            spot = (turn, len(turns[turn][1]))
            turns[turn][1].append(msgspec.structs.replace(_tool_call(event), cwd=cwd))
            for key in (event.id, event.tool_call_id):
                if key is not None:
                    place[str(key)] = spot
        elif event.kind == "MessageEvent":
            message = event.llm_message or _LlmMessage()
            if event.source == "agent":
                turns.append((plain_text(message.content), []))
            else:
                root = root or uploaded_root(plain_text(message.content))
        elif event.kind.endswith(("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")):
            found = place.get(str(event.action_id)) or place.get(str(event.tool_call_id))
            if found is not None:
                turn, index = found
                calls = turns[turn][1]
                calls[index] = _observed(calls[index], event)
            elif event.kind == "AgentErrorEvent":  # a call that could not be made an action
                name = event.tool_name or "unknown"
                turns.append(("", [ToolCall(name, "", event.error or "", is_error=True)]))
            after = event.observation.metadata if event.observation else None
            cwd = (after.working_dir if after else None) or cwd
    return [
        Rollout(
            problem_of_path(source.path),
            rollout_of_path(source.path),
            tuple(Step(tuple(calls), thought) for thought, calls in turns),
            root=root or "/workspace",
            source=source,
        )
    ]


def _tool_call(event: _Event) -> ToolCall:
    call = event.tool_call
    name = event.tool_name or (call.name if call else None) or "unknown"
    if call is None:
        action = event.action if isinstance(event.action, dict) else {}
        return ToolCall(name, {k: v for k, v in action.items() if k != "kind" and v is not None})
    return ToolCall(name, decode_arguments(call.arguments))


def _observed(call: ToolCall, event: _Event) -> ToolCall:
    said = event.observation
    if said is None:
        text = event.error or event.rejection_reason or ""
        return msgspec.structs.replace(call, output=text, is_error=True)
    code = said.exit_code
    if code is None and said.metadata is not None:
        code = said.metadata.exit_code
    refused = bool(said.is_error)
    return msgspec.structs.replace(
        call,
        output=plain_text(said.content) or said.output or "",
        exit_code=None if code == -1 else code,
        is_error=said.is_error,
        # −1 without an error: the command still runs
        timed_out=bool(said.timeout) or (code == -1 and not refused),
    )


def _detect(value: Any, path: str) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("kind", "")).endswith(("Event", "Condensation", "UserRejectObservation"))
        and not value.keys().isdisjoint(("id", "timestamp", "source"))
    )


OPENHANDS_SDK = Format(
    name="openhands-sdk",
    title="OpenHands SDK conversations (events.jsonl)",
    needs="one event a line; outcome from --outcomes or a sidecar",
    ids="the directory's name (or the file name) and the path",
    unit="file",
    detect=_detect,
    read=_read,
    identify=_identify,
)
