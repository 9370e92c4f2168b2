"""The graph of a group: layouts worked by hand, and what holds for every group."""

import math
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rtmc
from rtmc.errors import OptionError
from rtmc.report.graph import Chain, Edge, Graph, merge
from rtmc.rollouts import Group, Rollout, Step

Attempt = tuple[str, float | None]


def group(*attempts: Attempt, names: str = "r{}") -> Group:
    """Make a group: each rollout is its steps, ``state.action`` by one letter each, and reward."""
    return Group(
        "p",
        tuple(
            Rollout("p", names.format(i), tuple(Step(thought=w) for w in walk.split()), reward)
            for i, (walk, reward) in enumerate(attempts)
        ),
    )


def credited(*attempts: Attempt, names: str = "r{}") -> rtmc.Credit:
    signer = rtmc.KeySigner(lambda r: [(step.thought[0], step.thought[1]) for step in r.steps])
    config = rtmc.Config(estimator=rtmc.GRPO(std="none"))
    return rtmc.credit(group(*attempts, names=names), config, signer)


def merged(*attempts: Attempt, fold: bool = True) -> Graph:
    return merge(credited(*attempts), fold)


def places(graph: Graph) -> dict[str, tuple[int, float]]:
    """Columns and rows, by state; the end of rollout i is ``i``."""
    found = {graph.states[s] or "root": (n.column, n.row) for s, n in graph.nodes.items()}
    return found | {str(i): (end.column, end.row) for i, end in enumerate(graph.ends)}


def lines(graph: Graph) -> dict[str, bool]:
    """Lines by their ends, ``source-target``, and whether they lead forward."""

    def name(state: int) -> str:
        return graph.states[state] if state >= 0 else str(-1 - state)

    both: list[Edge | Chain] = [*graph.edges, *graph.chains]
    return {f"{name(line.source)}-{name(line.target)}": line.forward for line in both}


# --- worked by hand ----------------------------------------------------------------------------


def test_a_fork_and_a_merge() -> None:
    #      ┌─ a ─┐        a and b lead to c: it hangs under a, whose rollout comes first
    #   s ─┤     ├─ c ─ 1, 0   (1 passed: it stands above 0)
    #      └─ b ─┘
    graph = merged(("sx ay cz", 0.0), ("sw bv cz", 1.0))
    assert graph.states == ("s", "a", "c", "b")
    assert [graph.nodes[s].parent for s in range(4)] == [-1, 0, 1, 0]
    assert graph.nodes[2].children == (-2, -1)
    assert places(graph) == {
        "s": (0, (0.5 + 2) / 2), "a": (1, 0.5), "c": (2, 0.5), "b": (1, 2), "1": (3, 0), "0": (3, 1)
    }  # fmt: skip
    assert all(lines(graph).values())
    assert (graph.columns, graph.rows) == (4, 3)


def test_the_numbers_of_an_edge() -> None:
    # three pass s by x, one of them twice; A = R − mean R with mean R = ½ over r0, r1
    graph = merged(("sx ax sx ax", 1.0), ("sx ax", 0.0), ("sx ax", None))
    edge = next(e for e in graph.edges if graph.states[e.source] == "s")
    assert edge.visits == ((0, 0), (0, 2), (1, 0), (2, 0))
    assert (edge.rollouts, edge.passed, edge.failed) == (3, 1, 1)
    assert edge.advantage == pytest.approx((0.5 + 0.5 - 0.5) / 3)
    end = next(e for e in graph.edges if e.target == -3)
    assert math.isnan(end.advantage)  # no credit is not 0


def test_a_step_that_stays_is_a_badge() -> None:
    graph = merged(("sx sy ax", 1.0), ("sx ax", 0.0))
    assert lines(graph) == {"s-a": True, "a-0": True, "a-1": True}
    stays = graph.nodes[0].stays
    assert stays is not None
    assert stays.visits == ((0, 0),)
    assert stays.advantage == pytest.approx(0.5)
    # s is left by y and by x: two lines from s to a
    assert sorted(e.action for e in graph.edges if e.source == 0) == ["x", "y"]


def test_three_moves_fold_with_their_stays_and_two_do_not() -> None:
    graph = merged(("sx ax bx bs cx dx", 1.0))
    (chain,) = graph.chains
    assert [step.action for step in chain.steps] == ["x", "x", "x", "s", "x"]
    assert [step.target == step.source for step in chain.steps] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert places(graph) == {"s": (0, 0), "d": (1, 0), "0": (2, 0)}
    short = merged(("sx ax bx", 1.0))
    assert not short.chains
    assert places(short) == {"s": (0, 0), "a": (1, 0), "b": (2, 0), "0": (3, 0)}
    assert not merged(("sx ax bx bs cx dx", 1.0), fold=False).chains


