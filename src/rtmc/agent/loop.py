"""The agent's loop: ask the model, carry out its calls, show it what came back; until it finishes.

A rollout is a generator: it yields the dialogue when it is the model's turn and is sent the
completion, so that whoever drives it can ask for many rollouts at once (``rtmc.agent.drive``).
"""

import time
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from rtmc.agent.calls import calls_of, describe_in_xml, trouble
from rtmc.agent.models.base import Completion, Dialogue, Message
from rtmc.agent.tools import TOOLS, Observation, Tool, Workbench
from rtmc.errors import ModelError, RtmcError
from rtmc.rollouts import Rollout, Span, Step, ToolCall, status_of

__all__ = ["Attempt", "Episode", "Limits", "attempt", "recorded"]

SYSTEM = (
    "You are a software engineer. Work on the repository with the tools, check your work, and call "
    "finish when you are done."
)
NO_CALL = "That was no call of a tool. Go on with one, or call finish if you are done."
CUT = "That turn was cut off at its limit before it called a tool. Say less, and call one."


class Limits(msgspec.Struct, frozen=True):
    """When a rollout is stopped; looked at before each turn, so that the last may go beyond.

    Attributes:
        steps: turns of the model.
        tokens: length of the token record.
        seconds: wall time.
        prose: turns in a row without a call.
        calls: calls of one turn; those beyond are not carried out, and the rollout goes on.
    """

    steps: int = 40
    tokens: int = 32_768
    seconds: float = 1800.0
    prose: int = 3
    calls: int = 16


class Episode(msgspec.Struct, frozen=True):
    """What an attempt came to, before it is judged.

    Attributes:
        steps: as recorded.
        stop_reason: ``finished``, which limit was hit, or ``error: …``.
        root: the workspace.
        token_ids: the token record, as sampled; empty where the model gives none.
        logprobs: of the token record.
    """

    steps: tuple[Step, ...]
    stop_reason: str
    root: str | None = None
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


Attempt = Generator[Dialogue, Completion, Episode]


def attempt(
    text: str,
    bench: Workbench,
    dialogue: Dialogue,
    native_tools: bool,
    limits: Limits = Limits(),
    tools: dict[str, Tool] = TOOLS,
) -> Attempt:
    """Attempt one problem.

    An error of the sandbox or the model ends the attempt; what was done until then is kept, but a
    ``ModelError``, which concerns all attempts, goes through. Where
    the model gave up the token record in between, no step has spans.

    Args:
        text: of the problem.
        bench: where the tools act.
        dialogue: empty; it is filled as the attempt goes on.
        native_tools: whether the model is offered the tools by its endpoint.
        limits: when to stop.
        tools: by name.
    """
    steps: list[Step] = []
    try:
        reason = yield from _work(text, bench, dialogue, native_tools, limits, tools, steps)
    except ModelError:
        raise
    except RtmcError as error:
        reason = f"error: {error}"
    if not dialogue.token_ids:
        steps = [msgspec.structs.replace(step, spans=()) for step in steps]
    return Episode(
        tuple(steps),
        reason,
        bench.sandbox.workspace,
        tuple(dialogue.token_ids),
        tuple(dialogue.logprobs),
    )


def _work(
    text: str,
    bench: Workbench,
    dialogue: Dialogue,
    native_tools: bool,
    limits: Limits,
    tools: dict[str, Tool],
    steps: list[Step],
) -> Generator[Dialogue, Completion, str]:
    """Record steps until there is a reason to stop."""
    system = SYSTEM if native_tools else f"{SYSTEM}\n\n{describe_in_xml(tools)}"
    dialogue.messages += [_message("system", system), _message("user", text)]
    began, silent = time.monotonic(), 0
    while True:
        reason = _limit(limits, len(steps), len(dialogue.token_ids), began, silent)
        if reason:
            return reason
        state = bench.sandbox.state()
        started = time.monotonic()
        completion = yield dialogue
        if completion.stop.startswith("error"):
            return completion.stop
        cut = completion.stop == "length"
        if cut and not completion.text and not completion.calls:
            return "limit of the model's context"
        spans = _spans(completion, len(dialogue.token_ids))
        thought, calls = calls_of(completion.text, completion.calls, cut)
        observed = _carry_out(calls, bench, tools, limits.calls, cut)
        dialogue.messages += _turn(completion, calls, observed, cut)
        silent = 0 if calls else silent + 1
        steps.append(
            Step(
                calls=tuple(map(_recorded, calls, observed)),
                thought=thought,
                spans=spans,
                env_state=state,
                seconds=round(time.monotonic() - started, 4),
            )
        )
        if observed and observed[-1].done:
            return "finished"


