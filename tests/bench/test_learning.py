"""Learning curves: deterministic, tuned apart from what is reported, compared seed by seed."""

from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest

from rtmc.bench import learning
from rtmc.bench.conditions import CONDITIONS
from rtmc.bench.learning import (
    FRESH_FROM,
    RATES,
    Runs,
    Settings,
    area,
    chosen_rate,
    collapsed,
    final,
    learn,
    outcomes,
    study,
    work_of,
)
from rtmc.bench.methods import METHODS
from rtmc.bench.simulate import rollouts

E = CONDITIONS["E"]


@dataclass
class Spy:
    """Keeps what it is shown, and gives each step its outcome times ``sign``."""

    sign: float = 1.0
    shown: list = field(default_factory=list)

    def __call__(self, sample, condition, theta, discount, seed):
        self.shown.append((sample, condition, theta, discount))
        baseline = sample.outcomes.mean()
        return self.sign * (sample.outcomes - baseline)[sample.rollout_of_step]


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(learning, "UPDATES", 10)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", ["grpo", "critic"])
@pytest.mark.parametrize("kind", ["shared", "table"])
def test_a_run_is_decided_by_its_seed(kind, name):
    one = learn(E, kind, name, 0.4, 3)
    assert len(one) == 3  # before, after 5, after 10
    assert all(0 <= success <= 1 for success in one)
    assert learn(E, kind, name, 0.4, 3) == one, "nothing is kept from run to run"
    other = learn(E, kind, name, 0.4, 4)
    assert other != one
    assert learn(E, kind, name, 0.1, 3)[0] == one[0], "tested before it has learned"
    assert learn(E, kind, name, 0.1, 3) != one
    assert learning.run(Runs("E", kind, name, 0.4, (3, 5))) == [one, other]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("kind", "groups", "size"), [("shared", 4, 8), ("table", 2, 16)])
def test_all_methods_learn_from_the_same_problems(monkeypatch, kind, groups, size):
    up, down = Spy(1.0), Spy(-1.0)
    monkeypatch.setitem(METHODS, "up", up)
    monkeypatch.setitem(METHODS, "down", down)
    learn(E, kind, "up", 0.4, 3)
    learn(E, kind, "down", 0.4, 3)
    assert len(up.shown) == len(down.shown) == 11
    assert np.array_equal(up.shown[0][2], down.shown[0][2]), "the same first parameters"
    assert not np.array_equal(up.shown[1][2], down.shown[1][2])
    samples = [sample for sample, *_ in up.shown]
    for mine, theirs in zip(samples, (sample for sample, *_ in down.shown), strict=True):
        assert np.array_equal(mine.problems, theirs.problems)
        assert np.bincount(mine.of_rollout).tolist() == [size] * groups
    drawn = {tuple(problem) for sample in samples for problem in sample.problems.tolist()}
    assert len(drawn) == (1 if kind == "table" else 44), "new problems each time, or one for good"
    condition = up.shown[0][1]
    assert condition.policy.name == ("table" if kind == "table" else "linear")
    assert len(up.shown[0][2]) == condition.policy.size
    assert {discount for *_, discount in up.shown} == {0.99}


@pytest.mark.parametrize("kind", ["shared", "table"])
def test_what_is_learned_is_tested(monkeypatch, kind):
    # the sign of the advantages decides whether success rises or falls
    monkeypatch.setitem(METHODS, "up", Spy(1.0))
    monkeypatch.setitem(METHODS, "down", Spy(-1.0))
    monkeypatch.setattr(learning, "UPDATES", 30)
    seed = 1
    up, down = (learn(E, kind, name, 0.2, seed) for name in ("up", "down"))
    assert len(up) == len(down) == 7
    assert up[0] == down[0] > 0
    assert final(up) > up[0] + 0.05
    assert final(down) < up[0] - 0.05


@pytest.mark.usefixtures("short")
def test_tests_are_on_problems_apart(monkeypatch):
    tested, trained = [], []

    def watched(world, policy, theta, problems, n, horizon, spellings, seed):
        (trained if len(problems) == 4 else tested).append((problems, n, spellings))
        return rollouts(world, policy, theta, problems, n, horizon, spellings, seed)

    monkeypatch.setattr(learning, "rollouts", watched)
    learn(CONDITIONS["B"], "shared", "grpo", 0.1, 3)
    assert [n for _, n, _ in tested] == [4] * 3
    assert {spellings for *_, spellings in trained} == {2}
    first = {tuple(problem) for problem in tested[0][0].tolist()}
    assert len(tested[0][0]) == 128
    assert all(np.array_equal(problems, tested[0][0]) for problems, *_ in tested)
    later = [tuple(problem) for problems, *_ in trained for problem in problems.tolist()]
    assert sum(problem in first for problem in later) <= 1


# --- worked by hand ------------------------------------------------------------------------------


def test_area_and_end_of_a_curve():
    # trapezia: (0.2 + 0.4)/2 and (0.4 + 1)/2, in the mean
    assert area([0.2, 0.4, 1.0]) == pytest.approx((0.3 + 0.7) / 2)
    assert area([0.5, 0.5]) == 0.5
    assert final([0.2, 0.4, 1.0]) == pytest.approx(0.7)


def test_collapse_is_an_end_below_half_of_the_start():
    assert collapsed([0.4, 0.9, 0.1, 0.2])  # 0.15 < 0.2
    assert not collapsed([0.4, 0.0, 0.2, 0.2])  # 0.2 is half
    assert not collapsed([0.4, 0.0, 0.0, 0.5])
    assert not collapsed([0.0, 0.0, 0.0])


