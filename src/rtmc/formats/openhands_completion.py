"""OpenHands completion logs: one LLM call a file, with the whole conversation before it.

The last turn of the agent stands in ``response`` only. Where the log has the native form of the
calls (``fncall_messages``, ``raw_messages``) it is preferred to their text form.

A file named after a model and a time (``<model>-<unix time>.json``) is one of several logs of a
directory: its problem is the directory's name, and the logs of one conversation, which begin alike,
are ONE rollout (the longest). Any other file name is the problem's id. The rollout id is the path
(the directory and a digest of the conversation's first messages). The logs hold no outcome: it
comes from results.json, report.json or ``--outcomes``.
"""

import re
from pathlib import PurePath
from typing import Any

import msgspec

from rtmc.formats.base import Format, Identity, content_id, problem_of_path, rollout_of_path
from rtmc.formats.chat import is_message_list
from rtmc.formats.conversation import Conversation, Message
from rtmc.rollouts import Rollout, Source

__all__ = ["OPENHANDS_COMPLETION"]

_TIMED_NAME = re.compile(r"^(?P<model>.+)-\d{9,}(\.\d+)?\.json$")
_DEFAULT_ROOT = "/workspace"


class _Choice(msgspec.Struct):
    message: Message | None = None


class _Response(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)
    model: str | None = None


class _Head(msgspec.Struct):
    messages: list[msgspec.Raw] = msgspec.field(default_factory=list)
    response: _Response | None = None


class _Log(msgspec.Struct):
    messages: list[Message] = msgspec.field(default_factory=list)
    response: _Response | None = None
    fncall_messages: list[Message] | None = None
    fncall_response: _Response | None = None
    raw_messages: list[Message] | None = None


_head = msgspec.json.Decoder(_Head)
_log = msgspec.json.Decoder(_Log)


def _ids(path: str, messages: list[msgspec.Raw], model: str | None) -> Identity:
    pure = PurePath(path)
    named = _TIMED_NAME.match(pure.name)
    if named is None:
        return Identity(problem_of_path(path), rollout_of_path(path), model)
    # the system prompt and the task; what follows differs from conversation to conversation
    start = content_id(b"".join(bytes(message) for message in messages[:2]))
    directory = str(pure.parent)
    rollout = f"{directory}/{start}" if directory != "." else start
    problem = problem_of_path(directory) if directory != "." else start
    return Identity(problem, rollout, model or named.group("model"), "logs")


def _identify(raw: bytes, source: Source) -> list[Identity]:
    head = _head.decode(raw)
    return [_ids(source.path, head.messages, head.response.model if head.response else None)]


def _read(raw: bytes, source: Source) -> list[Rollout]:
    log = _log.decode(raw)
    ids = _identify(raw, source)[0]
    native = log.fncall_messages or log.raw_messages
    talk = Conversation(native or log.messages)
    for response in (log.fncall_response, log.response):
        if response is not None and response.choices and response.choices[0].message:
            talk.add(response.choices[0].message)
            break
    return [
        Rollout(
            ids.problem_id,
            ids.rollout_id,
            tuple(talk.steps()),
            model=ids.model,
            root=talk.root or _DEFAULT_ROOT,
            persistent_shell=not talk.fresh_shells,
            source=source,
        )
    ]


def _detect(value: Any, path: str) -> bool:
    if not isinstance(value, dict) or not is_message_list(value.get("messages")):
        return False
    response = value.get("response")
    return (
        isinstance(response, dict)
        and isinstance(response.get("choices"), list)
        and ("kwargs" in value or "fncall_messages" in value)
    )


OPENHANDS_COMPLETION = Format(
    name="openhands-completion",
    title="OpenHands completion logs (also the SDK's LLM logs)",
    needs="messages and response; outcome from results.json, report.json or --outcomes",
    ids="the file name (else the directory) and the path",
    unit="line",
    detect=_detect,
    read=_read,
    identify=_identify,
)
