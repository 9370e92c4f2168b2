"""Independent, slow oracles of ``linear_prior``, ``graph_gae`` and ``chain_gae``: plain floats.

They take all groups of a batch. A turn's state is one text; ``a/b/c`` are its keys at three levels,
each the refinement of the one before: a, a/b, a/b/c. A turn's ``standing`` is one of four, written
as four flags where ``flags`` is true. An ``incomplete`` attempt was cut off: its outcome is in
nothing, and its last state follows itself.

The end of the module lays out the same input for the library (``batch_of``).
"""

from math import sqrt

import numpy as np

import oracle_estimators as slow
from rtmc.batch import Batch

STANDINGS = 4
FEW = 4


def rewards_of(attempt):
    """Give r_t; an attempt that was cut off has no outcome."""
    rewards = slow.rewards_of(attempt)
    if attempt.incomplete and rewards:
        rewards[-1] -= attempt.outcome
    return rewards


def keys_of(attempt, level):
    """Give the keys of an attempt's turns: the first level + 1 words of each."""
    return [tuple(turn.state.split("/")[: level + 1]) for turn in attempt.turns]


def others_mean(groups, g, i):
    """Give the mean outcome of the mates that were not cut off; without one, of all attempts."""
    mates = [a.outcome for j, a in enumerate(groups[g]) if j != i and not a.incomplete]
    everyone = [a.outcome for group in groups for a in group if not a.incomplete]
    known = mates or everyone or [0.0]
    return sum(known) / len(known)


def ridge(rows, targets, penalties):
    """Solve (XᵀX + diag(penalties))·θ = Xᵀy; without rows θ = 0."""
    k = len(penalties)
    if not rows:
        return [0.0] * k
    left = [[sum(r[i] * r[j] for r in rows) + (penalties[i] if i == j else 0.0) for j in range(k)]
            for i in range(k)]  # fmt: skip
    right = [sum(r[i] * y for r, y in zip(rows, targets, strict=True)) for i in range(k)]
    return slow.solved(left, right)


def curve_of(attempt, longest, flags):
    """Give [τ, τ², f_t] of every turn."""
    rows = []
    for t, turn in enumerate(attempt.turns):
        row = [t / longest, (t / longest) ** 2]
        if flags:
            row += [float(turn.standing == k) for k in range(STANDINGS)]
        rows.append(row)
    return rows


def prior(groups, gamma, rho, flags=False):
    """Give V⁰ of every turn: fitted on the other problems, or, where they are few, on the mates."""
    longest = max([len(a.turns) for group in groups for a in group] + [1])
    fit = _by_other_problems if len(groups) >= FEW else _by_mates
    return fit(groups, gamma, rho, flags, longest)


def _by_other_problems(groups, gamma, rho, flags, longest):
    outcomes = [a.outcome for group in groups for a in group]
    x = [
        [[[1.0, *row, others_mean(groups, g, i) - 0.5] for row in curve_of(a, longest, flags)]
         for i, a in enumerate(group)]
        for g, group in enumerate(groups)
    ]  # fmt: skip
    out = []
    for g in range(len(groups)):
        rows, targets = [], []
        for h, group in enumerate(groups):
            for j, mate in enumerate(group):
                if h != g and not mate.incomplete:
                    rows += x[h][j]
                    targets += slow.returns_of(mate, gamma)
        theta = ridge(rows, targets, [0.0] + [rho] * (3 + (STANDINGS if flags else 0)))
        for of_attempt in x[g]:
            fitted = [sum(a * b for a, b in zip(row, theta, strict=True)) for row in of_attempt]
            out.append([min(max(v, min(outcomes)), max(outcomes)) for v in fitted])
    return out


def _by_mates(groups, gamma, rho, flags, longest):
    out = []
    for g, group in enumerate(groups):
        outcomes = [a.outcome for a in group]
        for i, attempt in enumerate(group):
            p = others_mean(groups, g, i)
            rows, targets = [], []
            for j, mate in enumerate(group):
                if j != i and not mate.incomplete:
                    rows += curve_of(mate, longest, flags)
                    targets += [y - p for y in slow.returns_of(mate, gamma)]
            theta = ridge(rows, targets, [rho] * (2 + (STANDINGS if flags else 0)))
            fitted = [
                p + sum(a * b for a, b in zip(row, theta, strict=True))
                for row in curve_of(attempt, longest, flags)
            ]
            out.append([min(max(v, min(outcomes)), max(outcomes)) for v in fitted])
    return out


def deltas_of(attempt, values, gamma):
    """Give δ_t = r_t + γV_{t+1} − V_t."""
    after = values[-1] if attempt.incomplete and values else 0.0
    ahead = [*values[1:], after]
    return [r + gamma * b - a for r, a, b in zip(rewards_of(attempt), values, ahead, strict=False)]