def test_the_rate_of_the_largest_mean_area_is_chosen():
    curves = {0.1: [[0.2, 0.2], [0.4, 0.4]], 0.2: [[0.0, 0.0], [0.9, 0.9]], 0.4: [[0.3, 0.3]] * 2}
    assert chosen_rate(curves) == 0.2  # means 0.3, 0.45, 0.3


def flat(*levels):
    return [[level] * 3 for level in levels]


def test_outcomes_are_paired_by_seed():
    zeros = {rate: flat(0.1, 0.1) for rate in RATES["shared"]}
    mine = zeros | {0.4: [[0.5, 0.5, 0.7], [0.4, 0.1, 0.1]]}
    tuning = {"grpo": zeros, "rtmc": zeros, "mine": mine}
    chosen = {
        "grpo": (0.1, flat(0.2, 0.6)),
        "rtmc": (0.2, flat(0.1, 0.3)),
        "mine": (0.4, [[0.3, 0.3, 0.5], [0.7, 0.7, 0.9]]),
    }
    grpo, _, found = outcomes("A", "shared", tuning, chosen)
    assert (found.condition, found.kind, found.estimator, found.rate, found.seeds) == (
        "A", "shared", "mine", 0.4, 2
    )  # fmt: skip
    # areas (0.3 + 0.4)/2 and (0.7 + 0.8)/2, ends 0.4 and 0.8; of two seeds, the interval is both
    assert found.area == pytest.approx((0.55, 0.35, 0.75))
    assert found.final == pytest.approx((0.6, 0.4, 0.8))
    # against grpo seed by seed: 0.35 − 0.2, 0.75 − 0.6; 0.4 − 0.2, 0.8 − 0.6
    assert found.area_to_grpo == pytest.approx((0.15, 0.15, 0.15))
    assert found.final_to_grpo == pytest.approx((0.2, 0.2, 0.2))
    # against rtmc: 0.25, 0.45; 0.3, 0.5
    assert found.area_to_rtmc == pytest.approx((0.35, 0.25, 0.45))
    assert found.final_to_rtmc == pytest.approx((0.4, 0.3, 0.5))
    assert grpo.area_to_grpo == (0, 0, 0)
    # at 0.4, the fifth rate: areas 0.55 and (0.25 + 0.1)/2; one of two ends below half
    assert found.tuned == (0.1, 0.1, 0.1, 0.1, 0.3625, 0.1)
    assert found.collapsed == (0, 0, 0, 0, 0.5, 0)
    assert found.curve == (0.5, 0.5, 0.7)


def test_outcomes_without_what_they_are_compared_with():
    zeros = {rate: flat(0.1) for rate in RATES["table"]}
    (found,) = outcomes("A", "table", {"mine": zeros}, {"mine": (0.1, flat(0.2, 0.2))})
    assert np.isnan([*found.area_to_grpo, *found.final_to_rtmc]).all()
    assert found.area == pytest.approx((0.2, 0.2, 0.2))
    assert msgspec.json.decode(msgspec.json.encode(found))["area_to_grpo"] == [None] * 3


# --- the study -----------------------------------------------------------------------------------


class Scripted:
    """Curves by rate: those of the tuning seeds and those of the fresh ones disagree."""

    def __init__(self):
        self.asked = []

    def __call__(self, piece):
        self.asked.append(piece)
        first, end = piece.seeds
        tuning = {"grpo": 0.2, "mine": 0.05}[piece.estimator]
        best = tuning if end <= FRESH_FROM else 0.8
        return [[0.1, 0.9 if piece.rate == best else 0.3] for _ in range(first, end)]


def test_the_rate_is_chosen_on_tuning_seeds_alone(monkeypatch):
    scripted = Scripted()
    monkeypatch.setattr(learning, "run", scripted)
    settings = Settings("A", "shared", ("grpo", "mine"), 3, 8)
    ticks = []
    found = study(settings, 1, None, lambda: ticks.append(None))
    grpo, mine = found["rows"]
    assert (grpo.estimator, grpo.rate, mine.estimator, mine.rate) == ("grpo", 0.2, "mine", 0.05)
    # at its best rate for tuning: 0.6 there, on fresh seeds 0.2
    assert max(grpo.tuned) == pytest.approx(0.5)
    assert grpo.area[0] == pytest.approx(0.2)
    assert grpo.seeds == 8
    tuning = [p for p in scripted.asked if p.seeds[1] <= FRESH_FROM]
    fresh = [p for p in scripted.asked if p not in tuning]
    assert [(p.rate, p.seeds) for p in tuning if p.estimator == "grpo"] == [
        (rate, (0, 3)) for rate in RATES["shared"]
    ]
    assert [(p.estimator, p.rate, p.seeds) for p in fresh] == [
        ("grpo", 0.2, (100, 106)), ("grpo", 0.2, (106, 108)),
        ("mine", 0.05, (100, 106)), ("mine", 0.05, (106, 108)),
    ]  # fmt: skip
    assert len(ticks) == work_of(settings) == 16
    assert {name: len(curves) for name, curves in found["curves"].items()} == {"grpo": 8, "mine": 8}
    assert found["rates"] == RATES["shared"]
    assert found["rollouts_an_update"] == 32
    msgspec.json.encode(found)


def test_both_kinds_learn_from_as_many_rollouts():
    assert {learning.GROUPS[k] * learning.ROLLOUTS[k] for k in ("shared", "table")} == {32}
