"""Lay out one group as the plain values that the page computes and draws from."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from rtmc.advantages import ESTIMATORS, Estimator
from rtmc.batch import Ints
from rtmc.config import Config
from rtmc.credit import Credit, credit
from rtmc.rollouts import Group, Rollout, Step, ToolCall
from rtmc.signatures import LEVELS, CodingSigner, Signatures, Signer
from rtmc.signatures.coding import SignedStep, sign_steps

__all__ = ["IN_PAGE", "Keys", "Known", "SignedGroup", "group_values", "sign_group"]

IN_PAGE = ("rtmc", "grpo", "grpo_step")
"""Estimators that the page computes itself; the others come with their numbers."""


class Keys(msgspec.Struct, frozen=True):
    """The keys of a group's steps at one level, each level numbered by itself.

    Attributes:
        level: its name; a chain has the names of its levels, joined by commas.
        states: shape (S,), number of each step's state.
        actions: shape (S,), number of each step's action.
        state_keys: the written key of each state number.
        action_keys: the written key of each action number.
    """

    level: str
    states: Ints
    actions: Ints
    state_keys: Sequence[str]
    action_keys: Sequence[str]


class SignedGroup(msgspec.Struct, frozen=True):
    """A group with its keys at every level that the page can show, and a signer that knows them.

    Attributes:
        group: the rollouts.
        keys: at every level.
        level: name of the keys that the settings ask for.
        signer: gives these.
        chain: gives a signer of other levels, for estimators that ask for some; None = there are
            no others.
        texts: the steps hold what was thought, done and seen.
        config: settings of this group alone; None = those of the page.
    """

    group: Group
    keys: tuple[Keys, ...]
    level: str
    signer: Signer
    chain: Callable[[tuple[str, ...]], Signer] | None = None
    texts: bool = True
    config: Config | None = None

    @property
    def chosen(self) -> Keys:
        """The keys that the credit was computed with."""
        return next(keys for keys in self.keys if keys.level == self.level)


class Known:
    """A signer that gives signatures which are known already."""

    def __init__(self, levels: tuple[str, ...], signatures: Signatures) -> None:
        self.levels = levels
        self.signatures = signatures

    def sign(self, rollouts: Sequence[Rollout]) -> Signatures:
        """Give them."""
        return self.signatures


def sign_group(group: Group, config: Config) -> SignedGroup:
    """Sign a group once, at every level and at the one that the settings ask for."""
    signer = CodingSigner(LEVELS, config.hash_chars)
    signed = [step for rollout in group.rollouts for step in signer.steps(rollout)]
    wanted = config.signer().levels
    known = Known(wanted, _columns(signed, wanted, signer.unparsed))
    keys = [_keys(level, _columns(signed, (level,))) for level in LEVELS]
    if len(wanted) > 1:
        keys.append(_keys(",".join(wanted), known.signatures))

    def chain(levels: tuple[str, ...]) -> Signer:
        return Known(levels, _columns(signed, levels))

    return SignedGroup(group, tuple(keys), ",".join(wanted), known, chain)


def _columns(
    signed: Sequence[SignedStep], levels: tuple[str, ...], unparsed: int = 0
) -> Signatures:
    """Take some of the levels as a chain."""
    at = [LEVELS.index(level) for level in levels]
    chosen = (
        SignedStep(
            step.effects,
            tuple([step.states[i] for i in at]),
            tuple([step.actions[i] for i in at]),
            step.validated,
            step.standing,
        )
        for step in signed
    )
    return sign_steps(chosen, len(levels), unparsed)


def _keys(level: str, signatures: Signatures) -> Keys:
    """Take a chain's last level, numbered from 0."""
    states, state_keys = _renumbered(signatures.states[:, -1], signatures.state_keys)
    actions, action_keys = _renumbered(signatures.actions[:, -1], signatures.action_keys)
    return Keys(level, states, actions, state_keys, action_keys)


