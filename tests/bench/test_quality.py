"""The study of quality sees what it should: planted estimators, good and wrong, are told apart."""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from rtmc.advantages import RECOMMENDED
from rtmc.bench import quality
from rtmc.bench.conditions import CONDITIONS, parameters, problems
from rtmc.bench.measures import Scores
from rtmc.bench.methods import METHODS
from rtmc.bench.quality import TRUTH, Piece, Row, Settings, goals, measure, pieces, rows, study
from rtmc.bench.simulate import gradient, rollouts
from rtmc.bench.truth import exact

SIZES = (4, 16, 64)


@cache
def known(condition):
    """What is known of the pool's problems, by problem."""
    return {tuple(of.problem.tolist()): of for of in quality._pool(condition, "start", 16).exact}


def true_advantages(sample, condition):
    """A of every step, looked up by the problem that the sample names."""
    group, time = sample.of_rollout[sample.rollout_of_step], sample.time
    true = np.zeros(len(group))
    for at, problem in enumerate(sample.problems):
        own = group == at
        truth = known(condition.name)[tuple(problem.tolist())]
        true[own] = truth.advantages(time[own], sample.states[own], sample.actions[own])
    return true


@dataclass
class Planted:
    """An estimator made from the truth."""

    change: Any

    def __call__(self, sample, condition, theta, discount, seed):
        rng = np.random.default_rng(len(sample.states))
        return self.change(true_advantages(sample, condition), rng)


@dataclass
class Negative:
    """What is wrong in the simplest way."""

    name: str

    def __call__(self, *args):
        return -METHODS[self.name](*args)


PLANTED = {
    "planted truth": Planted(lambda a, rng: a.copy()),
    "planted truth, doubled": Planted(lambda a, rng: 2 * a),
    "planted, negative": Planted(lambda a, rng: -a),
    "planted, negative grpo": Negative("grpo"),
    "planted, shuffled": Planted(lambda a, rng: rng.permutation(a)),
    "planted, a step late": Planted(lambda a, rng: np.roll(a, 1)),
    "planted, biased": Planted(lambda a, rng: a + a.std()),
    "planted, noisy": Planted(lambda a, rng: a + rng.normal(0, a.std(), len(a))),
    "planted, signs only": Planted(lambda a, rng: np.sign(a)),
    "planted, silent": Planted(lambda a, rng: 0 * a),
}


@pytest.fixture(scope="module")
def judged():
    """Rows of all planted estimators, by condition, estimator and n."""
    settings = Settings(("A", "E"), ("start",), SIZES, ("grpo", "rtmc", *PLANTED), 6, 16)
    with pytest.MonkeyPatch.context() as patch:
        for name, method in PLANTED.items():
            patch.setitem(METHODS, name, method)
        ticks = []
        found = study(settings, 1, None, lambda: ticks.append(None))
    assert len(ticks) == len(pieces(settings)) == 4  # 5 seeds and 1, twice
    return {(r.condition, r.estimator, r.n): r for r in found["rows"]}, found


@pytest.mark.parametrize("condition", ["A", "E"])
@pytest.mark.parametrize("n", SIZES)
def test_the_truth_is_seen_as_true(judged, condition, n):
    of, _ = judged
    for name in (TRUTH, "planted truth", "planted truth, doubled"):
        row = of[condition, name, n]
        assert row.fvu == pytest.approx(0, abs=1e-12)
        assert row.sign == 1
        assert row.rank == pytest.approx(1)
        assert abs(row.bias) < 8 * row.bias_error + 0.01
        assert row.cosine == pytest.approx(of[condition, TRUTH, n].cosine, abs=1e-12)
    best = max(of[condition, name, n].cosine for name in ("grpo", "rtmc", *PLANTED))
    assert of[condition, TRUTH, n].cosine > best - 0.03


@pytest.mark.parametrize("condition", ["A", "E"])
def test_more_rollouts_bring_the_truth_nearer(judged, condition):
    of, _ = judged
    cosines = [of[condition, TRUTH, n].cosine for n in SIZES]
    assert cosines == sorted(cosines)
    assert cosines[-1] > 0.95
    assert cosines[-1] > cosines[0] + 0.05


