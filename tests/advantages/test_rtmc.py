"""RTMC: every number here is worked by hand above its assert."""

from math import log

import numpy as np
import pytest

import rtmc
from oracle import Attempt, Options, Turn, library, walk


def advantages(*group, **options):
    given = {"beta": 0.0, **options}
    return library([list(group)], Options(**given)).advantages


def close(got, *expected):
    assert len(got) == len(expected)
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=1e-12)


FORK = (walk(1, "s:a t:x"), walk(0, "s:b u:y"))


def test_smoothed_values():
    # γ = 1/2. G of the winner: 1/2, 1; of the loser: 0, 0. p = 1/2, n₀ = 2.
    # s: Q(a) = 1/2, Q(b) = 0, N = 2, V = 1/4, V′ = (2/4 + 2/2) / 4 = 3/8: A = 1/8, −3/8
    # t: Q = V = 1, N = 1, V′ = (1 + 2/2) / 3 = 2/3: A = 1/3
    # u: Q = V = 0, N = 1, V′ = (0 + 2/2) / 3 = 1/3: A = −1/3
    credit = library([list(FORK)], Options(gamma=0.5, beta=0.0))
    close(credit.advantages, [1 / 8, 1 / 3], [-3 / 8, -1 / 3])
    winner, loser = credit.rollouts
    close([winner.q_values, loser.q_values], [1 / 2, 1], [0, 0])
    close([winner.state_values, loser.state_values], [3 / 8, 2 / 3], [3 / 8, 1 / 3])
    close([winner.state_visits, winner.action_visits], [2, 1], [1, 1])


def test_without_a_prior_a_step_seen_once_is_neutral():
    # n₀ = 0: V′ = V. s: A = 1/2 − 1/4, 0 − 1/4; t and u: Q = V
    close(advantages(*FORK, gamma=0.5, n_prior=0.0), [1 / 4, 0], [-1 / 4, 0])
    close(advantages(*FORK, gamma=0.5, prior="none"), [1 / 4, 0], [-1 / 4, 0])


def test_the_prior_has_two_thirds_of_the_weight_of_a_step_seen_once():
    # A = n₀/(n₀ + 1)·(γ^k R − p) with n₀ = 2, k = 1 step to the end, p = 1/2
    got = advantages(walk(1, "s:a t:b"), walk(0, "u:c"), gamma=0.5)
    close(got, [2 / 3 * (0.5 - 0.5), 2 / 3 * (1 - 0.5)], [2 / 3 * (0 - 0.5)])


def test_values_are_means_over_rollouts():
    # γ = 1/2, n₀ = 0. Q(s,a) = mean(1/2, 0) = 1/4 (N = 2), Q(s,b) = 1 (N = 1)
    # V(s) = (2/4 + 1) / 3 = 1/2: A(s,a) = −1/4, A(s,b) = 1/2
    got = advantages(walk(1, "s:a t:x"), walk(0, "s:a u:y"), walk(1, "s:b"), gamma=0.5, n_prior=0.0)
    close(got, [-1 / 4, 0], [-1 / 4, 0], [1 / 2])


def test_only_the_first_visit_counts():
    # γ = 1/2, n₀ = 0. The winner's G: 1/4, 1/2, 1; it takes a in s twice, b once.
    # Q(s,a) = 1/4 (its first visit; every visit would give 3/8), Q(s,b) = mean(1, 0) = 1/2
    # N(s) = 1 + 2, V(s) = (1/4 + 2/2) / 3 = 5/12: A(s,a) = −1/6, A(s,b) = 1/12
    got = advantages(walk(1, "s:a s:a s:b"), walk(0, "s:b"), gamma=0.5, n_prior=0.0)
    close(got, [-1 / 6, -1 / 6, 1 / 12], [1 / 12])


def test_reward_of_a_step_is_part_of_the_return():
    # γ = 1/2, n₀ = 0, the winner earns 1 at its first step besides the outcome: G = 1 + 1/2
    # V(s) = (3/2 + 0) / 2: A(s,a) = 3/4
    paid = Attempt(1, (Turn("s", "a", 1.0), Turn("t", "x")))
    got = advantages(paid, FORK[1], gamma=0.5, n_prior=0.0)
    close(got, [3 / 4, 0], [-3 / 4, 0])


def test_rewards_of_either_sign():
    # R in {−1, 1}: p = 0. γ = 1: V′ = (1 + 0) / 3: A = ±2/3
    close(advantages(walk(1, "s:a"), walk(-1, "t:b"), gamma=1.0), [2 / 3], [-2 / 3])


def test_rewards_up_to_100():
    # p = 60; V′ = (80 + 120) / 3 = 200/3, (40 + 120) / 3 = 160/3
    got = advantages(walk(80, "s:a"), walk(40, "t:b"), gamma=1.0)
    close(got, [80 - 200 / 3], [40 - 160 / 3])