def test_the_stay_of_an_inner_state_stands_before_the_move_that_leaves_it() -> None:
    (chain,) = merged(("sx ax bs bx cx dx", 1.0)).chains
    assert [step.action for step in chain.steps] == ["x", "x", "s", "x", "x"]
    assert [step.target == step.source for step in chain.steps] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_nothing_folds_over_a_fork_a_merge_or_an_end() -> None:
    # r1 ends in b, so s-a-b stays apart from b-c-d-e, which folds
    graph = merged(("sx ax bx cx dx ex", 1.0), ("sx ax bx", 0.0))
    assert [(graph.states[c.source], graph.states[c.target]) for c in graph.chains] == [("b", "e")]
    assert "a" in places(graph)
    # two actions lead from s to a: a is no inner state
    assert not merged(("sx ax bx cx", 1.0), ("sy ax bx cx", 0.0)).chains


def test_an_undo_leads_back() -> None:
    graph = merged(("sx ax sy bx", 1.0))
    assert lines(graph) == {"s-a": True, "a-s": False, "s-b": True, "b-0": True}
    assert places(graph)["s"] == (0, 0.5)  # between a, a leaf, and b


def test_a_folded_undo_is_a_loop() -> None:
    graph = merged(("sx ax bx sy cx", 1.0))
    assert lines(graph) == {"s-s": False, "s-c": True, "c-0": True}
    assert places(graph) == {"s": (0, 0), "c": (1, 0), "0": (2, 0)}


def test_a_folded_merge_leaves_its_target_where_it_is() -> None:
    # r2 comes to z by a, b, c; r0 and r1 at once, so it hangs under s
    graph = merged(("sx zx", 1.0), ("sx zx", 0.0), ("sy ax bx cx zx", 0.0))
    assert lines(graph) == {"s-z": True, "z-0": True, "z-1": True, "z-2": True}
    assert len(graph.chains) == 1
    assert graph.nodes[0].children == (1,)
    assert graph.nodes[1].column == 1


def test_the_parent_is_where_most_rollouts_first_come_from() -> None:
    # z: r0 from s, r1 and r2 from a; r0 comes to it again from a, which does not count
    graph = merged(("sx zx ax zx", 1.0), ("sx ax zx", 0.0), ("sx ax zx", 0.0))
    z, a = graph.states.index("z"), graph.states.index("a")
    assert graph.nodes[z].parent == a
    assert graph.nodes[z].column == 2
    assert lines(graph)["z-a"] is False  # to its ancestor


def test_a_ring_of_parents_is_cut_where_it_was_entered_first() -> None:
    # three come to b from a, three to a from b; into the ring they come from six places
    walks = [f"sx {x}x ax bx" for x in "123"] + [f"sx {y}x bx ax" for y in "456"]
    graph = merged(*((walk, 1.0) for walk in walks))
    number = {state: i for i, state in enumerate(graph.states)}
    assert graph.nodes[number["a"]].parent == number["1"]  # both at step 2; a comes first
    assert graph.nodes[number["b"]].parent == number["a"]
    assert (graph.nodes[number["a"]].column, graph.nodes[number["b"]].column) == (2, 3)


def test_of_lines_that_close_a_cycle_the_one_to_an_earlier_branch_leads_back() -> None:
    # s ─┬─ a ─ p      p leads to b and q to a: a → p → b → q → a
    #    └─ b ─ q
    graph = merged(
        ("sx ax px", 1.0), ("sx ax px", 0.0), ("sx bx qx", 1.0), ("sx bx qx", 0.0),
        ("sx ax px bx", 1.0), ("sx bx qx ax", 0.0),
    )  # fmt: skip
    assert lines(graph)["p-b"] is True
    assert lines(graph)["q-a"] is False
    found = places(graph)
    assert [found[state][0] for state in "sapbq"] == [0, 1, 2, 3, 4]


def test_several_roots_hang_under_a_virtual_one() -> None:
    graph = merged(("ax cx", 1.0), ("bx cx", 0.0), ("", None))
    assert graph.virtual
    assert [graph.states[s] for s in graph.starts] == ["a", "b"]
    assert graph.nodes[0].rollouts == 3
    assert [graph.nodes[graph.states.index(s)].column for s in "abc"] == [1, 1, 2]
    assert graph.ends[2].node == 0


def test_a_rollout_without_steps_ends_at_the_root() -> None:
    graph = merged(("sx", 1.0), ("", 0.0))
    assert not graph.virtual
    assert places(graph) == {"s": (0, 0.5), "0": (1, 0), "1": (1, 1)}
    assert graph.nodes[0].rollouts == 2


def test_a_group_without_rollouts_is_a_root() -> None:
    graph = merged()
    assert places(graph) == {"root": (0, 0)}
    assert (graph.columns, graph.rows) == (1, 1)
    assert (graph.edges, graph.ends, graph.starts) == ((), (), ())


def test_ends_stand_by_outcome() -> None:
    graph = merged(("sx", None), ("sx", 0.0), ("sx", 1.0), ("sx", 0.0))
    assert graph.nodes[0].children == (-3, -2, -4, -1)


def test_a_credit_of_several_groups_is_refused() -> None:
    signer = rtmc.KeySigner(lambda r: [("s", "a") for _ in r.steps])
    credit = rtmc.credit([group(("sx", 1.0)), group(("sx", 0.0))], signer=signer)
    with pytest.raises(OptionError, match="the credit is of several groups; a graph is of one"):
        merge(credit)


