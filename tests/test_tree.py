import numpy as np

from oracle import Options, library, walk
from rtmc.tree import build

# G at γ = 1/2:            1/4 1/2 1                0                     1/2 1
GROUP = [walk(1, "s:a s:a s:b"), walk(0, "s:b"), walk(1, "s:a t:b")]


def batch_of(*groups):
    return library(list(groups), Options(gamma=0.5, beta=0.0)).batch


def test_visits_count_rollouts():
    tree = build(batch_of(GROUP))
    assert (tree.n_states, tree.n_cells) == (2, 3)
    # (s,a): first and third rollout; (s,b): first and second; (t,b): third
    assert list(tree.visits[tree.cell_of_step]) == [2, 2, 2, 2, 2, 1]
    # N(s) = N(s,a) + N(s,b) = 4, though only three rollouts come
    assert list(tree.state_visits[tree.state_of_step]) == [4, 4, 4, 4, 4, 1]


def test_first_visits():
    tree = build(batch_of(GROUP))
    assert list(tree.first_in_cell) == [True, False, True, True, True, True]
    assert list(tree.first_in_state) == [True, False, False, True, True, True]


def test_values():
    batch = batch_of(GROUP)
    tree = build(batch)
    # Q(s,a) = (1/4 + 1/2) / 2, Q(s,b) = (1 + 0) / 2, Q(t,b) = 1
    q_values = tree.q_values(batch.returns)[tree.cell_of_step]
    assert list(q_values) == [0.375, 0.375, 0.5, 0.5, 0.375, 1]
    # V(s) = (2·3/8 + 2·1/2) / 4 = 7/16
    values = tree.state_values(batch.returns)[tree.state_of_step]
    assert list(values) == [0.4375] * 5 + [1]


def test_groups_share_no_node():
    tree = build(batch_of(GROUP, GROUP[:2]))
    assert list(tree.group_of_state) == [0, 0, 1]
    assert set(tree.state_of_step[:6]).isdisjoint(tree.state_of_step[6:])
    assert set(tree.cell_of_step[:6]).isdisjoint(tree.cell_of_step[6:])


def test_every_cell_belongs_to_the_state_of_its_steps():
    tree = build(batch_of(GROUP, GROUP))
    assert np.array_equal(tree.state_of_cell[tree.cell_of_step], tree.state_of_step)


def test_no_steps_no_nodes():
    for groups in ([], [[]], [[walk(1), walk(0)]]):
        batch = batch_of(*groups)
        tree = build(batch)
        assert (tree.n_states, tree.n_cells) == (0, 0)
        assert len(tree.q_values(batch.returns)) == len(tree.state_values(batch.returns)) == 0
