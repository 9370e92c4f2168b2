"""The other estimators: against slow oracles, worked by hand, and what must always hold."""

from dataclasses import replace
from functools import partial
from math import sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_estimators as slow
import rtmc
from oracle import Attempt, Turn, mean, walk
from rtmc.advantages.dr_grpo import DrGRPO
from rtmc.advantages.g2po import G2PO
from rtmc.advantages.gigpo import GiGPO
from rtmc.advantages.graft import GraFT
from rtmc.advantages.maxrl import MaxRL
from rtmc.advantages.mt_grpo import MTGRPO
from rtmc.advantages.pooled_gae import PooledGAE
from rtmc.advantages.reinforce_pp_baseline import ReinforcePPBaseline
from rtmc.advantages.rloo import RLOO
from rtmc.advantages.salt import SALT
from rtmc.advantages.tempo import TEMPO
from rtmc.batch import Batch
from rtmc.errors import OptionError

FLOOR = 1e-6
SHAPES = ("population", "sample", "none")


# --- the library, on hand-made keys ------------------------------------------------------------


def batch_of(groups, gamma=1.0, levels=None, random=None):
    """Lay out groups; ids are dense, ``random`` scatters them."""
    attempts = [attempt for group in groups for attempt in group]
    of_attempt = [g for g, group in enumerate(groups) for _ in group]
    lengths = [len(attempt.turns) for attempt in attempts]
    turns = [(g, turn) for g, a in zip(of_attempt, attempts, strict=True) for turn in a.turns]
    levels = levels or (slow.state,)

    def column(keys):
        found = {}
        ids = [found.setdefault(key, len(found)) for key in keys]
        if random:
            names = random.sample(range(10 * len(found) + 10), len(found))
            ids = [names[i] for i in ids]
        return ids

    def columns(made):
        return np.array(made, dtype=np.int64).reshape(len(made), len(turns)).T

    def numbers(rows):
        return np.array([x for row in rows for x in row], dtype=np.float64)

    return Batch(
        group_of_rollout=np.array(of_attempt, dtype=np.int64),
        rollout_of_step=np.repeat(np.arange(len(attempts)), lengths),
        starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        states=columns([column([(g, key(turn)) for g, turn in turns]) for key in levels]),
        actions=columns([column([turn.action for _, turn in turns]) for _ in levels]),
        outcomes=np.array([attempt.outcome for attempt in attempts], dtype=np.float64),
        rewards=numbers([slow.rewards_of(attempt) for attempt in attempts]),
        returns=numbers([slow.returns_of(attempt, gamma) for attempt in attempts]),
        step_rewards=numbers([[turn.reward for turn in attempt.turns] for attempt in attempts]),
        discount=gamma,
    )


def rows_of(estimator, groups, gamma=1.0, random=None):
    """Give the library's advantages, an array an attempt."""
    levels = (slow.coarse, slow.fine) if isinstance(estimator, PooledGAE) else None
    batch = batch_of(groups, gamma, levels, random)
    got = estimator(batch).advantages
    assert got.shape == batch.rewards.shape
    assert np.isfinite(got).all()
    return np.split(got, batch.starts[1:-1])


def close(got, *expected, atol=1e-12):
    assert len(got) == len(expected)
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=atol)


def same_bits(got, expected):
    assert len(got) == len(expected)
    assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))


# --- worked by hand ----------------------------------------------------------------------------

TRIO = (walk(1, "s:a t:b"), walk(0, "s:a"), walk(0))  # the last has no turn, and votes
FORK = (walk(1, "s:a t:x"), walk(0, "s:b u:y"))


def test_dr_grpo():
    # R = 1, 0, 0: mean 1/3
    close(rows_of(DrGRPO(), [TRIO]), [2 / 3] * 2, [-1 / 3], [])
    # R = 5, 2: mean 7/2; a group of one: 0
    close(
        rows_of(DrGRPO(), [[walk(5, "s:a"), walk(2, "s:a")], [walk(3, "s:a")]]), [1.5], [-1.5], [0]
    )


