"""What an estimator is: options, what it reads, and arrays in, arrays out."""

from typing import ClassVar, Literal, NamedTuple, Protocol, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from rtmc.batch import Batch, Floats, Ints, moments_by
from rtmc.errors import OptionError

__all__ = [
    "STD_FLOOR",
    "Estimate",
    "Estimator",
    "Reads",
    "Std",
    "centre_and_scale",
    "check_choices",
    "check_number",
    "outcome_advantages",
]

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
        progress: flags that say how the work stands.
        cut: which rollouts a limit cut off; it does not take them for failures.
        batch: all groups at once: results depend on what else is in the batch.
    """

    keys: bool = False
    levels: tuple[str, ...] = ()
    next_states: bool = False
    observations: bool = False
    step_rewards: bool = False
    progress: bool = False
    cut: bool = False
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


def check_choices(options: msgspec.Struct) -> None:
    """Refuse a misspelt choice, which would silently count as one of the others.

    Raises:
        OptionError: a field annotated as a Literal holds none of its values.
    """
    for name, hint in get_type_hints(type(options)).items():
        value = getattr(options, name)
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise OptionError(f"{name} is {value!r}; expected one of {', '.join(get_args(hint))}")


def check_number(options: msgspec.Struct, name: str, expected: str, holds: bool) -> None:
    """Refuse a number outside its range.

    Raises:
        OptionError: ``holds`` is false.
    """
    if not holds:
        raise OptionError(f"{name} is {getattr(options, name)}; expected a number {expected}")


def centre_and_scale(values: Floats, ids: Ints, size: int, std: Std) -> tuple[Floats, Floats]:
    """Give the mean of each group, and its divisor std + 1e-6; 1 where ``std`` is none."""
    mean, deviation = moments_by(values, ids, size, sample=std == "sample")
    return mean, np.ones(size) if std == "none" else deviation + STD_FLOOR


def outcome_advantages(batch: Batch, std: Std) -> Floats:
    """Give each step its rollout's (R − mean R) / (std R + 1e-6), as GRPO does. Shape (S,)."""
    groups = batch.group_of_rollout
    mean, scale = centre_and_scale(batch.outcomes, groups, batch.n_groups, std)
    return ((batch.outcomes - mean[groups]) / scale[groups])[batch.rollout_of_step]