@pytest.mark.parametrize("condition", ["A", "E"])
@pytest.mark.parametrize("n", [16, 64])
def test_wrong_estimators_are_seen_as_wrong(judged, condition, n):
    of, _ = judged
    true, grpo = of[condition, TRUTH, n], of[condition, "grpo", n]

    def planted(name):
        return of[condition, f"planted, {name}", n]

    wrong = planted("negative")
    assert wrong.cosine == pytest.approx(-true.cosine)
    assert wrong.sign == 0
    assert wrong.rank == pytest.approx(-1)
    wrong = planted("negative grpo")
    assert wrong.cosine == pytest.approx(-grpo.cosine)
    assert wrong.sign == pytest.approx(1 - grpo.sign)
    assert wrong.sign < 0.5
    assert wrong.high < 0
    wrong = planted("shuffled")
    assert wrong.cosine < true.cosine - 0.4
    assert wrong.fvu > 0.9
    assert abs(wrong.rank) < 0.1
    assert abs(wrong.bias - true.bias) < 1e-12, "shuffling leaves the mean"
    wrong = planted("a step late")
    assert wrong.cosine < true.cosine - 0.2
    assert wrong.fvu > 0.5
    assert wrong.sign < 0.9
    wrong = planted("biased")  # A + σ: mean square 2σ², mean σ
    assert wrong.bias == pytest.approx(0.5**0.5, abs=0.05)
    assert wrong.fvu == pytest.approx(0.5, abs=0.05)
    assert wrong.sign < 0.9
    assert wrong.rank == pytest.approx(1), "a constant changes no rank"
    assert wrong.cosine < true.cosine
    wrong = planted("noisy")
    assert wrong.fvu == pytest.approx(0.5, abs=0.05)
    assert 0.2 < wrong.rank < 0.9
    assert abs(wrong.bias) < 0.1
    wrong = planted("signs only")
    assert wrong.sign == 1
    assert 0.05 < wrong.fvu < 0.9
    wrong = planted("silent")
    assert (wrong.cosine, wrong.fvu, wrong.sign, wrong.rank, wrong.bias) == (0, 1, 0.5, 0, 0)


def test_rows_hold_every_estimator_once_and_compare_with_rtmc(judged):
    of, found = judged
    assert len(of) == len(found["rows"]) == 2 * len(SIZES) * (3 + len(PLANTED))
    for row in found["rows"]:
        assert row.seeds == 6
        assert row.low <= row.cosine <= row.high
        assert row.to_rtmc_low <= row.cosine_to_rtmc <= row.to_rtmc_high
        rtmc = of[row.condition, "rtmc", row.n]
        assert row.cosine_to_rtmc == pytest.approx(row.cosine - rtmc.cosine, abs=1e-12)
    assert found["recommended"] == RECOMMENDED
    assert found["discount"] == 0.99
    assert found["problems_a_batch"] == 8
    msgspec.json.encode(found)


def test_the_truth_against_four_times_the_rollouts(judged):
    of, found = judged
    truths = [goal for goal in found["goals"] if goal.estimator == TRUTH]
    assert [(g.condition, g.n, g.rtmc_n) for g in truths] == [
        ("A", 4, 16), ("A", 16, 64), ("E", 4, 16), ("E", 16, 64)
    ]  # fmt: skip
    for goal in truths:
        expected = (
            of[goal.condition, TRUTH, goal.n].cosine
            - of[goal.condition, "rtmc", goal.rtmc_n].cosine
        )
        assert goal.difference == pytest.approx(expected, abs=1e-12)
        assert goal.low <= goal.difference <= goal.high


# --- unbiased estimators point to the truth in the mean ------------------------------------------


