"""What to do: at most four lines, each from a figure, the most important first."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rtmc.config import Config
from rtmc.guidance.measured import FEW_GROUPS

if TYPE_CHECKING:
    from rtmc.guidance.findings import Guidance

__all__ = ["advise"]

MOST_LINES = 4

BITES = 0.05
"""Share of the winners' steps from which on a wrong sign is worth a setting."""

HALF = 0.5
"""Share of signal, or of rollouts that carry any, below which more of it comes first."""


def advise(found: "Guidance", config: Config) -> tuple[str, ...]:
    """Say what the figures ask for, and that nothing does where nothing does.

    The order: too little data to say anything firm; a reward that can be farmed or a prior that
    turns signs, which make credit wrong; luck, which makes it noisy; then what a better choice of
    level or λ would gain.
    """
    lines = [
        *_few(found),
        *_farming(found, config),
        *_signs(found),
        *_luck(found),
        *_unmixed(found),
        *_level(found),
        *_lambda(found),
    ]
    return tuple(lines[:MOST_LINES]) or ("Keep the settings: no figure asks for a change.",)


def _few(found: "Guidance") -> Iterator[str]:
    live = found.signal.live
    if live < FEW_GROUPS:
        yield (
            f"Collect more groups of mixed outcome before changing settings: there "
            f"{'is one' if live == 1 else f'are {live}'}, and with fewer than {FEW_GROUPS} no "
            "level or λ is recommended here."
        )


def _farming(found: "Guidance", config: Config) -> Iterator[str]:
    bonus = found.bonus
    if config.beta and config.max_bonuses is None and bonus.over_half:
        yield (
            f"Bound the bonus with --max-bonuses 1: it pays up to {bonus.largest_unlimited:.2f} a "
            f"rollout, and more than half of an outcome to {bonus.over_half}."
        )
    elif bonus.failing_more.exceeds(0.0) and bonus.paid_failing.value > bonus.paid_passing.value:
        yield (
            f"Lower --beta, or set it to 0: failing rollouts validate "
            f"{bonus.failing_more.value:.1f} changes more than passing ones of the same problem, "
            "and are paid more for it."
        )


def _signs(found: "Guidance") -> Iterator[str]:
    length, saved = found.length, found.levels.discounted_prior
    turned = length.negative.value - length.negative_discounted.value
    if turned >= BITES and saved.value > 0:
        yield (
            "Try --prior discounted: Q is discounted and the prior is not, which makes "
            f"{length.negative.value:.2f} of the winners' steps negative; with it "
            f"{length.negative_discounted.value:.2f} are, and the states predict returns better "
            f"(by {saved.value:.3f} of the error)."
        )


def _luck(found: "Guidance") -> Iterator[str]:
    total, growth = found.noise.total, found.growth
    signal = total.signal
    if total.steps and not total.error.known:
        yield (
            "Take a coarser level or more rollouts a problem: no two rollouts did the same in the "
            f"same state of level {found.levels.own}, and how much is luck cannot be told."
        )
    if not signal.known or signal.value >= HALF:
        return
    helps = ""
    error = "" if signal.weak else f" ± {signal.error:.2f}"
    if growth.coarser and growth.difference.exceeds(0.0):
        helps = f" (that helps more than the coarser level {growth.coarser})"
    yield (
        f"Take more rollouts a problem{helps}: {1 - signal.value:.2f}{error} of the variance of "
        "the advantages is luck. Till then trust averages over groups, not single steps."
    )


def _unmixed(found: "Guidance") -> Iterator[str]:
    signal = found.signal
    if signal.live >= FEW_GROUPS and signal.share.value < HALF:
        yield (
            f"Choose problems of middle difficulty: only {signal.share.value:.2f} of the rollouts "
            "are in groups of mixed outcome, the others get no credit."
        )


def _level(found: "Guidance") -> Iterator[str]:
    if found.levels.better:
        gain = found.levels.by_level[found.levels.best].over_own.value
        yield (
            f"Take --level {found.levels.best}: its states save {gain:.3f} more of the error of "
            f"prediction than those of {found.levels.own}, beyond the noise."
        )


def _lambda(found: "Guidance") -> Iterator[str]:
    if found.lambdas.better:
        yield f"With pooled_gae or graph_gae take --param lam={found.lambdas.best:g}, not 0.5."
