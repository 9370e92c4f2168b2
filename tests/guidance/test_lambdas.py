"""Which λ: against a slow oracle, and planted where λ = 0 or λ = 1 is better."""

from random import Random
from statistics import mean

import numpy as np
import pytest

from planted import PLAIN, group, sample
from rtmc.advantages import PooledGAE
from rtmc.guidance.lambdas import LAMBDAS, lambda_sums, lambdas
from rtmc.rollouts import Group


def slow_sums(given: Group, lam: float) -> tuple[float, float, float, int]:
    """x and y of every judged step, one rollout left out at a time, with plain dicts."""
    walks = [[tuple(step.thought.split(".")) for step in r.steps] for r in given.rollouts]
    takers: dict[tuple, int] = {}
    for walk in walks:
        for cell in dict.fromkeys(walk):
            takers[cell] = takers.get(cell, 0) + 1
    shared = {cell for cell, count in takers.items() if count >= 2}
    xy = xx = yy = 0.0
    judged = 0
    for i, walk in enumerate(walks):
        rest = Group("p", tuple(r for j, r in enumerate(given.rollouts) if j != i))
        batch = sample(rest).at("content", "content,paper")
        a = PooledGAE(lam=lam)(batch).advantages
        first: list[tuple[tuple, float]] = []
        at = 0
        for other in (w for j, w in enumerate(walks) if j != i):
            seen = set()
            for cell in other:
                if cell in shared and cell not in seen:
                    seen.add(cell)
                    first.append((cell, a[at]))
                at += 1
        for cell in dict.fromkeys(walk):
            if cell not in shared or sum(other[0] == cell[0] for other in shared) < 2:
                continue
            x = mean(v for c, v in first if c == cell) - mean(
                v for c, v in first if c[0] == cell[0]
            )
            y = given.rollouts[i].reward - mean(r.reward for r in rest.rollouts)
            xy, xx, yy, judged = xy + x * y, xx + x * x, yy + y * y, judged + 1
    return xy, xx, yy, judged


def walk(random: Random, steps: int) -> str:
    return " ".join(f"{random.choice('st')}.{random.choice('xy')}" for _ in range(steps))


def test_sums_are_those_of_the_oracle() -> None:
    random = Random(4)
    for _ in range(10):
        rows = [
            (walk(random, random.randint(1, 4)), float(random.random() < 0.5))
            for _ in range(random.randint(3, 7))
        ]
        one = group("p", *rows)
        if len({reward for _, reward in rows}) < 2:
            continue
        found = lambda_sums(sample(one))
        for at, lam in enumerate(LAMBDAS):
            xy, xx, yy, judged = slow_sums(one, lam)
            assert found["xy"][at] == pytest.approx(xy)
            assert found["xx"][at] == pytest.approx(xx)
            assert (found["yy"][0], found["judged"][0]) == (pytest.approx(yy), judged)


def many(make, count: int = 40) -> list[Group]:
    random = Random(7)
    return [group(f"p{at:02}", *make(random)) for at in range(count)]


def compared(groups: list[Group]):
    found = [sample(one, PLAIN) for one in groups]
    return lambdas([lambda_sums(one) for one in found if one.live])


def merging(random: Random) -> list[tuple[str, float]]:
    """Four rooms, each with a way to the good and to the bad hall: halls are well known."""
    rows = []
    for at in range(16):
        good = random.random() < 0.5
        hall = "good" if good else "bad"
        rows.append(
            (f"room{at % 4}.{hall} {hall}.on", float(random.random() < (0.7 if good else 0.3)))
        )
    return rows


def aliased(random: Random) -> list[tuple[str, float]]:
    """The state after the first step looks like one that is as good as this is bad."""
    rows = []
    for at in range(16):
        act = random.choice("xy")
        good = (act == "x") == (at % 2 == 0)  # who starts in s does well by x, who in t by y
        rows.append(
            (f"{'st'[at % 2]}.{act} {act}.on", float(random.random() < (0.9 if good else 0.1)))
        )
    return rows


def flat(random: Random) -> list[tuple[str, float]]:
    """What the first step decides is not to be seen after it: all λ > 0 differ in scale only."""
    rows = []
    for _ in range(10):
        act = random.choice("xy")
        rows.append((f"s.{act} same.on", float(random.random() < (0.8 if act == "x" else 0.2))))
    return rows


def test_lambda_0_is_found_where_paths_merge() -> None:
    found = compared(many(merging))
    assert found.correlation["0"].value > found.correlation["1"].value
    assert found.best < 0.5
    assert found.better


def test_lambda_1_is_found_where_states_hide_what_was_decided() -> None:
    found = compared(many(aliased))
    assert found.best == 1.0
    assert found.better


def test_what_differs_in_scale_only_keeps_the_default() -> None:
    found = compared(many(flat))
    assert found.correlation["0"].value == 0
    assert found.correlation["1"].value > 0.3
    assert found.best == 0.5


def test_noise_recommends_nothing() -> None:
    def coin(random: Random) -> list[tuple[str, float]]:
        return [(walk(random, 2), float(random.random() < 0.5)) for _ in range(8)]

    found = compared(many(coin))
    assert not found.better
    assert all(abs(one.value) < 3 * one.error for one in found.correlation.values())


def test_nothing_shared_cannot_be_judged() -> None:
    found = compared([group("p", ("s.x a.x", 1.0), ("s.y b.x", 0.0))])
    assert (found.steps, found.best, found.better) == (0, 0.5, False)
    assert not found.correlation["0.5"].known
    assert found.share.value == 0
    assert np.isnan(found.over_default["1"].value)
