"""What a signer is: rollouts in, integer ids of states and actions out.

The estimators know nothing of where keys come from. Another domain brings its own signer, most
simply a ``KeySigner`` around a function from a rollout to its keys.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtmc.batch import Ints
from rtmc.errors import AlignmentError
from rtmc.rollouts import Rollout
from rtmc.signatures.effects import digest

__all__ = ["KEY_LENGTH", "Interner", "KeySigner", "Signatures", "Signer", "written"]

KEY_LENGTH = 400


def written(key: str) -> str:
    """Write a key for output: one longer than 400 characters ends in ``#`` and its digest."""
    return key if len(key) <= KEY_LENGTH else f"{key[: KEY_LENGTH - 17]}#{digest(key)}"


@dataclass(frozen=True, slots=True)
class Signatures:
    """The keys of a group's steps, as ids.

    Attributes:
        states: shape (S, L), id of the state in which each step acted, a column a level.
        actions: shape (S, L), id of each step's action.
        validated: shape (S,), how many code changes the step validated for the first time.
        state_keys: the written key of each state id.
        action_keys: the written key of each action id.
        unparsed: number of commands that no parser understood.
        progress: shape (S, F), flags of how the work stands before each step, which mean the same
            in all problems (for coding: no change yet, changed but untested, last test passed,
            last test failed); None where a signer has none.
    """

    states: Ints
    actions: Ints
    validated: Ints
    state_keys: Sequence[str]
    action_keys: Sequence[str]
    unparsed: int = 0
    progress: NDArray[np.bool_] | None = None


class Signer(Protocol):
    """Anything that signs the rollouts of one problem together."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the columns of the ids."""
        ...

    def sign(self, rollouts: Sequence[Rollout]) -> Signatures:
        """Sign the steps of all rollouts, in order."""
        ...


@dataclass(slots=True)
class Interner:
    """Number keys in the order of their first appearance; levels share one row of numbers.

    In a chain the key of a level is the pair of the id of the level before and its own key.
    """

    keys: list[str] = field(default_factory=list)
    _first: dict[str, int] = field(default_factory=dict)
    _later: dict[tuple[int, str], int] = field(default_factory=dict)

    def add(self, keys: Sequence[str], out: list[int]) -> None:
        """Number one step's keys, one for each level of a chain, and append the numbers."""
        key = keys[0]
        number = self._first.get(key)
        if number is None:
            number = self._first[key] = self._add(key)
        out.append(number)
        for level in range(1, len(keys)):
            before, key = number, keys[level]
            number = self._later.get((before, key))
            if number is None:
                coarser = self.keys[before]
                same = coarser == written(key) and keys[level - 1] == key
                number = self._add(key if same else f"{coarser} / {key}")
                self._later[before, key] = number
            out.append(number)

    def ids(self, steps: Iterable[Sequence[str]]) -> list[int]:
        """Number the keys of several steps, all in one row."""
        out: list[int] = []
        for keys in steps:
            self.add(keys, out)
        return out

    def _add(self, key: str) -> int:
        self.keys.append(written(key))
        return len(self.keys) - 1


class KeySigner:
    """Sign by a function that gives the (state key, action key) of every step of a rollout.

    Args:
        keys: the function; it must give exactly one pair a step.
        level: what to call the one level.
    """

    def __init__(
        self, keys: Callable[[Rollout], Iterable[tuple[str, str]]], level: str = "custom"
    ) -> None:
        self.keys = keys
        self.levels = (level,)

    def sign(self, rollouts: Sequence[Rollout]) -> Signatures:
        """Sign the steps of all rollouts, in order.

        Raises:
            AlignmentError: the function gave more or fewer pairs than a rollout has steps.
        """
        states, actions = Interner(), Interner()
        pairs: list[tuple[str, str]] = []
        for rollout in rollouts:
            own = list(self.keys(rollout))
            if len(own) != len(rollout.steps):
                raise AlignmentError(
                    f"rollout {rollout.rollout_id}: expected keys for {len(rollout.steps)} steps, "
                    f"got {len(own)}"
                )
            for t, pair in enumerate(own):
                if not (isinstance(pair, tuple | list) and [*map(type, pair)] == [str, str]):
                    raise AlignmentError(
                        f"rollout {rollout.rollout_id}, step {t}: expected a pair (state key, "
                        f"action key) of texts, got {pair!r}"
                    )
            pairs += own
        return Signatures(
            np.array(states.ids((state,) for state, _ in pairs), dtype=np.int64)[:, None],
            np.array(actions.ids((action,) for _, action in pairs), dtype=np.int64)[:, None],
            np.zeros(len(pairs), dtype=np.int64),
            states.keys,
            actions.keys,
        )