def test_rloo():
    # R = 1, 0, 0: 1 − mean(0, 0), 0 − mean(1, 0)
    close(rows_of(RLOO(), [TRIO]), [1, 1], [-1 / 2], [])
    # R = 5, 2: 5 − 2, 2 − 5; a group of one has no others: 0
    close(rows_of(RLOO(), [[walk(5, "s:a"), walk(2, "s:a")], [walk(3, "s:a")]]), [3], [-3], [0])


def test_reinforce_pp_baseline():
    # b = ±1/2 in the first group, 2/3, −1/3, −1/3 in the second; squares 1/2 + 2/3 = 7/6 over 5
    pair = [walk(1, "s:a"), walk(0, "s:b s:c")]
    std = sqrt(7 / 6 / 5) + FLOOR
    expected = [[1 / 2], [-1 / 2] * 2, [2 / 3] * 2, [-1 / 3], []]
    close(rows_of(ReinforcePPBaseline(), [pair, TRIO]), *(np.array(row) / std for row in expected))
    # b = ±1/2 and the 0 of a group of one, which counts: squares 1/2 over 3
    std = sqrt(1 / 2 / 3) + FLOOR
    got = rows_of(ReinforcePPBaseline(), [pair, [walk(3, "s:a")]])
    close(got, [1 / 2 / std], [-1 / 2 / std] * 2, [0])


def test_maxrl():
    # R = 1, 0, 0: mean 1/3: (2/3)/(1/3), (−1/3)/(1/3)
    close(rows_of(MaxRL(), [TRIO]), [2, 2], [-1], [])
    # mean 0, then mean −1: 0
    groups = [[walk(1, "s:a"), walk(-1, "s:b")], [walk(1, "s:a"), walk(-3, "s:b")]]
    close(rows_of(MaxRL(), groups), [0], [0], [0], [0])


@pytest.mark.parametrize(("omega", "expected"), [(1, [3 / 4, 1 / 2]), (2, [1, 1 / 2])])
def test_gigpo_without_a_divisor(omega, expected):
    # γ = 1/2, G = 1/2, 1 and 0, 0. A^E = ±1/2. s: mean G 1/4: A^S = ±1/4; t, u alone: 0
    got = rows_of(GiGPO(float(omega), "none"), [FORK], gamma=0.5)
    close(got, expected, [-x for x in expected])


def test_gigpo_divides_by_the_deviation():
    # deviations: 1/2 of R, 1/4 of G in s
    whole, step = 1 / 2 / (1 / 2 + FLOOR), 1 / 4 / (1 / 4 + FLOOR)
    got = rows_of(GiGPO(), [FORK], gamma=0.5)
    close(got, [whole + step, whole], [-whole - step, -whole])


def test_gigpo_counts_every_visit():
    # γ = 1/2, G = 1/2, 1 and 0, all in s: mean 1/2. A^S = 0, 1/2, −1/2, A^E = ±1/2
    got = rows_of(GiGPO(divisor="none"), [[walk(1, "s:a s:a"), walk(0, "s:b")]], gamma=0.5)
    close(got, [1 / 2, 1], [-1])


def test_salt():
    # R = 1, 0, 0: 2/3, −1/3, −1/3. Edge s a t: (2/3 − 1/3)/2. The edge s a END is another
    group = [walk(1, "s:a t:b"), walk(0, "s:a t:c"), walk(0, "s:a")]
    close(rows_of(SALT("none"), [group]), [1 / 6, 2 / 3], [1 / 6, -1 / 3], [-1 / 3])
    # the end is one state: both take the edge s a END: (1/2 − 1/2)/2
    close(rows_of(SALT("none"), [[walk(1, "s:a"), walk(0, "s:a")]]), [0], [0])
    # R = 1, 0, sample deviation √(1/2); s b and s c are edges apart
    close(rows_of(SALT("sample"), [[walk(1, "s:b"), walk(0, "s:c")]]),
          [1 / 2 / (sqrt(1 / 2) + FLOOR)], [-1 / 2 / (sqrt(1 / 2) + FLOOR)])  # fmt: skip


