"""Explain, step by step, which signature each step of a rollout got and why."""

from collections.abc import Iterator

from rtmc.report.tree_text import plain, short
from rtmc.rollouts import Rollout, Step, ToolCall
from rtmc.signatures import CodingSigner
from rtmc.signatures.effects import action_key
from rtmc.signatures.session import Session
from rtmc.signatures.signer import KEY_LENGTH, written
from rtmc.signatures.tools import Tools

__all__ = ["call_text", "explain", "one_line"]

SHOWN = 160


def explain(rollout: Rollout, signer: CodingSigner) -> Iterator[str]:
    """Write a rollout's signatures as lines: the calls, how they were read, the keys.

    Args:
        rollout: whose steps.
        signer: at which levels.
    """
    names = f"{plain(rollout.problem_id, 200)}  {plain(rollout.rollout_id, 200)}"
    yield f"{names}  {rollout.status}  ({rollout.source})"
    session = Session(rollout.root, rollout.persistent_shell)
    tools = Tools(session)
    for t, (step, signed) in enumerate(zip(rollout.steps, signer.steps(rollout), strict=True)):
        yield f"  t={t}"
        for level, state in zip(signer.levels, signed.states, strict=True):
            yield f"    state   {level}: {short(written(state), KEY_LENGTH)}"
        yield from _calls(step, tools)
        shown = action_key(signed.effects, signer.hash_chars, verb=True)
        yield f"    action  {short(shown, 1000)}"
        for level, action in zip(signer.levels, signed.actions, strict=True):
            if level == "coarse":
                yield f"    action  {level}: {action}"
        if signed.validated:
            yield "    note    first validation after a code change: earns the bonus"


def _calls(step: Step, tools: Tools) -> Iterator[str]:
    if not step.calls:
        yield f"    prose   {one_line(step.thought)}"
    for call in step.calls:
        yield f"    call    {call.name} {one_line(call_text(call))}"
        trace: list[str] = []
        tools.session.trace = trace
        effects = tools.effects(call)
        if not trace:
            answer = "refused" if any(e.refused for e in effects) else ""
            yield f"    read    {action_key(effects, 4, verb=True)}{answer and f'  ({answer})'}"
        for note in trace:
            yield f"    read    {one_line(note)}"


def call_text(call: ToolCall) -> str:
    """Write a call's arguments as text: a shell command as it is."""
    if isinstance(call.arguments, str):
        return call.arguments
    command = call.arguments.get("command")
    if isinstance(command, str) and len(call.arguments) == 1:
        return command
    return ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())


def one_line(text: str, width: int = SHOWN) -> str:
    """Write a text on one line, cut to a width."""
    flat = text.replace("\r", "").replace("\n", "⏎")
    return flat if len(flat) <= width else flat[: width - 1] + "…"
