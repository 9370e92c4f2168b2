"""Decide which rollouts count: the rules for incomplete and unknown outcomes."""

from typing import Literal, NamedTuple

from rtmc.rollouts import Rollout

__all__ = ["Incomplete", "Unknown", "Verdict", "judge"]

Incomplete = Literal["fail", "exclude", "mask"]
Unknown = Literal["exclude", "fail"]


class Verdict(NamedTuple):
    """How one rollout counts.

    Attributes:
        outcome: its reward in every statistic; None where it is left out.
        credited: its steps get an advantage.
        flags: why it does not count as others do.
    """

    outcome: float | None
    credited: bool
    flags: tuple[str, ...] = ()


def judge(
    rollout: Rollout,
    incomplete: Incomplete = "fail",
    fail_reward: float = 0.0,
    unknown: Unknown = "exclude",
) -> Verdict:
    """Apply the policies to one rollout.

    An unknown outcome is left out unless ``unknown`` is fail. A rollout that a limit stopped
    counts as a failure (``fail``), is left out (``exclude``), or votes in the statistics without
    getting an advantage itself (``mask``); where it votes, with ``fail_reward`` or its recorded
    reward if that is lower. Estimators that fit values take a masked one for no failure
    (``Batch.cut``).
    """
    reward = rollout.reward
    flags: tuple[str, ...] = ("incomplete",) if rollout.status == "incomplete" else ()
    if reward is None:
        if unknown == "exclude":
            return Verdict(None, False, (*flags, "unknown_outcome", "excluded"))
        reward, flags = fail_reward, (*flags, "unknown_outcome")
    if "incomplete" not in flags:
        return Verdict(reward, True, flags)
    if incomplete == "exclude":
        return Verdict(None, False, (*flags, "excluded"))
    outcome = min(reward, fail_reward)
    if incomplete == "mask":
        return Verdict(outcome, False, (*flags, "masked"))
    return Verdict(outcome, True, flags)