def test_salt_counts_an_attempt_once_an_edge():
    # ±1/2. Edge s a s: twice in the first, once in the second: (1/2 − 1/2)/2, by visits 1/6
    group = [walk(1, "s:a s:a s:a"), walk(0, "s:a s:b")]
    close(rows_of(SALT("none"), [group]), [0, 0, 1 / 2], [0, -1 / 2])


@pytest.mark.parametrize(
    ("options", "winner", "loser"),
    [
        # γ = 1/2. V(t) = 1, V(u) = 0, V(s) = (1/2 + 0)/2 = 1/4
        ({"n_prior": 0.0}, [1 / 4, 0], [-1 / 4, 0]),
        # p = 1/2: V(t) = (1 + 1)/3, V(u) = (0 + 1)/3, V(s) = (1/3 + 1/6 + 1)/4 = 3/8
        ({}, [1 / 3 - 3 / 8, 1 - 2 / 3], [1 / 6 - 3 / 8, -1 / 3]),
        # λ = 1: the first turn has half the second's δ besides
        ({"lam": 1.0}, [1 / 3 - 3 / 8 + 1 / 6, 1 / 3], [1 / 6 - 3 / 8 - 1 / 6, -1 / 3]),
    ],
)
def test_graft(options, winner, loser):
    close(rows_of(GraFT(**options), [FORK], gamma=0.5), winner, loser, atol=1e-9)


LOOP = (walk(1, "s:a s:b"), walk(0, "s:b"))


def test_graft_in_a_loop():
    # γ = 1/2, n₀ = 0: 3 V = V/2 + 1 + 0, V = 2/5. A = V/2 − V, 1 − V, 0 − V
    close(rows_of(GraFT(n_prior=0.0), [LOOP], gamma=0.5), [-0.2, 0.6], [-0.4], atol=1e-9)
    # γ = 1, n₀ = 2, p = 1/2: 5 V = V + 1 + 0 + 1, V = 1/2. A = 0, 1/2, −1/2
    close(rows_of(GraFT(), [LOOP]), [0, 1 / 2], [-1 / 2], atol=1e-9)


def test_graft_in_a_loop_of_thousands():
    # γ = 1, n₀ = 0: 3000 V = 2999 V + 1, V = 1. A = V − V, 1 − V
    long = walk(1, " ".join(["s:a"] * 3000))
    close(rows_of(GraFT(n_prior=0.0), [[long, walk(0, "t:b")]]), [0] * 3000, [0], atol=1e-9)
    # γ = 1, n₀ = 0, to and fro: V(s) = V(t), 100 V(t) = 99 V(s) + 1, V = 1
    long = walk(1, " ".join(["s:a", "t:b"] * 100))
    close(rows_of(GraFT(n_prior=0.0), [[long, walk(0, "u:b")]]), [0] * 200, [0], atol=1e-9)


def test_graft_where_the_states_of_groups_do_not_lie_together():
    # γ = 1, n₀ = 0: V = 1 in s, t, u, one sweep after another, and 0 in the other group
    groups = [[walk(1, "s:a t:a u:a")], [walk(0, "v:a w:a x:a")]]
    batch = batch_of(groups)
    batch = replace(batch, states=np.array([0, 2, 4, 1, 3, 5])[:, None])
    np.testing.assert_allclose(GraFT(n_prior=0.0)(batch).advantages, 0, rtol=0, atol=1e-12)


def test_graft_z_score():
    # A = −1/5, 3/5, −2/5 in s: mean 0, squares 1/25 + 9/25 + 4/25 over 3
    std = sqrt(14 / 25 / 3) + FLOOR
    got = rows_of(GraFT(n_prior=0.0, z_score=True), [LOOP], gamma=0.5)
    close(got, [-0.2 / std, 0.6 / std], [-0.4 / std], atol=1e-9)
    # n₀ = 2, γ = 1/2: 5 V = V/2 + 1 + 0 + 1, V = 4/9. A = −2/9, 5/9, −4/9: mean −1/27
    numbers = np.array([-2 / 9, 5 / 9, -4 / 9]) + 1 / 27
    a, b, c = numbers / (sqrt((numbers**2).sum() / 3) + FLOOR)
    close(rows_of(GraFT(z_score=True), [LOOP], gamma=0.5), [a, b], [c], atol=1e-9)


