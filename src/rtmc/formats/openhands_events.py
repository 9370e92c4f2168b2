"""OpenHands event streams: rows of output.jsonl, bare event lists, action/observation pairs.

The problem is ``instance_id`` (``owner/repo#number`` for rows of the issue resolver, the file name
for bare lists). The rollout is the run's output directory as the row names it, else a digest of the
row, else the path; rows of the same problem and run are different attempts. An outcome is taken
from a merged report (``resolved``) if there is one; the resolver's ``success`` is a model's opinion
and no outcome.

Actions keep the form in which the agent wrote them (``tool_call_metadata``); only where that is
missing are they put together from the event's own fields. Parallel calls of one model response are
one step.
"""

from pathlib import PurePath
from typing import Any

import msgspec

from rtmc.formats.base import (
    Format,
    Identity,
    content_id,
    decode_arguments,
    first_text,
    is_bare_list,
    outcome_of,
    problem_of_path,
    rollout_of_path,
)
from rtmc.formats.conversation import Call, uploaded_root
from rtmc.rollouts import Rollout, Source, Step, ToolCall, status_of

__all__ = ["OPENHANDS_EVENTS"]

_DEFAULT_ROOT = "/workspace"
_NO_TURN = frozenset(
    ("system", "recall", "change_agent_state", "condensation", "condensation_request", "null",
     "loop_recovery", "start", "pause", "resume")
)  # fmt: skip
_BOOKKEEPING = frozenset(
    ("thought", "impl_source", "translated_ipython_code", "blocking", "hidden", "is_static", "cwd",
     "confirmation_state", "security_risk", "keep_prompt", "is_confirmed", "action_risk",
     "kernel_init_code", "include_extra")
)  # fmt: skip
_TOOL_OF_ACTION = {
    "run": "execute_bash",
    "run_ipython": "execute_ipython_cell",
    "read": "str_replace_editor",
    "edit": "str_replace_editor",
    "task_tracking": "task_tracker",
    "browse_interactive": "browser",
}


class _ToolMessage(msgspec.Struct):
    content: Any = None
    tool_calls: list[Call] | None = None


class _Choice(msgspec.Struct):
    message: _ToolMessage | None = None


class _ModelResponse(msgspec.Struct):
    id: Any = None
    model: str | None = None
    choices: list[_Choice] = msgspec.field(default_factory=list)


class _Metadata(msgspec.Struct):
    function_name: str | None = None
    tool_call_id: str | None = None
    model_response: _ModelResponse | None = None
    total_calls_in_response: int = 1


class _CommandMetadata(msgspec.Struct):
    exit_code: int | None = None
    working_dir: str | None = None


class _Extras(msgspec.Struct):
    metadata: _CommandMetadata | None = None
    exit_code: int | None = None


class _Event(msgspec.Struct):
    """An event of any dialect; the older ones have an action's arguments at the top."""

    id: Any = None
    source: str | None = None
    action: str | None = None
    observation: str | None = None
    args: dict[str, Any] | None = None
    content: Any = None
    cause: Any = None
    extras: _Extras | None = None
    tool_call_metadata: _Metadata | None = None
    exit_code: int | None = None
    thought: str | None = None
    command: Any = None
    code: Any = None
    path: Any = None
    start: Any = None
    end: Any = None
    url: Any = None
    browser_actions: Any = None
    outputs: Any = None


class _Issue(msgspec.Struct):
    owner: str = ""
    repo: str = ""
    number: Any = ""


class _LlmConfig(msgspec.Struct):
    model: str | None = None


class _RowMetadata(msgspec.Struct):
    llm_config: _LlmConfig | None = None
    eval_output_dir: str | None = None


class _Report(msgspec.Struct):
    resolved: bool | None = None


class _TestResult(msgspec.Struct):
    report: _Report | None = None


class _Head(msgspec.Struct):
    instance_id: Any = None
    issue: _Issue | None = None
    metadata: _RowMetadata | None = None


_History = list[_Event | list[_Event]]


