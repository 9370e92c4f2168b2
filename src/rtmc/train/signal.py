"""From a credit to what a trainer's loss reads: an advantage and a mask for every token."""

from typing import NamedTuple

import numpy as np

from rtmc.batch import Floats
from rtmc.credit import Credit
from rtmc.tokens import to_tokens

__all__ = ["Signal", "signal_of"]


class Signal(NamedTuple):
    """What one rollout teaches; arrays of shape (tokens,), over its whole token record.

    Attributes:
        advantages: of the step that a token was sampled in; 0 at what the model was shown.
        mask: where the loss is taken: tokens that were sampled, in steps that have credit, of a
            group that carries signal.
        live: whether the group carries signal: some step of it has an advantage other than 0.
    """

    advantages: Floats
    mask: np.ndarray
    live: bool


def signal_of(credit: Credit) -> list[Signal]:
    """Put the advantages of each rollout onto its tokens.

    Groups without signal (all rollouts of one outcome, under most estimators) are left out of the
    mask: they add nothing to the gradient, and would only thin it out where a loss divides by all
    tokens, and be pulled by a KL term alone.

    Args:
        credit: of one batch; each rollout has one token sequence, or none where an error ended it.

    Raises:
        AlignmentError: spans do not fit the record.
    """
    live = {r.group for r in credit.rollouts if np.any(np.nan_to_num(r.advantages) != 0)}
    signals = []
    for r in credit.rollouts:
        (length,) = r.rollout.sequence_lengths or (0,)
        spans = [step.spans for step in r.rollout.steps]
        if not length:
            signals.append(Signal(np.zeros(0), np.zeros(0, bool), False))
            continue
        (tokens,) = to_tokens(r.advantages, spans, [length], name=r.rollout.rollout_id)
        is_live = r.group in live
        signals.append(Signal(tokens.values, tokens.credited & is_live, is_live))
    return signals