@pytest.mark.parametrize(("passing", "steps"), [(4, 69), (6, 28), (7, 13)])
def test_a_far_winner_is_negative_under_the_success_rate(passing, steps):
    """Negative more than ln p / ln γ steps from the end (69 at p = 1/2, 28.6 at 3/4)."""
    assert int(log(passing / 8) / log(0.99) + 1e-9) in (steps, steps - 1)
    length = steps + 5
    lonely = [
        walk(float(i < passing), " ".join(f"{i}.{t}:a" for t in range(length))) for i in range(8)
    ]
    winner = advantages(*lonely)[0]
    to_the_end = np.arange(length)[::-1]
    assert (winner[to_the_end > log(passing / 8) / log(0.99)] < 0).all()
    assert (winner[to_the_end < log(passing / 8) / log(0.99)] > 0).all()


def test_discounted_prior():
    # γ = 1/2. The winner's G: 1/4, 1/2, 1. mean(G_0) = (1/4 + 0) / 2 = 1/8
    # carried forward: s (t = 0) 1/8, t (t = 1) 1/4, u (t = 2) 1/2, v (t = 0) 1/8
    # V′: (1/4 + 2/8)/3 = 1/6, (1/2 + 2/4)/3 = 1/3, (1 + 2/2)/3 = 2/3, (0 + 2/8)/3 = 1/12
    got = advantages(walk(1, "s:a t:b u:c"), walk(0, "v:d"), gamma=0.5, prior="discounted")
    close(got, [1 / 12, 1 / 6, 1 / 3], [-1 / 12])


def test_discounted_prior_is_clipped_to_the_outcomes_from_above():
    # γ = 1/2. G_0 = 1/4, 1, 0: mean 5/12. Carried: 5/12, 5/6, 5/3 → 1
    # V′: (1/4 + 10/12)/3 = 13/36, (1/2 + 10/6)/3 = 13/18, (1 + 2)/3 = 1
    # A of the long winner: 1/4 − 13/36 = −1/9, 1/2 − 13/18 = −2/9, 0: longer than the average
    group = (walk(1, "s:a t:b u:c"), walk(1, "v:d"), walk(0, "w:e"))
    got = advantages(*group, gamma=0.5, prior="discounted")
    # v: V′ = (1 + 10/12)/3 = 11/18; w: V′ = (0 + 10/12)/3 = 5/18
    close(got, [-1 / 9, -2 / 9, 0], [7 / 18], [-5 / 18])


def test_discounted_prior_is_clipped_to_the_outcomes_from_below():
    # γ = 1/2, R in {−1, 1}. G_0 = −1/4, −1, 1/8: mean −3/8. Carried to u (t = 2): −3/2 → −1
    # V′(u) = (−1 − 2)/3 = −1: A = 0
    group = (walk(-1, "s:a t:b u:c"), walk(-1, "v:d"), walk(1, "w:e x:f y:g z:h"))
    assert advantages(*group, gamma=0.5, prior="discounted")[0][2] == pytest.approx(0, abs=1e-12)


def test_discounted_prior_is_carried_to_the_mean_time_of_the_first_visits():
    # γ = 1/2. The winner enters u at t = 2 (and again at 3), the loser at t = 0: mean time 1
    # winner's G: 1/8, 1/4, 1/2, 1; mean(G_0) = 1/16, carried to u: 1/8
    # u: Q(u,c) = 1/2 (first visit), Q(u,d) = 0, V′ = (1/2 + 0 + 2/8) / 4 = 3/16
    group = (walk(1, "s:a t:b u:c u:c"), walk(0, "u:d"))
    got = advantages(*group, gamma=0.5, prior="discounted", repeats="paper")
    assert got[0][2] == got[0][3] == pytest.approx(1 / 2 - 3 / 16, abs=1e-12)
    assert got[1][0] == pytest.approx(-3 / 16, abs=1e-12)


def test_discounted_prior_counts_a_rollout_without_steps_at_its_outcome():
    # γ = 1/2. G_0 = 1/2 and, without steps, R = 0: mean 1/4, carried: 1/4, 1/2
    # V′: (1/2 + 2/4)/3 = 1/3, (1 + 2/2)/3 = 2/3
    got = advantages(walk(1, "s:a t:b"), walk(0), gamma=0.5, prior="discounted")
    close(got, [1 / 6, 1 / 3], [])


def test_discounted_prior_stays_finite_at_a_vanishing_discount():
    """γ^t underflows far before the clip would see it."""
    far = " ".join(f"{t}:a" for t in range(400))
    for group in ((walk(1, far), walk(0, "x:b")), (walk(1, "x:b"), walk(0, far))):
        for row in advantages(*group, gamma=0.1, prior="discounted"):
            assert np.isfinite(row).all()


def test_discounted_prior_is_the_success_rate_where_nothing_is_discounted():
    plain, carried = (advantages(*FORK, gamma=1.0, prior=p) for p in ("success_rate", "discounted"))
    close(carried, *plain)


TRIO = (walk(1, "s:a"), walk(0, "s:a"), walk(1, "s:b"))