class _Row(_Head):
    history: _History = msgspec.field(default_factory=list)
    instruction: str | None = None
    error: Any = None
    resolved: bool | None = None
    report: _Report | None = None
    test_result: _TestResult | None = None


_head = msgspec.json.Decoder(_Head)
_row = msgspec.json.Decoder(_Row)
_list = msgspec.json.Decoder(_History)


def _identity(head: _Head, raw: bytes, source: Source) -> Identity:
    problem = first_text(head.instance_id)
    if problem is None and head.issue is not None:
        problem = f"{head.issue.owner}/{head.issue.repo}#{head.issue.number}"
    metadata = head.metadata
    run = metadata.eval_output_dir if metadata else None
    rollout = PurePath(run).name if run else content_id(raw)
    model = metadata.llm_config.model if metadata and metadata.llm_config else None
    return Identity(problem or problem_of_path(source.path), rollout, model)


def _identify(raw: bytes, source: Source) -> list[Identity]:
    if is_bare_list(raw):
        return [Identity(problem_of_path(source.path), rollout_of_path(source.path))]
    return [_identity(_head.decode(raw), raw, source)]


def _read(raw: bytes, source: Source) -> list[Rollout]:
    ids = _identify(raw, source)[0]
    row = _Row(history=_list.decode(raw)) if is_bare_list(raw) else _row.decode(raw)
    stream = _Stream()
    for item in row.history:
        for event in item if isinstance(item, list) else (item,):
            stream.add(event)
    reports = [row.test_result.report if row.test_result else None, row.report]
    said = [row.resolved, *(report.resolved for report in reports if report is not None)]
    resolved = next((value for value in said if value is not None), None)
    reward, resolved = outcome_of(None, resolved)
    stop = first_text(row.error)
    root = stream.root or uploaded_root(row.instruction or "") or _DEFAULT_ROOT
    return [
        Rollout(
            ids.problem_id,
            ids.rollout_id,
            tuple(stream.steps()),
            reward,
            status_of(reward, stop, resolved),
            stop,
            ids.model or stream.model,
            root=root,
            source=source,
        )
    ]


