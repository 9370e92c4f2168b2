"""Merge a group's rollouts by state into one graph, and say where each part of it is drawn.

Nothing is drawn here. The rules, so that every drawing of a group looks the same:

1. *States.* A node is a state: the key of the last level. Where the rollouts that have steps all
   start in one state, that is the root; otherwise the root is virtual, and every rollout comes from
   it to its first state.
2. *Edges.* Step t of rollout i leads from its state by its action to the state of step t + 1; the
   last step leads to the rollout's own end. An edge is a distinct (state, action, target). One
   that stays in its state is not drawn: it is counted in a badge of the node.
3. *Tree.* The parent of a state is the other state from which most distinct rollouts arrive there
   for the first time, ties: whose first arrival is the first by (rollout, step). Parents found so
   may form a ring. The state of the ring that any rollout reached at the smallest step index, ties:
   the first by (rollout, step), then takes its parent among the states that were reached at a
   smaller index than itself.
4. *Order.* Children stand by the number of distinct rollouts that first arrive from their parent,
   most first, ties by the first such (rollout, step). Behind them the rollouts that end here: those
   that passed, then those that failed, then the others. A rollout without steps ends at the root.
5. *Folding.* An inner state has one edge that enters and one that leaves, to another state; the
   same rollouts are then on both. Three or more edges joined by inner states are one chain, drawn
   as one line, with the stays of the inner states in their places. Its target takes the first
   inner state's place among the children, if that chain is how the tree leads to it.
6. *Columns.* A line to its own source or to an ancestor in the tree leads back. So does, of the
   lines between states that reach each other by the others, each whose target comes before its
   source in the tree, depth first. All other lines lead forward: a node stands one column right of
   the rightmost node from which a line leads forward to it (of its parent at least), the root in
   column 0, an end one column right of its node.
7. *Rows.* Ends and nodes without children get rows 0, 1, 2 … depth first. Every other node stands
   midway between its first and its last child.

Time and memory are linear in the number of steps, up to sorting.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import fsum, nan

from rtmc.credit import Credit, RolloutCredit
from rtmc.errors import OptionError

__all__ = ["Badge", "Chain", "Edge", "End", "Graph", "Node", "merge"]

FOLD_FROM = 3

Visit = tuple[int, int]
"""Rollout and step, both from 0."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What leads by one action from one state to one target.

    Attributes:
        source: a state.
        action: its key.
        target: a state, or −1 − i for the end of rollout i.
        visits: the steps that lie on it, in order.
        rollouts: distinct rollouts among them.
        passed: how many of these passed.
        failed: how many failed; the others did neither.
        advantage: mean over the steps with credit, NaN where none has it.
        forward: False for one that leads back (rule 6).
    """

    source: int
    action: str
    target: int
    visits: tuple[Visit, ...]
    rollouts: int
    passed: int
    failed: int
    advantage: float
    forward: bool = True


@dataclass(frozen=True, slots=True)
class Chain:
    """Edges between which nothing parts, joins or ends, drawn as one line.

    ``steps`` are in the order in which they are taken; what stays in an inner state stands before
    the edge that leaves it.
    """

    source: int
    target: int
    steps: tuple[Edge, ...]
    forward: bool = True

    @property
    def rollouts(self) -> int:
        """Distinct rollouts on it, the same from its first to its last edge."""
        return self.steps[0].rollouts


@dataclass(frozen=True, slots=True)
class Badge:
    """Steps that changed nothing in their state, and the mean of their advantages."""

    visits: tuple[Visit, ...]
    advantage: float


@dataclass(frozen=True, slots=True)
class Node:
    """A state that is drawn.

    Attributes:
        column: from 0, left to right.
        row: from 0, top to bottom; halves and quarters occur.
        rollouts: distinct rollouts that were here.
        parent: in the tree; −1 for the root.
        children: in order; −1 − i is the end of rollout i.
        stays: None where every step led elsewhere.
    """

    column: int
    row: float
    rollouts: int
    parent: int
    children: tuple[int, ...]
    stays: Badge | None


@dataclass(frozen=True, slots=True)
class End:
    """The end of a rollout: behind its last state."""

    node: int
    column: int
    row: float


@dataclass(frozen=True, slots=True)
class Graph:
    """The rollouts of a group, merged by state and laid out.

    Attributes:
        states: the key of each state; the root is state 0, its key empty where it is virtual.
        virtual: whether no single state is the root.
        starts: the states in which rollouts start.
        nodes: the states that are drawn, all but the inner ones of chains.
        ends: one a rollout.
        edges: those that are drawn as lines of their own.
        chains: the folded ones.
    """

    states: tuple[str, ...]
    virtual: bool
    starts: tuple[int, ...]
    nodes: dict[int, Node]
    ends: tuple[End, ...]
    edges: tuple[Edge, ...]
    chains: tuple[Chain, ...]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return 1 + max(place.column for place in (*self.nodes.values(), *self.ends))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return 1 + int(max(place.row for place in (*self.nodes.values(), *self.ends)))


def merge(credit: Credit, fold: bool = True) -> Graph:
    """Merge the rollouts of a credit of exactly one group, those without credit too.

    Args:
        credit: of one group.
        fold: draw runs of steps in which nothing parts as one line.

    Raises:
        OptionError: the credit is of several groups.
    """
    rollouts = credit.rollouts
    if len({r.group for r in rollouts}) > 1:
        raise OptionError("the credit is of several groups; a graph is of one")
    states, starts, walks = _walks(rollouts)
    edges, stays = _edges(rollouts, walks)
    parent, arrivals = _parents(walks, len(states))
    children = _children(parent, arrivals)
    chains = _chains(edges, stays, {0, *starts}) if fold else []
    for chain in chains:
        _contract(chain, parent, children)
    folded = {id(step) for chain in chains for step in chain.steps}
    lines = [*(edge for edge in edges if id(edge) not in folded), *chains]
    inner = {step.source for chain in chains for step in chain.steps}
    inner -= {chain.source for chain in chains}
    drawn = [state for state in range(len(states)) if state not in inner]
    column, forward = _columns(drawn, lines, parent, children)
    lines = [replace(line, forward=ahead) for line, ahead in zip(lines, forward, strict=True)]
    ends = [walk[-1] if walk else 0 for walk in walks]
    for i in sorted(range(len(ends)), key=lambda i: _rank(rollouts[i])):
        children[ends[i]].append(-1 - i)
    row = _rows(children)
    visitors = _visitors(walks, states)
    nodes = {
        state: Node(
            column[state],
            row[state],
            visitors[state],
            parent.get(state, -1),
            tuple(children[state]),
            _badge(stays[state], rollouts) if state in stays else None,
        )
        for state in drawn
    }
    return Graph(
        states=tuple(state or "" for state in states),
        virtual=states[0] is None,
        starts=tuple(starts),
        nodes=nodes,
        ends=tuple(End(s, column[s] + 1, row[-1 - i]) for i, s in enumerate(ends)),
        edges=tuple(line for line in lines if isinstance(line, Edge)),
        chains=tuple(line for line in lines if isinstance(line, Chain)),
    )


def _walks(
    rollouts: Sequence[RolloutCredit],
) -> tuple[list[str | None], list[int], list[list[int]]]:
    """Number the states, the root 0, and give those that rollouts start in and pass through."""
    firsts = list(dict.fromkeys(r.states[0][-1] for r in rollouts if r.states))
    number: dict[str | None, int] = {firsts[0] if len(firsts) == 1 else None: 0}
    walks = [[number.setdefault(keys[-1], len(number)) for keys in r.states] for r in rollouts]
    return list(number), [number[state] for state in firsts], walks


def _edges(
    rollouts: Sequence[RolloutCredit], walks: Sequence[list[int]]
) -> tuple[list[Edge], dict[int, list[Edge]]]:
    """Collect the edges that lead elsewhere, and for each state those that stay in it."""
    found: dict[tuple[int, str, int], list[Visit]] = {}
    for i, walk in enumerate(walks):
        for t, (state, target) in enumerate(pairwise([*walk, -1 - i])):
            found.setdefault((state, rollouts[i].actions[t], target), []).append((i, t))
    edges: list[Edge] = []
    stays: dict[int, list[Edge]] = {}
    for (state, action, target), visits in found.items():
        statuses = [rollouts[i].rollout.status for i in {i for i, _ in visits}]
        edge = Edge(
            state, action, target, tuple(visits), len(statuses), statuses.count("passed"),
            statuses.count("failed"), _mean(visits, rollouts),
        )  # fmt: skip
        (stays.setdefault(state, []) if target == state else edges).append(edge)
    return edges, stays


def _mean(visits: Iterable[Visit], rollouts: Sequence[RolloutCredit]) -> float:
    """Average the advantages of the steps with credit, whatever their order."""
    values = [float(rollouts[i].advantages[t]) for i, t in visits]
    values = [value for value in values if value == value]
    return fsum(values) / len(values) if values else nan


def _badge(stays: Iterable[Edge], rollouts: Sequence[RolloutCredit]) -> Badge:
    visits = sorted(visit for stay in stays for visit in stay.visits)
    return Badge(tuple(visits), _mean(visits, rollouts))


_Arrivals = list[dict[int, tuple[int, Visit]]]
"""For each state, by the state that they come from: distinct rollouts, and the first of them."""


def _parents(walks: Sequence[list[int]], size: int) -> tuple[dict[int, int], _Arrivals]:
    """Choose the parent of every state but the root (rule 3)."""
    arrivals: _Arrivals = [{} for _ in range(size)]
    earliest = {0: -1}
    for i, walk in enumerate(walks):
        seen = {0}
        before = 0
        for t, state in enumerate(walk):
            if state not in seen:
                seen.add(state)
                count, first = arrivals[state].get(before, (0, (i, t)))
                arrivals[state][before] = (count + 1, first)
                earliest[state] = min(t, earliest.get(state, t))
            before = state

    def best(state: int, among: Iterable[int]) -> int:
        # rollouts come in order, so the first of equals is the one with the first arrival
        return max(among, key=lambda before: arrivals[state][before][0])

    parent = {state: best(state, arrivals[state]) for state in range(1, size)}
    settled = {0}
    for start in range(1, size):
        way: dict[int, None] = {}
        at = start
        while at not in settled:
            if at in way:  # a ring
                ring = {at}
                while (at := parent[at]) not in ring:
                    ring.add(at)
                cut = min(ring, key=lambda state: (earliest[state], state))
                earlier = (b for b in arrivals[cut] if earliest[b] < earliest[cut])
                parent[cut] = best(cut, earlier)
                way = {state: None for state in way if state not in ring}
                at = cut
            way[at] = None
            at = parent[at]
        settled.update(way)
    return parent, arrivals


def _children(parent: dict[int, int], arrivals: _Arrivals) -> dict[int, list[int]]:
    """List the children of every state in order (rule 4)."""
    children: dict[int, list[int]] = {state: [] for state in range(len(arrivals))}

    def order(state: int) -> tuple[int, Visit]:
        count, first = arrivals[state][parent[state]]
        return -count, first

    for state in sorted(parent, key=order):
        children[parent[state]].append(state)
    return children


def _rank(rollout: RolloutCredit) -> int:
    return {"passed": 0, "failed": 1}.get(rollout.rollout.status, 2)


def _chains(
    edges: Sequence[Edge], stays: dict[int, list[Edge]], fixed: Collection[int]
) -> list[Chain]:
    """Fold runs of edges in which nothing parts (rule 5); ``fixed`` states are no inner ones."""
    entering: dict[int, list[Edge]] = {}
    leaving: dict[int, list[Edge]] = {}
    for edge in edges:
        entering.setdefault(edge.target, []).append(edge)
        leaving.setdefault(edge.source, []).append(edge)
    # whoever comes in by the one edge must leave by the other: the rollouts are the same
    inner = {
        state: out[0]
        for state, out in leaving.items()
        if len(out) == 1
        and out[0].target >= 0
        and len(entering.get(state, ())) == 1
        and state not in fixed
    }
    chains = []
    for edge in edges:
        if edge.source in inner or edge.target not in inner:
            continue
        steps, moves, at = [edge], 1, edge.target
        while at in inner:
            steps += [*stays.get(at, ()), inner[at]]
            moves, at = moves + 1, inner[at].target
        if moves >= FOLD_FROM:
            chains.append(Chain(edge.source, at, tuple(steps)))
    return chains


def _contract(chain: Chain, parent: dict[int, int], children: dict[int, list[int]]) -> None:
    """Take the inner states of a chain out of the tree."""
    first, last = chain.steps[0].target, chain.steps[-1].source
    following = children[last]  # the target, or nothing where the tree comes to it elsewhere
    siblings = children[chain.source]
    at = siblings.index(first)
    siblings[at : at + 1] = following
    parent.update(dict.fromkeys(following, chain.source))
    for step in chain.steps[1:]:
        children.pop(step.source, None)
        parent.pop(step.source, None)


def _columns(
    drawn: Sequence[int],
    lines: Sequence[Edge | Chain],
    parent: dict[int, int],
    children: dict[int, list[int]],
) -> tuple[dict[int, int], list[bool]]:
    """Give each node its column, and say which lines lead forward (rule 6)."""
    order, after = _depth_first((0,), children)
    entered = {state: at for at, state in enumerate(order)}
    left = {state: at for at, state in enumerate(after)}
    followers = {state: list(children[state]) for state in drawn}
    ahead = [
        line.target < 0
        or entered[line.target] > entered[line.source]
        or left[line.target] < left[line.source]  # to no ancestor, and not to itself
        for line in lines
    ]
    for line, leads in zip(lines, ahead, strict=True):
        if leads and line.target >= 0:
            followers[line.source].append(line.target)
    knot = _knots(drawn, followers)

    def place(state: int) -> tuple[int, int]:
        return knot[state], entered[state]

    column = dict.fromkeys(drawn, 0)
    for state in sorted(drawn, key=place):
        for target in followers[state]:
            if place(target) > place(state):
                column[target] = max(column[target], column[state] + 1)
    return column, [
        leads and (line.target < 0 or place(line.target) > place(line.source))
        for line, leads in zip(lines, ahead, strict=True)
    ]


def _knots(states: Sequence[int], followers: dict[int, list[int]]) -> dict[int, int]:
    """Number the sets of states that reach one another, each before those that it leads to."""
    leaders: dict[int, list[int]] = {state: [] for state in states}
    for state, targets in followers.items():
        for target in targets:
            leaders[target].append(state)
    _, after = _depth_first(states, followers)
    knot: dict[int, int] = {}
    for number, start in enumerate(reversed(after)):  # Kosaraju: backwards from the last finished
        pending = [start]
        while pending:
            state = pending.pop()
            if state not in knot:
                knot[state] = number
                pending += leaders[state]
    return knot


def _depth_first(
    roots: Iterable[int], followers: dict[int, list[int]]
) -> tuple[list[int], list[int]]:
    """List what is reached from the roots, depth first: as it is entered, and as it is left."""
    entered: dict[int, None] = {}
    left: list[int] = []
    pending = [iter(roots)]
    path: list[int] = []
    while pending:
        state = next((s for s in pending[-1] if s not in entered), None)
        if state is not None:
            entered[state] = None
            path.append(state)
            pending.append(iter(followers.get(state, ())))
        else:
            pending.pop()
            if path:
                left.append(path.pop())
    return list(entered), left


def _rows(children: dict[int, list[int]]) -> dict[int, float]:
    """Give each node and end its row (rule 7)."""
    row: dict[int, float] = {}
    leaves = 0
    for place in _depth_first((0,), children)[1]:
        if own := children.get(place):
            row[place] = (row[own[0]] + row[own[-1]]) / 2
        else:
            row[place] = leaves
            leaves += 1
    return row


def _visitors(walks: Sequence[list[int]], states: Sequence[str | None]) -> list[int]:
    """Count the distinct rollouts that come through each state."""
    count = [0] * len(states)
    for walk in walks:
        for state in set(walk or (0,)):
            count[state] += 1
    if states[0] is None:
        count[0] = len(walks)
    return count