def test_g2po():
    # γ = 1/2. V(s) = (1/2 + 0)/2, V(t) = 1, V(u) = 0. d = 1 − 1/4, 1 + 0 − 1, 0 − 1/4, 0: mean 1/8
    # squares 25/64 + 1/64 + 9/64 + 1/64 = 36/64 over 4: deviation 3/8. A^E = ±1/2, not divided
    d = np.array([5 / 8, -1 / 8, -3 / 8, -1 / 8]) / (3 / 8 + FLOOR)
    whole = np.array([1 / 2, 1 / 2, -1 / 2, -1 / 2])
    for omega in (1.0, 2.0, 0.0):
        got = rows_of(G2PO(omega, "none"), [FORK], gamma=0.5)
        close(got, *np.split(whole + omega * d, 2))
    # A^E divided by the deviation of R, 1/2, or as a sample √(1/2); d as before
    close(rows_of(G2PO(), [FORK], gamma=0.5), *np.split(whole / (1 / 2 + FLOOR) + d, 2))
    got = rows_of(G2PO(std="sample"), [FORK], gamma=0.5)
    close(got, *np.split(whole / (sqrt(1 / 2) + FLOOR) + d, 2))


def test_g2po_on_one_step():
    # d = R + 0 − V(s) = 0, A^E = 0
    close(rows_of(G2PO(), [[walk(1, "s:a")]]), [0])
    # V(s) = 1/2: d = ±1/2, mean 0, deviation 1/2; A^E = ±1/2
    part = 1 / 2 + 1 / 2 / (1 / 2 + FLOOR)
    close(rows_of(G2PO(std="none"), [[walk(1, "s:a"), walk(0, "s:a")]]), [part], [-part])


def test_tempo():
    # V(s) = 1/3, V(t) = 1/2, V(u) = 0; s and t branch, u does not. GRPO: 2/3, −1/3, −1/3
    # first:  2/3 + 1/2 − 1/3, 2/3 + 1 − 1/2;  second: −1/3 + 1/2 − 1/3, −1/3 + 0 − 1/2
    # third: −1/3 + 0 − 1/3, −1/3
    group = [walk(1, "s:a t:c"), walk(0, "s:a t:d"), walk(0, "s:b u:e")]
    close(rows_of(TEMPO("none"), [group]), [5 / 6, 7 / 6], [-1 / 6, -5 / 6], [-2 / 3, -1 / 3])
    # the deviation divides GRPO's part alone: √(2/9)
    std = sqrt(2 / 9) + FLOOR
    expected = [[2 / 3 / std + 1 / 6, 2 / 3 / std + 1 / 2],
                [-1 / 3 / std + 1 / 6, -1 / 3 / std - 1 / 2],
                [-1 / 3 / std - 1 / 3, -1 / 3 / std]]  # fmt: skip
    close(rows_of(TEMPO(), [group]), *expected)


def test_tempo_where_one_action_leads_apart():
    # in s all take a: not branching, though V(t) = 1, V(u) = 0
    group = [walk(1, "s:a t:b"), walk(0, "s:a u:b")]
    close(rows_of(TEMPO("none"), [group]), [1 / 2, 1 / 2], [-1 / 2, -1 / 2])


PAID = (
    Attempt(1, (Turn("s", "a", 1.0), Turn("t", "b", 0.5))),
    Attempt(0, (Turn("s", "a", 0.0, 1),)),  # the bonus does not enter
)


