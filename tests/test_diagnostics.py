"""Counts of a credit, worked by hand on small groups."""

import numpy as np
import pytest

import rtmc
from rtmc.diagnostics import Diagnostics, diagnose, quadrants
from rtmc.rollouts import Group, Rollout, Step


def group(name: str, *rollouts: tuple[str, float | None]) -> Group:
    """Make a group: each rollout is its steps, ``state.action`` by one letter each, and reward."""
    return Group(
        name,
        tuple(
            Rollout(
                name,
                f"r{number}",
                tuple(Step(thought=word) for word in walk.split()),
                reward,
                "unknown" if reward is None else "passed" if reward else "failed",
            )
            for number, (walk, reward) in enumerate(rollouts)
        ),
    )


def keys(rollout: Rollout) -> list[tuple[str, str]]:
    return [(step.thought[0], step.thought[1]) for step in rollout.steps]


def found(*groups: Group, **options: float) -> Diagnostics:
    config = rtmc.Config(beta=0, **options)
    return diagnose(rtmc.credit(list(groups), config, rtmc.KeySigner(keys, "hand")))


def test_overlap_counts_distinct_rollouts_not_visits() -> None:
    # states:  r0  s a b b     r1  s a c     b is visited twice, by r0 alone
    d = found(group("p", ("sx ax bx by", 1.0), ("sx ay cx", 0.0)))
    o = d.overlap["hand"]
    assert (o.shared[0], o.steps[0]) == (2, 5)  # steps 1-4: a, b, b and a, c; only a is shared
    assert o.share == pytest.approx(2 / 5)
    # four states: s and a of both, b and c of one; a and b have two actions
    assert (o.states, o.singletons, o.branching) == (4, 2, 2)


def test_rollouts_of_unknown_outcome_count_in_the_overlap_only() -> None:
    d = found(group("p", ("sx ax", 1.0), ("sx ax", None), ("sx bx", 0.0)))
    assert d.overlap["hand"].shared[0] == 2
    assert (d.rollouts, d.unknown, d.excluded) == (3, 1, 1)
    assert (d.steps, d.credited_steps) == (6, 4)


def test_groups_without_signal_are_counted() -> None:
    d = found(
        group("even", ("sx", 1.0), ("sy", 1.0)),
        group("one", ("sx", 0.0)),
        group("nobody", ("sx", None)),
        group("mixed", ("sx", 1.0), ("sy", 0.0)),
    )
    assert (d.groups, d.uniform_groups, d.singleton_groups, d.empty_groups) == (4, 1, 1, 1)


def test_signs_of_winners_and_others() -> None:
    # one state, γ = 1, p = ½. Q(x) = (1 + 0)/2, Q(y) = 1, V = (2·½ + 1)/3 = ⅔,
    # V′ = (3·⅔ + 2·½)/5 = .6: A(x) = −.1 for both rollouts, A(y) = .4
    d = found(group("p", ("sx sy", 1.0), ("sx", 0.0)), gamma=1.0)
    assert (d.winner_steps, d.winner_negative) == (2, 1)
    assert (d.loser_steps, d.loser_positive) == (1, 0)


def test_counts_of_two_batches_add_up() -> None:
    one = group("p", ("sx ax", 1.0), ("sx bx", 0.0))
    two = group("q", ("sx", 1.0), ("sy ax", 0.0))
    both, apart = found(one, two), found(one) + found(two)
    for name in Diagnostics.__struct_fields__:
        if name != "overlap":
            assert getattr(both, name) == pytest.approx(getattr(apart, name), abs=1e-12), name
    assert both.overlap == apart.overlap


def test_mean_deviation_and_error_of_the_advantages() -> None:
    # std none: group p has A = ½ ½ −½, group q has A = ½ −½ −½
    config = rtmc.Config(estimator=rtmc.GRPO(std="none"))
    signer = rtmc.KeySigner(keys)
    groups = [
        group("p", ("sx ax", 1.0), ("sx", 0.0)),
        group("q", ("sx", 1.0), ("sx ax", 0.0)),
    ]
    d = diagnose(rtmc.credit(groups, config, signer))
    assert d.mean == pytest.approx(0)
    assert d.deviation == pytest.approx(0.5)
    # group sums ½ and −½ around n·mean = 0: √(¼ + ¼) / 6
    assert d.standard_error == pytest.approx(0.5**0.5 / 6)


def test_quadrants_by_hand() -> None:
    advantages = np.array([0.5, -0.5, 0.5, -0.5, 0.005, np.nan, 0.5])
    reference = np.array([0.5, -0.5, -0.5, 0.5, 0.5, 0.5, 0.5])
    passing = [True, True, True, True, True, True, False]
    assert quadrants(advantages, reference, passing) == {
        "passing": {"both +": 1, "both −": 1, "rescued": 1, "penalised": 1, "neutral": 1},
        "failing": {"both +": 1, "both −": 0, "rescued": 0, "penalised": 0, "neutral": 0},
    }
