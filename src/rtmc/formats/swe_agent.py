"""SWE-agent 0.x and 1.x: ``<instance>.traj``.

The problem is the file name (SWE-agent names the file after the instance), the rollout the path of
the file: several runs differ by their directories only. The files hold no outcome (``submitted`` is
none): it comes from report.json files or ``--outcomes``.

Actions are read from ``trajectory`` through ``swe_agent_commands``; a demonstration that has
``history`` only is read from there. ``state`` is what held before the action in 0.x (a text of
JSON) and after it in 1.x (an object); it gives the working directory and the open file.
"""

import re
from typing import Any

import msgspec

from rtmc.formats.base import Format, Identity, problem_of_path, rollout_of_path
from rtmc.formats.conversation import Message, plain_text
from rtmc.formats.swe_agent_commands import tool_call
from rtmc.rollouts import Rollout, Source, Step, ToolCall, status_of

__all__ = ["SWE_AGENT"]

_HARNESS_EXITS = frozenset(
    ("exit_context", "exit_cost", "exit_error", "exit_format", "exit_forfeit", "exit_api",
     "exit_environment_error", "skip")
)  # fmt: skip
"""Written into ``action`` by SWE-agent 0.x itself when it ends a run: no turn of the model."""

_PROMPT = re.compile(r"\n?\(Open file: (.*)\)\n\(Current directory: (.*)\)\nbash-\$\s*\Z")

_NOT_EXECUTED = (
    "Your bash command contained syntax errors and was NOT executed",
    "Interactive operation '",
    "Operation '",
)


class _State(msgspec.Struct):
    open_file: str | None = None
    working_dir: str | None = None

    def file(self) -> str | None:
        return None if self.open_file in (None, "", "n/a") else self.open_file


class _Step(msgspec.Struct):
    action: str | None = None
    observation: str | None = None
    response: str | None = None
    thought: str | None = None
    state: str | _State | None = None


class _HistoryItem(Message):
    action: str | None = None
    thought: str | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None


class _Head(msgspec.Struct):
    replay_config: Any = None


class _File(_Head):
    trajectory: list[_Step] | None = None
    history: list[_HistoryItem] = msgspec.field(default_factory=list)
    info: _Info | None = None


class _NoHistory(_Head):
    """As ``_File``, but without the prompts that repeat in ``history``."""

    trajectory: list[_Step] | None = None
    info: _Info | None = None


class _ModelName(msgspec.Struct):
    name: str | None = None


class _Agent(msgspec.Struct):
    model: _ModelName | None = None


class _Config(msgspec.Struct):
    agent: _Agent | None = None


_head = msgspec.json.Decoder(_Head)
_file = msgspec.json.Decoder(_File)
_no_history = msgspec.json.Decoder(_NoHistory)
_state = msgspec.json.Decoder(_State)


def _model(config: Any) -> str | None:
    """Find the model's name in the replayed configuration (an object, or the text of one)."""
    try:
        if isinstance(config, str):
            agent = msgspec.json.decode(config, type=_Config).agent
        else:
            agent = msgspec.convert(config, _Config).agent
    except msgspec.MsgspecError:
        return None
    name = agent.model.name if agent and agent.model else None
    return None if name == "replay" else name  # replays an earlier run; no model


def _identity(head: _Head | _NoHistory, source: Source) -> Identity:
    model = _model(head.replay_config)
    return Identity(problem_of_path(source.path), rollout_of_path(source.path), model)


def _identify(raw: bytes, source: Source) -> list[Identity]:
    return [_identity(_head.decode(raw), source)]


def _read(raw: bytes, source: Source) -> list[Rollout]:
    file: _File | _NoHistory = _no_history.decode(raw)
    if file.trajectory is not None:
        steps, root = _trajectory_steps(file.trajectory)
    else:
        steps, root = _history_steps(_file.decode(raw).history)
    ids = _identity(file, source)
    stop = file.info.exit_status if file.info else None
    return [
        Rollout(
            ids.problem_id,
            ids.rollout_id,
            tuple(steps),
            None,
            status_of(None, stop),
            stop,
            ids.model,
            root=root,
            source=source,
        )
    ]


def _trajectory_steps(trajectory: list[_Step]) -> tuple[list[Step], str | None]:
    steps = []
    root: str | None = None
    state = _State()
    for item in trajectory:
        said = item.state
        if isinstance(said, str):  # 0.x: before the action
            state = _decoded(said) or state
            before, after = state, state
        else:  # 1.x: after it
            before, after = state, said or state
        root = root or before.working_dir or after.working_dir
        action = item.action or ""
        if action.strip() in _HARNESS_EXITS or not (action.strip() or item.response):
            pass
        elif not action.strip():
            steps.append(Step((), item.thought or item.response or ""))
        else:
            call = tool_call(action, before.file())
            call = _observed(call, item.observation, before.working_dir)
            steps.append(Step((call,), (item.thought or "").strip()))
        state = after
    return steps, root


def _decoded(state: str) -> _State | None:
    try:
        return _state.decode(state)
    except msgspec.MsgspecError:
        return None


def _history_steps(history: list[_HistoryItem]) -> tuple[list[Step], str | None]:
    steps = []
    root: str | None = None
    state = _State()
    for index, item in enumerate(history):
        if item.role != "assistant" or item.is_demo:
            continue
        thought = (item.thought or plain_text(item.content)).strip()
        action = item.action or ""
        if not action.strip():
            steps.append(Step((), thought))
            continue
        call = tool_call(action, state.file())
        answer = history[index + 1] if index + 1 < len(history) else None
        text, cwd = None, state.working_dir
        if answer is not None and answer.role != "assistant":
            text, state = _without_prompt(plain_text(answer.content), state)
            root = root or state.working_dir
        steps.append(Step((_observed(call, text, cwd),), thought))
    return steps, root


def _without_prompt(text: str, state: _State) -> tuple[str, _State]:
    """Take the prompt that ``history`` repeats off an observation; it tells the state after it."""
    text = text.removeprefix("OBSERVATION:\n")
    prompt = _PROMPT.search(text)
    if prompt is None:
        return text, state
    return text[: prompt.start()], _State(prompt.group(1), prompt.group(2))


def _observed(call: ToolCall, observation: str | None, cwd: str | None) -> ToolCall:
    text = observation or ""
    timed_out = text.startswith("EXECUTION TIMED OUT") or (
        text.startswith("The command ") and "was cancelled because it took more than" in text
    )
    refused = True if text.startswith(_NOT_EXECUTED) else None
    return msgspec.structs.replace(
        call, output=observation, is_error=refused, timed_out=timed_out, cwd=cwd
    )


def _detect(value: Any, path: str) -> bool:
    if not isinstance(value, dict):
        return False
    trajectory = value.get("trajectory")
    if isinstance(trajectory, list):
        if not trajectory:
            return "info" in value and "history" in value
        return isinstance(trajectory[0], dict) and {"action", "observation"} <= trajectory[0].keys()
    history = value.get("history")
    return isinstance(history, list) and any(
        isinstance(item, dict) and item.get("role") == "assistant" and "action" in item
        for item in history
    )


SWE_AGENT = Format(
    name="swe-agent",
    title="SWE-agent 0.x and 1.x (*.traj)",
    needs="trajectory (or history); outcome from report.json files or --outcomes",
    ids="the file name and the file's path",
    unit="line",
    detect=_detect,
    read=_read,
    identify=_identify,
)