@pytest.mark.parametrize(("lam", "first"), [(1.0, 1.0), (2.0, 1.5), (0.0, 0.5)])
def test_mt_grpo(lam, first):
    # GRPO ±1/2. Index 0: r = 1, 0, mean 1/2: ±1/2·λ; index 1: alone, 0
    close(rows_of(MTGRPO(lam, "none"), [PAID]), [first, 1 / 2], [-first])


def test_mt_grpo_divides_by_the_deviation():
    # R and r at index 0 are 1, 0: deviation 1/2, sample √(1/2)
    for std, deviation in (("population", 1 / 2), ("sample", sqrt(1 / 2))):
        part = 1 / 2 / (deviation + FLOOR)
        close(rows_of(MTGRPO(std=std), [PAID]), [2 * part, part], [-2 * part])


def test_pooled_gae():
    # γ = λ = 1/2. G = 1/2, 1 and 0, 0.
    # winner: V_0 = 0 at both turns, s: (0 + 2·0)/3 = 0 twice: δ = 0, 1
    # loser:  V_0 = 1/2, then (1/2)/γ = 1; s: (1/2 + 2/2)/3 = 1/2 twice: δ = 1/2·1 − 1/2, 0 − 1
    group = [walk(1, "s/x:a t/y:b"), walk(0, "s/x:a u/z:c")]
    close(rows_of(PooledGAE(), [group], gamma=0.5), [1 / 4, 1], [-1 / 4, -1])
    # λ = 0: δ alone
    close(rows_of(PooledGAE(lam=0.0), [group], gamma=0.5), [0, 1], [0, -1])


def test_pooled_gae_from_coarse_to_fine():
    # n₀ = 1. first:  V_0 = (0 + 1)/2, s: (0 + 1/2)/2 = 1/4, x: (1 + 1/4)/2 = 5/8
    #         second: V_0 = 1, s: (1 + 1)/2 = 1, y: nobody
    #         third:  V_0 = 1/2, t: nobody, x: (1 + 1/2)/2 = 3/4
    group = [walk(1, "s/x:a"), walk(0, "s/y:a"), walk(1, "t/x:a")]
    close(rows_of(PooledGAE(n_prior=1.0), [group]), [3 / 8], [-1], [1 / 4])


def test_pooled_gae_clips_the_root():
    # γ = 1/2, λ = 0, nothing shared. Of the second: V_0 = 1/4, 1/2, 1, then 2 clipped to 1:
    # δ = 0, 0, 1/2·1 − 1, 0 − 1. The first has V_0 = 0 throughout.
    group = [walk(1, "a/a:a b/b:a c/c:a"), walk(0, "d/d:a e/e:a f/f:a g/g:a")]
    close(rows_of(PooledGAE(lam=0.0), [group], gamma=0.5), [0, 0, 1], [0, 0, -1 / 2, -1])


# --- against the oracle ------------------------------------------------------------------------

CENTS = st.integers(0, 10_000).map(lambda cents: cents / 100)
OUTCOMES = st.sampled_from(
    [
        st.sampled_from([0.0, 1.0]),
        st.sampled_from([-1.0, 1.0]),
        CENTS,
        st.sampled_from([0.1, 0.1 + 1e-9, 0.1 - 1e-9]),  # equal, but for a jitter
        st.just(5.0),
    ]
)
STATES = [f"{c}/{f}" for c in ("", "s", "t") for f in ("x", "y")]


@st.composite
def problems(draw, min_rollouts=1, max_rollouts=5, outcomes=OUTCOMES, step_rewards=True):
    """One group, whose keys are few, so that states recur within and between attempts."""
    turns = st.builds(
        Turn,
        st.sampled_from(STATES[: draw(st.integers(1, len(STATES)))]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0.0, 0.0, 0.25, -0.5]) if step_rewards else st.just(0.0),
        st.sampled_from([0, 0, 1, 2]) if step_rewards else st.just(0),
    )
    attempts = st.builds(Attempt, draw(outcomes), st.lists(turns, max_size=8).map(tuple))
    return draw(st.lists(attempts, min_size=min_rollouts, max_size=max_rollouts))