def _renumbered(ids: Ints, keys: Sequence[str]) -> tuple[Ints, list[str]]:
    used, numbers = np.unique(ids, return_inverse=True)
    return numbers, [keys[i] for i in used.tolist()]


# --- values ------------------------------------------------------------------------------------


def group_values(signed: SignedGroup, computed: Credit, text_limit: int) -> dict[str, Any]:
    """Write a group as plain values.

    Args:
        signed: the group and its keys.
        computed: its credit.
        text_limit: characters of a raw text that are kept, half at either end.
    """
    group = signed.group
    rewards = np.concatenate([np.zeros(0), *(r.rewards for r in computed.rollouts)])
    steps = [step for rollout in group.rollouts for step in rollout.steps]
    return {
        "problem": group.problem_id,
        "level": signed.level,
        "rollouts": [
            {
                "id": r.rollout.rollout_id,
                "status": r.rollout.status,
                "reward": r.rollout.reward,
                "outcome": r.verdict.outcome,
                "credited": r.verdict.credited,
                "flags": r.flags,
                "stop": r.rollout.stop_reason,
                "model": r.rollout.model,
                "source": str(r.rollout.source),
                "steps": len(r.rollout.steps),
            }
            for r in computed.rollouts
        ],
        "levels": [_level_values(keys) for keys in signed.keys],
        "rewards": [None if value != value else value for value in rewards.tolist()],
        "given": _given(signed, computed.config),
        "texts": [_step_values(step, text_limit) for step in steps] if signed.texts else None,
    }


def _level_values(keys: Keys) -> dict[str, Any]:
    return {
        "name": keys.level,
        "states": keys.states.tolist(),
        "actions": keys.actions.tolist(),
        "stateKeys": keys.state_keys,
        "actionKeys": keys.action_keys,
    }


def _given(signed: SignedGroup, config: Config) -> dict[str, list[float | None]]:
    """Compute what the page does not: the advantages of every other estimator of the build.

    Those that read a batch have this group alone for one. Those that a file without texts or levels
    cannot serve are left out. Eight digits are enough to compare with; the chosen one has all.
    """
    found: dict[str, list[float | None]] = {}
    for name, kind in ESTIMATORS.items():
        estimator = config.estimator if config.estimator.name == name else kind()
        signer = _signer_for(signed, estimator)
        if name in IN_PAGE or signer is None:
            continue
        other = msgspec.structs.replace(config, estimator=estimator)
        advantages = credit(signed.group, other, signer).advantages
        flat = np.concatenate([np.zeros(0), *advantages]).tolist()
        if estimator is not config.estimator:
            flat = [float(f"{value:.8g}") for value in flat]
        found[name] = [None if value != value else value for value in flat]
    return found


def _signer_for(signed: SignedGroup, estimator: Estimator) -> Signer | None:
    levels = estimator.reads.levels
    if (estimator.reads.observations or estimator.reads.progress) and not signed.texts:
        return None
    if not levels or levels == tuple(signed.signer.levels):
        return signed.signer
    return signed.chain(levels) if signed.chain else None


def _step_values(step: Step, limit: int) -> dict[str, Any]:
    values: dict[str, Any] = {"calls": [_call_values(call, limit) for call in step.calls]}
    if step.thought:
        values["thought"] = _cut(step.thought, limit)
    return values


def _call_values(call: ToolCall, limit: int) -> dict[str, Any]:
    values: dict[str, Any] = {"name": call.name, "arguments": _cut_all(call.arguments, limit)}
    if call.output is not None:
        values["output"] = _cut(call.output, limit)
    if call.exit_code is not None:
        values["exit"] = call.exit_code
    if call.is_error:
        values["error"] = True
    if call.timed_out:
        values["timeout"] = True
    return values


def _cut(text: str, limit: int) -> str:
    """Cut the middle out of a long text."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _cut_all(value: Any, limit: int) -> Any:
    """Cut the texts in a call's arguments."""
    if isinstance(value, str):
        return _cut(value, limit)
    if isinstance(value, dict):
        return {key: _cut_all(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut_all(item, limit) for item in value]
    return value
