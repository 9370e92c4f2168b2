"""Lay out groups of rollouts and their signatures as the flat arrays that estimators read."""

from collections.abc import Sequence

import numpy as np

from rtmc.batch import Batch, Floats, Ints, Steps
from rtmc.config import Config
from rtmc.errors import AlignmentError, FormatError
from rtmc.outcomes import Verdict
from rtmc.returns import discounted_returns, validation_bonus
from rtmc.rollouts import Group, Rollout
from rtmc.signatures import Signatures

__all__ = ["lay_out", "vote"]


def lay_out(groups: Sequence[Group], signed: Sequence[Signatures]) -> Steps:
    """Flatten the rollouts of all groups.

    Raises:
        AlignmentError: a signer gave keys for more or fewer steps than a group has.
    """
    for group, signatures in zip(groups, signed, strict=True):
        steps = sum(len(rollout.steps) for rollout in group.rollouts)
        if len(signatures.states) != steps or len(signatures.actions) != steps:
            raise AlignmentError(
                f"problem {group.problem_id}: expected keys for {steps} steps, the signer gave "
                f"{len(signatures.states)} states and {len(signatures.actions)} actions"
            )
    lengths = np.array([len(rollout.steps) for rollout in _rollouts(groups)], dtype=np.int64)
    levels = signed[0].states.shape[1] if signed else 1
    nothing = np.zeros((0, levels), dtype=np.int64)
    return Steps(
        group_of_rollout=np.repeat(np.arange(len(groups)), [len(g.rollouts) for g in groups]),
        rollout_of_step=np.repeat(np.arange(len(lengths)), lengths),
        starts=np.concatenate(([0], np.cumsum(lengths))),
        states=np.concatenate([nothing, *_apart([s.states for s in signed])]),
        actions=np.concatenate([nothing, *_apart([s.actions for s in signed])]),
    )


def vote(
    groups: Sequence[Group],
    signed: Sequence[Signatures],
    verdicts: Sequence[Verdict],
    steps: Steps,
    config: Config,
) -> tuple[Batch, np.ndarray]:
    """Keep the rollouts that vote, and reward them; say which of the steps are theirs."""
    votes = np.array([verdict.outcome is not None for verdict in verdicts], dtype=bool)
    voting = votes[steps.rollout_of_step]
    outcomes = np.array([v.outcome for v in verdicts if v.outcome is not None], dtype=np.float64)
    lengths = np.diff(steps.starts)[votes]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    validated = np.concatenate([np.zeros(0, np.int64), *(s.validated for s in signed)])[voting]
    step_rewards = np.array(
        [step.reward for rollout in _rollouts(groups) for step in rollout.steps],
        dtype=np.float64,
    )[voting]
    _refuse_no_number(groups, votes, outcomes, step_rewards, starts)
    rewards = step_rewards + validation_bonus(validated, starts, config.beta, config.max_bonuses)
    has_steps = lengths > 0
    rewards[starts[1:][has_steps] - 1] += outcomes[has_steps]
    masked = np.array([not v.credited for v in verdicts if v.outcome is not None], dtype=bool)
    reads = config.estimator.reads
    batch = Batch(
        group_of_rollout=np.unique(steps.group_of_rollout[votes], return_inverse=True)[1],
        rollout_of_step=np.repeat(np.arange(len(outcomes)), lengths),
        starts=starts,
        states=steps.states[voting],
        actions=steps.actions[voting],
        outcomes=outcomes,
        rewards=rewards,
        returns=discounted_returns(rewards, starts, config.gamma),
        step_rewards=step_rewards,
        discount=config.gamma,
        observations=_observations(groups)[voting] if reads.observations else None,
        progress=_progress(groups, signed, voting) if reads.progress else None,
        cut=masked if reads.cut else None,
    )
    return batch, voting


def _progress(
    groups: Sequence[Group], signed: Sequence[Signatures], voting: np.ndarray
) -> Floats | None:
    """Put the flags of all groups under each other, if every signature has them."""
    flags = [np.asarray(s.progress, np.float64) for s in signed if s.progress is not None]
    if not flags or len(flags) < len(signed):
        return None
    width = flags[0].shape[-1] if flags[0].ndim else 1
    for group, signatures, own in zip(groups, signed, flags, strict=True):
        expected = (len(signatures.states), width)
        if own.shape != expected or not np.isfinite(own).all():
            which = ", with some that are not finite" if own.shape == expected else ""
            raise AlignmentError(
                f"problem {group.problem_id}: expected progress of shape {expected}, a row a step, "
                f"all finite numbers; the signer gave shape {own.shape}{which}"
            )
    return np.concatenate(flags)[voting]


def _observations(groups: Sequence[Group]) -> Ints:
    """Number what the agent saw before each step: the recorded key, else what came back last."""
    numbers: dict[tuple[int, str], int] = {}
    ids: list[int] = []
    for at, group in enumerate(groups):
        for rollout in group.rollouts:
            seen = ""
            for step in rollout.steps:
                key = step.observation_key
                name = (at, seen if key is None else f"key {key}")
                ids.append(numbers.setdefault(name, len(numbers)))
                seen = "\0".join(["seen", *(call.output or "" for call in step.calls)])
    return np.array(ids, dtype=np.int64)


def _refuse_no_number(
    groups: Sequence[Group], votes: np.ndarray, outcomes: Floats, step_rewards: Floats, starts: Ints
) -> None:
    """Refuse a reward that is no finite number: it would spread through the whole group."""
    at_outcome, at_step = np.flatnonzero(~np.isfinite(outcomes)), ~np.isfinite(step_rewards)
    if not len(at_outcome) and not at_step.any():
        return
    at = (
        at_outcome[0] if len(at_outcome) else np.searchsorted(starts, at_step.argmax(), "right") - 1
    )
    voters = [r for r, votes_too in zip(_rollouts(groups), votes, strict=True) if votes_too]
    rollout = voters[at]
    raise FormatError(
        f"{rollout.source}: rollout {rollout.rollout_id}: a reward is not a finite number; "
        "give a number, or null where it is unknown"
    )


def _rollouts(groups: Sequence[Group]) -> list[Rollout]:
    return [rollout for group in groups for rollout in group.rollouts]


def _apart(ids: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Shift the ids of each group behind those of the group before."""
    shift = np.cumsum([0, *(int(i.max(initial=-1)) + 1 for i in ids)])
    return [i + by for i, by in zip(ids, shift, strict=False)]
