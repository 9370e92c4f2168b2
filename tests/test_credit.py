"""What holds for every estimator, with numbers worked by hand; and the checks at the entry."""

from math import sqrt

import msgspec
import numpy as np
import pytest

import oracle
import rtmc
from oracle import Attempt, Options, Turn, library, walk
from rtmc.signatures import Signatures

ESTIMATORS = ("rtmc", "grpo", "grpo_step")


def advantages(*group, **options):
    given = {"gamma": 1.0, "beta": 0.0, "std": "none", **options}
    return library([list(group)], Options(**given)).advantages


def close(got, *expected):
    assert len(got) == len(expected)
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=1e-12)


NONE = [np.nan]
CUT = (walk(1, "s:a"), walk(0, "s:b"), walk(0, "s:b", incomplete=True))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("incomplete", "expected"),
    [
        # rtmc: Q = 1, 0. All three vote: V = p = V′ = 1/3; two vote: 1/2. grpo: R − mean R alike
        ("fail", ([2 / 3], [-1 / 3], [-1 / 3])),
        ("exclude", ([1 / 2], [-1 / 2], NONE)),
        ("mask", ([2 / 3], [-1 / 3], NONE)),
    ],
)
def test_incomplete(estimator, incomplete, expected):
    close(advantages(*CUT, estimator=estimator, incomplete=incomplete), *expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_unknown_outcomes(estimator):
    group = (walk(1, "s:a"), walk(None, "s:b"), walk(0, "s:b"))
    close(advantages(*group, estimator=estimator), [1 / 2], NONE, [-1 / 2])
    failed = advantages(*group, estimator=estimator, unknown="fail")
    close(failed, [2 / 3], [-1 / 3], [-1 / 3])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fail_reward(estimator):
    # R = 1, 0, −1 → mean 0; in rtmc Q(s,b) = −1/2, V = V′ = p = 0
    expected = {"rtmc": ([1], [-1 / 2], [-1 / 2])}.get(estimator, ([1], [0], [-1]))
    close(advantages(*CUT, estimator=estimator, fail_reward=-1.0), *expected)


def test_an_incomplete_rollout_is_never_worth_more_than_its_own_reward():
    # R in {−1, 1}: the recorded −1 is lower than the reward of a failure, 0
    group = (walk(1, "s:a"), walk(-1, "s:b", incomplete=True))
    close(advantages(*group, estimator="grpo"), [1], [-1])
    # and a partial reward of .4 counts as a failure: R = 1, 0
    group = (walk(1, "s:a"), walk(0.4, "s:b", incomplete=True))
    close(advantages(*group, estimator="grpo"), [1 / 2], [-1 / 2])


@pytest.mark.parametrize("incomplete", ["exclude", "mask"])
def test_unknown_and_stopped_by_a_limit(incomplete):
    """To count an unknown outcome as a failure does not make the rollout a complete one."""
    group = (walk(1, "s:a"), walk(0, "s:b"), walk(None, "s:b", incomplete=True))
    assert np.isnan(advantages(*group, incomplete=incomplete)[2]).all()  # unknown: left out
    assert np.isnan(advantages(*group, incomplete=incomplete, unknown="fail")[2]).all()


def test_normalisation_divides_and_does_not_centre():
    # γ = 1/2. Raw A = 1/8, 1/3; −3/8, −1/3 (test_rtmc.py): mean −1/16
    # variance = (1/64 + 1/9 + 9/64 + 1/9)/4 − 1/256
    spread = sqrt((1 / 64 + 1 / 9 + 9 / 64 + 1 / 9) / 4 - 1 / 256)
    group = (walk(1, "s:a t:x"), walk(0, "s:b u:y"))
    got = advantages(*group, gamma=0.5, normalize="problem")
    close(got, [1 / 8 / spread, 1 / 3 / spread], [-3 / 8 / spread, -1 / 3 / spread])


def test_normalisation_counts_the_steps_that_get_credit():
    # mask: A = 2/3, −1/3, none: mean 1/6, deviation 1/2
    close(advantages(*CUT, incomplete="mask", normalize="problem"), [4 / 3], [-2 / 3], NONE)


def test_normalisation_comes_after_the_repeats_rule():
    # γ = 1, n₀ = 0. Q(s,a) = 1, Q(s,b) = 0, V = 1/2: A = 1/2, repeat 0, loser −1/2
    # mean 0, variance (1/4 + 0 + 1/4)/3 = 1/6
    got = advantages(walk(1, "s:a s:a"), walk(0, "s:b"), n_prior=0.0, normalize="problem")
    close(got, [sqrt(6) / 2, 0], [-sqrt(6) / 2])


def test_normalisation_is_skipped_where_nothing_deviates():
    # n₀ = 0 and every step is seen once: Q = V, all A = 0
    got = advantages(walk(1, "s:a"), walk(0, "t:b"), n_prior=0.0, normalize="problem")
    close(got, [0], [0])


def test_normalisation_is_per_problem():
    # grpo: ±1/2 and ±50: each problem is divided by its own deviation
    groups = [[walk(r, "s:a"), walk(0, "s:b")] for r in (1, 100)]
    options = Options(estimator="grpo", std="none", normalize="problem")
    close(library(groups, options).advantages, [1], [-1], [1], [-1])


def test_the_bonus_enters_rewards_and_returns():
    # γ = 1/2, β = 1/10, max 1: the second validation is not paid
    attempt = Attempt(1, (Turn("s", "a"), Turn("t", "b", 0.0, 1), Turn("u", "c", 0.2, 1)))
    one = library([[attempt]], Options(gamma=0.5, beta=0.1)).rollouts[0]
    np.testing.assert_allclose(one.rewards, [0, 0.1, 1.2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.returns, [0.35, 0.7, 1.2], rtol=0, atol=1e-12)
    paid = library([[attempt]], Options(gamma=0.5, beta=0.1, max_bonuses=None)).rollouts[0]
    np.testing.assert_allclose(paid.rewards, [0, 0.1, 1.3], rtol=0, atol=1e-12)


def test_flags_say_why():
    groups = [
        [walk(1, "s:a"), walk(1, "s:b")],
        [walk(1, "s:a")],
        [walk(1, "s:a"), walk(None, "s:b")],  # one that counts is a group of one
        [walk(1, "s:a"), walk(0, "s:b"), walk(0, "s:b", incomplete=True)],
    ]
    flags = [one.flags for one in library(groups, Options(incomplete="mask")).rollouts]
    assert flags == [
        ("uniform",),
        ("uniform",),
        ("singleton_group",),
        ("singleton_group",),
        ("unknown_outcome", "excluded"),
        (),
        (),
        ("incomplete", "masked"),
    ]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("normalize", ["none", "problem"])
def test_nothing_to_do(estimator, normalize):
    """No group, an empty group, no steps, and no outcome at all."""
    o = Options(estimator=estimator, normalize=normalize)
    assert library([], o).advantages == []
    assert library([[]], o).advantages == []
    assert [len(row) for row in library([[walk(1), walk(0)]], o).advantages] == [0, 0]
    got = library([[walk(None, "s:a"), walk(None, "s:a s:b")]], o).advantages
    close(got, NONE, NONE * 2)


def test_groups_without_a_vote_do_not_shift_the_others():
    groups = [[walk(None, "s:a")], [walk(1, "s:a"), walk(0, "s:b")], [], [walk(1, "s:a")]]
    got = library(groups, Options(estimator="grpo", std="none"))
    close(got.advantages, NONE, [1 / 2], [-1 / 2], [0])
    assert [one.flags for one in got.rollouts][1:] == [(), (), ("singleton_group",)]


def test_one_group_needs_no_list():
    group = rtmc.Group("p", (oracle.rollout(walk(1, "s:a")), oracle.rollout(walk(0, "s:b"))))
    signer = oracle.ScriptedSigner()
    alone, listed = rtmc.credit(group, signer=signer), rtmc.credit([group], signer=signer)
    for one, other in zip(alone.advantages, listed.advantages, strict=True):
        assert np.array_equal(one, other)


def test_keys_are_kept_for_output():
    one = library([[walk(1, "s:a t:b")], [walk(0, "u:c")]], Options()).rollouts
    assert [(r.states, r.actions) for r in one] == [
        ((("s",), ("t",)), ("a", "b")),
        ((("u",),), ("c",)),
    ]


def test_key_signer_signs_by_a_function():
    def keys(rollout):
        return [(step.thought, "act") for step in rollout.steps]

    rollouts = tuple(
        rtmc.Rollout("p", name, (rtmc.Step(thought="here"),), reward)
        for name, reward in (("r", 1.0), ("q", 0.0))
    )
    # γ = 1: both in one cell: Q = V = p = 1/2
    credit = rtmc.credit(rtmc.Group("p", rollouts), signer=rtmc.KeySigner(keys))
    close(credit.advantages, [0], [0])
    assert credit.rollouts[0].states == (("here",),)
    assert credit.rollouts[0].actions == ("act",)


@pytest.mark.parametrize("surplus", [{"a": -1}, {"a": 1, "b": -1}])
def test_a_signer_with_too_many_or_too_few_keys_is_refused(surplus):
    """The second case has the right number in all: keys would slip to the other rollout."""
    rollouts = tuple(
        rtmc.Rollout("p", name, (rtmc.Step(), rtmc.Step()), reward)
        for name, reward in (("a", 1.0), ("b", 0.0))
    )

    def keys(rollout):
        return [("s", "a")] * (len(rollout.steps) + surplus.get(rollout.rollout_id, 0))

    with pytest.raises(rtmc.RtmcError, match=r"\ba\b.*2"):
        rtmc.credit(rtmc.Group("p", rollouts), signer=rtmc.KeySigner(keys))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_refused(estimator, number):
    """It would become 0 everywhere, or no credit at all, without a word."""
    o = Options(estimator=estimator)
    with pytest.raises(rtmc.RtmcError, match=r"\br1\b"):
        library([[walk(1, "s:a"), walk(number, "s:b"), walk(0, "s:b")]], o)
    with pytest.raises(rtmc.RtmcError, match=r"\br1\b"):
        library([[walk(1, "s:a"), Attempt(0.0, (Turn("s", "b", number),))]], o)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0}, "gamma is 0; expected a number in (0, 1]"),
        ({"gamma": 1.5}, "gamma is 1.5; expected a number in (0, 1]"),
        ({"gamma": float("nan")}, "gamma is nan; expected a number in (0, 1]"),
        ({"beta": -0.1}, "beta is -0.1; expected a number ≥ 0"),
        ({"beta": float("inf")}, "beta is inf; expected a number ≥ 0"),
        ({"max_bonuses": -1}, "max_bonuses is -1; expected ≥ 0, or none"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(rtmc.RtmcError) as error:
        rtmc.Config(**options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: rtmc.Config(normalize="batch"), "normalize"),
        (lambda: rtmc.Config(incomplete="skip"), "incomplete"),
        (lambda: rtmc.Config(unknown="pass"), "unknown"),
        (lambda: rtmc.Config(fail_reward=float("nan")), "fail_reward"),
        (lambda: rtmc.RTMC(prior="discount"), "prior"),
        (lambda: rtmc.RTMC(repeats="last"), "repeats"),
        (lambda: rtmc.GRPO(std="pop"), "std"),
        (lambda: rtmc.GRPOStep(std="pop"), "std"),
    ],
)
def test_a_misspelt_choice_is_refused(make, name):
    """Else it silently counts as one of the others."""
    with pytest.raises(rtmc.RtmcError, match=name):
        make()


