"""Turn step rewards into returns, and verification into a small reward."""

import numpy as np

from rtmc.batch import Batch, Floats, Ints

__all__ = ["discounted_returns", "first_returns", "outcome_range", "validation_bonus"]


def discounted_returns(rewards: Floats, starts: Ints, discount: float) -> Floats:
    """Compute returns backwards: G_t = r_t + γ·G_{t+1}, with G = 0 after a rollout's last step.

    γ = 1 gives the plain sum of the rewards to come.

    Args:
        rewards: r_t, shape (S,), rollout after rollout.
        starts: shape (R + 1,), where each rollout starts.
        discount: γ, in (0, 1].

    Returns:
        G_t, shape (S,).
    """
    returns = np.array(rewards, dtype=np.float64)
    lengths = np.diff(starts)
    last = starts[1:] - 1
    longest_first = np.argsort(-lengths, kind="stable")
    lengths, last = lengths[longest_first], last[longest_first]
    active = np.searchsorted(-lengths, -np.arange(1, lengths[0] if len(lengths) else 0), "left")
    for back, count in enumerate(active, start=1):  # all rollouts at once, from their ends
        at = last[:count] - back
        returns[at] += discount * returns[at + 1]
    return returns


def validation_bonus(
    validated: Ints, starts: Ints, bonus: float, max_bonuses: int | None = 1
) -> Floats:
    """Pay β for the first validation after a code change, at most ``max_bonuses`` times a rollout.

    Deviation from the paper: it pays for every change, which an agent can farm (edit, test, edit,
    test …); ``max_bonuses`` None does the same. The bonus is not potential-based, so it preserves
    the optimal policy only as long as β is small against the outcome.

    Args:
        validated: shape (S,), number of code changes that each step validated first.
        starts: shape (R + 1,), where each rollout starts.
        bonus: β.
        max_bonuses: None = no limit.

    Returns:
        The bonus of each step, shape (S,).
    """
    if max_bonuses is None:
        return bonus * validated.astype(np.float64)
    total = np.concatenate(([0], np.cumsum(validated)))
    before = total[:-1] - np.repeat(total[starts[:-1]], np.diff(starts))
    return bonus * np.clip(max_bonuses - before, 0, validated)


def first_returns(batch: Batch) -> Floats:
    """Take G_0 of each rollout; its outcome where it has no steps. Shape (R,)."""
    empty = np.diff(batch.starts) == 0
    at = np.where(empty, 0, batch.starts[:-1])
    return np.where(empty, batch.outcomes, batch.returns[at] if len(batch.returns) else 0.0)


def outcome_range(batch: Batch) -> tuple[Floats, Floats]:
    """Find the smallest and the largest outcome of each group."""
    low = np.full(batch.n_groups, np.inf)
    high = np.full(batch.n_groups, -np.inf)
    np.minimum.at(low, batch.group_of_rollout, batch.outcomes)
    np.maximum.at(high, batch.group_of_rollout, batch.outcomes)
    return low, high
