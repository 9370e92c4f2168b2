"""Leave-one-out prediction: worked by hand, and planted levels that must be found."""

from random import Random

import pytest

import rtmc
from planted import PLAIN, Keys, findings, group, sample
from rtmc.guidance.measured import Measured
from rtmc.guidance.prediction import growth, levels, prediction_sums
from rtmc.rollouts import Group

FLAT = {"paper": 0.5, "work": 1.0, "coarse": 0.8, "content": 0.5, "full": 0.2}


def compared(*groups: Group, keys: Keys | None = None, own: str = "paper"):
    config = rtmc.Config(gamma=1.0, beta=0.0, level=own)
    return levels([prediction_sums(sample(g, config, keys)) for g in groups], own)


def test_one_state_predicts_what_the_prior_predicts() -> None:
    # rollout 0: p = 0, V′ = 0, off by 1; the others: p = ½, V′ = (1 + 0 + 2·½)/4 = ½
    found = compared(group("p", ("s.x", 1.0), ("s.x", 0.0), ("s.x", 0.0)))
    assert found.by_level["paper"].error.value == pytest.approx((1 + 1 / 4 + 1 / 4) / 3)
    assert found.prior_error.value == pytest.approx((1 + 1 / 4 + 1 / 4) / 3)
    assert found.by_level["paper"].saved.value == pytest.approx(0, abs=1e-8)
    assert found.steps == 3


def test_two_states_by_hand() -> None:
    # rollout 0 is alone: p = 0; the others meet: V′ = (0 + 2·½)/3 = ⅓
    found = compared(group("p", ("s.x", 1.0), ("a.x", 0.0), ("a.x", 0.0)))
    assert found.by_level["paper"].error.value == pytest.approx((1 + 2 / 9) / 3)
    assert found.by_level["paper"].saved.value == pytest.approx(1 - (1 + 2 / 9) / 1.5)


def test_every_step_is_judged_at_every_level() -> None:
    merged: Keys = {"work": lambda state: "one"}
    found = compared(group("p", ("s.x a.x", 1.0), ("s.x b.x", 0.0)), keys=merged)
    # at work: V′_{−i} = (G of the other + 2·p)/3 = p for all four steps
    assert found.by_level["work"].error.value == pytest.approx(1)
    assert found.steps == 4


def informative(random: Random, name: str, noise: bool, rollouts: int, places: int) -> Group:
    """Rollouts that look at one of two places and then wander; the place decides."""
    rows = []
    for _ in range(rollouts):
        place = random.choice("ab")
        wander = " ".join(f"{place}{random.randrange(places)}.x" for _ in range(3))
        odds = 0.5 if noise else 0.9 if place == "a" else 0.1
        rows.append((f"s.{place} {place}.x {wander}", float(random.random() < odds)))
    return group(name, *rows)


def blurred(state: str) -> str:
    return "anywhere"


def place_only(state: str) -> str:
    return state[0]


def plan(noise: bool, rollouts: int = 8, places: int = 6) -> list[Group]:
    random = Random(11)
    made = [informative(random, f"p{at:02}", noise, rollouts, places) for at in range(24)]
    return [g for g in made if len({r.reward for r in g.rollouts}) > 1]


# paper knows the place; work, coarse and content see nothing; full is torn apart by the wandering
SEES: Keys = {"paper": place_only, "work": blurred, "coarse": blurred, "content": blurred}


@pytest.mark.parametrize("own", ["work", "coarse", "content"])
def test_an_informative_level_is_found(own: str) -> None:
    found = compared(*plan(noise=False), keys=SEES, own=own)
    assert found.best == "paper"
    assert found.better
    gain = found.by_level["paper"].over_own
    assert gain.value > 0.2
    assert 0 < gain.error < 0.1


def test_noise_recommends_no_level() -> None:
    for own in ("work", "paper", "full"):
        found = compared(*plan(noise=True), keys=SEES, own=own)
        assert not (found.better and found.best in ("paper", "full"))


def test_four_groups_recommend_nothing() -> None:
    found = compared(*plan(noise=False)[:4], keys=SEES, own="work")
    assert found.best == "paper"
    assert not found.better


def test_equal_levels_keep_the_present_one() -> None:
    found = compared(*plan(noise=False))  # all levels have the same keys
    assert found.best == "paper"
    assert not found.better


# --- more rollouts, or a coarser level ---------------------------------------------------------


def grown(groups: list[Group], keys: Keys | None = None, own: str = "paper"):
    config = rtmc.Config(gamma=1.0, beta=0.0, level=own)
    sums = [prediction_sums(sample(g, config, keys)) for g in groups]
    return growth(sums, levels(sums, own), FLAT)


def test_half_of_the_others_by_hand() -> None:
    # one state, others of rollout 0: {0} or {0}, off by 1; of the rest {1} or {0}: V′ is theirs,
    # off by 1 or 0. Half: 1 + ½ + ½ = 2; all: 1.5; of the prior's 1.5. One doubling further, from
    # 2 to 4 others: (1/2 − 1/4)/(1/1 − 1/2) as much
    found = grown([group("p", ("s.x", 1.0), ("s.x", 0.0), ("s.x", 0.0))])
    assert found.from_half.value == pytest.approx(0.5 / 1.5)
    assert found.by_doubling.value == pytest.approx(0.25 / 1.5)
    assert found.by_rate.value == pytest.approx(0.25 / 1.5)


def test_two_rollouts_have_no_half() -> None:
    found = grown([group("p", ("s.x", 1.0), ("s.x", 0.0))])
    assert not found.from_half.known
    assert not found.difference.exceeds(0.0)


def test_a_coarser_level_beats_more_rollouts_where_states_are_torn_apart() -> None:
    found = grown(plan(noise=False, rollouts=16, places=10**6), {"coarse": place_only}, own="paper")
    assert found.coarser == "coarse"
    assert found.by_coarser.value > found.by_doubling.value
    assert Measured(-found.difference.value, found.difference.error, 24).exceeds(0.0)


def test_more_rollouts_beat_a_coarser_level_that_sees_nothing() -> None:
    found = grown(plan(noise=False), SEES, own="paper")
    assert found.coarser in ("work", "coarse")
    assert found.difference.exceeds(0.0)


def test_prior_discounted_is_measured() -> None:
    config = rtmc.Config(gamma=0.8, beta=0.0)
    rows = [("s.x a.x b.x c.x d.x e.x", 1.0), ("s.y z.x", 0.0)]
    groups = [group(f"p{at}", *rows, *rows) for at in range(6)]
    found = findings(groups, config).guidance()
    assert found.levels.discounted_prior.value > 0.02
    already = rtmc.Config(gamma=0.8, beta=0.0, estimator=rtmc.RTMC(prior="discounted"))
    same = findings(groups, already).guidance()
    assert same.levels.discounted_prior.value == pytest.approx(0)


def test_a_setting_without_prior_is_judged_with_the_default_one() -> None:
    none = rtmc.Config(gamma=1.0, beta=0.0, estimator=rtmc.RTMC(prior="none"))
    one = plan(noise=False)[0]
    mine, default = prediction_sums(sample(one, none)), prediction_sums(sample(one, PLAIN))
    assert mine["levels"] == pytest.approx(default["levels"])
