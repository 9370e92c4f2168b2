"""What a batch of rollouts says about training; docs/training.md explains each number."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from rtmc.advantages.base import centre_and_scale
from rtmc.credit import Credit
from rtmc.diagnostics import diagnose, overlap
from rtmc.layout import lay_out
from rtmc.rollouts import Group, Rollout
from rtmc.signatures import CodingSigner
from rtmc.train.signal import Signal

__all__ = ["metrics_of"]

LEVELS = ("content", "coarse", "paper")


def metrics_of(
    credit: Credit, signals: Sequence[Signal], seconds: Mapping[str, float]
) -> dict[str, float]:
    """Measure a batch.

    Args:
        credit: of all its groups.
        signals: of all its rollouts.
        seconds: of each phase so far.

    Returns:
        Numbers by name, in a fixed order.
    """
    d = diagnose(credit)
    rollouts = [r.rollout for r in credit.rollouts]
    count = max(len(rollouts), 1)
    advantages = np.concatenate([np.zeros(0), *(s.advantages[s.mask] for s in signals)])
    calls = [call for one in rollouts for step in one.steps for call in step.calls]
    outcomes = _outcomes(credit)
    live = {r.group for r, s in zip(credit.rollouts, signals, strict=True) if s.live}
    return {
        "success": d.passed / count,
        "signal": len(live) / max(d.groups, 1),
        "groups/mixed": sum(0 < passes < of for passes, of in outcomes) / max(d.groups, 1),
        "groups/all_passed": sum(passes == of for passes, of in outcomes) / max(d.groups, 1),
        "groups/none_passed": sum(passes == 0 for passes, _ in outcomes) / max(d.groups, 1),
        **_overlaps(credit),
        "winners_negative": d.winner_negative / max(d.winner_steps, 1),
        "losers_positive": d.loser_positive / max(d.loser_steps, 1),
        "advantage/mean": d.mean,
        "advantage/std": d.deviation,
        "advantage/token_mean": float(advantages.mean()) if len(advantages) else 0.0,
        **_like_grpo(credit, signals),
        "bonus": d.bonus / count,
        "rollout/steps": d.steps / count,
        "rollout/tokens": float(np.mean([sum(one.sequence_lengths) for one in rollouts])),
        "rollout/incomplete": d.incomplete / count,
        "rollout/errors": d.unknown / count,
        "calls/malformed": sum(isinstance(call.arguments, str) for call in calls)
        / max(len(calls), 1),
        "calls/refused": sum(bool(call.is_error) for call in calls) / max(len(calls), 1),
        "calls/none": _share_without_calls(rollouts),
        **{f"seconds/{phase}": value for phase, value in seconds.items()},
    }


def _outcomes(credit: Credit) -> list[tuple[int, int]]:
    """Count for each group the rollouts that passed, and all."""
    passed: dict[int, list[bool]] = {}
    for r in credit.rollouts:
        passed.setdefault(r.group, []).append(r.rollout.status == "passed")
    return [(sum(of), len(of)) for of in passed.values()]


def _overlaps(credit: Credit) -> dict[str, float]:
    """Tell how far the rollouts meet at each of ``LEVELS``, whatever the credit was computed at."""
    groups = [
        Group(members[0].problem_id, tuple(members))
        for _, of in groupby(credit.rollouts, key=lambda r: r.group)
        if (members := [r.rollout for r in of])
    ]
    signer = CodingSigner(LEVELS, credit.config.hash_chars)
    steps = lay_out(groups, [signer.sign(group.rollouts) for group in groups])
    return {f"overlap/{level}": overlap(steps, at).share for at, level in enumerate(LEVELS)}


def _like_grpo(credit: Credit, signals: Sequence[Signal]) -> dict[str, float]:
    """Take the cosine between the advantages and GRPO's, over all tokens that are trained on."""
    batch = credit.batch
    groups = batch.group_of_rollout
    mean, scale = centre_and_scale(batch.outcomes, groups, batch.n_groups, "population")
    masked = [
        s.advantages[s.mask]
        for r, s in zip(credit.rollouts, signals, strict=True)
        if r.verdict.outcome is not None
    ]
    ours = np.concatenate([np.zeros(0), *masked])
    theirs = np.repeat((batch.outcomes - mean[groups]) / scale[groups], [len(of) for of in masked])
    norms = np.linalg.norm(ours) * np.linalg.norm(theirs)
    return {"advantage/cosine_to_grpo": float(ours @ theirs / norms)} if norms else {}


def _share_without_calls(rollouts: Sequence[Rollout]) -> float:
    steps = [step for one in rollouts for step in one.steps]
    return sum(not step.calls for step in steps) / max(len(steps), 1)
