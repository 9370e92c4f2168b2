"""Roll out a policy on problems, and lay the rollouts out as the arrays that estimators read."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from rtmc.batch import Batch, Floats, Ints
from rtmc.bench.policies import MOST_ACTIONS, MOST_FEATURES, Policy, phase_of, probabilities
from rtmc.bench.worlds.base import CHANGES, SOLVED, VALIDATES, World
from rtmc.returns import discounted_returns, validation_bonus

__all__ = ["Sample", "gradient", "rollouts", "successes"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Rollouts of several problems, n of each, problem after problem.

    Attributes:
        problems: shape (P, L).
        of_rollout: the problem of each rollout, shape (R,).
        starts: shape (R + 1,).
        outcomes: shape (R,).
        states: shape (S,), before each step.
        actions: shape (S,).
        observed: shape (S,), what each action and its result look like.
        validated: shape (S,), 1 where a change was validated first.
        progress: flags, shape (S, F).
        keys: state keys of each level, shape (S,) each.
    """

    problems: Ints
    of_rollout: Ints
    starts: Ints
    outcomes: Floats
    states: Ints
    actions: Ints
    observed: Ints
    validated: Ints
    progress: Floats
    keys: dict[str, Ints]

    @property
    def rollout_of_step(self) -> Ints:
        """Rollout of each step, shape (S,)."""
        return np.repeat(np.arange(len(self.outcomes)), np.diff(self.starts))

    @property
    def time(self) -> Ints:
        """Index of each step in its rollout, shape (S,)."""
        return np.arange(len(self.actions)) - self.starts[self.rollout_of_step]

    def batch(
        self, levels: tuple[str, ...] = ("paper",), discount: float = 1.0, bonus: float = 0.0
    ) -> Batch:
        """Lay out at some levels, with the validation bonus β at most once a rollout."""
        rewards = validation_bonus(self.validated, self.starts, bonus)
        rewards[self.starts[1:] - 1] += self.outcomes
        columns = [self.keys[levels[0]]]
        for level in levels[1:]:
            pair = np.stack([columns[-1], self.keys[level]])
            columns.append(np.unique(pair, axis=1, return_inverse=True)[1].reshape(-1))
        of_step = self.rollout_of_step
        seen = np.append(-1, self.observed[:-1])
        seen[self.starts[:-1]] = -1
        step_rewards = rewards.copy()
        step_rewards[self.starts[1:] - 1] -= self.outcomes
        group = self.of_rollout[of_step]
        return Batch(
            group_of_rollout=self.of_rollout,
            rollout_of_step=of_step,
            starts=self.starts,
            states=np.stack(columns, axis=1),
            actions=np.repeat(self.observed[:, None], len(columns), axis=1),
            outcomes=self.outcomes,
            rewards=rewards,
            returns=discounted_returns(rewards, self.starts, discount),
            step_rewards=step_rewards,
            discount=discount,
            observations=np.unique(
                np.stack([group, seen]), axis=1, return_inverse=True
            )[1].reshape(-1),
            progress=self.progress,
        )  # fmt: skip


def rollouts(
    world: World, policy: Policy, theta: Floats, problems: Ints, n: int, horizon: int,
    spellings: int, seed: int,
) -> Sample:  # fmt: skip
    """Roll out n times on each problem.

    Args:
        world: the family.
        policy: scores.
        theta: parameters.
        problems: shape (P, L).
        n: rollouts of each.
        horizon: T, most steps.
        spellings: in how many ways an action can be written, which parts its key (and the content
            of a change) and nothing else.
        seed: of the rollouts.
    """
    moves, _, follow, effect, content, progress, coarse = world.functions
    size, lengths, outcomes, columns = _roll(
        moves, policy.describe, policy.score, follow, effect, content, progress, coarse, theta,
        problems, n, horizon, spellings, seed,
    )  # fmt: skip
    states, actions, observed, validated, seen, paper, edits, prefix, kinds = columns[:, :size]
    group = np.repeat(np.repeat(np.arange(len(problems)), n), lengths)
    keys = {"root": group, "content": edits, "coarse": kinds, "paper": paper, "full": prefix}
    return Sample(
        problems=problems,
        of_rollout=np.repeat(np.arange(len(problems)), n),
        starts=np.concatenate(([0], np.cumsum(lengths))),
        outcomes=outcomes,
        states=states,
        actions=actions,
        observed=observed,
        validated=validated,
        progress=(seen[:, None] == np.arange(4)).astype(float),
        keys=keys,
    )


