"""What a problem family is to the benchmark: compiled functions on integers, and a way to draw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CHANGES", "FAILED", "PHASES", "SOLVED", "VALIDATES", "World"]

FAILED, SOLVED = -1, -2
"""In place of a next state: the episode ended with reward 0, or with 1."""

CHANGES, VALIDATES = 1, 2
"""What an action does, as bits: it changes the work; it validates a change for the first time."""

PHASES = 3
"""Thirds of the episode: how the policy sees the time."""


@dataclass(frozen=True, slots=True)
class World:
    """A family of episodic decision problems, small enough to be evaluated.

    Attributes:
        actions: number of actions.
        features: names of the binary features of an action in a state.
        state_bits: states are integers in [0, 2^state_bits); the first state is ``start``.
        draw: draws a problem, a list of integers of one length.
        functions: compiled functions of a problem and a state:
            ``moves(problem, state, out) → n``, the legal actions;
            ``describe(problem, state, phase, action, out) → n``, the features that hold;
            ``follow(problem, state, action) → (p, first, second)``, two next states;
            ``effect(problem, state, action)``, bits;
            ``content(state)``, what the key of level content holds;
            ``progress(state)``, one of a few numbers;
            ``coarse(problem, action)``, what the key of level coarse tells apart.
    """

    actions: int
    features: tuple[str, ...]
    state_bits: int
    draw: Callable[[np.random.Generator], list[int]]
    functions: tuple[Any, ...]
