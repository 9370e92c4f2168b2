"""First-visit Q is unbiased, and noisiest at leaves: a small decision process of known values.

0 start, 1 middle, 2 leaf; 3 lost, 4 won (reward 1). Some actions lead back, so that states
and cells recur within a rollout.
"""

import numpy as np
import pytest

import rtmc

GAMMA = 0.9
N_GROUPS, N_ROLLOUTS = 3000, 6
POLICY = np.array([[0.6, 0.4], [0.5, 0.5], [0.5, 0.5]])
NEXT = np.array(  # state, action → probability of the next state
    [
        [[0.8, 0.2, 0.0, 0.0, 0.0], [0.0, 0.3, 0.1, 0.6, 0.0]],
        [[0.2, 0.0, 0.0, 0.0, 0.8], [0.0, 0.0, 0.2, 0.1, 0.7]],
        [[0.0, 0.0, 0.0, 0.4, 0.6], [0.0, 0.0, 0.0, 0.6, 0.4]],
    ]
)
LEAF = 2


def true_values():
    """Solve Q = P(won) + γ Σ P(s′) Σ π(a′|s′) Q(s′,a′) exactly."""
    onward = np.einsum("sax,xb->saxb", NEXT[:, :, :3], POLICY).reshape(6, 6)
    return np.linalg.solve(np.eye(6) - GAMMA * onward, NEXT[:, :, 4].reshape(6)).reshape(3, 2)


def simulate(seed):
    """Roll out all groups side by side; a step object is shared by all who take it."""
    random = np.random.default_rng(seed)
    steps = [[rtmc.Step(env_state=str(s), thought=str(a)) for a in range(2)] for s in range(3)]
    n = N_GROUPS * N_ROLLOUTS
    paths, state = [[] for _ in range(n)], np.zeros(n, dtype=int)
    alive = np.arange(n)
    while len(alive):
        at = state[alive]
        action = (random.random(len(alive)) >= POLICY[at, 0]).astype(int)
        for i, s, a in zip(alive.tolist(), at.tolist(), action.tolist(), strict=True):
            paths[i].append(steps[s][a])
        edges = NEXT[at, action].cumsum(axis=1)
        state[alive] = (random.random((len(alive), 1)) >= edges).sum(axis=1).clip(max=4)
        alive = alive[state[alive] < 3]
    rollouts = [
        rtmc.Rollout("p", "r", tuple(path), float(end == 4), "passed")
        for path, end in zip(paths, state.tolist(), strict=True)
    ]
    return [rtmc.Group("p", tuple(rollouts[i : i + N_ROLLOUTS])) for i in range(0, n, N_ROLLOUTS)]


@pytest.fixture(scope="module")
def sample():
    """The group and cell of each step; its Q, visits, return and rollout."""
    signer = rtmc.KeySigner(lambda r: [(step.env_state, step.thought) for step in r.steps])
    credit = rtmc.credit(simulate(seed=0), rtmc.Config(gamma=GAMMA, beta=0.0), signer)
    cells = [
        2 * int(s) + int(a)
        for one in credit.rollouts
        for (s,), a in zip(one.states, one.actions, strict=True)
    ]
    lengths = [len(one.advantages) for one in credit.rollouts]
    group = np.repeat(np.arange(len(lengths)) // N_ROLLOUTS, lengths)
    columns = {
        name: np.concatenate([getattr(one, name) for one in credit.rollouts])
        for name in ("q_values", "action_visits", "returns")
    }
    columns["rollout"] = np.repeat(np.arange(len(lengths)), lengths)
    return group, np.array(cells), columns


def per_group(sample, cell):
    """Q and visits of a cell, once for each group that contains it."""
    group, cells, columns = sample
    _, at = np.unique(np.where(cells == cell, group, -1), return_index=True)
    at = at[cells[at] == cell]
    return columns["q_values"][at], columns["action_visits"][at]


@pytest.mark.parametrize("cell", range(6))
def test_first_visit_q_is_unbiased(sample, cell):
    q_values, _ = per_group(sample, cell)
    assert len(q_values) > 500
    error = q_values.mean() - true_values().reshape(6)[cell]
    assert abs(error) < 4 * q_values.std() / np.sqrt(len(q_values))


def test_last_visit_q_is_biased_so_the_test_can_fail(sample):
    """Who looks at the last visit has chosen the rollouts that do not come back."""
    group, cells, columns = sample
    here = np.flatnonzero(cells == 0)
    last = here[np.append(columns["rollout"][here][1:] != columns["rollout"][here][:-1], True)]
    count = np.bincount(group[last], minlength=N_GROUPS)
    total = np.bincount(group[last], weights=columns["returns"][last], minlength=N_GROUPS)
    q_values = total[count > 0] / count[count > 0]
    error = q_values.mean() - true_values()[0, 0]
    assert abs(error) > 4 * q_values.std() / np.sqrt(len(q_values))


def test_variance_is_highest_at_leaves_and_where_few_come(sample):
    spread, visits = {}, {}
    for cell in range(6):
        q_values, n = per_group(sample, cell)
        spread[cell], visits[cell] = q_values.var(), n.mean()
    leaves, others = (2 * LEAF, 2 * LEAF + 1), range(2 * LEAF)
    assert max(visits[cell] for cell in leaves) < min(visits[cell] for cell in others)
    assert min(spread[cell] for cell in leaves) > max(spread[cell] for cell in others)
    # of one and the same cell: a few visits against many
    q_values, n = per_group(sample, 2)
    assert q_values[n <= 2].var() > 2 * q_values[n >= 5].var()
