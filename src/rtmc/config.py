"""Every choice that a credit depends on, in one frozen struct."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, Self

import msgspec

from rtmc.advantages import ESTIMATORS, RTMC, Estimator
from rtmc.advantages.base import check_choices
from rtmc.errors import OptionError
from rtmc.outcomes import Incomplete, Unknown
from rtmc.signatures import CodingSigner, Signer

__all__ = ["Config", "estimator_of"]


class Config(msgspec.Struct, frozen=True):
    """Every choice that a credit depends on.

    Attributes:
        estimator: one of ``rtmc.advantages``, with its options.
        level: level of the coding signatures, or a chain of levels joined by commas; ignored
            where a signer is given, or where the estimator needs a chain of its own.
        gamma: γ, in (0, 1].
        beta: β, reward for the first validation after a code change.
        max_bonuses: how often a rollout can earn it; None = for each change (the paper's).
        normalize: ``problem`` divides by the deviation of the problem's step advantages.
        incomplete: see ``rtmc.outcomes.judge``, as the two next.
        fail_reward: reward of a rollout that counts as a failure.
        unknown: what to do with an unknown outcome.
        hash_chars: compared hex digits of a digest; the paper takes 4.
    """

    estimator: Estimator = RTMC()
    level: str = "paper"
    gamma: float = 0.99
    beta: float = 0.05
    max_bonuses: int | None = 1
    normalize: Literal["none", "problem"] = "none"
    incomplete: Incomplete = "fail"
    fail_reward: float = 0.0
    unknown: Unknown = "exclude"
    hash_chars: int = 16

    def __post_init__(self) -> None:
        """Refuse values outside their ranges.

        Raises:
            OptionError: a number is out of range, or a choice misspelt.
        """
        if isinstance(self.estimator, str | type):
            raise OptionError(
                f"estimator is {self.estimator!r}; expected one with its options, as in "
                "rtmc.RTMC(n_prior=2)"
            )
        check_choices(self)
        if not isfinite(self.fail_reward):
            raise OptionError(f"fail_reward is {self.fail_reward}; expected a finite number")
        if not 0 < self.gamma <= 1:
            raise OptionError(f"gamma is {self.gamma}; expected a number in (0, 1]")
        if not 0 <= self.beta < float("inf"):
            raise OptionError(f"beta is {self.beta}; expected a number ≥ 0")
        if self.max_bonuses is not None and self.max_bonuses < 0:
            raise OptionError(f"max_bonuses is {self.max_bonuses}; expected ≥ 0, or none")

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Give the paper's settings, where they differ from the defaults."""
        given: dict[str, Any] = {
            "estimator": RTMC(repeats="paper"),
            "max_bonuses": None,
            "hash_chars": 4,
            "normalize": "problem",
        }
        return cls(**{**given, **changes})

    def signer(self) -> Signer:
        """Make the coding signer that these settings ask for."""
        chain = self.estimator.reads.levels or tuple(self.level.split(","))
        return CodingSigner(chain, self.hash_chars)

    def as_dict(self) -> dict[str, Any]:
        """Write all settings, the estimator's own among them, as plain values."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        given["estimator"] = self.estimator.name
        own = {name: getattr(self.estimator, name) for name in self.estimator.__struct_fields__}
        return given | own


def estimator_of(name: str, options: Mapping[str, Any]) -> Estimator:
    """Make an estimator of its name and options; numbers may be written as text.

    Raises:
        OptionError: there is no such estimator or option, or a value is of the wrong kind.
    """
    if name not in ESTIMATORS:
        raise OptionError(f"no estimator {name!r}; choose from {', '.join(ESTIMATORS)}")
    kind = ESTIMATORS[name]
    for option in options:
        if option not in kind.__struct_fields__:
            known = ", ".join(kind.__struct_fields__)
            raise OptionError(
                f"{option} does not apply to the estimator {name}; its options: {known}"
            )
    try:
        return msgspec.convert(dict(options), kind, strict=False)
    except msgspec.ValidationError as error:
        raise OptionError(f"option of the estimator {name}: {error}") from error