def test_the_bounds_themselves_are_allowed():
    rtmc.Config(gamma=1.0, beta=0.0, max_bonuses=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hash_chars": 0}, "hash_chars is 0; expected 1 … 16"),
        ({"hash_chars": 17}, "hash_chars is 17; expected 1 … 16"),
        (
            {"level": "fine"},
            "unknown level fine; expected some of root, work, content, coarse, paper, full, exact",
        ),
    ],
)
def test_signatures_that_do_not_exist_are_refused(options, message):
    with pytest.raises(rtmc.RtmcError) as error:
        rtmc.credit(rtmc.Group("p", ()), rtmc.Config(**options))
    assert str(error.value) == message


def test_defaults_and_paper_settings():
    config = rtmc.Config()
    assert (config.gamma, config.beta, config.max_bonuses) == (0.99, 0.05, 1)
    assert config.estimator == rtmc.RTMC(2.0, "success_rate", False, "first")
    paper = rtmc.Config.paper(gamma=0.9)
    assert paper.estimator == rtmc.RTMC(repeats="paper")
    assert (paper.gamma, paper.max_bonuses, paper.hash_chars) == (0.9, None, 4)


def test_settings_are_written_as_plain_values():
    written = rtmc.Config(estimator=rtmc.GRPO("sample")).as_dict()
    assert (written["estimator"], written["std"], written["gamma"]) == ("grpo", "sample", 0.99)
    msgspec.json.encode(written)


