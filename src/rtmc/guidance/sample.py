"""One group, signed at every level at once and credited: what all measurements read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from rtmc.advantages import RTMC
from rtmc.batch import Batch, Floats, Ints, Steps
from rtmc.config import Config
from rtmc.errors import OptionError
from rtmc.layout import lay_out, vote
from rtmc.outcomes import judge
from rtmc.rollouts import Group, Rollout
from rtmc.rules import UNIFORM, group_rules
from rtmc.signatures import CodingSigner, Signatures
from rtmc.signatures.effects import digest
from rtmc.tree import Tree, build

__all__ = ["CHAIN", "LEVELS", "Sample", "copies", "sample_of"]

LEVELS = ("work", "coarse", "paper", "content", "full")
"""The levels that are compared, from coarse to fine."""

CHAIN = ("content", "content,paper")
"""Columns of the chain along which ``pooled_gae`` backs its values off."""

MOST_LEFT_OUT = 32
"""Bounds time and memory, which grow with rollouts × rollouts left out."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One group as arrays; rollouts are in the order of their ids.

    Attributes:
        config: the settings, without normalisation.
        levels: names of the columns of states and actions; ``config.level`` is the last.
        steps: the steps of all rollouts.
        batch: those of the rollouts that vote.
        validated: shape (S,), code changes that each voting step validated first.
        advantages: shape (S,), NaN where a step gets no credit.
        passed: shape (R,), which of the voting rollouts passed.
        ids: of the voting rollouts.
        live: the voting rollouts differ in outcome.
        problem_id: of the group.
    """

    config: Config
    levels: tuple[str, ...]
    steps: Steps
    batch: Batch
    validated: Ints
    advantages: Floats
    passed: Mask
    ids: tuple[str, ...]
    live: bool
    problem_id: str

    @property
    def estimator(self) -> RTMC:
        """The estimator with its options."""
        return cast(RTMC, self.config.estimator)

    @property
    def n_rollouts(self) -> int:
        """Number of voting rollouts."""
        return len(self.ids)

    @property
    def credited(self) -> Mask:
        """Which steps get credit, shape (S,)."""
        return ~np.isnan(self.advantages)

    @cached_property
    def tree(self) -> Tree:
        """The tree at the level of the settings."""
        return build(self.batch)

    def at(self, *levels: str) -> Batch:
        """Give the batch at one level, or at a chain of them."""
        columns = [self.levels.index(level) for level in levels]
        batch = self.batch
        return replace(batch, states=batch.states[:, columns], actions=batch.actions[:, columns])

    @cached_property
    def left_out(self) -> Ints:
        """The rollouts that are left out in turn: all, or 32 by the digests of their ids."""
        return np.sort(self._shuffled(0)[:MOST_LEFT_OUT])

    def _shuffled(self, salt: int) -> Ints:
        """Order the rollouts as if by chance, but always in the same way."""
        order = sorted(range(self.n_rollouts), key=lambda r: digest(f"{salt} {self.ids[r]}"))
        return np.array(order, dtype=np.int64)

    def halves(self, rollout: int, salt: int) -> tuple[Mask, Mask]:
        """Split the other rollouts in two by digests of their ids: shape (R,) each."""
        order = self._shuffled(salt)
        others = order[order != rollout]
        halves = np.zeros((2, self.n_rollouts), dtype=bool)
        halves[0, others[::2]] = halves[1, others[1::2]] = True
        return halves[0], halves[1]


def sample_of(group: Group, config: Config) -> Sample:
    """Sign a group at every level in one pass, and credit it.

    Raises:
        OptionError: the estimator is not ``rtmc``.
        FormatError: a reward is not a finite number.
    """
    if not isinstance(config.estimator, RTMC):
        raise OptionError(
            f"the estimator is {config.estimator.name}; expected rtmc: what is measured here is "
            "what A = Q − V′ rests on; leave --estimator out"
        )
    config = msgspec.structs.replace(config, normalize="none")
    rollouts = tuple(sorted(group.rollouts, key=lambda rollout: rollout.rollout_id))
    group = Group(group.problem_id, rollouts)
    levels = tuple(dict.fromkeys((*LEVELS, *CHAIN)))
    levels = (*(level for level in levels if level != config.level), config.level)
    signed = _sign(rollouts, levels, config.hash_chars)
    verdicts = [judge(r, config.incomplete, config.fail_reward, config.unknown) for r in rollouts]
    steps = lay_out([group], [signed])
    batch, voting = vote([group], [signed], verdicts, steps, config)
    raw = config.estimator(batch).advantages
    voters = [r for r, v in zip(rollouts, verdicts, strict=True) if v.outcome is not None]
    spread = float(np.ptp(batch.outcomes)) if voters else 0.0
    return Sample(
        config=config,
        levels=levels,
        steps=steps,
        batch=batch,
        validated=signed.validated[voting],
        advantages=group_rules(batch, raw, verdicts, config)[0],
        passed=np.array([r.status == "passed" for r in voters], dtype=bool),
        ids=tuple(r.rollout_id for r in voters),
        live=spread > UNIFORM * max(1.0, float(np.abs(batch.outcomes).max(initial=0.0))),
        problem_id=group.problem_id,
    )


def _sign(rollouts: Sequence[Rollout], levels: Sequence[str], hash_chars: int) -> Signatures:
    """Sign at several levels or chains that do not refine one another."""
    chains = [tuple(level.split(",")) for level in levels]
    single = tuple(dict.fromkeys(level for chain in chains for level in chain))
    signer = CodingSigner(single, hash_chars)
    signed = [step for rollout in rollouts for step in signer.steps(rollout)]
    places = [[single.index(level) for level in chain] for chain in chains]

    def ids(keys: Sequence[tuple[str, ...]]) -> Ints:
        columns = []
        for place in places:
            number: dict[tuple[str, ...], int] = {}
            column = [number.setdefault(tuple(k[i] for i in place), len(number)) for k in keys]
            columns.append(column)
        return np.array(columns, dtype=np.int64).T.reshape(len(keys), len(places))

    return Signatures(
        ids([step.states for step in signed]),
        ids([step.actions for step in signed]),
        np.array([step.validated for step in signed], dtype=np.int64),
        (),
        (),
        signer.unparsed,
    )


def copies(batch: Batch, members: Mask) -> tuple[Batch, Ints, Ints]:
    """Lay out several subsets of one group's rollouts beside each other, each a group of its own.

    Args:
        batch: of one group.
        members: shape (K, R), which rollouts are in each copy.

    Returns:
        The batch of all copies; for each of its steps the step it is a copy of, and the copy.
    """
    copy_of, rollout_of = np.nonzero(members)
    lengths = np.diff(batch.starts)[rollout_of]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    rollout_of_step = np.repeat(np.arange(len(lengths)), lengths)
    step_of = np.arange(len(rollout_of_step)) - np.repeat(starts[:-1], lengths)
    step_of += np.repeat(batch.starts[rollout_of], lengths)
    copy_of_step = copy_of[rollout_of_step]
    shift = batch.states.max(axis=0, initial=0) + 1
    return (
        replace(
            batch,
            group_of_rollout=copy_of,
            rollout_of_step=rollout_of_step,
            starts=starts,
            states=batch.states[step_of] + copy_of_step[:, None] * shift,
            actions=batch.actions[step_of],
            outcomes=batch.outcomes[rollout_of],
            rewards=batch.rewards[step_of],
            returns=batch.returns[step_of],
            step_rewards=batch.step_rewards[step_of],
        ),
        step_of,
        copy_of_step,
    )
