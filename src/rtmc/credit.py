"""Assign credit: groups → signer → tree → estimator → Credit. The whole method on one screen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rtmc.advantages import Estimate
from rtmc.batch import Batch, Floats, Steps
from rtmc.config import Config
from rtmc.errors import AlignmentError, OptionError
from rtmc.layout import lay_out, vote
from rtmc.outcomes import Verdict, judge
from rtmc.rollouts import Group, Rollout
from rtmc.rules import group_rules
from rtmc.signatures import Signatures, Signer
from rtmc.tokens import TokenValues, to_tokens

__all__ = ["Credit", "RolloutCredit", "credit"]


@dataclass(frozen=True, slots=True)
class RolloutCredit:
    """The credit of one rollout; arrays of shape (steps,), NaN where there is no such number.

    ``group`` counts the groups of the credit from 0. ``advantages`` NaN means that no credit was
    assigned, 0 that the step is neutral.
    """

    rollout: Rollout
    group: int
    verdict: Verdict
    flags: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    actions: tuple[str, ...]
    rewards: Floats
    returns: Floats
    advantages: Floats
    q_values: Floats
    state_values: Floats
    state_visits: Floats
    action_visits: Floats
    first_visit: Floats


@dataclass(frozen=True, slots=True)
class Credit:
    """The credit of one or several groups.

    Attributes:
        config: the settings it was computed with.
        levels: names of the levels of the keys.
        rollouts: one entry a rollout, in the order of the groups.
        steps: the steps of all rollouts, as flat arrays.
        batch: those of the rollouts that vote.
        unparsed: number of commands that no parser understood.
    """

    config: Config
    levels: tuple[str, ...]
    rollouts: tuple[RolloutCredit, ...]
    steps: Steps = field(repr=False)
    batch: Batch = field(repr=False)
    unparsed: int = 0

    @property
    def advantages(self) -> list[Floats]:
        """Advantages of each rollout's steps; NaN where no credit was assigned."""
        return [rollout.advantages for rollout in self.rollouts]

    def to_tokens(self, like: Any = None, truncated: bool = False) -> list[list[TokenValues]]:
        """Put each rollout's advantages onto its token sequences, by the recorded spans.

        See ``rtmc.tokens.to_tokens``.

        Raises:
            AlignmentError: a rollout has steps but no spans, or they do not fit.
        """
        for r in self.rollouts:
            if r.rollout.steps and not any(step.spans for step in r.rollout.steps):
                raise AlignmentError(
                    f"{r.rollout.rollout_id}: no token spans are recorded; record Step.spans and "
                    "Rollout.sequence_lengths, or use rtmc.tokens.from_counts"
                )
        return [
            to_tokens(
                r.advantages,
                [step.spans for step in r.rollout.steps],
                r.rollout.sequence_lengths,
                like=like,
                truncated=truncated,
                name=r.rollout.rollout_id,
            )
            for r in self.rollouts
        ]


def credit(
    groups: Group | Sequence[Group], config: Config = Config(), signer: Signer | None = None
) -> Credit:
    """Assign an advantage to every step of one or several groups.

    Args:
        groups: rollouts of one problem each; several are computed at once, each by itself.
        config: all settings.
        signer: where the keys come from; by default the coding signatures at ``config.level``.

    Returns:
        The credit of each rollout, in order.

    Raises:
        OptionError: what was given is no group, or no signer.
        FormatError: a reward is not a finite number.
        AlignmentError: a signer gave keys for more or fewer steps than there are.
    """
    groups = [groups] if isinstance(groups, Group) else _only_groups(groups)
    signer = signer or config.signer()
    if not hasattr(signer, "sign"):
        raise OptionError(
            f"the signer is a {type(signer).__name__}; expected one with levels and "
            "sign(rollouts): a function of a rollout goes into rtmc.KeySigner"
        )
    signed = [signer.sign(group.rollouts) for group in groups]
    verdicts = [
        judge(rollout, config.incomplete, config.fail_reward, config.unknown)
        for group in groups
        for rollout in group.rollouts
    ]
    steps = lay_out(groups, signed)
    batch, voting = vote(groups, signed, verdicts, steps, config)
    estimate = config.estimator(batch)
    advantages, flags = group_rules(batch, estimate.advantages, verdicts, config)
    return Credit(
        config=config,
        levels=tuple(signer.levels),
        rollouts=tuple(
            _per_rollout(groups, signed, verdicts, batch, voting, estimate, advantages, flags)
        ),
        steps=steps,
        batch=batch,
        unparsed=sum(signatures.unparsed for signatures in signed),
    )


def _only_groups(groups: Sequence[Group]) -> list[Group]:
    """Refuse what is no group, in words."""
    if isinstance(groups, str | bytes) or hasattr(groups, "__fspath__"):
        raise OptionError(f"got the path {groups!r}; read it first: rtmc.read(path)")
    for group in groups:
        if not isinstance(group, Group):
            raise OptionError(
                f"expected groups, got a {type(group).__name__}; put the rollouts of a problem "
                "into a group: rtmc.Group(problem_id, tuple(rollouts))"
            )
    return list(groups)


def _per_rollout(
    groups: Sequence[Group],
    signed: Sequence[Signatures],
    verdicts: Sequence[Verdict],
    batch: Batch,
    voting: np.ndarray,
    estimate: Estimate,
    advantages: Floats,
    flags: Sequence[tuple[str, ...]],
) -> list[RolloutCredit]:
    """Cut the flat arrays into rollouts again; those that did not vote get NaN."""

    def spread(values: np.ndarray | None) -> Floats:
        whole = np.full(len(voting), np.nan)
        if values is not None:
            whole[voting] = values
        return whole

    columns = [
        spread(values)
        for values in (
            batch.rewards, batch.returns, advantages, estimate.q_values, estimate.state_values,
            estimate.state_visits, estimate.action_visits, estimate.first_visit,
        )
    ]  # fmt: skip
    out: list[RolloutCredit] = []
    start = number = voted = 0
    for at, (group, signatures) in enumerate(zip(groups, signed, strict=True)):
        state_keys, action_keys = signatures.state_keys, signatures.action_keys
        base = start
        for rollout in group.rollouts:
            end = start + len(rollout.steps)
            verdict = verdicts[number]
            own: tuple[str, ...] = ()
            if verdict.outcome is not None:
                own = flags[batch.group_of_rollout[voted]]
                voted += 1
            here = slice(start - base, end - base)
            out.append(
                RolloutCredit(
                    rollout,
                    at,
                    verdict,
                    (*verdict.flags, *own),
                    tuple(
                        zip(
                            *(
                                [state_keys[i] for i in level]
                                for level in signatures.states[here].T.tolist()
                            ),
                            strict=True,
                        )
                    ),
                    tuple([action_keys[i] for i in signatures.actions[here, -1].tolist()]),
                    *(column[start:end] for column in columns),
                )
            )
            start, number = end, number + 1
    return out