@pytest.mark.parametrize(("name", "share"), [("dr_grpo", 3 / 4), ("rloo", 1)])
def test_expected_gradients(name, share):
    """With its own outcome in the baseline, REINFORCE gives (n − 1)/n of the gradient."""
    c, n, batches = CONDITIONS["E"], 4, 1200
    method = METHODS[name]
    drawn = problems(c.world, np.random.default_rng(5), 8)
    truths = [exact(c.world, c.policy, c.start, p, c.horizon, 1.0).gradient for p in drawn]
    true = np.mean(truths, axis=0)
    found = np.zeros((batches, len(true)))
    for seed in range(batches):
        sample = rollouts(c.world, c.policy, c.start, drawn, n, c.horizon, 1, seed)
        weights = method(sample, c, c.start, 1.0, seed)
        found[seed] = gradient(c.world, c.policy, c.start, sample, c.horizon, weights)
    mean = found.mean(axis=0)
    assert mean @ true / np.linalg.norm(mean) / np.linalg.norm(true) > 0.98
    along = found @ true / (true @ true)
    assert abs(along.mean() - share) < 4 * along.std() / batches**0.5
    assert along.std() / batches**0.5 < 0.03, "a factor of 3/4 is seen"


# --- all estimators see the same batches ---------------------------------------------------------


@dataclass
class Spy:
    """Keeps what it is shown."""

    shown: list = field(default_factory=list)

    def __call__(self, sample, condition, theta, discount, seed):
        self.shown.append((sample, seed, discount, theta))
        return sample.outcomes[sample.rollout_of_step]


def piece(estimators, seeds=(0, 2), sizes=(4,), condition="E"):
    return Piece(condition, "start", seeds, sizes, estimators, 16)


def scores_of(found):
    return {(n, name): scores for n, name, scores in found}


def test_estimators_are_compared_on_the_same_batches(monkeypatch):
    one, two = Spy(), Spy()
    monkeypatch.setitem(METHODS, "spy", one)
    monkeypatch.setitem(METHODS, "another spy", two)
    measure(piece(("spy", "critic", "another spy"), sizes=(4, 8)))
    assert len(one.shown) == len(two.shown) == 4
    for (first, *_), (second, *_) in zip(one.shown, two.shown, strict=True):
        assert first is second
    samples = [sample for sample, *_ in one.shown]
    assert [len(s.outcomes) for s in samples] == [32, 64, 32, 64]
    assert np.array_equal(samples[0].problems, samples[1].problems), "the same problems for all n"
    assert not np.array_equal(samples[0].problems, samples[2].problems)
    assert not np.array_equal(samples[0].actions[:40], samples[1].actions[:40])
    pool = quality._pool("E", "start", 16).problems.tolist()
    for sample in samples:
        at = [pool.index(problem) for problem in sample.problems.tolist()]
        assert len(set(at)) == 8
    for _, _, discount, theta in one.shown:
        assert discount == 0.99
        assert np.array_equal(theta, parameters("E", "start"))


def test_neither_company_nor_the_cut_changes_a_score():
    many = scores_of(measure(piece(("critic", "rtmc", "vineppo", "grpo"), (0, 4))))
    for name in ("critic", "rtmc", "vineppo", "grpo"):
        alone = scores_of(measure(piece((name,), (0, 4))))
        assert alone[4, name] == many[4, name]
        assert alone[4, TRUTH] == many[4, TRUTH]
        assert len(set(alone[4, name])) == 4, "seeds differ"
    parts = [scores_of(measure(piece(("rtmc",), cut))) for cut in ((0, 1), (1, 4))]
    assert parts[0][4, "rtmc"] + parts[1][4, "rtmc"] == many[4, "rtmc"]


def test_the_critic_has_learned_before_it_is_judged(monkeypatch):
    found = scores_of(measure(piece(("critic",), (0, 5))))[4, "critic"]
    monkeypatch.setattr(quality, "WARM", 0)
    cold = scores_of(measure(piece(("critic",), (0, 5))))[4, "critic"]
    assert np.mean([s.fvu for s in found]) < np.mean([s.fvu for s in cold]) - 0.05
    assert METHODS["critic"].gram is None, "each batch has a critic of its own"


