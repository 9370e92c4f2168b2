"""Turn a list of chat messages into steps, whatever way the calls are written.

Understood are OpenAI ``tool_calls`` with ``tool`` messages, Anthropic ``tool_use`` and
``tool_result`` blocks, and calls as text in the assistant's content (``xml_calls``) whose
observation is the next user message. One assistant message is one step.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from rtmc.formats.base import decode_arguments
from rtmc.formats.observations import (
    FINISH_MARKERS,
    Observed,
    mini_wrapped,
    observe,
    unwrap_output,
)
from rtmc.formats.xml_calls import MARK, xml_calls
from rtmc.rollouts import Step, ToolCall

__all__ = ["Block", "Call", "Conversation", "Extra", "Message", "plain_text", "uploaded_root"]


class Block(msgspec.Struct, gc=False):
    """A content block, of either API."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: "str | list[Block | str] | None" = None
    is_error: bool | None = None


class Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class Call(msgspec.Struct, gc=False):
    """An OpenAI tool call; ``function`` may be left out (some logs lift its fields up)."""

    id: str | None = None
    function: Function | None = None
    name: str | None = None
    arguments: Any = None


class Extra(msgspec.Struct, gc=False):
    """What mini-swe-agent 2 keeps beside an observation: the very result of the command."""

    returncode: Any = None
    raw_output: Any = None
    exception_info: Any = None


class Message(msgspec.Struct, gc=False):
    """A chat message, of either API."""

    role: str = ""
    content: str | list[Block | str] | Block | None = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    is_demo: bool | None = None
    extra: Extra | None = None


def plain_text(content: str | list[Block | str] | Block | None) -> str:
    """Give the text of a message's content, without its calls and results."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    blocks = content if isinstance(content, list) else [content]
    parts = (b if isinstance(b, str) else b.text for b in blocks)
    return "\n".join(part for part in parts if part)


def uploaded_root(text: str) -> str | None:
    """Find the repository's directory in an instruction that names it (OpenHands, SWE-smith)."""
    _, opened, rest = text.partition("<uploaded_files>")
    path, closed, _ = rest.partition("</uploaded_files>")
    return path.strip() or None if opened and closed else None


class _Pending(msgspec.Struct, eq=False, gc=False):
    """A call that waits for its result."""

    id: str | None
    name: str
    arguments: dict[str, Any] | str
    raw: Any = None
    cwd: str | None = None
    seen: Observed | None = None