def test_estimators_are_known_by_name():
    assert {name: kind.name for name, kind in rtmc.ESTIMATORS.items()} == {
        name: name for name in rtmc.ESTIMATORS
    }
    assert set(ESTIMATORS) <= set(rtmc.ESTIMATORS)


def test_a_signer_that_gives_too_few_keys_is_named_by_its_problem():
    class Short:
        levels = ("short",)

        def sign(self, rollouts):
            ids = np.zeros((1, 1), dtype=np.int64)
            return Signatures(ids, ids, ids[:, 0], ["s"], ["a"])

    group = rtmc.Group("p7", (rtmc.Rollout("p7", "r", (rtmc.Step(), rtmc.Step()), 1.0),))
    with pytest.raises(rtmc.RtmcError) as error:
        rtmc.credit(group, signer=Short())
    assert str(error.value) == (
        "problem p7: expected keys for 2 steps, the signer gave 1 states and 1 actions"
    )


def test_nothing_to_credit_is_no_error():
    assert rtmc.credit([]).advantages == []
    assert rtmc.credit(rtmc.Group("p", ())).advantages == []


@pytest.mark.parametrize("estimator", ["rtmc", rtmc.RTMC])
def test_an_estimator_without_its_options_is_refused(estimator):
    with pytest.raises(rtmc.RtmcError, match=r"expected one with its options, as in rtmc\.RTMC"):
        rtmc.Config(estimator=estimator)


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ("rollouts.jsonl", "got the path 'rollouts.jsonl'; read it first: rtmc.read(path)"),
        ([rtmc.Rollout("p", "r")], "expected groups, got a Rollout; put the rollouts of a problem"),
    ],
)
def test_what_is_no_group_is_refused_in_words(groups, sentence):
    with pytest.raises(rtmc.RtmcError) as error:
        rtmc.credit(groups)
    assert str(error.value).startswith(sentence)


def test_a_function_is_no_signer_yet():
    with pytest.raises(rtmc.RtmcError, match=r"goes into rtmc\.KeySigner"):
        rtmc.credit([], signer=lambda rollout: [])


@pytest.mark.parametrize("keys", [["ab"], [(1, 2)], [("s", "a", "x")], [None]])
def test_keys_must_be_pairs_of_texts(keys):
    group = rtmc.Group("p", (rtmc.Rollout("p", "r", (rtmc.Step(),), 1.0),))
    with pytest.raises(rtmc.RtmcError, match=r"rollout r, step 0: expected a pair"):
        rtmc.credit(group, signer=rtmc.KeySigner(lambda rollout: keys))


def test_tokens_without_recorded_spans_are_an_error_not_nothing():
    group = rtmc.Group("p", (rtmc.Rollout("p", "r", (rtmc.Step(),), 1.0),))
    with pytest.raises(rtmc.RtmcError, match=r"r: no token spans are recorded; .*from_counts"):
        rtmc.credit(group).to_tokens()