def _limit(limits: Limits, steps: int, tokens: int, began: float, silent: int) -> str | None:
    """Say which limit is hit."""
    if steps >= limits.steps:
        return f"limit of {limits.steps} steps"
    if tokens >= limits.tokens:
        return f"limit of {limits.tokens} tokens"
    if time.monotonic() - began >= limits.seconds:
        return f"limit of {limits.seconds:g} seconds"
    if silent >= limits.prose:
        return f"limit of {limits.prose} turns without a call"
    return None


def _carry_out(
    calls: Sequence[ToolCall], bench: Workbench, tools: dict[str, Tool], most: int, cut: bool
) -> list[Observation]:
    """Carry out the calls in order; what stands behind a finish does not count."""
    observed: list[Observation] = []
    for number, call in enumerate(calls, start=1):
        if number > most:
            text = f"not carried out, nor what came after it: a turn has at most {most} calls"
            return [*observed, Observation(text, is_error=True)]
        problem = trouble(call, tools, cut and number == len(calls))
        if problem is not None or isinstance(call.arguments, str):
            observed.append(Observation(problem or "", is_error=True))
        else:
            observed.append(tools[call.name](call.arguments, bench))
        if observed[-1].done:
            break
    return observed


def _recorded(call: ToolCall, seen: Observation) -> ToolCall:
    return msgspec.structs.replace(
        call,
        output=seen.text,
        exit_code=seen.exit_code,
        is_error=seen.is_error or None,
        timed_out=seen.timed_out,
        cwd=seen.cwd,
    )


def _turn(
    completion: Completion, calls: Sequence[ToolCall], observed: list[Observation], cut: bool
) -> list[Message]:
    """Write the turn and what came back as messages."""
    said = _message("assistant", completion.text)
    if not calls:
        return [said, _message("user", CUT if cut else NO_CALL)]
    if not completion.calls:
        return [said, _message("user", "\n\n".join(seen.text for seen in observed))]
    said["tool_calls"], answers = [], []
    for number, (raw, call, seen) in enumerate(
        zip(completion.calls, calls, observed, strict=False)  # as far as they were carried out
    ):
        name = str(raw.get("id") or f"call_{number}")
        function = {"name": call.name, "arguments": _as_json(raw.get("arguments"), call.arguments)}
        said["tool_calls"].append({"id": name, "type": "function", "function": function})
        answers.append({"role": "tool", "tool_call_id": name, "content": seen.text})
    return [said, *answers]


def _as_json(written: Any, arguments: dict[str, Any] | str) -> str:
    """Give arguments as they were written, else as the object that endpoints insist on."""
    if isinstance(arguments, str):
        return msgspec.json.encode({"malformed": arguments}).decode()
    is_text = isinstance(written, str) and written
    return written if is_text else msgspec.json.encode(arguments).decode()


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _spans(completion: Completion, end: int) -> tuple[Span, ...]:
    if completion.start is None or completion.start == end:
        return ()
    return (Span(0, completion.start, end),)


def recorded(
    episode: Episode,
    problem_id: str,
    rollout_id: str,
    reward: float | None = None,
    model: str | None = None,
    policy_version: str | None = None,
) -> Rollout:
    """Make a rollout of an episode and its judgement.

    Args:
        episode: as it ended.
        problem_id: of the problem.
        rollout_id: unique within the problem.
        reward: None where it is unknown, as after an error that was not the agent's.
        model: its name.
        policy_version: of the weights that sampled.
    """
    tokens = episode.token_ids
    return Rollout(
        problem_id,
        rollout_id,
        episode.steps,
        reward=reward,
        status=status_of(reward, episode.stop_reason),
        stop_reason=episode.stop_reason,
        model=model,
        policy_version=policy_version,
        root=episode.root,
        sequence_lengths=(len(tokens),) if tokens else (),
        token_ids=(tokens,) if tokens else (),
        logprobs=(episode.logprobs,) if episode.logprobs else (),
    )