def test_leave_one_out():
    # γ = 1, n₀ = 2. Q(s,a) = 1/2, Q(s,b) = 1
    # without the first:  returns 0, 1; p = 1/2: V′ = (1 + 2/2) / (2 + 2) = 1/2, A = 0
    # without the second: returns 1, 1; p = 1:   V′ = (2 + 2) / 4 = 1,          A = −1/2
    # without the third:  returns 1, 0; p = 1/2: V′ = 1/2,                      A = 1/2
    close(advantages(*TRIO, gamma=1.0, leave_one_out=True), [0], [-1 / 2], [1 / 2])


def test_leave_one_out_where_nobody_else_came():
    # p of the others: 0 for the winner, 1 for the loser; V′ = (0 + 2p) / (0 + 2) = p
    lonely = (walk(1, "s:a"), walk(0, "t:b"))
    close(advantages(*lonely, gamma=1.0, leave_one_out=True), [1], [-1])
    # and without a prior nothing is left to compare with
    close(advantages(*lonely, gamma=1.0, leave_one_out=True, n_prior=0.0), [0], [0])
    close(advantages(*lonely, gamma=1.0, leave_one_out=True, prior="none"), [0], [0])


def test_leave_one_out_takes_each_rollout_at_its_first_visit_of_the_state():
    # γ = 1/2, n₀ = 0. The winner is in s at t = 0 and 1 with other actions: G = 1/2, 1.
    # Q(a) = 1/2, Q(b) = 1, Q(c) = 0
    # winner: V′ = 0 at both; loser: V′ = G of the winner's first visit of s = 1/2 (not of both)
    group = (walk(1, "s:a s:b"), walk(0, "s:c"))
    close(advantages(*group, gamma=0.5, leave_one_out=True, n_prior=0.0), [1 / 2, 1], [-1 / 2])


def test_leave_one_out_with_the_discounted_prior():
    # γ = 1/2. G: 1/2, 1; 0. mean G_0 of the others: 0 for the winner, 1/2 for the loser
    # winner: s: V′ = (0 + 0)/3 = 0, A = 1/2; t: nobody else, V′ = 0, A = 1
    # loser: s: V′ = (1/2 + 2/2)/3 = 1/2, A = −1/2
    group = (walk(1, "s:a t:b"), walk(0, "s:c"))
    got = advantages(*group, gamma=0.5, leave_one_out=True, prior="discounted")
    close(got, [1 / 2, 1], [-1 / 2])


def rerun(times):
    """A winner that runs an unchanged test ``times`` times, and a loser that runs none."""
    return walk(1, "s:edit" + " t:test" * times + " t:submit"), walk(0, "s:edit t:submit")


@pytest.mark.parametrize(("times", "total"), [(1, 0.39), (20, 5.1)])
def test_repeats_paper_pays_for_every_repeat(times, total):
    # t: G of the first test = γ^times, Q(submit) = mean(1, 0) = 1/2 with N = 2
    # V′ = (γ^times + 1 + 2·1/2) / (3 + 2); A = γ^times − V′ = .392 for 1, .254 for 20
    value = (0.99**times + 2) / 5
    winner = advantages(*rerun(times), repeats="paper")[0]
    np.testing.assert_allclose(winner[1:-1], 0.99**times - value, rtol=0, atol=1e-12)
    assert winner[1:-1].sum() == pytest.approx(total, abs=0.05 if total > 1 else 0.005)


def test_repeats_first_pays_once():
    # k = 20: A = .99^20 − (.99^20 + 2)/5 = .2543 at the first test, 0 at the other 19
    winner = advantages(*rerun(20))[0]
    assert winner[1] == pytest.approx(0.8 * 0.99**20 - 0.4, abs=1e-12)
    assert not winner[2:21].any()


def test_repeats_first_keeps_a_negative_value():
    # γ = 1, n₀ = 0: Q(s,a) = 0, Q(s,b) = 1, V = 1/2: A(s,a) = −1/2 on all three visits
    close(
        advantages(walk(0, "s:a s:a s:a"), walk(1, "s:b"), gamma=1.0, n_prior=0.0),
        [-1 / 2, -1 / 2, -1 / 2],
        [1 / 2],
    )


def test_a_repeat_is_one_within_the_rollout_only():
    """The same cell in another rollout is a first visit there."""
    # γ = 1, n₀ = 0: Q(s,a) = 1 (N = 2), Q(s,b) = 0, V = 2/3
    group = (walk(1, "s:a"), walk(1, "s:a"), walk(0, "s:b"))
    close(advantages(*group, gamma=1.0, n_prior=0.0), [1 / 3], [1 / 3], [-2 / 3])


def test_first_visit_is_marked():
    credit = library([list(rerun(2))], Options())
    assert [list(r.first_visit) for r in credit.rollouts] == [[1, 1, 0, 1], [1, 1]]


def test_n_prior_must_be_a_number_from_0():
    for wrong in (-1.0, float("inf"), float("nan")):
        with pytest.raises(rtmc.RtmcError) as error:
            rtmc.RTMC(n_prior=wrong)
        assert str(error.value) == f"n_prior is {wrong}; expected a number ≥ 0"