def test_a_sampled_truth_comes_near_the_exact_one(monkeypatch):
    exact_scores = scores_of(measure(piece(("dr_grpo", "rtmc"), (0, 5), (16,))))
    monkeypatch.setitem(CONDITIONS, "E", replace(CONDITIONS["E"], exact=False))
    monkeypatch.setattr(quality, "GRADIENT_ROLLOUTS", 4000)
    quality._pool.cache_clear()
    sampled = scores_of(measure(piece(("dr_grpo", "rtmc"), (0, 5), (16,))))
    quality._pool.cache_clear()
    for name in ("dr_grpo", "rtmc"):
        for at, tolerance in ((0, 0.05), (1, 0.05), (4, 1e-12)):  # cosine, fvu, bias
            one, two = (np.mean([s[at] for s in of[16, name]]) for of in (exact_scores, sampled))
            assert one == pytest.approx(two, abs=tolerance), name
        assert sampled[16, name] != exact_scores[16, name]


# --- worked by hand ------------------------------------------------------------------------------


def scores(cosine, fvu=0.5, sign=0.5, rank=0.0, bias=0.0):
    return Scores(cosine, fvu, sign, rank, bias)


def test_rows():
    found = {
        (4, "rtmc"): [scores(0.2), scores(0.4)],
        (4, "mine"): [scores(0.3, 0.2, 0.6, 0.1, 0.1), scores(0.5, 0.4, 0.8, 0.3, 0.3)],
    }
    rtmc, mine = rows("A", "half", found)
    assert isinstance(mine, Row)
    assert (mine.condition, mine.stage, mine.estimator, mine.n, mine.seeds) == (
        "A", "half", "mine", 4, 2
    )  # fmt: skip
    # the mean of two seeds, resampled: 0.3 or 0.5 at the ends
    assert (mine.cosine, mine.low, mine.high) == pytest.approx((0.4, 0.3, 0.5))
    # 0.1 better on both batches, though the batches differ by more
    assert (mine.cosine_to_rtmc, mine.to_rtmc_low, mine.to_rtmc_high) == pytest.approx([0.1] * 3)
    assert (mine.fvu, mine.sign, mine.rank, mine.bias) == pytest.approx((0.3, 0.7, 0.2, 0.2))
    # deviation of 0.1, 0.3 with n − 1: √0.02, over √2
    assert mine.bias_error == pytest.approx(0.1)
    assert (rtmc.cosine_to_rtmc, rtmc.to_rtmc_low, rtmc.to_rtmc_high) == (0, 0, 0)


def test_rows_without_rtmc_or_with_one_seed():
    (row,) = rows("A", "half", {(4, "mine"): [scores(0.3)]})
    assert np.isnan([row.cosine_to_rtmc, row.to_rtmc_low, row.to_rtmc_high, row.bias_error]).all()
    assert (row.cosine, row.low, row.high) == (0.3, 0.3, 0.3)
    assert msgspec.json.decode(msgspec.json.encode(row))["cosine_to_rtmc"] is None


def test_goals():
    found = {
        (4, "rtmc"): [scores(0.2)] * 2,
        (4, TRUTH): [scores(0.7), scores(0.8)],
        (4, RECOMMENDED): [scores(0.3)] * 2,
        (4, "other"): [scores(0.9)] * 2,
        (8, TRUTH): [scores(0.9)] * 2,
        (16, "rtmc"): [scores(0.5), scores(0.6)],
        (16, TRUTH): [scores(1)] * 2,
    }
    ours, true = goals("A", "half", found)
    assert (ours.estimator, ours.n, ours.rtmc_n) == (RECOMMENDED, 4, 16)
    # 0.3 − (0.5, 0.6); (0.7, 0.8) − (0.5, 0.6)
    assert (ours.difference, ours.low, ours.high) == pytest.approx((-0.25, -0.3, -0.2))
    assert (true.difference, true.low, true.high) == pytest.approx((0.2, 0.2, 0.2))


def test_pieces_cover_all_seeds_once():
    settings = Settings(("A", "E"), ("start", "half"), (4,), ("grpo",), 12, 16)
    found = pieces(settings)
    assert [p.seeds for p in found[:3]] == [(0, 5), (5, 10), (10, 12)]
    assert len(found) == 12
    assert len({(p.condition, p.stage, p.seeds) for p in found}) == 12
    assert all((p.sizes, p.estimators, p.pool) == ((4,), ("grpo",), 16) for p in found)
