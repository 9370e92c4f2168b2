"""What holds for every estimator: groups without signal, steps without credit, normalisation."""

from collections.abc import Sequence

import numpy as np

from rtmc.batch import Batch, Floats, moments_by
from rtmc.config import Config
from rtmc.outcomes import Verdict
from rtmc.returns import outcome_range

__all__ = ["group_rules"]

UNIFORM = 1e-6
MIN_DEVIATION = 1e-8


def group_rules(
    batch: Batch, raw: Floats, verdicts: Sequence[Verdict], config: Config
) -> tuple[Floats, list[tuple[str, ...]]]:
    """Apply what holds for every estimator: groups without signal, no credit, normalisation.

    Returns the advantages, and the flags of each group of the batch.
    """
    groups, size = batch.group_of_rollout, batch.n_groups
    low, high = outcome_range(batch)
    largest = np.ones(size)
    np.maximum.at(largest, groups, np.abs(batch.outcomes))
    uniform = high - low <= UNIFORM * largest
    single = np.bincount(groups, minlength=size) == 1
    of_step = batch.group_of_step
    gets_credit = np.array([v.credited for v in verdicts if v.outcome is not None], dtype=bool)
    credited = gets_credit[batch.rollout_of_step]
    # an estimator may have something to say of groups of one outcome; none has of a single rollout
    keeps = getattr(config.estimator, "uniform", "zero") == "keep"
    silent = single if keeps else uniform
    advantages = np.where(silent[of_step], 0.0, raw)
    advantages[~credited] = np.nan
    if config.normalize == "problem":
        _, deviation = moments_by(advantages[credited], of_step[credited], size)
        # what is kept of a group of one outcome is small, and stays so
        divides = (np.nan_to_num(deviation) >= MIN_DEVIATION) & ~uniform
        advantages /= np.where(divides, deviation, 1.0)[of_step]
    flags: list[tuple[str, ...]] = [
        ("singleton_group",) if one else ("uniform",) if same else ()
        for one, same in zip(single, uniform, strict=True)
    ]
    return advantages, flags
