"""True values and the true policy gradient: exactly, by dynamic programming, or by many rollouts.

Exact: all states that any policy reaches within T steps are listed; backwards in time

    V_t(s) = Σ_a π(a|s) Q_t(s,a),   Q_t(s,a) = E[r + γV_{t+1}(s′)],   V_T = 0,

and forwards the chance d_t(s) of being there, so that

    ∇J = Σ_t Σ_s d_t(s) Σ_a π(a|s) A_t(s,a) ∇score(s,a)          (γ = 1)

Where there are too many states, V and Q come from fresh rollouts out of the states that a sample
visits (in two halves, so that what noise is left can be told from the truth), and ∇J from a large
sample with the problem's mean outcome as baseline.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from rtmc.batch import Floats, Ints
from rtmc.bench.policies import MOST_ACTIONS, MOST_FEATURES, Policy, phase_of, probabilities
from rtmc.bench.simulate import Sample, gradient, rollouts, successes
from rtmc.bench.worlds.base import PHASES, SOLVED, World

__all__ = ["Exact", "exact", "reachable", "sampled_advantages", "sampled_gradient"]


@dataclass(frozen=True, slots=True)
class Exact:
    """What is known of one problem under one policy.

    Attributes:
        world: the family.
        problem: shape (L,).
        success: J, the probability of solving it.
        gradient: ∇J.
        values: V_t(s), shape (T + 1, states).
        discount: γ of the values.
        index: the row of each state, −1 where it is never reached.
    """

    world: World
    problem: Ints
    success: float
    gradient: Floats
    values: Floats
    discount: float
    index: Ints

    def advantages(self, time: Ints, states: Ints, actions: Ints) -> Floats:
        """Give A_t(s, a) of some steps."""
        return _advantages(
            self.world.functions[2], self.problem, self.index, self.values, self.discount, time,
            states, actions,
        )  # fmt: skip


def reachable(world: World, problem: Ints) -> Ints:
    """List the states that can be reached, ascending."""
    moves, _, follow, *_ = world.functions
    return np.flatnonzero(_reach(moves, follow, problem, 1 << world.state_bits))


@njit
def _reach(moves, follow, problem, size):
    seen = np.zeros(size, np.bool_)
    stack = [0]
    seen[0] = True
    legal = np.empty(MOST_ACTIONS, np.int64)
    while len(stack) > 0:
        state = stack.pop()
        count = moves(problem, state, legal)
        for at in range(count):
            chance, first, second = follow(problem, state, legal[at])
            for after in (first, second if chance < 1 else first):
                if after >= 0 and not seen[after]:
                    seen[after] = True
                    stack.append(after)
    return seen


def exact(
    world: World, policy: Policy, theta: Floats, problem: Ints, horizon: int, discount: float
) -> Exact:
    """Evaluate a policy on one problem.

    Args:
        world: the family.
        policy: scores.
        theta: parameters.
        problem: shape (L,).
        horizon: T.
        discount: γ of the advantages; the gradient is that of the success itself.
    """
    states = reachable(world, problem)
    index = np.full(1 << world.state_bits, -1, dtype=np.int64)
    index[states] = np.arange(len(states))
    moves, _, follow, *_ = world.functions
    success, grad, values = _evaluate(
        moves, policy.describe, policy.score, policy.add, follow, theta, problem, states, index,
        world.actions, horizon, discount,
    )  # fmt: skip
    return Exact(world, problem, success, grad, values, discount, index)


@njit
def _action_value(chance, one, two, ahead, discount):
    """E[r + γV(s′)] over the two next states; V(s′) is 0 after the end."""
    value = chance * (discount * ahead[one] if one >= 0 else 1.0 * (one == SOLVED))
    if chance < 1:
        value += (1 - chance) * (discount * ahead[two] if two >= 0 else 1.0 * (two == SOLVED))
    return value


@njit
def _advantages(follow, problem, index, values, discount, time, states, actions):
    out = np.empty(len(time))
    for at in range(len(time)):
        chance, one, two = follow(problem, states[at], actions[at])
        one = index[one] if one >= 0 else one
        two = index[two] if two >= 0 else two
        q = _action_value(chance, one, two, values[time[at] + 1], discount)
        out[at] = q - values[time[at], index[states[at]]]
    return out


@njit
def _backwards(p, chance, first, second, horizon, discount):
    """Give V_t(s), shape (T + 1, states)."""
    n, actions = p.shape[1:]
    values = np.zeros((horizon + 1, n))
    for t in range(horizon - 1, -1, -1):
        phase = phase_of(t, horizon)
        for s in range(n):
            for a in range(actions):
                if p[phase, s, a] > 0:
                    values[t, s] += p[phase, s, a] * _action_value(
                        chance[s, a], first[s, a], second[s, a], values[t + 1], discount
                    )
    return values


@njit
def _evaluate(
    moves, describe, score, add, follow, theta, problem, states, index, actions, horizon, discount
):
    n = len(states)
    legal, features = np.empty(MOST_ACTIONS, np.int64), np.empty(MOST_FEATURES, np.int64)
    out = np.empty(MOST_ACTIONS)
    p = np.zeros((PHASES, n, actions))
    chance = np.ones((n, actions))
    first, second = np.full((n, actions), -1), np.full((n, actions), -1)
    for s in range(n):
        for phase in range(PHASES):
            count = probabilities(
                moves, describe, score, theta, problem, states[s], phase, legal, out, features
            )
            for at in range(count):
                p[phase, s, legal[at]] = out[at]
        for at in range(count):
            a = legal[at]
            chance[s, a], one, two = follow(problem, states[s], a)
            first[s, a] = index[one] if one >= 0 else one
            second[s, a] = index[two] if two >= 0 else two
    plain = _backwards(p, chance, first, second, horizon, 1.0)
    there = np.zeros(n)
    there[index[0]] = 1.0
    flow = np.zeros((PHASES, n, actions))  # Σ_t d_t(s) π(a|s) A_t(s, a)
    for t in range(horizon):
        after = np.zeros(n)
        phase = phase_of(t, horizon)
        for s in range(n):
            if there[s] == 0.0:
                continue
            for a in range(actions):
                if p[phase, s, a] == 0.0:
                    continue
                one, two = first[s, a], second[s, a]
                q = _action_value(chance[s, a], one, two, plain[t + 1], 1.0)
                moved = there[s] * p[phase, s, a]
                flow[phase, s, a] += moved * (q - plain[t, s])
                if one >= 0:
                    after[one] += moved * chance[s, a]
                if chance[s, a] < 1 and two >= 0:
                    after[two] += moved * (1 - chance[s, a])
        there = after
    grad = np.zeros(len(theta))
    for phase in range(PHASES):
        for s in range(n):
            for a in range(actions):
                if flow[phase, s, a] != 0.0:
                    k = describe(problem, states[s], phase, a, features)
                    add(theta, features, k, flow[phase, s, a], grad)
    values = plain if discount == 1.0 else _backwards(p, chance, first, second, horizon, discount)
    return plain[0, index[0]], grad, values


def sampled_advantages(
    world: World, policy: Policy, theta: Floats, sample: Sample, horizon: int, discount: float,
    n: int, seed: int,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Estimate A = Q − V at the steps of a sample, twice independently, by n rollouts each.

    Equal steps share their estimate. Shape (S,) each.
    """
    group = sample.of_rollout[sample.rollout_of_step]
    time = sample.time
    nothing = np.full(len(group), -1)
    steps = np.concatenate(
        [
            np.stack([group, sample.states, time, nothing]),
            np.stack([group, sample.states, time, sample.actions]),
        ],
        axis=1,
    )
    distinct, of_step = np.unique(steps, axis=1, return_inverse=True)
    of_step = of_step.reshape(2, -1)
    problems = sample.problems[distinct[0]]
    halves = []
    for half in (0, 1):
        solved = successes(
            world, policy, theta, problems, distinct[1], distinct[2], distinct[3], n, horizon,
            discount, 2 * seed + half,
        )  # fmt: skip
        v, q = solved[of_step] / n
        halves.append(q - v)
    return halves[0], halves[1]


def sampled_gradient(
    world: World, policy: Policy, theta: Floats, problem: Ints, horizon: int, n: int, seed: int
) -> tuple[float, Floats]:
    """Estimate J and ∇J of one problem from n rollouts."""
    sample = rollouts(world, policy, theta, problem[None], n, horizon, 1, seed)
    success = sample.outcomes.mean()
    weights = (sample.outcomes - success)[sample.rollout_of_step]
    return float(success), gradient(world, policy, theta, sample, horizon, weights)
