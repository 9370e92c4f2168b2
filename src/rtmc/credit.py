"""Assign credit: groups → signer → tree → estimator → Credit. The whole method on one screen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import msgspec
import numpy as np

from rtmc.advantages import RTMC, Estimate, Estimator
from rtmc.batch import Batch, Floats, std_by
from rtmc.errors import OptionError
from rtmc.outcomes import Incomplete, Unknown, Verdict, judge
from rtmc.returns import discounted_returns, validation_bonus
from rtmc.rollouts import Group, Rollout
from rtmc.signatures import CodingSigner, Signatures, Signer
from rtmc.tokens import TokenValues, to_tokens

__all__ = ["Config", "Credit", "RolloutCredit", "credit"]

UNIFORM = 1e-6
MIN_DEVIATION = 1e-8


class Config(msgspec.Struct, frozen=True):
    """Every choice that a credit depends on.

    Attributes:
        estimator: one of ``rtmc.advantages``, with its options.
        level: level of the coding signatures; ignored where a signer is given, or where the
            estimator needs a chain of its own.
        gamma: γ, in (0, 1].
        beta: β, reward for the first validation after a code change.
        max_bonuses: how often a rollout can earn it; None = for each change (the paper's).
        normalize: ``problem`` divides by the deviation of the problem's step advantages.
        incomplete: see ``rtmc.outcomes.judge``, as the two next.
        fail_reward: reward of a rollout that counts as a failure.
        unknown: what to do with an unknown outcome.
        hash_chars: compared hex digits of a digest; the paper takes 4.
    """

    estimator: Estimator = RTMC()
    level: str = "paper"
    gamma: float = 0.99
    beta: float = 0.05
    max_bonuses: int | None = 1
    normalize: Literal["none", "problem"] = "none"
    incomplete: Incomplete = "fail"
    fail_reward: float = 0.0
    unknown: Unknown = "exclude"
    hash_chars: int = 16

    def __post_init__(self) -> None:
        """Refuse values outside their ranges.

        Raises:
            OptionError: gamma, beta or max_bonuses is out of range.
        """
        if not 0 < self.gamma <= 1:
            raise OptionError(f"gamma is {self.gamma}; expected a number in (0, 1]")
        if not 0 <= self.beta < float("inf"):
            raise OptionError(f"beta is {self.beta}; expected a number ≥ 0")
        if self.max_bonuses is not None and self.max_bonuses < 0:
            raise OptionError(f"max_bonuses is {self.max_bonuses}; expected ≥ 0, or none")

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Give the paper's settings, where they differ from the defaults."""
        given = {
            "estimator": RTMC(repeats="paper"),
            "max_bonuses": None,
            "hash_chars": 4,
            "normalize": "problem",
        }
        return cls(**{**given, **changes})

    def signer(self) -> Signer:
        """Make the coding signer that these settings ask for."""
        return CodingSigner(self.estimator.reads.levels or (self.level,), self.hash_chars)

    def as_dict(self) -> dict[str, Any]:
        """Write all settings, the estimator's own among them, as plain values."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        given["estimator"] = self.estimator.name
        return given | msgspec.structs.asdict(self.estimator)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class RolloutCredit:
    """The credit of one rollout; arrays of shape (steps,), NaN where there is no such number.

    ``advantages`` NaN means that no credit was assigned, 0 that the step is neutral.
    """

    rollout: Rollout
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
        batch: the rollouts that vote, as flat arrays.
        credited: the steps of ``batch`` that get an advantage, shape (S,).
        unparsed: number of commands that no parser understood.
    """

    config: Config
    levels: tuple[str, ...]
    rollouts: tuple[RolloutCredit, ...]
    batch: Batch = field(repr=False)
    credited: np.ndarray = field(repr=False)
    unparsed: int = 0

    @property
    def advantages(self) -> list[Floats]:
        """Advantages of each rollout's steps; NaN where no credit was assigned."""
        return [rollout.advantages for rollout in self.rollouts]

    def to_tokens(self, like: Any = None, truncated: bool = False) -> list[list[TokenValues]]:
        """Put each rollout's advantages onto its token sequences, by the recorded spans.

        See ``rtmc.tokens.to_tokens``.
        """
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
    """
    groups = [groups] if isinstance(groups, Group) else list(groups)
    signer = signer or config.signer()
    signed = [signer.sign(group.rollouts) for group in groups]
    verdicts = [_judge(rollout, config) for group in groups for rollout in group.rollouts]
    batch, voting, credited = _lay_out(groups, signed, verdicts, config)
    estimate = config.estimator(batch)
    advantages, flags = _group_rules(batch, estimate.advantages, credited, config)
    return Credit(
        config=config,
        levels=tuple(signer.levels),
        rollouts=tuple(
            _per_rollout(groups, signed, verdicts, batch, voting, estimate, advantages, flags)
        ),
        batch=batch,
        credited=credited,
        unparsed=sum(signatures.unparsed for signatures in signed),
    )


def _judge(rollout: Rollout, config: Config) -> Verdict:
    return judge(rollout, config.incomplete, config.fail_reward, config.unknown)


def _lay_out(
    groups: Sequence[Group],
    signed: Sequence[Signatures],
    verdicts: Sequence[Verdict],
    config: Config,
) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Flatten the rollouts that vote; say which steps those are, and which get credit."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    lengths = np.array([len(rollout.steps) for rollout in rollouts], dtype=np.int64)
    group = np.repeat(np.arange(len(groups)), [len(g.rollouts) for g in groups])
    votes = np.array([verdict.outcome is not None for verdict in verdicts], dtype=bool)
    voting = np.repeat(votes, lengths)
    levels = signed[0].states.shape[1] if signed else 1
    states, actions = (
        np.concatenate([np.zeros((0, levels), np.int64), *_apart(ids)])[voting]
        for ids in ([s.states for s in signed], [s.actions for s in signed])
    )
    validated = np.concatenate([np.zeros(0, np.int64), *(s.validated for s in signed)])[voting]
    step_rewards = np.array(
        [step.reward for rollout in rollouts for step in rollout.steps], dtype=np.float64
    )[voting]
    outcomes = np.array([v.outcome for v in verdicts if v.outcome is not None], dtype=np.float64)
    starts = np.concatenate(([0], np.cumsum(lengths[votes])))
    rewards = step_rewards + validation_bonus(validated, starts, config.beta, config.max_bonuses)
    has_steps = np.diff(starts) > 0
    rewards[starts[1:][has_steps] - 1] += outcomes[has_steps]
    batch = Batch(
        group_of_rollout=np.unique(group[votes], return_inverse=True)[1],
        rollout_of_step=np.repeat(np.arange(len(outcomes)), np.diff(starts)),
        starts=starts,
        outcomes=outcomes,
        rewards=rewards,
        returns=discounted_returns(rewards, starts, config.gamma),
        step_rewards=step_rewards,
        states=states,
        actions=actions,
        discount=config.gamma,
    )
    gets_credit = np.array([verdict.credited for verdict in verdicts], dtype=bool)
    return batch, voting, np.repeat(gets_credit[votes], np.diff(starts))


def _apart(ids: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Shift the ids of each group behind those of the group before."""
    shift = np.cumsum([0, *(int(i.max(initial=-1)) + 1 for i in ids)])
    return [i + by for i, by in zip(ids, shift, strict=False)]


def _group_rules(
    batch: Batch, raw: Floats, credited: np.ndarray, config: Config
) -> tuple[Floats, list[tuple[str, ...]]]:
    """Apply what holds for every estimator: groups without signal, no credit, normalisation.

    Returns the advantages, and the flags of each group of the batch.
    """
    groups, size = batch.group_of_rollout, batch.n_groups
    low, high, largest = np.full(size, np.inf), np.full(size, -np.inf), np.ones(size)
    np.minimum.at(low, groups, batch.outcomes)
    np.maximum.at(high, groups, batch.outcomes)
    np.maximum.at(largest, groups, np.abs(batch.outcomes))
    uniform = high - low <= UNIFORM * largest
    single = np.bincount(groups, minlength=size) == 1
    of_step = batch.group_of_step
    advantages = np.where(uniform[of_step], 0.0, raw)
    advantages[~credited] = np.nan
    if config.normalize == "problem":
        deviation = std_by(advantages[credited], of_step[credited], size)
        divides = np.nan_to_num(deviation) >= MIN_DEVIATION
        advantages = advantages / np.where(divides, deviation, 1.0)[of_step]
    flags = [
        ("singleton_group",) if one else ("uniform",) if same else ()
        for one, same in zip(single, uniform, strict=True)
    ]
    return advantages, flags


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
    for group, signatures in zip(groups, signed, strict=True):
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
                    verdict,
                    (*verdict.flags, *own),
                    tuple(tuple(state_keys[i] for i in row) for row in signatures.states[here]),
                    tuple(action_keys[i] for i in signatures.actions[here, -1]),
                    *(column[start:end] for column in columns),
                )
            )
            start, number = end, number + 1
    return out
