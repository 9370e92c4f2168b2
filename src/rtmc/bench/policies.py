"""Softmax policies of binary features: linear, a small network, a number per state and action.

A policy gives each legal action a score from its features; the probabilities are their softmax.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from rtmc.batch import Floats, Ints
from rtmc.bench.worlds.base import PHASES, World

__all__ = ["HIDDEN", "Policy", "linear", "network", "probabilities", "table"]

HIDDEN = 8
MOST_ACTIONS = 128
MOST_FEATURES = 16


@dataclass(frozen=True, slots=True)
class Policy:
    """How scores come from parameters.

    Attributes:
        name: for people.
        size: number of parameters.
        describe: the features' compiled function.
        score: ``score(theta, features, n) → float``.
        add: ``add(theta, features, n, weight, gradient)`` adds weight·∂score/∂theta.
        start: makes first parameters from linear ones.
    """

    name: str
    size: int
    describe: Any
    score: Any
    add: Any
    start: Callable[[Floats, np.random.Generator], Floats]


@njit
def _linear_score(theta, features, n):
    total = 0.0
    for at in range(n):
        total += theta[features[at]]
    return total


@njit
def _linear_add(theta, features, n, weight, gradient):
    for at in range(n):
        gradient[features[at]] += weight


@njit
def _hidden(theta, features, n, unit):
    total = 0.0
    for at in range(n):
        total += theta[(1 + features[at]) * HIDDEN + unit]
    return np.tanh(total)


@njit
def _network_score(theta, features, n):
    total = 0.0
    for unit in range(HIDDEN):
        total += theta[unit] * _hidden(theta, features, n, unit)
    return total


@njit
def _network_add(theta, features, n, weight, gradient):
    for unit in range(HIDDEN):
        h = _hidden(theta, features, n, unit)
        gradient[unit] += weight * h
        down = weight * theta[unit] * (1.0 - h * h)
        for at in range(n):
            gradient[(1 + features[at]) * HIDDEN + unit] += down


def linear(world: World) -> Policy:
    """Score = Σ θ_k over the features that hold."""
    size = len(world.features)
    return Policy(
        "linear", size, world.functions[1], _linear_score, _linear_add, lambda t, rng: t.copy()
    )


def network(world: World) -> Policy:
    """Score = wᵀ tanh(U x), 8 hidden units; it starts close to the linear policy."""
    n = len(world.features)

    def start(linear_theta: Floats, rng: np.random.Generator) -> Floats:
        # each unit sees a part of the scores, in the range where tanh is nearly straight
        shares = rng.uniform(0.5, 1.5, HIDDEN)
        shares /= shares.sum()
        scale = 4.0
        down = linear_theta[:, None] * np.full(HIDDEN, 1 / scale)
        down = down + rng.normal(0, 0.02, (n, HIDDEN))
        return np.concatenate([shares * scale, down.ravel()])

    return Policy(
        "network", HIDDEN * (1 + n), world.functions[1], _network_score, _network_add, start
    )


@cache
def _table_describe(world: World, length: int) -> Any:
    """Compile once a family: which state a row stands for is part of the problem itself."""
    actions = world.actions

    @njit
    def describe(problem, state, phase, action, out):
        out[0] = problem[length + state] * actions + action
        return 1

    return describe


def table(world: World, problem: Ints, states: Ints) -> tuple[Policy, Ints]:
    """One number for each state and action of one problem; the time is not seen.

    It starts as the linear policy is in the first third of the episode.

    Args:
        world: the family.
        problem: the one problem, shape (L,).
        states: its states, ascending.

    Returns:
        The policy, and the problem with the row of each state behind it.
    """
    rows = np.full(1 << world.state_bits, -1, dtype=np.int64)
    rows[states] = np.arange(len(states))
    moves, describe, *_ = world.functions

    def start(theta: Floats, rng: np.random.Generator) -> Floats:
        return _scores(moves, describe, theta, problem, states, world.actions).ravel()

    policy = Policy(
        "table", len(states) * world.actions, _table_describe(world, len(problem)), _linear_score,
        _linear_add, start,
    )  # fmt: skip
    return policy, np.concatenate([problem, rows])


@njit
def _scores(moves, describe, theta, problem, states, actions):
    out = np.zeros((len(states), actions))
    legal, features = np.empty(MOST_ACTIONS, np.int64), np.empty(MOST_FEATURES, np.int64)
    for row in range(len(states)):
        for at in range(moves(problem, states[row], legal)):
            k = describe(problem, states[row], 0, legal[at], features)
            out[row, legal[at]] = _linear_score(theta, features, k)
    return out


@njit
def probabilities(moves, describe, score, theta, problem, state, phase, actions, out, features):
    """Fill the legal actions and their probabilities; give how many there are."""
    n = moves(problem, state, actions)
    top = -np.inf
    for at in range(n):
        k = describe(problem, state, phase, actions[at], features)
        out[at] = score(theta, features, k)
        top = max(top, out[at])
    total = 0.0
    for at in range(n):
        out[at] = np.exp(out[at] - top)
        total += out[at]
    for at in range(n):
        out[at] /= total
    return n


@njit
def phase_of(t, horizon):
    """Give the third of the episode in which step t lies."""
    return PHASES * t // horizon
