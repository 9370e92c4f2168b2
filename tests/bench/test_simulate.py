"""Rollouts: replayed by the readable rules; keys against plain sets; what estimators are given."""

from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest

import oracle_bench as slow
from rtmc.bench.conditions import CONDITIONS, problems
from rtmc.bench.simulate import rollouts, successes
from rtmc.bench.truth import exact

WORLDS = {"A": slow.Repair, "B": slow.Repair, "E": slow.Errands}


@cache
def drawn(name, seed=1, n=8):
    return problems(CONDITIONS[name].world, np.random.default_rng(seed), n)


@cache
def sample_of(name, spellings=1, n=12, seed=3):
    c = CONDITIONS[name]
    return rollouts(c.world, c.policy, c.start, drawn(name), n, c.horizon, spellings, seed)


def attempts(sample):
    """Give (problem's number, its steps) of each rollout."""
    for at, group in enumerate(sample.of_rollout):
        yield int(group), range(sample.starts[at], sample.starts[at + 1])


def columns(sample):
    keys = {f"keys {level}": column for level, column in sample.keys.items()}
    names = ("problems", "of_rollout", "starts", "outcomes", "states", "actions", "observed",
             "validated", "progress")  # fmt: skip
    return {name: getattr(sample, name) for name in names} | keys


@pytest.mark.parametrize("name", WORLDS)
def test_the_seed_decides_everything(name):
    c = CONDITIONS[name]
    one, again, other = (
        columns(rollouts(c.world, c.policy, c.start, drawn(name), 4, c.horizon, 2, seed))
        for seed in (7, 7, 8)
    )
    assert all(np.array_equal(one[key], again[key]) for key in one)
    assert not np.array_equal(one["actions"], other["actions"])


@pytest.mark.parametrize("name", WORLDS)
def test_layout(name):
    sample, c = sample_of(name), CONDITIONS[name]
    assert sample.of_rollout.tolist() == [p for p in range(8) for _ in range(12)]
    lengths = np.diff(sample.starts)
    assert sample.starts[0] == 0
    assert sample.starts[-1] == len(sample.states) == len(sample.rollout_of_step)
    assert lengths.min() >= 1
    assert lengths.max() == c.horizon
    assert sample.time.tolist() == [t for length in lengths for t in range(length)]
    of_step = [rollout for rollout, length in enumerate(lengths) for _ in range(length)]
    assert sample.rollout_of_step.tolist() == of_step
    assert set(sample.outcomes) == {0.0, 1.0}


@pytest.mark.parametrize("name", WORLDS)
def test_rollouts_follow_the_rules(name):
    sample, c = sample_of(name), CONDITIONS[name]
    worlds = [WORLDS[name](problem) for problem in sample.problems]
    ended = Counter()
    for rollout, (group, steps) in enumerate(attempts(sample)):
        world = worlds[group]
        assert world.decode(int(sample.states[steps[0]])) == world.start
        for at in steps:
            state = world.decode(int(sample.states[at]))
            action = world.actions[sample.actions[at]]
            assert action in world.legal(state)
            after = [then for _, then in world.follow(state, action)]
            assert sample.validated[at] == world.validates(state, action)
            assert sample.progress[at].tolist() == [
                float(world.progress(state) == flag) for flag in range(4)
            ]
            if at != steps[-1]:
                assert world.decode(int(sample.states[at + 1])) in after
            elif after[0] in (slow.WON, slow.LOST):
                assert sample.outcomes[rollout] == (after[0] == slow.WON)
                ended[after[0]] += 1
            else:
                assert len(steps) == c.horizon
                assert sample.outcomes[rollout] == 0
                ended["late"] += 1
    assert len(ended) == 3, "all ends are seen"