class _Stream:
    """The steps of one stream of events."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.model: str | None = None
        self._turns: list[tuple[str, list[ToolCall]]] = []
        self._open: list[tuple[Any, str | None, int, int]] = []  # event, call id, turn, place
        self._turn_of_response: dict[Any, int] = {}
        self._seen: set[tuple[bool, Any]] = set()
        self._cwd: str | None = None

    def add(self, event: _Event) -> None:
        is_action = event.action is not None
        if event.id is not None:
            key = (is_action, str(event.id))
            if key in self._seen:
                return
            self._seen.add(key)
        if is_action:
            self._action(event)
        elif event.observation is not None:
            self._observation(event)

    def _action(self, event: _Event) -> None:
        args = event.args if event.args is not None else _flat_arguments(event)
        if event.source == "user" or (event.source is None and event.action == "message"):
            if event.action == "message" and self.root is None:
                self.root = uploaded_root(str(args.get("content") or event.content or ""))
            return
        if event.action in _NO_TURN or event.source == "environment":
            return
        thought = str(args.get("thought") or event.thought or "")
        if event.action == "message":
            self._turns.append((str(args.get("content") or ""), []))
            return
        metadata = event.tool_call_metadata
        response = metadata.model_response if metadata else None
        if response is not None:
            self.model = self.model or response.model
        call = _native_call(metadata) or _event_call(event.action or "", args)
        call = msgspec.structs.replace(call, cwd=self._cwd)
        turn = None
        if metadata and response and response.id and metadata.total_calls_in_response > 1:
            turn = self._turn_of_response.get(response.id)
            self._turn_of_response[response.id] = len(self._turns) if turn is None else turn
        if turn is None:
            turn = len(self._turns)
            self._turns.append((thought, []))
        calls = self._turns[turn][1]
        self._open.append((event.id, metadata.tool_call_id if metadata else None, turn, len(calls)))
        calls.append(call)

    def _observation(self, event: _Event) -> None:
        place = self._place(event)
        content = event.content if isinstance(event.content, str) else ""
        if place is None:
            # a call that the harness could not even make an action of leaves only its error
            if event.observation == "error" and event.source == "agent" and event.cause is None:
                refused = ToolCall("unknown", "", content, is_error=True)
                self._turns.append(("", [refused]))
            return
        turn, index = place
        extras = event.extras
        said = extras.metadata if extras else None
        code = next(
            (
                c
                for c in (said and said.exit_code, extras and extras.exit_code, event.exit_code)
                if c is not None
            ),
            None,
        )
        calls = self._turns[turn][1]
        calls[index] = msgspec.structs.replace(
            calls[index],
            output=content,
            exit_code=None if code == -1 else code,
            is_error=True if event.observation == "error" else None,
            timed_out=code == -1,
        )
        if said is not None and said.working_dir:
            self._cwd = said.working_dir

    def _place(self, event: _Event) -> tuple[int, int] | None:
        """Find the call that an observation answers: by cause, by call id, else the last one."""
        metadata = event.tool_call_metadata
        call_id = metadata.tool_call_id if metadata else None
        for at in range(len(self._open) - 1, -1, -1):
            event_id, known_call, turn, index = self._open[at]
            if (
                (event.cause is not None and event.cause == event_id)
                or (event.cause is None and call_id is not None and call_id == known_call)
                or (event.cause is None and call_id is None and event_id is None)
            ):
                del self._open[at]
                return turn, index
        return None

    def steps(self) -> list[Step]:
        return [Step(tuple(calls), thought) for thought, calls in self._turns]


def _flat_arguments(event: _Event) -> dict[str, Any]:
    names = ("command", "code", "path", "start", "end", "url", "browser_actions", "outputs")
    return {name: value for name in names if (value := getattr(event, name)) is not None}


def _native_call(metadata: _Metadata | None) -> ToolCall | None:
    """Give the call as the model wrote it."""
    if metadata is None or metadata.model_response is None:
        return None
    for choice in metadata.model_response.choices:
        for call in (choice.message.tool_calls if choice.message else None) or ():
            if call.id == metadata.tool_call_id and call.function is not None:
                name = call.function.name or metadata.function_name or "unknown"
                return ToolCall(name, decode_arguments(call.function.arguments))
    return None


def _event_call(action: str, args: dict[str, Any]) -> ToolCall:
    """Put a call together from the fields of an action event."""
    if action == "call_tool_mcp":
        return ToolCall(str(args.get("name") or "mcp"), decode_arguments(args.get("arguments")))
    arguments = {k: v for k, v in args.items() if v is not None and k not in _BOOKKEEPING}
    if action == "think" and "thought" in args:
        arguments = {"thought": args["thought"]}
    elif action in ("read", "edit"):
        start, end = arguments.pop("start", None), arguments.pop("end", None)
        if action == "read":
            arguments["command"] = "view"
            if "view_range" not in arguments and (start or 0, end or -1) != (0, -1):
                arguments["view_range"] = [start, end]
        elif "command" in arguments:
            arguments.pop("content", None)  # belongs to the editor that a model drives
        else:
            return ToolCall("edit_file", {**arguments, "start": start, "end": end})
    return ToolCall(_TOOL_OF_ACTION.get(action, action), arguments)


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and (isinstance(value.get("action"), str) or isinstance(value.get("observation"), str))
        and "role" not in value
        and not value.keys().isdisjoint(("args", "source", "content", "command", "code", "extras"))
        and "state" not in value  # SWE-agent's steps have both keys at once
    )


def _is_history(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    if isinstance(first, list):
        return bool(first) and all(_is_event(event) for event in first)
    return _is_event(first)


def _detect(value: Any, path: str) -> bool:
    if isinstance(value, dict):
        return _is_history(value.get("history"))
    return _is_history(value)


OPENHANDS_EVENTS = Format(
    name="openhands-events",
    title="OpenHands event streams (output.jsonl, resolver rows, event lists and pairs)",
    needs="history of events; outcome from a merged report, report.json files or --outcomes",
    ids="instance_id (issue, file name) and the run's output directory (a digest, the path)",
    unit="line",
    detect=_detect,
    read=_read,
    identify=_identify,
)