def batches(**options):
    return st.lists(problems(**options), min_size=1, max_size=3)


GAMMAS = st.sampled_from([1.0, 0.9])
STD = st.sampled_from(SHAPES)
WEIGHT = st.sampled_from([1.0, 0.0, 2.5])
LAM = st.sampled_from([0.0, 0.5, 1.0])
CHOICES = {
    DrGRPO: {},
    RLOO: {},
    ReinforcePPBaseline: {},
    MaxRL: {},
    GiGPO: {"omega": WEIGHT, "divisor": st.sampled_from(["std", "none"])},
    SALT: {"std": STD},
    GraFT: {"lam": LAM, "n_prior": st.sampled_from([2.0, 0.0, 0.5])},
    G2PO: {"omega": WEIGHT, "std": STD},
    TEMPO: {"std": STD},
    MTGRPO: {"lam": WEIGHT, "std": STD},
    PooledGAE: {"lam": LAM, "n_prior": st.sampled_from([2.0, 0.5])},
}
EACH = pytest.mark.parametrize("kind", CHOICES, ids=lambda kind: kind.name)
NEEDS_OTHERS = (PooledGAE,)  # in a group of one it has nothing to say
ITERATES = (GraFT,)
FEWER = settings(max_examples=50)  # each is asked of every estimator


def estimators(kind, **fixed):
    chosen = CHOICES[kind] | {name: st.just(value) for name, value in fixed.items()}
    return st.builds(kind, **chosen)


def options_of(estimator):
    return {name: getattr(estimator, name) for name in estimator.__struct_fields__}


def given_to(kind, groups):
    """Give the groups as the estimator wants them."""
    return [slow.histories(group) for group in groups] if kind is TEMPO else groups


def tolerance(estimator, groups):
    """Where a deviation of 1e-6 may divide, it enlarges the rounding."""
    options = options_of(estimator)
    divided = {"std", "population", "sample"} & {options.get("std"), options.get("divisor")}
    exact = not divided and not isinstance(estimator, (ReinforcePPBaseline, G2PO, *ITERATES))
    scale = max([1.0, *(abs(attempt.outcome) for group in groups for attempt in group)])
    return (1e-12 if exact else 1e-9) * scale


@EACH
@given(data=st.data(), gamma=GAMMAS)
def test_equals_the_oracle(kind, data, gamma):
    groups = data.draw(batches(min_rollouts=2 if kind in NEEDS_OTHERS else 1))
    groups = given_to(kind, groups)
    estimator = data.draw(estimators(kind))
    formula = partial(getattr(slow, kind.name), gamma=gamma, **options_of(estimator))
    if kind is ReinforcePPBaseline:
        expected = formula(groups)
    else:
        expected = [row for group in groups for row in formula(group)]
    got = rows_of(estimator, groups, gamma)
    close(got, *expected, atol=tolerance(estimator, groups))


@given(groups=batches(), gamma=GAMMAS, lam=LAM)
def test_graft_z_score_equals_the_oracle(groups, gamma, lam):
    """On the library's own advantages: what they lack to 1e-10 would show, divided by 1e-6."""
    raw = rows_of(GraFT(lam), groups, gamma)
    got = rows_of(GraFT(lam, z_score=True), groups, gamma)
    attempts = iter(raw)
    expected = [
        row
        for group in groups
        for row in slow.z_scores(group, [next(attempts).tolist() for _ in group])
    ]
    close(got, *expected, atol=1e-9 * max(1.0, *(abs(a.outcome) for g in groups for a in g)))


# --- what must hold ----------------------------------------------------------------------------


@EACH
@FEWER
@given(data=st.data(), gamma=GAMMAS)
def test_permuting_rollouts_changes_nothing(kind, data, gamma):
    group = data.draw(problems(min_rollouts=2))
    estimator = data.draw(estimators(kind))
    order = data.draw(st.permutations(range(len(group))))
    before = rows_of(estimator, given_to(kind, [group]), gamma)
    after = rows_of(estimator, given_to(kind, [[group[i] for i in order]]), gamma)
    if kind in ITERATES:
        close(after, *(before[i] for i in order))
    else:
        same_bits(after, [before[i] for i in order])