@pytest.mark.parametrize(("name", "spellings"), [("A", 1), ("B", 3), ("E", 2)])
def test_what_is_observed(name, spellings):
    sample = sample_of(name, spellings)
    assert np.array_equal(sample.observed // 2 // spellings, sample.actions)
    spelt = sample.observed // 2 % spellings
    counts = np.bincount(spelt, minlength=spellings)
    n = len(spelt)
    assert np.abs(counts / n - 1 / spellings).max() < 5 * (1 / spellings / n) ** 0.5


def test_what_is_observed_tells_passing_tests_from_failing_ones():
    sample = sample_of("A")
    found = defaultdict(set)
    for group, steps in attempts(sample):
        world = slow.Repair(sample.problems[group])
        for at in steps[:-1]:
            action = world.actions[sample.actions[at]]
            state, after = (world.decode(int(sample.states[step])) for step in (at, at + 1))
            if action == ("run",) or (action[0] == "test" and state.patch is None):
                found[after.result].add(int(sample.observed[at]) % 2)
    assert found[slow.PASSED] == {0}
    assert found[slow.FAILED] == {1}


# --- the keys ------------------------------------------------------------------------------------


def told_apart(keys, expected):
    """Check that keys are equal exactly where what they stand for is."""
    pairs = set(zip(keys.tolist(), expected, strict=True))
    assert len({key for key, _ in pairs}) == len(pairs) == len({what for _, what in pairs})


def histories(sample, spellings):
    """Give what each step has behind it: (problem, state, the observed, the kinds, spelling)."""
    for group, steps in attempts(sample):
        world = (slow.Errands if len(sample.problems[0]) > 100 else slow.Repair)(
            sample.problems[group]
        )
        seen, kinds, spelling = [], [], 0
        for at in steps:
            state = world.decode(int(sample.states[at]))
            yield group, world.seen(state), tuple(seen), tuple(kinds), spelling
            action = world.actions[sample.actions[at]]
            seen.append(int(sample.observed[at]))
            kinds.append(world.kind(action))
            if world.changes(state, action):
                spelling = seen[-1] // 2 % spellings


@pytest.mark.parametrize(("name", "spellings"), [("A", 1), ("B", 2), ("E", 1), ("E", 2)])
@pytest.mark.parametrize("level", ["root", "content", "coarse", "paper", "full"])
def test_keys_are_equal_where_the_state_is(name, spellings, level):
    sample = sample_of(name, spellings)
    stands_for = {
        "root": lambda group, content, seen, kinds, spelt: group,
        "content": lambda group, content, seen, kinds, spelt: (group, content, spelt),
        "coarse": lambda group, content, seen, kinds, spelt: (group, frozenset(kinds)),
        "paper": lambda group, content, seen, kinds, spelt: (group, frozenset(seen)),
        "full": lambda group, content, seen, kinds, spelt: (group, seen),
    }[level]
    expected = [stands_for(*history) for history in histories(sample, spellings)]
    if level != "root":
        assert 8 < len(set(expected)) < len(expected), "some meet, some do not"
    told_apart(sample.keys[level], expected)


@pytest.mark.parametrize("level", ["root", "content", "coarse", "paper", "full"])
@pytest.mark.parametrize("name", WORLDS)
def test_problems_share_no_key(name, level):
    sample = sample_of(name)
    groups = defaultdict(set)
    keys = sample.keys[level].tolist()
    for key, group in zip(keys, sample.of_rollout[sample.rollout_of_step], strict=True):
        groups[key].add(int(group))
    shared = sum(len(groups[key]) > 1 for key in keys) / len(keys)
    assert shared == 0, f"{shared:.0%} of the steps have a state of another problem too"


def test_spellings_part_keys_and_nothing_else():
    one, three = (sample_of("A", spellings, n=200) for spellings in (1, 3))
    assert len(np.unique(three.observed)) > 2 * len(np.unique(one.observed))
    for level in ("content", "paper", "full"):
        assert len(np.unique(three.keys[level])) > 1.1 * len(np.unique(one.keys[level]))
    # the same problems, policy, ends and kinds: shares of 1600 rollouts within five errors
    n = len(one.outcomes)
    for what in ("outcomes", "validated"):
        first, second = (getattr(s, what).sum() / n for s in (one, three))
        assert abs(first - second) < 5 * (2 * first / n) ** 0.5
    shares = [np.bincount(s.actions, minlength=30) / len(s.actions) for s in (one, three)]
    assert np.abs(shares[0] - shares[1]).max() < 0.01


# --- what estimators are given -------------------------------------------------------------------


def test_batch_rewards_and_returns():
    sample = sample_of("A")
    batch = sample.batch(("paper",), 0.5, 0.25)
    validated_twice = 0
    for rollout, (_, steps) in enumerate(attempts(sample)):
        bonus = [0.0] * len(steps)
        validated = [t for t, at in enumerate(steps) if sample.validated[at]]
        validated_twice += len(validated) > 1
        if validated:
            bonus[validated[0]] = 0.25  # once a rollout
        rewards = [*bonus[:-1], bonus[-1] + sample.outcomes[rollout]]
        assert batch.rewards[steps].tolist() == rewards
        assert batch.step_rewards[steps].tolist() == bonus
        returns = [sum(0.5**k * r for k, r in enumerate(rewards[t:])) for t in range(len(steps))]
        np.testing.assert_allclose(batch.returns[steps], returns, rtol=0, atol=1e-12)
    assert validated_twice > 0
    assert batch.discount == 0.5
    assert np.array_equal(batch.outcomes, sample.outcomes)
    plain = sample.batch()
    assert not plain.step_rewards.any()
    assert plain.discount == 1
    assert np.array_equal(plain.returns, sample.outcomes[sample.rollout_of_step])
    assert np.array_equal(plain.group_of_rollout, sample.of_rollout)
    assert np.array_equal(plain.starts, sample.starts)
    assert np.array_equal(plain.rollout_of_step, sample.rollout_of_step)


def test_a_chain_of_levels_parts_what_any_of_them_parts():
    sample = sample_of("A")
    levels = ("coarse", "content", "root")
    batch = sample.batch(levels)
    assert batch.states.shape == batch.actions.shape == (len(sample.states), 3)
    keys = [sample.keys[level].tolist() for level in levels]
    for depth in (1, 2, 3):
        expected = list(zip(*keys[:depth], strict=True))
        told_apart(batch.states[:, depth - 1], expected)
        assert np.array_equal(batch.actions[:, depth - 1], sample.observed)
    assert len({tuple(row) for row in zip(*keys[:2], strict=True)}) > len(set(keys[0]))


def test_observations_are_what_the_step_before_showed():
    sample = sample_of("A")
    expected = []
    for group, steps in attempts(sample):
        before = ["start", *sample.observed[list(steps)].tolist()]
        expected += [(group, seen) for seen in before[:-1]]
    told_apart(sample.batch().observations, expected)


# --- frequencies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["A", "E"])
def test_actions_and_results_come_as_often_as_they_should(name):
    c = CONDITIONS[name]
    (problem,) = drawn(name, 2, 1)
    world = WORLDS[name](problem)
    sample = rollouts(c.world, c.policy, c.start, problem[None], 3000, c.horizon, 1, 9)
    policy = slow.Policy(world, c.world.features, c.start)
    taken = defaultdict(Counter)
    results = defaultdict(Counter)
    for _, steps in attempts(sample):
        for t, at in enumerate(steps):
            state = world.decode(int(sample.states[at]))
            action = world.actions[sample.actions[at]]
            taken[state, slow.third_of(t, c.horizon)][action] += 1
            if at != steps[-1]:
                results[state, action][world.decode(int(sample.states[at + 1]))] += 1
    often = {where: counts for where, counts in taken.items() if counts.total() >= 200}
    assert len(often) >= 5
    for (state, third), counts in often.items():
        share_as(counts, policy.chances(state, third))
    if name == "A":  # where a test can see the fault
        found = Counter()
        for (state, action), counts in results.items():
            if len({after for _, after in world.follow(state, action)}) > 1:
                for after, count in counts.items():
                    found[after.result == slow.FAILED] += count
        assert found.total() > 150
        share_as(found, {True: 0.7, False: 0.3})


def share_as(counts, expected):
    n = counts.total()
    assert set(counts) <= set(expected)
    for what, p in expected.items():
        assert abs(counts[what] / n - p) < 5 * (p * (1 - p) / n) ** 0.5 + 3 / n, (what, counts)


@pytest.mark.parametrize("name", ["A", "E"])
def test_fresh_rollouts_succeed_as_often_as_the_truth_says(name):
    c, n = CONDITIONS[name], 3000
    sample = sample_of(name)
    known = [exact(c.world, c.policy, c.start, p, c.horizon, 0.99) for p in drawn(name)]
    picked = np.random.default_rng(5).choice(len(sample.states), 16, replace=False)
    group = sample.of_rollout[sample.rollout_of_step][picked]
    states, time, actions = sample.states[picked], sample.time[picked], sample.actions[picked]
    v = np.array([known[g].values[t, known[g].index[s]]
                  for g, t, s in zip(group, time, states, strict=True)])  # fmt: skip
    a = np.array([known[g].advantages(time[i : i + 1], states[i : i + 1], actions[i : i + 1])[0]
                  for i, g in enumerate(group)])  # fmt: skip
    assert v.max() > 0.1
    for first, expected in ((np.full(16, -1), v), (actions, v + a)):
        found = successes(
            c.world, c.policy, c.start, drawn(name)[group], states, time, first, n, c.horizon,
            0.99, 6,
        ) / n  # fmt: skip
        # the variance of a return in [0, 1] is at most μ(1 − μ)
        assert (np.abs(found - expected) < 4 * (expected * (1 - expected) / n) ** 0.5 + 1e-9).all()
