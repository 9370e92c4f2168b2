"""Overlap and support, worked by hand."""

from itertools import combinations
from statistics import mean

import numpy as np
import pytest

from planted import group, sample
from rtmc.guidance.sample import Sample
from rtmc.guidance.support import (
    _shared_at_half,
    overlap_sums,
    overlaps,
    ranges,
    support,
    support_sums,
)

# visits of cells: s.x 2, s.y 1, a.x 1, a.y 1, b.x 1, c.x 1; of states: s 3, a 2, b 1, c 1
BY_HAND = group("p", ("s.x a.x b.x", 1.0), ("s.x a.y", 0.0), ("s.y c.x", 1.0))


def test_support_by_hand() -> None:
    found = support([support_sums(sample(BY_HAND))])
    q = {name: one.value for name, one in found.behind_q.items()}
    v = {name: one.value for name, one in found.behind_v.items()}
    assert q == pytest.approx({"1": 5 / 7, "2": 2 / 7, "3-4": 0, "5+": 0})
    assert v == pytest.approx({"1": 2 / 7, "2": 2 / 7, "3-4": 3 / 7, "5+": 0})
    assert found.median_q == 1
    assert found.q_alone["first"].value == pytest.approx(1 / 3)
    assert found.q_alone["1-4"].value == pytest.approx(1)
    assert not found.q_alone["5-9"].known
    # in b and c nobody else was at all; in s and a somebody did something else
    assert found.no_choice.value == pytest.approx(2 / 7)


def test_a_rollout_that_comes_back_stands_behind_its_credit_once() -> None:
    found = support([support_sums(sample(group("p", ("s.x s.x s.x", 1.0), ("s.y", 0.0))))])
    assert found.behind_q["1"].value == 1
    assert found.behind_v["2"].value == 1


def test_sharing_with_half_of_the_others_is_exact() -> None:
    # two of three take s.x; with one of the two others the chance to meet the other is ½
    assert support([support_sums(sample(BY_HAND))]).shared_at_half.value == pytest.approx(1 / 7)
    for n in (4, 5, 6):
        halves = [
            chosen
            for k in ((n - 1) // 2, n - 1 - (n - 1) // 2)
            for chosen in combinations(range(n - 1), k)
        ]  # both sizes have as many choices
        for m in range(1, n + 1):
            chance = mean(any(other < m - 1 for other in chosen) for chosen in halves)
            assert _shared_at_half(np.array([m]), n)[0] == pytest.approx(chance)


def test_overlap_at_each_level_in_one_pass() -> None:
    found = sample(BY_HAND, keys={"coarse": lambda state: "s" if state == "s" else "later"})
    by_level = overlaps([overlap_sums(found)], "paper")
    assert list(by_level) == ["work", "coarse", "paper", "content", "full"]
    assert by_level["paper"].share.value == pytest.approx(2 / 4)  # a and a, of a b a c
    assert by_level["coarse"].share.value == 1
    assert by_level["paper"].by_step_index["1-4"].value == pytest.approx(2 / 4)


def test_ranges_of_step_indices() -> None:
    assert np.argmax(ranges(np.array([0, 1, 4, 5, 9, 10, 19, 20, 400])), axis=1).tolist() == [
        0, 1, 1, 2, 2, 3, 3, 4, 4,
    ]  # fmt: skip


def test_halves_depend_on_ids_alone_and_leave_the_rollout_out() -> None:
    one: Sample = sample(group("p", *[("s.x", float(r % 2)) for r in range(7)]))
    a, b = one.halves(2, salt=0)
    assert (a.sum(), b.sum()) == (3, 3)
    assert not (a & b).any()
    assert not (a | b)[2]
    assert not np.array_equal(a, one.halves(2, salt=1)[0])


def test_many_rollouts_are_not_all_left_out() -> None:
    few = sample(group("p", *[("s.x", float(r % 2)) for r in range(8)]))
    many = sample(group("p", *[("s.x", float(r % 2)) for r in range(50)]))
    assert few.left_out.tolist() == list(range(8))
    assert len(many.left_out) == 32
    assert len(set(many.left_out.tolist())) == 32