@EACH
@FEWER
@given(data=st.data(), gamma=GAMMAS, seed=st.integers(0, 99))
def test_relabelling_keys_changes_nothing(kind, data, gamma, seed):
    groups = given_to(kind, data.draw(batches()))
    estimator = data.draw(estimators(kind))
    before = rows_of(estimator, groups, gamma)
    after = rows_of(estimator, groups, gamma, Random(seed))
    if kind in ITERATES:
        close(after, *before)
    else:
        same_bits(after, before)


@pytest.mark.parametrize(
    "kind", [kind for kind in CHOICES if not kind.reads.batch], ids=lambda kind: kind.name
)
@FEWER
@given(data=st.data(), gamma=GAMMAS)
def test_groups_do_not_influence_each_other(kind, data, gamma):
    groups = given_to(kind, data.draw(batches()))
    estimator = data.draw(estimators(kind))
    together = rows_of(estimator, groups, gamma)
    alone = [row for group in groups for row in rows_of(estimator, [group], gamma)]
    if kind in ITERATES:
        close(together, *alone)
    else:
        same_bits(together, alone)


@pytest.mark.parametrize(
    "estimator",
    [DrGRPO(), ReinforcePPBaseline(), MaxRL(), GiGPO(), SALT(), GraFT(n_prior=0.0),
     G2PO(), TEMPO(), MTGRPO()],
    ids=repr,
)  # fmt: skip
@FEWER
@given(data=st.data(), gamma=GAMMAS)
def test_doubling_every_rollout_changes_nothing(estimator, data, gamma):
    groups = given_to(type(estimator), data.draw(batches()))
    before = rows_of(estimator, groups, gamma)
    after = iter(rows_of(estimator, [[*group, *group] for group in groups], gamma))
    first = iter(before)
    for group in groups:
        rows = [next(first) for _ in group]
        close([next(after) for _ in [*group, *group]], *rows, *rows,
              atol=tolerance(estimator, groups))  # fmt: skip


@EACH
def test_nothing_to_estimate(kind):
    assert rows_of(kind(), [[walk(1), walk(0)]])[0].size == 0
    assert kind()(batch_of([], levels=(slow.coarse, slow.fine))).advantages.size == 0


# --- identities --------------------------------------------------------------------------------


@given(groups=batches(min_rollouts=2, step_rewards=False), gamma=GAMMAS)
def test_graft_is_rtmc_on_full_prefixes(groups, gamma):
    """Full-prefix states, last actions distinct, no bonus, outcomes only."""
    prefixed = []
    for group in groups:
        made = []
        for i, attempt in enumerate(group):
            turns, before = [], ""
            for t, turn in enumerate(attempt.turns):
                ends = t == len(attempt.turns) - 1
                action = f"last{i}" if ends else turn.action
                turns.append(replace(turn, state=before, action=action))
                before += action
            made.append(replace(attempt, turns=tuple(turns)))
        prefixed.append(made)
    graft = rows_of(GraFT(lam=0.0, n_prior=0.0), prefixed, gamma)
    tree = rows_of(rtmc.RTMC(n_prior=0.0, repeats="paper"), prefixed, gamma)
    scale = max(1.0, *(abs(a.outcome) for group in groups for a in group))
    close(graft, *tree, atol=1e-12 * scale)


