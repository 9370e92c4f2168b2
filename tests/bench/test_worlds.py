"""The worlds follow their own description: against rules written down anew, readably."""

from collections import Counter

import numpy as np
import pytest

import oracle_bench as slow
from rtmc.bench.truth import reachable
from rtmc.bench.worlds import errands as errands_module
from rtmc.bench.worlds import repair as repair_module
from rtmc.bench.worlds.base import CHANGES, FAILED, SOLVED, VALIDATES
from rtmc.bench.worlds.errands import errands
from rtmc.bench.worlds.repair import repair

REPAIR, ERRANDS = repair(2, 2, 2), errands()


def drawn(world, seed, n=1):
    rng = np.random.default_rng(seed)
    return np.array([world.draw(rng) for _ in range(n)], dtype=np.int64)


def near(found, expected, n):
    """Within four standard errors of a share of n."""
    assert abs(found - expected) < 4 * (expected * (1 - expected) / n) ** 0.5


def agree(world, own, problem, states):
    """Compare everything that is said of some states, action by action."""
    moves, describe, follow, effect, content, progress, _ = world.functions
    out = np.empty(128, dtype=np.int64)
    contents = {}
    for state in states:
        number = own.encode(state)
        assert own.decode(number) == state
        legal = out[: moves(problem, number, out)].tolist()
        assert [own.actions[at] for at in legal] == own.legal(state)
        assert progress(number) == own.progress(state)
        assert contents.setdefault(own.seen(state), content(number)) == content(number)
        for at in legal:
            action = own.actions[at]
            chance, first, second = follow(problem, number, at)
            found = Counter()
            for odds, after in ((chance, first), (1 - chance, second)):
                ends = {SOLVED: slow.WON, FAILED: slow.LOST}
                found[ends[after] if after < 0 else own.decode(after)] += odds
            expected = Counter()
            for odds, after in own.follow(state, action):
                expected[after] += odds
            assert {a: o for a, o in found.items() if o > 0} == pytest.approx(dict(expected))
            bits = effect(problem, number, at)
            assert bool(bits & CHANGES) == own.changes(state, action)
            assert bool(bits & VALIDATES) == own.validates(state, action)
            for third in range(3):
                names = [world.features[k] for k in out_of(describe, problem, number, third, at)]
                assert len(names) == len(set(names))
                assert set(names) == own.features(state, action, third), (state, action)
    assert len(set(contents.values())) == len(contents), "what differs has different keys"


def out_of(describe, problem, state, third, action):
    out = np.empty(16, dtype=np.int64)
    return out[: describe(problem, state, third, action, out)].tolist()


def kinds_agree(world, own, problem):
    """Level coarse tells apart what it should, and nothing else."""
    coarse = world.functions[6]
    pairs = {(own.kind(action), coarse(problem, at)) for at, action in enumerate(own.actions)}
    assert len(pairs) == len({kind for kind, _ in pairs}) == len({number for _, number in pairs})


@pytest.mark.parametrize("seed", [0, 1])
def test_every_state_of_a_repair(seed):
    (problem,) = drawn(REPAIR, seed)
    own = slow.Repair(problem)
    states = slow.reachable(own)
    assert sorted(map(own.encode, states)) == reachable(REPAIR, problem).tolist()
    assert REPAIR.actions == len(own.actions)
    agree(REPAIR, own, problem, states)
    kinds_agree(REPAIR, own, problem)


def test_some_states_of_large_repairs():
    world = repair(4, 3, 3)
    rng = np.random.default_rng(2)
    for problem in drawn(world, 3, 12):
        own = slow.Repair(problem)
        assert world.actions == len(own.actions)
        kinds_agree(world, own, problem)
        states = set()
        for _ in range(8):
            patch = None if rng.random() < 0.2 else (int(rng.integers(12)), int(rng.integers(3)))
            states.add(
                slow.Work(
                    str(rng.choice([slow.NONE, slow.PASSED, slow.FAILED])),
                    patch,
                    frozenset(np.flatnonzero(rng.random(4) < 0.5).tolist()),
                    frozenset(np.flatnonzero(rng.random(12) < 0.5).tolist()),
                )
            )
        agree(world, own, problem, states)


def test_every_state_of_errands():
    (problem,) = drawn(ERRANDS, 0)
    own = slow.Errands(problem)
    states = slow.reachable(own)
    assert sorted(map(own.encode, states)) == reachable(ERRANDS, problem).tolist()
    assert ERRANDS.actions == len(own.actions)
    agree(ERRANDS, own, problem, states)
    kinds_agree(ERRANDS, own, problem)


def test_features_can_be_told_apart():
    for world in (REPAIR, ERRANDS):
        assert len(set(world.features)) == len(world.features)


def test_what_a_repair_is_told():
    n = 4000
    found = Counter()
    others = Counter()
    for problem in drawn(repair(3, 3, 4), 5, n):
        own = slow.Repair(problem)
        file = own.file_of(own.fault)
        found["hint"] += own.hinted == file
        found["pointer"] += own.pointed[file] == own.fault
        found["suspicious"] += own.suspicious[own.fault]
        found["indicated"] += own.indicated[own.fault] == own.right
        others["fault", own.fault] += 1
        others["right", own.right] += 1
        assert all(own.file_of(region) == f for f, region in enumerate(own.pointed))
        for region in range(9):
            if region != own.fault:
                found["false suspicion"] += own.suspicious[region]
                found["anything indicated"] += own.indicated[region] == 2
    near(found["hint"] / n, 0.6, n)
    near(found["pointer"] / n, 0.8, n)
    assert found["suspicious"] == n
    near(found["indicated"] / n, 0.7, n)
    near(found["false suspicion"] / (8 * n), 0.12, 8 * n)
    near(found["anything indicated"] / (8 * n), 1 / 4, 8 * n)
    for (what, _), count in others.items():
        near(count / n, 1 / 9 if what == "fault" else 1 / 4, n)


def test_a_repair_of_one_file_or_region_can_be_drawn():
    # with one file there is no wrong hint, with one region no wrong pointer
    for size in ((1, 2, 2), (2, 1, 2)):
        for problem in drawn(repair(*size), 0, 50):
            own = slow.Repair(problem)
            assert own.hinted < own.files
            assert [own.file_of(region) for region in own.pointed] == list(range(own.files))


def test_how_a_building_is_drawn():
    n = 600
    signs = {True: [], False: []}
    for problem in drawn(ERRANDS, 7, n):
        own = slow.Errands(problem)
        assert len({0, *own.things, own.desk}) == 4, "no thing and no desk where one starts"
        goals = [own.things, own.things[1:], own.things[:1], [own.desk]]  # by what is held: bits
        for held, goal in enumerate(goals):
            steps = [min(own.distance(room, end) for end in goal) for room in range(12)]
            for room in range(12):
                for door, to in enumerate(own.leads[room]):
                    signs[steps[to] < steps[room]].append(own.signs[held][room][door])
        for room in range(12):  # doors 0 and 1 are two-way
            for door in (0, 1):
                assert own.leads[own.leads[room][door]][1 - door] == room
    for nearer, expected in ((True, 0.7), (False, 0.25)):
        near(np.mean(signs[nearer]), expected, len(signs[nearer]))


def test_the_description_has_the_numbers():
    # the test above and the module must not agree on what the text does not say
    for number in ("0.6", "0.8", "0.12", "0.7"):
        assert number in repair_module.__doc__
    for number in ("0.7", "0.25"):
        assert number in errands_module.__doc__