@njit
def _mix(a, b):
    """Mix two numbers into one of 62 bits."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.int64(x >> np.uint64(2))


@njit
def _pick(p, n, u):
    for at in range(n):
        u -= p[at]
        if u < 0:
            return at
    return n - 1


@njit
def _has(values, n, wanted):
    for at in range(n):  # noqa: SIM110 - numba compiles no generator expressions
        if values[at] == wanted:
            return True
    return False


@njit
def _roll(
    moves, describe, score, follow, effect, content, progress, coarse, theta, problems, n,
    horizon, spellings, seed,
):  # fmt: skip
    np.random.seed(seed)
    total = len(problems) * n
    lengths, outcomes = np.zeros(total, np.int64), np.zeros(total)
    columns = np.empty((9, total * horizon), np.int64)
    legal, features = np.empty(MOST_ACTIONS, np.int64), np.empty(MOST_FEATURES, np.int64)
    p, done = np.empty(MOST_ACTIONS), np.empty((2, horizon), np.int64)
    at = 0
    for rollout in range(total):
        group = rollout // n
        problem = problems[group]
        state, spelt = 0, 0
        kept, prefix, kinds = _mix(group, 1), _mix(group, 2), _mix(group, 3)
        for t in range(horizon):
            count = probabilities(
                moves, describe, score, theta, problem, state, phase_of(t, horizon), legal, p,
                features,
            )  # fmt: skip
            action = legal[_pick(p, count, np.random.random())]
            chance, first, second = follow(problem, state, action)
            took_first = chance >= 1.0 or np.random.random() < chance
            after = first if took_first else second
            spelling = np.random.randint(spellings) if spellings > 1 else 0
            seen = (action * spellings + spelling) * 2 + (0 if took_first else 1)
            does = effect(problem, state, action)
            columns[0, at], columns[1, at], columns[2, at] = state, action, seen
            columns[3, at] = 1 if does & VALIDATES else 0
            columns[4, at] = progress(state)
            columns[5, at], columns[7, at], columns[8, at] = kept, prefix, kinds
            columns[6, at] = _mix(_mix(group, 4 + spelt), content(state))
            at += 1
            lengths[rollout] += 1
            if after < 0:
                outcomes[rollout] = 1.0 if after == SOLVED else 0.0
                break
            kind = coarse(problem, action)
            if not _has(done[0], t, seen):
                kept ^= _mix(seen, 1000)  # no number of a group's own: groups must not meet
            if not _has(done[1], t, kind):
                kinds ^= _mix(kind, 2)
            done[0, t], done[1, t] = seen, kind
            prefix = _mix(prefix, seen)
            if does & CHANGES:
                spelt = spelling
            state = after
    return at, lengths, outcomes, columns


def gradient(world: World, policy: Policy, theta: Floats, sample: Sample, horizon: int,
             weights: Floats) -> Floats:  # fmt: skip
    """Compute the mean over rollouts of Σ_t weight_t ∇log π(a_t|s_t), shape (policy.size,)."""
    total = _gradient(
        world.functions[0], policy.describe, policy.score, policy.add, theta, sample.problems,
        sample.of_rollout[sample.rollout_of_step], sample.states, sample.actions, sample.time,
        horizon, weights,
    )  # fmt: skip
    return total / len(sample.outcomes)


@njit
def _gradient(
    moves, describe, score, add, theta, problems, group, states, actions, time, horizon, weights
):
    total = np.zeros(len(theta))
    legal, features = np.empty(MOST_ACTIONS, np.int64), np.empty(MOST_FEATURES, np.int64)
    p = np.empty(MOST_ACTIONS)
    for step in range(len(states)):
        weight = weights[step]
        if weight == 0.0:
            continue
        problem, phase = problems[group[step]], phase_of(time[step], horizon)
        count = probabilities(
            moves, describe, score, theta, problem, states[step], phase, legal, p, features
        )
        for at in range(count):
            k = describe(problem, states[step], phase, legal[at], features)
            taken = 1.0 if legal[at] == actions[step] else 0.0
            add(theta, features, k, weight * (taken - p[at]), total)
    return total


def successes(
    world: World, policy: Policy, theta: Floats, problems: Ints, states: Ints, times: Ints,
    first: Ints, n: int, horizon: int, discount: float, seed: int,
) -> Floats:  # fmt: skip
    """Sum γ^(steps before the last) over those of n fresh rollouts that solve their problem.

    Args:
        world: the family.
        policy: scores.
        theta: parameters.
        problems: shape (M, L), one a state.
        states: shape (M,).
        times: shape (M,), index of the step.
        first: shape (M,), an action to begin with, or −1.
        n: rollouts from each.
        horizon: T.
        discount: γ.
        seed: of the rollouts.

    Returns:
        Sums of returns, shape (M,).
    """
    moves, _, follow, *_ = world.functions
    return _successes(
        moves, policy.describe, policy.score, follow, theta, problems, states, times, first, n,
        horizon, discount, seed,
    )  # fmt: skip


@njit
def _successes(
    moves, describe, score, follow, theta, problems, states, times, first, n, horizon, discount,
    seed,
):  # fmt: skip
    np.random.seed(seed)
    solved = np.zeros(len(states))
    legal, features = np.empty(MOST_ACTIONS, np.int64), np.empty(MOST_FEATURES, np.int64)
    p = np.empty(MOST_ACTIONS)
    for at in range(len(states)):
        problem = problems[at]
        for _ in range(n):
            state = states[at]
            for t in range(times[at], horizon):
                if t == times[at] and first[at] >= 0:
                    action = first[at]
                else:
                    count = probabilities(
                        moves, describe, score, theta, problem, state, phase_of(t, horizon),
                        legal, p, features,
                    )  # fmt: skip
                    action = legal[_pick(p, count, np.random.random())]
                chance, one, two = follow(problem, state, action)
                state = one if chance >= 1.0 or np.random.random() < chance else two
                if state < 0:
                    if state == SOLVED:
                        solved[at] += discount ** (t - times[at])
                    break
    return solved
