"""Chat messages: one JSON row a rollout, or a bare list of messages.

A row names its problem and rollout itself (``problem_id``, ``rollout_id`` or a usual synonym). A
row without a rollout id is named after its content; a row without a problem id is refused. ``uid``
is verl's name of the PROMPT: all rollouts of a group share it, so it is a problem's id and never a
rollout's. ``messages`` may be the JSON text of the list, as in tables on Hugging Face. A bare list
takes its problem from the file name (or the directory, if the name says nothing) and its
rollout id from the path.
"""

from typing import Any

import msgspec

from rtmc.errors import FormatError
from rtmc.formats.base import (
    REFUSALS,
    Format,
    Identity,
    content_id,
    first_text,
    is_bare_list,
    outcome_of,
    problem_of_path,
    rollout_of_path,
)
from rtmc.formats.conversation import Conversation, Message
from rtmc.formats.fenced import fenced_steps, is_fenced
from rtmc.rollouts import Rollout, Source, Step, status_of

__all__ = ["CHAT", "identify", "is_message_list", "messages_in", "read"]


class _Ids(msgspec.Struct, gc=False):
    """The fields that can name a row, the first of each kind that is set wins."""

    problem_id: Any = None
    instance_id: Any = None
    task_id: Any = None
    prompt_id: Any = None
    task: Any = None
    uid: Any = None
    rollout_id: Any = None
    traj_id: Any = None
    trajectory_id: Any = None
    trial_name: Any = None
    id: Any = None
    sample: Any = None
    model: Any = None
    model_name: Any = None
    model_name_or_path: Any = None


class _Row(_Ids, gc=False):
    messages: list[Message] | str = msgspec.field(default_factory=list)
    reward: Any = None
    score: Any = None
    resolved: Any = None
    is_resolved: Any = None
    success: Any = None
    stop_reason: Any = None
    exit_status: Any = None
    failure_mode: Any = None
    finish_reason: Any = None
    status: Any = None
    policy_version: Any = None
    step_rewards: list[float | None] | None = None
    persistent_shell: bool | None = None
    root: str | None = None
    cwd: str | None = None


_ids = msgspec.json.Decoder(_Ids)
_row = msgspec.json.Decoder(_Row)
_list = msgspec.json.Decoder(list[Message])


def _identity(row: _Ids, raw: bytes) -> Identity:
    problem = first_text(
        row.problem_id, row.instance_id, row.task_id, row.prompt_id, row.task, row.uid
    )
    if problem is None:
        raise FormatError(
            "no problem id: the row needs one of "
            "problem_id, instance_id, task_id, prompt_id, task, uid"
        )
    rollout = first_text(
        row.rollout_id, row.traj_id, row.trajectory_id, row.trial_name, row.id, row.sample
    )
    model = first_text(row.model, row.model_name, row.model_name_or_path)
    if rollout is None:
        return Identity(problem, content_id(raw), model)
    return Identity(problem, rollout, model, "samples")


def identify(raw: bytes, source: Source) -> list[Identity]:
    """Give the ids of one row or bare list without building its messages."""
    if is_bare_list(raw):
        return [Identity(problem_of_path(source.path), rollout_of_path(source.path))]
    return [_identity(_ids.decode(raw), raw)]


def read(raw: bytes, source: Source) -> list[Rollout]:
    """Read one row or one bare list of messages."""
    if is_bare_list(raw):
        talk = _Talk(_list.decode(raw))
        return [
            Rollout(
                problem_of_path(source.path),
                rollout_of_path(source.path),
                tuple(talk.steps),
                root=talk.root,
                persistent_shell=not talk.fresh_shells,
                source=source,
            )
        ]
    row = _row.decode(raw)
    ids = _identity(row, raw)
    talk = _Talk(_messages(row.messages))
    given = next((x for x in (row.resolved, row.is_resolved, row.success) if x is not None), None)
    reward, resolved = outcome_of(row.reward if row.reward is not None else row.score, given)
    stop = first_text(
        row.stop_reason, row.exit_status, row.failure_mode, row.finish_reason, row.status
    )
    stop = None if stop == "unset" else stop  # Terminal-Bench's word for none
    version = first_text(row.policy_version)
    return [
        Rollout(
            ids.problem_id,
            ids.rollout_id,
            _rewarded(talk.steps, row.step_rewards),
            reward,
            status_of(reward, stop, resolved),
            stop,
            ids.model,
            version,
            row.root or row.cwd or talk.root,
            persistent_shell=not talk.fresh_shells
            if row.persistent_shell is None
            else row.persistent_shell,
            source=source,
        )
    ]


def _messages(value: list[Message] | str) -> list[Message]:
    if not isinstance(value, str):
        return value
    try:
        return _list.decode(value)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise FormatError(f"messages is a text, but not the JSON of a list ({error})") from error


class _Talk:
    """What a message list tells of its rollout."""

    def __init__(self, messages: list[Message]) -> None:
        talk = Conversation(messages)
        self.root = talk.root
        self.steps = talk.steps()
        self.fresh_shells = talk.fresh_shells
        if not any(step.calls for step in self.steps) and is_fenced(messages):
            self.steps = fenced_steps(messages)
            self.fresh_shells = True


def _rewarded(steps: list[Step], rewards: list[float | None] | None) -> tuple[Step, ...]:
    if rewards is None:
        return tuple(steps)
    if len(rewards) != len(steps):
        raise FormatError(f"step_rewards has {len(rewards)} entries for {len(steps)} steps")
    return tuple(
        msgspec.structs.replace(step, reward=reward) if reward else step
        for step, reward in zip(steps, rewards, strict=True)
    )


def is_message_list(value: Any) -> bool:
    """Tell whether ``value`` is a list of chat messages (not an empty one)."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in value)
    )


def messages_in(row: dict[str, Any]) -> Any:
    """Give the ``messages`` of a decoded row, also where they are JSON text."""
    messages = row.get("messages")
    if not isinstance(messages, str):
        return messages
    try:
        return msgspec.json.decode(messages)
    except REFUSALS:
        return None


def _detect(value: Any, path: str) -> bool:
    if isinstance(value, dict):
        return is_message_list(messages_in(value))
    return is_message_list(value)


CHAT = Format(
    name="chat",
    title="chat messages (OpenAI tool_calls, Anthropic blocks, or calls as text)",
    needs="rows with messages and problem_id; outcome from reward, score, resolved or success",
    ids="problem_id and rollout_id (or a synonym); bare lists: file name and path",
    unit="line",
    detect=_detect,
    read=read,
    identify=identify,
)