def corrected(group, values, gamma, level, n_prior):
    """Add b to V: (n_s + n₀)·b_s − γ Σ_{s→s′} b_{s′} = Σ_{t: s_t = s} δ_t."""
    keys = [keys_of(attempt, level) for attempt in group]
    place = {key: k for k, key in enumerate(sorted({key for row in keys for key in row}))}
    left = [[n_prior if i == j else 0.0 for j in range(len(place))] for i in range(len(place))]
    right = [0.0] * len(place)
    for attempt, row, v in zip(group, keys, values, strict=True):
        for t, delta in enumerate(deltas_of(attempt, v, gamma)):
            here = place[row[t]]
            left[here][here] += 1
            right[here] += delta
            if t + 1 < len(row):
                left[here][place[row[t + 1]]] -= gamma
            elif attempt.incomplete:
                left[here][here] -= gamma
    offsets = slow.solved(left, right)
    return [
        [x + offsets[place[key]] for x, key in zip(v, row, strict=True)]
        for v, row in zip(values, keys, strict=True)
    ]


def chain_gae(
    groups, gamma, lam=0.5, n_prior=1.0, rho=20.0, pool_actions=True, scale=True, flags=False,
    levels=(0, 1, 2),
):  # fmt: skip
    """Give V and A of every turn; level number l of the chain has the weight 2^l·n₀."""
    fitted = iter(prior(groups, gamma, rho, flags))
    every_value, every_advantage = [], []
    for group in groups:
        values = [next(fitted) for _ in group]
        for doublings, level in enumerate(levels):
            values = corrected(group, values, gamma, level, n_prior * 2**doublings)
        rows = [
            slow.discounted(deltas_of(a, v, gamma), gamma * lam)
            for a, v in zip(group, values, strict=True)
        ]
        if pool_actions:
            cells = [
                list(zip(keys_of(a, levels[-1]), [t.action for t in a.turns], strict=True))
                for a in group
            ]
            members = slow.pooled(
                (cell, x)
                for c, row in zip(cells, rows, strict=True)
                for cell, x in zip(c, row, strict=True)
            )
            rows = [[sum(members[cell]) / len(members[cell]) for cell in c] for c in cells]
        every_value += values
        every_advantage.append(rows)
    live = [
        x
        for group, rows in zip(groups, every_advantage, strict=True)
        if len({a.outcome for a in group}) > 1
        for row in rows
        for x in row
    ]
    divisor = 1.0
    if scale and live:
        mean = sum(live) / len(live)
        deviation = sqrt(sum((x - mean) ** 2 for x in live) / len(live))
        divisor = deviation if deviation > 1e-8 else 1.0
    return every_value, [[x / divisor for x in row] for rows in every_advantage for row in rows]


def graph_gae(
    groups, gamma, lam=0.5, n_prior=2.0, rho=5.0, pool_actions=False, scale=True, flags=False
):
    """Give V and A of every turn: a chain of one level, the whole state."""
    return chain_gae(groups, gamma, lam, n_prior, rho, pool_actions, scale, flags, levels=(2,))


# The same input for the library.


def batch_of(groups, gamma=1.0, levels=(2,), flags=False, cut=True, random=None):
    """Lay out groups of attempts; ids are dense, ``random`` scatters them."""
    attempts = [attempt for group in groups for attempt in group]
    of_attempt = [g for g, group in enumerate(groups) for _ in group]
    lengths = [len(a.turns) for a in attempts]
    turns = [turn for a in attempts for turn in a.turns]

    def ids(keys):
        names = list(dict.fromkeys(keys))
        if random:
            random.shuffle(names)
        found = {name: at * (7 if random else 1) for at, name in enumerate(names)}
        return [found[key] for key in keys]

    def columns(made):
        return np.array(made, dtype=np.int64).reshape(len(made), len(turns)).T

    def flat(rows):
        return np.array([x for row in rows for x in row], dtype=np.float64)

    def states(level):
        every = zip(of_attempt, attempts, strict=True)
        return ids([(g, key) for g, a in every for key in keys_of(a, level)])

    return Batch(
        group_of_rollout=np.array(of_attempt, dtype=np.int64),
        rollout_of_step=np.repeat(np.arange(len(attempts)), lengths),
        starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        states=columns([states(level) for level in levels]),
        actions=columns([ids([turn.action for turn in turns]) for _ in levels]),
        outcomes=np.array([a.outcome for a in attempts], dtype=np.float64),
        rewards=flat([slow.rewards_of(a) for a in attempts]),
        returns=flat([slow.returns_of(a, gamma) for a in attempts]),
        step_rewards=flat([[t.reward for t in a.turns] for a in attempts]),
        discount=gamma,
        observations=np.array(states(levels[-1]), dtype=np.int64),
        progress=np.eye(STANDINGS)[[turn.standing for turn in turns]] if flags else None,
        cut=np.array([a.incomplete for a in attempts], dtype=bool) if cut else None,
    )


def rows(numbers, batch):
    """Cut numbers of steps into rollouts; no group has no rollouts."""
    return np.split(numbers, batch.starts[1:-1])[: len(batch.outcomes)]
