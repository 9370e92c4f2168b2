"""What an estimator is: options, what it reads, and arrays in, arrays out."""

from typing import ClassVar, Literal, NamedTuple, Protocol

import msgspec
import numpy as np

from rtmc.batch import Batch, Floats, Ints, std_by

__all__ = ["STD_FLOOR", "Estimate", "Estimator", "Reads", "Std", "deviation"]

Std = Literal["population", "sample", "none"]
STD_FLOOR = 1e-6


class Reads(msgspec.Struct, frozen=True):
    """What an estimator reads besides each rollout's rewards.

    Attributes:
        keys: state and action ids, at the one level that the user chose.
        levels: a chain of levels that the estimator needs instead, from coarse to fine.
        next_states: the state after each step.
        observations: the keys of what the agent saw.
        step_rewards: the rewards that the environment gave at the steps themselves.
        batch: all groups at once: results depend on what else is in the batch.
    """

    keys: bool = False
    levels: tuple[str, ...] = ()
    next_states: bool = False
    observations: bool = False
    step_rewards: bool = False
    batch: bool = False


class Estimate(NamedTuple):
    """What an estimator returns, each of shape (S,); None where it has no such quantity."""

    advantages: Floats
    q_values: Floats | None = None
    state_values: Floats | None = None
    state_visits: Ints | None = None
    action_visits: Ints | None = None
    first_visit: np.ndarray | None = None


class Estimator(Protocol):
    """A frozen struct of options that maps a batch to an estimate.

    The rules that hold for all (uniform groups, groups of one, normalisation) are applied by
    ``credit``, not here.
    """

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def name(self) -> str:
        """Its name in ``rtmc.advantages.ESTIMATORS``."""
        ...

    @property
    def reads(self) -> Reads:
        """What it reads."""
        ...

    def __call__(self, batch: Batch) -> Estimate:
        """Estimate the advantage of every step."""
        ...


def deviation(values: Floats, ids: Ints, size: int, std: Std) -> Floats:
    """Give the divisor std + 1e-6 of each group; 1 where ``std`` is none."""
    if std == "none":
        return np.ones(size)
    return std_by(values, ids, size, sample=std == "sample") + STD_FLOOR