class Conversation:
    """The steps of one message list.

    A turn that comes again with the ids of its calls (history replayed after compaction) is no
    new step. Some writers number the calls of every message alike, so an id counts only as long
    as it never names two different calls.

    Attributes:
        fresh_shells: the observations are those of mini-swe-agent: no ``cd`` persists.
        root: the repository's directory, where an instruction names it.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.fresh_shells = False
        self.root: str | None = None
        self._turns: list[tuple[str, list[_Pending]]] = []
        self._waiting: list[_Pending] = []
        self._by_id: dict[str, _Pending] = {}
        self._ids_are_unique = True
        self._replays: list[int] = []
        self._cwd: str | None = None
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Take the next message."""
        role = message.role
        if message.is_demo:
            return
        if role == "assistant":
            self._assistant(message)
        elif role in ("tool", "function"):
            self._result(message.tool_call_id, message.content, message.extra, None)
        elif role == "user":
            self._user(message)

    # --- turns ---

    def _assistant(self, message: Message) -> None:
        content = message.content
        calls: list[_Pending] = []
        if message.tool_calls:
            for call in message.tool_calls:
                function = call.function
                name = (function.name if function else call.name) or "unknown"
                raw = function.arguments if function else call.arguments
                calls.append(_Pending(call.id, name, decode_arguments(raw), raw))
        elif message.function_call is not None:
            function = message.function_call
            raw = function.arguments
            calls.append(_Pending(None, function.name or "unknown", decode_arguments(raw), raw))
        elif isinstance(content, list):
            for block in content:
                if isinstance(block, Block) and block.type == "tool_use":
                    arguments = decode_arguments(block.input)
                    calls.append(
                        _Pending(block.id, block.name or "unknown", arguments, block.input)
                    )
        text = plain_text(content)
        if not calls and MARK in text:
            text, written = xml_calls(text)
            calls = [_Pending(None, c.name, c.arguments) for c in written]
        self._turn(text or message.reasoning_content or "", calls)

    def _turn(self, thought: str, calls: list[_Pending]) -> None:
        known = 0
        for call in calls:
            if call.id is None:
                continue
            earlier = self._by_id.get(call.id)
            if earlier is None:
                self._by_id[call.id] = call
            elif earlier.name == call.name and earlier.raw == call.raw:
                known += 1
            else:
                self._ids_are_unique = False
                self._by_id[call.id] = call
        if calls and known == len(calls):
            self._replays.append(len(self._turns))
            for call in calls:  # results go to the newest, so that either reading of ids works
                self._by_id[call.id or ""] = call
        for call in calls:
            call.cwd = self._cwd
        self._turns.append((thought, calls))
        self._waiting = list(calls)

    # --- results ---

    def _user(self, message: Message) -> None:
        content = message.content
        blocks = content if isinstance(content, list) else []
        results = [b for b in blocks if isinstance(b, Block) and b.type == "tool_result"]
        for block in results:
            self._result(block.tool_use_id, block.content, None, block.is_error)
        if results:
            return
        if self._waiting and all(call.id is None for call in self._waiting):
            self._result(None, content, message.extra, None)
        elif not self._turns and self.root is None:
            self.root = uploaded_root(plain_text(content))

    def _result(
        self,
        call_id: str | None,
        content: str | list[Block | str] | Block | None,
        extra: Extra | None,
        is_error: bool | None,
    ) -> None:
        call = self._by_id.get(call_id) if call_id is not None else None
        if call is None:
            call = self._waiting[0] if self._waiting else None
        if call is None or call.seen is not None:
            return  # a result of no call, or a second one for the same call
        seen = observe(plain_text(content))
        if extra is not None and isinstance(extra.raw_output, str):
            seen = msgspec.structs.replace(seen, output=extra.raw_output)
        if is_error is not None:
            seen = msgspec.structs.replace(seen, is_error=is_error)
        call.seen = seen
        self._cwd = seen.cwd or self._cwd
        self.fresh_shells = self.fresh_shells or seen.fresh_shell
        if self._waiting and self._waiting[0] is call:
            self._waiting.pop(0)
        elif call in self._waiting:
            self._waiting.remove(call)

    # --- the whole ---

    def steps(self) -> list[Step]:
        """Give the steps of all turns so far."""
        replays = set(self._replays) if self._ids_are_unique else ()
        return [
            Step(tuple(self._tool_call(call) for call in calls), thought)
            for index, (thought, calls) in enumerate(self._turns)
            if index not in replays
        ]

    def _tool_call(self, call: _Pending) -> ToolCall:
        seen = call.seen
        if seen is None:
            return ToolCall(call.name, call.arguments, cwd=call.cwd)
        if self.fresh_shells and mini_wrapped(seen.output):
            # without a return code: killed, unless nothing ran at all
            output = unwrap_output(seen.output)
            return ToolCall(call.name, call.arguments, output, timed_out=_ran(call.arguments))
        return ToolCall(
            call.name,
            call.arguments,
            seen.output,
            seen.exit_code,
            seen.is_error,
            seen.timed_out,
            call.cwd,
        )


def _ran(arguments: dict[str, Any] | str) -> bool:
    command = arguments.get("command") if isinstance(arguments, dict) else None
    return isinstance(command, str) and not any(mark in command for mark in FINISH_MARKERS)