def test_rollouts_may_be_long_and_many() -> None:
    signer = rtmc.KeySigner(lambda r: [tuple(step.thought.split()) for step in r.steps])

    def walk(i: int, shared: int, length: int) -> Rollout:
        states = [f"s{t}" if t < shared else f"r{i}.{t}" for t in range(length)]
        return Rollout("p", f"{i}", tuple(Step(thought=f"{s} a") for s in states), float(i % 2))

    long = rtmc.credit(Group("p", (walk(0, 1500, 5000), walk(1, 1500, 5000))), signer=signer)
    graph = merge(long)
    # 1500 shared states, 3500 own ones each; the last of a run is a node
    assert [len(chain.steps) for chain in graph.chains] == [1499, 3500, 3500]
    assert merge(long, fold=False).columns == 5001
    comb = rtmc.credit(Group("p", tuple(walk(i, i + 1, i + 2) for i in range(400))), signer=signer)
    assert merge(comb).rows == 400


# --- whatever the group ------------------------------------------------------------------------

WALKS = st.lists(
    st.builds(
        lambda shared, steps: " ".join(["sx"] * shared + steps),
        st.booleans(),
        st.lists(st.sampled_from([s + a for s in "sabcde" for a in "xy"]), max_size=9),
    ),
    max_size=6,
)
GROUPS = st.builds(
    lambda walks, rewards: list(zip(walks, rewards, strict=False)),
    WALKS,
    st.lists(st.sampled_from([1.0, 0.0, None]), min_size=6, max_size=6),
)


@given(GROUPS, st.booleans())
def test_every_step_lies_in_one_place(attempts: list[Attempt], fold: bool) -> None:
    graph = merged(*attempts, fold=fold)
    found = [visit for edge in graph.edges for visit in edge.visits]
    found += [visit for chain in graph.chains for step in chain.steps for visit in step.visits]
    found += [visit for node in graph.nodes.values() if node.stays for visit in node.stays.visits]
    steps = [(i, t) for i, (walk, _) in enumerate(attempts) for t in range(len(walk.split()))]
    assert sorted(found) == steps


@given(GROUPS, st.booleans())
def test_the_tree_spans_the_nodes_and_lines_lead_where_they_say(
    attempts: list[Attempt], fold: bool
) -> None:
    graph = merged(*attempts, fold=fold)
    for state, node in graph.nodes.items():
        for child in node.children:
            place = graph.nodes[child] if child >= 0 else graph.ends[-1 - child]
            assert place.column > node.column
            assert (place.parent if child >= 0 else place.node) == state
    children = [child for node in graph.nodes.values() for child in node.children]
    ends = [-1 - i for i in range(len(attempts))]
    assert Counter(children) == Counter([*(graph.nodes.keys() - {0}), *ends])
    for line in (*graph.edges, *graph.chains):
        if line.target >= 0:
            ahead = graph.nodes[line.target].column > graph.nodes[line.source].column
            assert ahead or not line.forward
    for chain in graph.chains:
        moves = [step for step in chain.steps if step.source != step.target]
        assert len(moves) >= 3
        assert len({step.rollouts for step in moves}) == 1
        assert all(a.target == b.source for a, b in pairwise(moves))


@given(GROUPS, st.booleans())
def test_leaves_have_rows_of_their_own(attempts: list[Attempt], fold: bool) -> None:
    graph = merged(*attempts, fold=fold)
    rows = [node.row for node in graph.nodes.values() if not node.children]
    rows += [end.row for end in graph.ends]
    assert sorted(rows) == list(range(len(rows))) == list(range(graph.rows))


@given(GROUPS, st.booleans())
def test_renaming_rollouts_changes_nothing(attempts: list[Attempt], fold: bool) -> None:
    other = merge(credited(*attempts, names="z-{}"), fold)
    assert repr(other) == repr(merged(*attempts, fold=fold))


@given(GROUPS, st.booleans(), st.randoms(use_true_random=False))
def test_permuting_rollouts_changes_the_order_only(
    attempts: list[Attempt], fold: bool, random: Random
) -> None:
    """Which lines and nodes there are, and their numbers, does not depend on the order."""
    order = random.sample(range(len(attempts)), len(attempts))

    def content(graph: Graph, name: list[int]) -> object:
        def key(place: int) -> str:
            return graph.states[place] if place >= 0 else str(name[-1 - place])

        def numbers(e: Edge) -> tuple:
            return key(e.source), e.action, key(e.target), e.rollouts, e.passed, repr(e.advantage)

        return (
            {
                graph.states[s]: (node.rollouts, node.stays and repr(node.stays.advantage))
                for s, node in graph.nodes.items()
            },
            sorted(map(numbers, graph.edges)),
            sorted(sorted(map(numbers, chain.steps)) for chain in graph.chains),
        )

    permuted = content(merged(*(attempts[i] for i in order), fold=fold), order)
    assert permuted == content(merged(*attempts, fold=fold), list(range(len(attempts))))
