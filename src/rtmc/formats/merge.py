"""Join the records of one rollout.

A rollout may come in several records: one training row a step, or one after each compaction of its
context. Turns that a later record replays are no new steps, and their tokens are not counted again;
the record's token sequence stays a sequence of its own.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from rtmc.errors import FormatError
from rtmc.rollouts import Rollout, Span, Step, status_of

__all__ = ["Joined", "begins_with", "join_samples"]

T = TypeVar("T")


def _is_replay(one: Step, other: Step) -> bool:
    """Tell whether two steps are the same turn; a record may end before the turn's result."""
    if len(one.calls) != len(other.calls):
        return False
    if not one.calls:
        return one.thought == other.thought
    return all(
        a.name == b.name
        and a.arguments == b.arguments
        and (a.output == b.output or a.output is None or b.output is None)
        for a, b in zip(one.calls, other.calls, strict=True)
    )


def begins_with(longer: Sequence[Step], shorter: Sequence[Step]) -> bool:
    """Tell whether the first steps of ``longer`` are the steps of ``shorter``."""
    return len(longer) >= len(shorter) and all(
        _is_replay(a, b) for a, b in zip(longer, shorter, strict=False)
    )


class Joined(NamedTuple):
    """Two records in one rollout, and whether neither has a step of the other."""

    rollout: Rollout
    share_nothing: bool


def join_samples(first: Rollout, later: Rollout) -> Joined:
    """Append to ``first`` the steps that ``later`` adds.

    The leading steps of ``later`` that occur in ``first`` in the same order are replayed: all of
    them where one record extends the other, the kept head and tail after compaction.

    Raises:
        FormatError: the two records state different rewards.
    """
    if first.reward is not None and later.reward is not None and first.reward != later.reward:
        raise FormatError(
            f"reward {later.reward:g} for rollout {later.rollout_id!r} of problem "
            f"{later.problem_id!r}, whose first record ({first.source}) says {first.reward:g}"
        )
    steps = list(first.steps)
    known = 0
    replayed = 0
    for step in later.steps:
        place = next((i for i in range(known, len(steps)) if _is_replay(steps[i], step)), None)
        if place is None:
            break
        steps[place] = _fuller(steps[place], step)
        known = place + 1
        replayed += 1
    shift = len(first.sequence_lengths)
    steps.extend(_shifted(step, shift) for step in later.steps[replayed:])
    reward = first.reward if first.reward is not None else later.reward
    stop = later.stop_reason or first.stop_reason
    if first.reward is not None or later.reward is None:
        status = first.status if first.reward is not None else status_of(None, stop)
    else:
        status = later.status
    joined = msgspec.structs.replace(
        first,
        steps=tuple(steps),
        reward=reward,
        status=status,
        stop_reason=stop,
        model=first.model or later.model,
        policy_version=first.policy_version or later.policy_version,
        root=first.root or later.root,
        persistent_shell=first.persistent_shell and later.persistent_shell,
        sequence_lengths=first.sequence_lengths + later.sequence_lengths,
        token_ids=_both(first, later, first.token_ids, later.token_ids),
        logprobs=_both(first, later, first.logprobs, later.logprobs),
    )
    return Joined(joined, bool(first.steps and later.steps) and not replayed)


def _both(first: Rollout, later: Rollout, one: tuple[T, ...], two: tuple[T, ...]) -> tuple[T, ...]:
    """Put what is kept of each sequence together, if it is kept of all."""
    whole = len(one) == len(first.sequence_lengths) and len(two) == len(later.sequence_lengths)
    return one + two if whole else ()


def _fuller(first: Step, replay: Step) -> Step:
    """Keep the first record's turn, with the result if only the replay has one."""
    missing = any(call.output is None for call in first.calls)
    found = any(call.output is not None for call in replay.calls)
    return msgspec.structs.replace(first, calls=replay.calls) if missing and found else first


def _shifted(step: Step, by: int) -> Step:
    if not by or not step.spans:
        return step
    spans = tuple(Span(span.sequence + by, span.start, span.end) for span in step.spans)
    return msgspec.structs.replace(step, spans=spans)
