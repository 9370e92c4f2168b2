"""Sign the steps of coding agents: the face of this package for trajectories of tool calls."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from rtmc.errors import AlignmentError, OptionError
from rtmc.rollouts import Rollout, Step
from rtmc.signatures.effects import Effect, action_key, coarse_key
from rtmc.signatures.session import Session
from rtmc.signatures.signer import Interner, Signatures
from rtmc.signatures.states import LEVELS, STANDINGS, Progress
from rtmc.signatures.tools import Tools

__all__ = ["EXACT", "CodingSigner", "SignedStep", "sign_steps", "step_effects"]

EXACT = "exact"
"""A level beside ``LEVELS``: the state that the rollout itself records, ``Step.env_state``."""

DIGEST_CHARS = 16
_THINK = [Effect("think")]


class SignedStep(Struct, frozen=True, gc=False):
    """One step, signed: its effects, and a state key and an action key for every level asked.

    ``standing`` is the place in ``STANDINGS`` of how the work stood before it.
    """

    effects: list[Effect]
    states: tuple[str, ...]
    actions: tuple[str, ...]
    validated: int
    standing: int = 0


def step_effects(tools: Tools, step: Step) -> list[Effect]:
    """Say what a step did: the effects of its calls in order; prose alone is a thought."""
    calls = step.calls
    if not calls:
        return _THINK
    effects = tools.effects(calls[0])
    if len(calls) > 1:
        effects = [*effects, *(e for call in calls[1:] for e in tools.effects(call))]
    if len(effects) > 1:
        for at, effect in enumerate(effects):
            if effect.kind == "finish":  # what stands behind it in the same action did not count
                return effects[: at + 1]
    return effects


class CodingSigner:
    """Reduce steps of coding agents to keys.

    Args:
        levels: one of ``LEVELS``, or ``exact``, or a chain from coarse to fine. In a chain the key
            of a level is the pair of the key before it and its own, so that every chain is a
            refinement.
        hash_chars: number of hex digits of a digest that are compared (the paper takes 4, which
            collide in one of twenty groups with 80 distinct edits).
    """

    def __init__(self, levels: Sequence[str] = ("paper",), hash_chars: int = DIGEST_CHARS) -> None:
        unknown = [level for level in levels if level not in (*LEVELS, EXACT)]
        if unknown or not levels:
            raise OptionError(
                f"unknown level {', '.join(unknown) or '(none)'}; "
                f"expected some of {', '.join((*LEVELS, EXACT))}"
            )
        if not 1 <= hash_chars <= DIGEST_CHARS:
            raise OptionError(f"hash_chars is {hash_chars}; expected 1 … {DIGEST_CHARS}")
        self.levels = tuple(levels)
        self.hash_chars = hash_chars
        self.unparsed = 0

    def steps(self, rollout: Rollout) -> list[SignedStep]:
        """Sign every step of a rollout.

        Raises:
            AlignmentError: at level ``exact``, a step does not say in which state it acted.
        """
        session = Session(rollout.root, rollout.persistent_shell)
        tools = Tools(session)
        progress = Progress([level for level in self.levels if level != EXACT], self.hash_chars)
        signed: list[SignedStep] = []
        levels, count, hash_chars = self.levels, len(self.levels), self.hash_chars
        all_fine, has_exact = "coarse" not in levels, EXACT in levels
        for step in rollout.steps:
            effects = step_effects(tools, step)
            actions = (action_key(effects, hash_chars),) * count
            if not all_fine:
                actions = tuple(
                    coarse_key(effects) if level == "coarse" else fine
                    for level, fine in zip(levels, actions, strict=True)
                )
            states, standing = progress.keys(), progress.standing
            if has_exact:
                states = tuple(
                    _exact(rollout, len(signed)) if level == EXACT else progress.key(level)
                    for level in levels
                )
            signed.append(SignedStep(effects, states, actions, progress.apply(effects), standing))
        self.unparsed += session.unparsed
        return signed

    def sign(self, rollouts: Sequence[Rollout]) -> Signatures:
        """Sign the steps of all rollouts, in order."""
        unparsed = self.unparsed
        signed = [step for rollout in rollouts for step in self.steps(rollout)]
        return sign_steps(signed, len(self.levels), self.unparsed - unparsed)


def _exact(rollout: Rollout, number: int) -> str:
    """Give the recorded state in which a step acted."""
    state = rollout.steps[number].env_state
    if state is None:
        raise AlignmentError(
            f"rollout {rollout.rollout_id}, step {number}: no env_state; the level {EXACT} needs "
            "a hash of the workspace at every step, as rtmc rollout records it"
        )
    return state


def sign_steps(signed: Iterable[SignedStep], levels: int, unparsed: int = 0) -> Signatures:
    """Number the keys of signed steps, which have one for each of so many levels."""
    states, actions = Interner(), Interner()
    state_ids: list[int] = []  # flat: the levels of a step lie side by side
    action_ids: list[int] = []
    validated: list[int] = []
    standings: list[int] = []
    for step in signed:
        states.add(step.states, state_ids)
        actions.add(step.actions, action_ids)
        validated.append(step.validated)
        standings.append(step.standing)
    shape = (len(validated), levels)
    return Signatures(
        np.array(state_ids, dtype=np.int64).reshape(shape),
        np.array(action_ids, dtype=np.int64).reshape(shape),
        np.array(validated, dtype=np.int64),
        states.keys,
        actions.keys,
        unparsed,
        np.array(standings, dtype=np.int64)[:, None] == np.arange(len(STANDINGS)),
    )
