"""Roll out: attempt each problem N times in a sandbox of its own, and judge what was made of it."""

from collections.abc import Generator, Iterable, Iterator, Set
from hashlib import blake2b
from typing import TypeVar

import msgspec

from rtmc.agent.drive import drive
from rtmc.agent.loop import Limits, attempt, recorded
from rtmc.agent.models.base import Completion, Dialogue, Model
from rtmc.agent.tasks.base import Problem, Task
from rtmc.agent.tools import TOOLS, Tool, Workbench
from rtmc.errors import RtmcError
from rtmc.rollouts import Rollout

__all__ = ["Place", "roll_out", "rollout", "seed_of"]

Place = tuple[str, str]
"""Problem id and rollout id."""

T = TypeVar("T")


def roll_out(
    task: Task,
    problems: Iterable[Problem],
    model: Model,
    n: int,
    *,
    seed: int = 0,
    limits: Limits = Limits(),
    tools: dict[str, Tool] = TOOLS,
    workers: int = 8,
    at_once: int = 64,
    lockstep: bool = True,
    done: Set[Place] = frozenset(),
) -> Iterator[Rollout]:
    """Attempt each problem n times.

    What a rollout samples follows from the seed, the problem and its number, not from the order in
    which rollouts run or from which of them are done already.

    Args:
        task: which opens and judges.
        problems: what to attempt.
        model: which is asked by one thread only.
        n: rollouts of each problem; they are named ``0`` to ``n − 1``.
        seed: of all of them.
        limits: of each rollout.
        tools: by name.
        workers: as of ``drive``.
        at_once: as of ``drive``; so many sandboxes are open at any time.
        lockstep: as of ``drive``.
        done: rollouts that need not be made.

    Yields:
        Rollouts as they end. One that was stopped by an error that is not the agent's has no reward
        and says so in its stop reason.
    """
    places: list[Place] = []

    def attempts() -> Iterator[Generator[Dialogue, Completion, Rollout]]:
        for problem in problems:
            for number in range(n):
                place = (problem.problem_id, str(number))
                if place not in done:
                    places.append(place)
                    yield rollout(task, problem, model, number, seed, limits, tools)

    driving = drive(attempts(), model, workers=workers, at_once=at_once, lockstep=lockstep)
    for number, result in driving:
        if isinstance(result, Exception):
            said = "" if isinstance(result, RtmcError) else f"{type(result).__name__}: "
            reason = f"error: {said}{result}"
            result = Rollout(*places[number], model=model.name, stop_reason=reason)
        yield result


def rollout(
    task: Task,
    problem: Problem,
    model: Model,
    number: int,
    seed: int,
    limits: Limits = Limits(),
    tools: dict[str, Tool] = TOOLS,
) -> Generator[Dialogue, Completion, Rollout]:
    """Attempt one problem once: open its workspace, work in it, judge, close it."""
    dialogue = Dialogue([], seed=seed_of(seed, problem.problem_id, number))
    with task.open(problem) as sandbox:
        bench = Workbench(sandbox)
        episode = yield from attempt(
            problem.text, bench, dialogue, model.native_tools, limits, tools
        )
        reward, reason, patch = None, episode.stop_reason, None
        if not reason.startswith("error:"):
            judged = task.judge(problem, sandbox)
            reward = judged.reward
            patch = judged.patch.decode(errors="replace")
            reason += f"; {judged.reason}" if judged.reason else ""
    made = recorded(episode, problem.problem_id, str(number), reward, model.name)
    # The status follows from why the agent stopped; what the judge says may hold any word.
    return msgspec.structs.replace(made, stop_reason=reason, patch=patch)


def seed_of(seed: int, problem_id: str, number: int) -> int:
    """Give the seed of one rollout, 63 bits."""
    text = f"{seed} {problem_id} {number}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1