@given(group=problems(min_rollouts=2), gamma=GAMMAS)
def test_gigpo_sums_to_cell_means(group, gamma):
    """A^S summed over a cell = visits·(mean G of the cell − mean G of the state), every visit."""
    both = rows_of(GiGPO(1.0, "none"), [group], gamma)
    whole = rows_of(GiGPO(0.0, "none"), [group], gamma)
    visits = [
        (turn.state, turn.action, g, a)
        for attempt, one, other in zip(group, both, whole, strict=True)
        for turn, g, a in zip(
            attempt.turns, slow.returns_of(attempt, gamma), one - other, strict=True
        )
    ]
    scale = max(1.0, *(abs(attempt.outcome) for attempt in group))
    for s, a in {(s, a) for s, a, _, _ in visits}:
        in_state = [g for s2, _, g, _ in visits if s2 == s]
        in_cell = [g for s2, a2, g, _ in visits if (s2, a2) == (s, a)]
        got = sum(x for s2, a2, _, x in visits if (s2, a2) == (s, a))
        expected = len(in_cell) * (mean(in_cell) - mean(in_state))
        assert got == pytest.approx(expected, abs=1e-11 * scale, rel=0)


@given(group=problems(min_rollouts=2))
def test_rloo_compares_with_the_others(group):
    outcomes = [attempt.outcome for attempt in group]
    expected = [
        [r - mean([q for j, q in enumerate(outcomes) if j != i])] * len(group[i].turns)
        for i, r in enumerate(outcomes)
    ]
    close(rows_of(RLOO(), [group]), *expected, atol=1e-12 * max(1.0, *map(abs, outcomes)))


@given(group=problems(min_rollouts=2), std=STD)
def test_tempo_corrects_at_branching_nodes_alone(group, std):
    [group] = given_to(TEMPO, [group])
    tempo, grpo = rows_of(TEMPO(std), [group]), rows_of(rtmc.GRPO(std), [group])
    branching = slow.branching(group)
    for attempt, one, other in zip(group, tempo, grpo, strict=True):
        unbranched = [turn.state not in branching for turn in attempt.turns]
        assert np.array_equal(one[unbranched], other[unbranched])


@given(group=problems(min_rollouts=2, step_rewards=False), gamma=GAMMAS)
def test_an_unshared_step_adds_nothing_in_pooled_gae(group, gamma):
    """Away from the end of the rollout, and from the clip of the root's value."""
    got = rows_of(PooledGAE(lam=0.0), [group], gamma)
    outcomes = [attempt.outcome for attempt in group]
    start = [slow.returns_of(a, gamma)[0] if a.turns else a.outcome for a in group]
    for i, (attempt, deltas) in enumerate(zip(group, got, strict=True)):
        others = [a for j, a in enumerate(group) if j != i]
        shared = {key(turn) for key in (slow.coarse, slow.fine) for a in others for turn in a.turns}
        root = mean([g for j, g in enumerate(start) if j != i])
        for t, (turn, after) in enumerate(zip(attempt.turns, attempt.turns[1:], strict=False)):
            keys = {slow.coarse(turn), slow.fine(turn), slow.coarse(after), slow.fine(after)}
            carried = [root / gamma**t, root / gamma ** (t + 1)]
            if not keys & shared and min(outcomes) <= min(carried) <= max(carried) <= max(outcomes):
                assert abs(deltas[t]) <= 1e-12 * max(1.0, *map(abs, outcomes))


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        *((kind, {"std": "smaple"}, "std is 'smaple'; expected one of population, sample, none")
          for kind in (SALT, G2PO, TEMPO, MTGRPO)),
        (GiGPO, {"divisor": "sample"}, "divisor is 'sample'; expected one of std, none"),
        *((kind, {name: value}, f"{name} is {value}; expected a number ≥ 0")
          for kind, name in ((GiGPO, "omega"), (G2PO, "omega"), (MTGRPO, "lam"),
                             (GraFT, "n_prior"))
          for value in (-1.0, float("nan"), float("inf"))),
        *((kind, {"lam": value}, rf"lam is {value}; expected a number in \[0, 1\]")
          for kind in (GraFT, PooledGAE) for value in (-0.5, 1.5, float("nan"))),
        *((PooledGAE, {"n_prior": value}, f"n_prior is {value}; expected a number > 0")
          for value in (-1.0, 0.0, float("nan"), float("inf"))),
    ],
)  # fmt: skip
def test_refused_options(kind, options, message):
    with pytest.raises(OptionError, match=message):
        kind(**options)
