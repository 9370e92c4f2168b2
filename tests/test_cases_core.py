"""Inputs that libraries of this kind got wrong, one test each; numbers are worked by hand."""

import numpy as np
import pytest

import rtmc
from oracle import Options, ScriptedSigner, config, library, rollout, walk
from rtmc.errors import AlignmentError
from rtmc.returns import discounted_returns
from rtmc.rollouts import Span
from rtmc.signatures import CodingSigner
from rtmc.signatures.effects import edit_digest
from rtmc.tokens import to_tokens

ESTIMATORS = pytest.mark.parametrize("estimator", ["rtmc", "grpo", "grpo_step"])


def apart(outcome, length, name):
    """A rollout that shares no state with another one."""
    return walk(outcome, " ".join(f"{name}.{t}:a" for t in range(length)))


def credit_of(*group, **options):
    return library([list(group)], Options(**options))


def close(got, *expected):
    assert len(got) == len(expected)
    for row, numbers in zip(got, expected, strict=True):
        np.testing.assert_allclose(row, numbers, rtol=0, atol=1e-12)


GRPO = {"estimator": "grpo", "std": "none"}


@ESTIMATORS
@pytest.mark.parametrize("normalize", ["none", "problem"])
def test_case_01_all_pass_with_different_lengths(estimator, normalize):
    group = [apart(1, 10 * i, str(i)) for i in range(1, 9)]
    credit = credit_of(*group, estimator=estimator, normalize=normalize)
    for one in credit.rollouts:
        assert not one.advantages.any()
        assert one.flags == ("uniform",)


@ESTIMATORS
@pytest.mark.parametrize("normalize", ["none", "problem"])
def test_case_02_all_fail(estimator, normalize):
    group = [apart(0, 10 * i, str(i)) for i in range(1, 9)]
    for row in credit_of(*group, estimator=estimator, normalize=normalize).advantages:
        assert np.isfinite(row).all()
        assert not row.any()


@ESTIMATORS
def test_case_03_group_of_one(estimator):
    (one,) = credit_of(walk(1, "s:a t:b"), estimator=estimator).rollouts
    assert list(one.advantages) == [0, 0]
    assert one.flags == ("singleton_group",)


LONG = [apart(float(i < 6), 100, str(i)) for i in range(8)]


def test_case_04_no_winner_is_negative_under_the_discounted_prior():
    for row in credit_of(*LONG, beta=0.0, prior="discounted").advantages[:6]:
        assert (row > 0).all()


def test_case_04_winners_far_from_the_end_are_negative_under_the_success_rate():
    # A = 2/3·(.99^k − .75): negative where k > ln .75 / ln .99 = 28.6
    to_the_end = np.arange(100)[::-1]
    for row in credit_of(*LONG, beta=0.0).advantages[:6]:
        np.testing.assert_allclose(row, 2 / 3 * (0.99**to_the_end - 0.75), rtol=0, atol=1e-12)
        assert list(row < 0) == list(to_the_end > 28)


def test_case_05_interleaved_groups_of_different_sizes():
    # three groups of 4, 3 and 4; the middle one all 5.0; a fixed stride of 4 would mix them
    rewards = {"a": [1, 0, 0, 1], "b": [5, 5, 5], "c": [0, 0, 0, 1]}
    order = "abcacbcabca"
    left = {problem: list(enumerate(given)) for problem, given in rewards.items()}
    groups = {problem: [] for problem in rewards}
    for problem in order:
        number, reward = left[problem].pop(0)
        groups[problem].append(rollout(walk(float(reward), "s:a"), problem, f"{problem}{number}"))
    made = [rtmc.Group(problem, tuple(given)) for problem, given in groups.items()]
    got = rtmc.credit(made, config(Options(**GRPO)), ScriptedSigner()).advantages
    expected = [1 / 2, -1 / 2, -1 / 2, 1 / 2, 0, 0, 0, -1 / 4, -1 / 4, -1 / 4, 3 / 4]
    np.testing.assert_allclose(np.concatenate(got), expected, rtol=0, atol=1e-12)


def test_case_06_length_is_no_vote():
    # baseline 1/2; counting steps would give 30/33
    got = credit_of(apart(1, 30, "w"), apart(0, 3, "l"), **GRPO).advantages
    close(got, [0.5] * 30, [-0.5] * 3)


def recorded(name, reward, spans, lengths):
    steps = tuple(rtmc.Step(spans=(Span(*span),)) for span in spans)
    return rtmc.Rollout("p", name, steps, reward, sequence_lengths=lengths)


def test_case_07_a_rollout_in_several_training_samples_votes_once():
    # three samples of the winner, one of the loser: R̄ = 1/2 all the same
    group = rtmc.Group(
        "p",
        (
            recorded("w", 1.0, [(0, 1, 2), (1, 1, 2), (2, 1, 2)], (2, 2, 2)),
            recorded("l", 0.0, [(0, 1, 2)], (2,)),
        ),
    )
    tokens = rtmc.credit(group, rtmc.Config(estimator=rtmc.GRPO("none"))).to_tokens()
    assert [[list(s.values) for s in samples] for samples in tokens] == [
        [[0, 0.5], [0, 0.5], [0, 0.5]],
        [[0, -0.5]],
    ]


@pytest.mark.parametrize(
    ("incomplete", "expected"),
    [
        ("exclude", ([1 / 2], [-1 / 2], [np.nan])),
        ("mask", ([2 / 3], [-1 / 3], [np.nan])),
        ("fail", ([2 / 3], [-1 / 3], [-1 / 3])),
    ],
)
def test_case_08_incomplete_rollouts(incomplete, expected):
    group = (walk(1, "s:a"), walk(0, "s:b"), walk(0, "s:b", incomplete=True))
    close(credit_of(*group, incomplete=incomplete, **GRPO).advantages, *expected)


def test_case_09_unknown_outcome():
    got = credit_of(walk(1, "s:a"), walk(None, "s:a"), walk(0, "s:a"), **GRPO)
    close(got.advantages, [1 / 2], [np.nan], [-1 / 2])


@ESTIMATORS
def test_case_10_jitter_is_no_signal(estimator):
    group = [walk(0.1 + jitter, "s:a") for jitter in (0, 1e-9, -1e-9)]
    for one in credit_of(*group, estimator=estimator, normalize="problem").rollouts:
        assert list(one.advantages) == [0]
        assert one.flags == ("uniform",)


def test_case_11_equal_states_of_two_problems_are_not_pooled():
    # γ = 1, n₀ = 0. In both Q(s,a) = 1 and Q(s,b) = 0, but V = 1/2 and 2/3; pooled: 3/5
    groups = [
        [walk(1, "s:a"), walk(0, "s:b")],
        [walk(1, "s:a"), walk(1, "s:a"), walk(0, "s:b")],
    ]
    credit = library(groups, Options(gamma=1.0, beta=0.0, n_prior=0.0))
    close(credit.advantages, [1 / 2], [-1 / 2], [1 / 3], [1 / 3], [-2 / 3])
    assert [list(one.state_visits) for one in credit.rollouts] == [[2], [2], [3], [3], [3]]


@ESTIMATORS
def test_case_12_order_and_ids_change_no_bit(estimator):
    """Rewards whose sum depends on the order: .1 + .2 + .3 is not .3 + .2 + .1."""
    rewards = [0.1, 0.2, 0.3, 0.7, 0.9, 1e-3]
    group = [walk(r, "s:a t:b s:b") for r in rewards]
    options = Options(estimator=estimator, normalize="problem")
    before = library([group], options).advantages
    for order in ([5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]):
        permuted = tuple(rollout(group[i], "q", f"renamed{9 - i}") for i in order)
        after = rtmc.credit(rtmc.Group("q", permuted), config(options), ScriptedSigner())
        for position, i in enumerate(order):
            assert np.array_equal(after.advantages[position], before[i])


def test_case_13_a_constant_on_all_rewards():
    words = ("s:a t:x", "s:a t:y", "s:b")
    options = {"gamma": 1.0, "beta": 0.0, "n_prior": 0.0}
    before = credit_of(*map(walk, (1, 0, 1), words), **options).advantages
    after = credit_of(*map(walk, (11, 10, 11), words), **options).advantages
    close(after, *before)


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 100)])
@pytest.mark.parametrize("prior", ["success_rate", "discounted"])
@pytest.mark.parametrize("leave_one_out", [False, True])
def test_case_14_the_prior_follows_the_range_of_the_outcomes(low, high, prior, leave_one_out):
    # half of the outcomes are high; γ = 1: the prior is the middle of the range, and for the
    # others' outcomes of a group of 2 the other end of it
    group = (walk(high, "s:a"), walk(low, "t:b"))
    got = credit_of(*group, gamma=1.0, beta=0.0, prior=prior, leave_one_out=leave_one_out)
    far = (high - low) if leave_one_out else (high - low) / 2 * 2 / 3
    close(got.advantages, [far], [-far])


def test_case_14_the_clip_follows_the_range_of_the_outcomes():
    # γ = 1/2. G_0 of the six-step winner is high/32, carried to its last step mean(G_0)·2⁵ leaves
    # the range from above: V′ = (high + 2·high)/3, A = 0
    for low, high in ((-1, 1), (0, 100), (2, 5)):
        fast = walk(high, "x:a")
        group = (apart(high, 6, "w"), fast, fast, walk(low, "y:b"))
        winner = credit_of(*group, gamma=0.5, beta=0.0, prior="discounted").advantages[0]
        assert winner[-1] == pytest.approx(0, abs=1e-12 * high)


def test_case_15_equal_in_everything_but_the_outcome():
    # γ = 1/2. Q = V = 1/4, 1/2 at both steps; p = 1/2, V′ = (2V + n₀/2) / (2 + n₀)
    # A = n₀/(2 + n₀)·(V − 1/2): −1/8 and 0 for n₀ = 2, → 0 as n₀ → 0
    for n_prior in (2.0, 1e-3, 1e-9, 0.0):
        group = (walk(1, "s:a t:b"), walk(0, "s:a t:b"))
        winner, loser = credit_of(*group, gamma=0.5, beta=0.0, n_prior=n_prior).advantages
        assert np.array_equal(winner, loser)
        expected = [-n_prior / (2 + n_prior) / 4, 0]
        np.testing.assert_allclose(winner, expected, rtol=0, atol=1e-12)


def test_case_16_credit_does_not_grow_with_repeats():
    # A of the pair = γ^k − (γ^k + 2)/5 falls with k; repeats add nothing
    totals = []
    for times in (1, 5, 20):
        winner = walk(1, "s:edit" + " t:test" * times + " t:submit")
        got = credit_of(winner, walk(0, "s:edit t:submit"), beta=0.0).advantages[0]
        totals.append(got[1:-1].sum())
        assert totals[-1] == pytest.approx(0.8 * 0.99**times - 0.4, abs=1e-12)
    assert totals == sorted(totals, reverse=True)


def test_case_18_an_observation_does_not_reset_the_returns():
    # mask 1 1 0 0 1 1, reward at the end, γ = 1
    returns = discounted_returns(np.array([0.0, 1.0]), np.array([0, 2]), 1.0)
    (got,) = to_tokens(returns, [[(0, 0, 2)], [(0, 4, 6)]], [6])
    assert list(got.values) == [1, 1, 0, 0, 1, 1]
    assert list(got.credited) == [True, True, False, False, True, True]


def test_case_19_two_actions_side_by_side():
    (got,) = to_tokens([0.25, -0.5], [[(0, 0, 2)], [(0, 2, 4)]], [4])
    assert list(got.values) == [0.25, 0.25, -0.5, -0.5]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[(0, 0, 2)]], "roll-3: expected spans for 2 steps, got 1"),
        (
            [[(0, 0, 2)], [(0, 1, 4)]],
            "roll-3: step 1, span [1, 4) of sequence 0: overlaps a span of step 0",
        ),
        (
            [[(0, 2, 0)], [(0, 2, 4)]],
            "roll-3: step 0, span [2, 0) of sequence 0: expected 0 ≤ start < end",
        ),
        (
            [[(0, 0, 2)], [(0, 2, 9)]],
            "roll-3: step 1, span [2, 9) of sequence 0: the sequence has 4 tokens; "
            "if it was cut, say truncated=True",
        ),
    ],
)
def test_case_20_spans_that_do_not_fit_are_refused(spans, message):
    with pytest.raises(AlignmentError) as error:
        to_tokens([1.0, 2.0], spans, [4], name="roll-3")
    assert str(error.value) == message


def test_case_21_response_cut_inside_step_7():
    # nine steps of 4 tokens each, cut after 30: step 7 keeps 2 tokens, step 8 none
    spans = [[(0, 4 * i, 4 * i + 4)] for i in range(9)]
    (got,) = to_tokens(np.arange(1.0, 10.0), spans, [30], truncated=True)
    assert list(got.values) == [1 + i // 4 for i in range(30)]
    assert got.credited.all()
    assert got.dropped_steps == 1


def test_case_22_replayed_turns_get_no_credit_twice():
    # after compaction sequence 1 begins with a replay of step 0 (tokens 0–2): no span names it
    group = rtmc.Group(
        "p",
        (
            recorded("w", 1.0, [(0, 0, 3), (1, 4, 6)], (3, 6)),
            recorded("l", 0.0, [(0, 0, 1)], (1,)),
        ),
    )
    credit = rtmc.credit(group, rtmc.Config(estimator=rtmc.GRPO("none")))
    before, after = credit.to_tokens()[0]
    assert len(credit.advantages[0]) == 2
    assert list(before.values) == [0.5, 0.5, 0.5]
    assert list(after.values) == [0, 0, 0, 0, 0.5, 0.5]
    assert list(after.credited) == [False] * 4 + [True] * 2


def bash(command, output="", exit_code=0):
    return rtmc.ToolCall("bash", {"command": command}, output, exit_code)


def replace(path, old, new, output="The file has been edited."):
    arguments = {"command": "str_replace", "path": path, "old_str": old, "new_str": new}
    return rtmc.ToolCall("str_replace_editor", arguments, output)


def steps_of(*turns):
    return tuple(rtmc.Step(calls=calls) for calls in turns)


def sign(steps, level="paper", hash_chars=16):
    run = rtmc.Rollout("p", "r", steps, 1.0, root="/repo")
    return CodingSigner((level,), hash_chars).steps(run)


def test_case_23_three_parallel_calls_are_one_step():
    parallel = steps_of(
        (
            bash("cat b.py", "b = 1\n"),
            replace("/repo/a.py", "x = 1", "x = 2"),
            bash("pytest tests/test_a.py", "1 passed in 0.01s"),
        ),
        (bash("true"),),
    )
    signed = sign(parallel)
    assert len(signed) == 2
    for effect in ("view:full@b.py", "modify", "@a.py", "test@tests/test_a.py:pass"):
        assert effect in signed[0].actions[0]
    digest = edit_digest("x = 2", "x = 1")
    assert signed[0].states == ("start",)
    assert signed[1].states == (f"a.py:M:{digest}|b.py:Vf|(test:pass)",)

    loser = rtmc.Rollout("p", "l", steps_of((bash("cat b.py", "b = 1\n"),)), 0.0, root="/repo")
    winner = rtmc.Rollout("p", "w", parallel[:1], 1.0, root="/repo")
    advantages = rtmc.credit(rtmc.Group("p", (winner, loser))).advantages
    assert [len(row) for row in advantages] == [1, 1]


def colliding_edits():
    """Two texts whose digests agree in their first four digits and no further."""
    seen = {}
    for number in range(100_000):
        text = f"x = {number}"
        digest = edit_digest(text, "x")
        other = seen.setdefault(digest[:4], text)
        if other != text:
            return other, text
    raise AssertionError("no collision: the digest is no digest")


def test_case_32_edits_whose_short_digests_collide():
    one, other = colliding_edits()
    view = (bash("git status"),)
    runs = [steps_of((replace("/repo/a.py", "x", text),), view) for text in (one, other)]

    whole = [sign(run) for run in runs]
    assert whole[0][0].actions != whole[1][0].actions
    assert whole[0][1].states != whole[1][1].states

    short = [sign(run, hash_chars=4) for run in runs]
    assert short[0][0].actions == short[1][0].actions
    assert short[0][1].states == short[1][1].states

    # and through credit: the two edits are two cells, or one
    rollouts = (rtmc.Rollout("p", "w", runs[0], 1.0), rtmc.Rollout("p", "l", runs[1], 0.0))
    group = rtmc.Group("p", rollouts)
    visits = [
        rtmc.credit(group, rtmc.Config(hash_chars=n)).rollouts[0].action_visits[0] for n in (16, 4)
    ]
    assert visits == [1, 2]


def test_case_33_one_edit_or_two_at_the_coarse_level():
    look = (bash("git status"),)
    once = steps_of((replace("/repo/a.py", "x", "y"),), look)
    twice = steps_of((replace("/repo/a.py", "x", "y"),), (replace("/repo/a.py", "y", "z"),), look)
    assert sign(once, "coarse")[-1].states == sign(twice, "coarse")[-1].states
    assert sign(twice, "coarse")[0].actions == sign(twice, "coarse")[1].actions
    assert sign(once, "paper")[-1].states != sign(twice, "paper")[-1].states


@pytest.mark.parametrize("level", ["paper", "content", "coarse", "work"])
def test_case_41_a_refused_edit_and_its_correction(level):
    refused = replace(
        "/repo/a.py",
        "x = 1",
        "x = 2",
        "No replacement was performed, old_str `x = 1` did not appear verbatim in /repo/a.py.",
    )
    corrected = replace("/repo/a.py", "x  = 1", "x = 2")
    look = (bash("git status"),)
    both = sign(steps_of((refused,), (corrected,), look), level)
    clean = sign(steps_of((corrected,), look), level)
    if level != "coarse":  # the one level whose action keys leave results out
        assert both[0].actions != both[1].actions
        assert both[0].actions[0].endswith(":err")
    assert both[0].states == both[1].states == clean[0].states
    assert both[2].states == clean[1].states != clean[0].states


def test_case_41_the_same_edit_refused_and_accepted_differ():
    output = "No replacement was performed, old_str `x` did not appear verbatim in /repo/a.py."
    refused, done = (
        sign(
            steps_of(
                (replace("/repo/a.py", "x", "y", text),),
            )
        )[0].actions[0]
        for text in (output, "The file has been edited.")
    )
    assert refused == f"{done}:err"


def test_case_41_a_refused_edit_is_no_change_to_validate():
    output = "No replacement was performed, old_str `x` did not appear verbatim in /repo/a.py."
    test = (bash("pytest tests/test_a.py", "1 passed in 0.01s"),)
    refused = sign(steps_of((replace("/repo/a.py", "x", "y", output),), test))
    done = sign(steps_of((replace("/repo/a.py", "x", "y"),), test))
    assert [step.validated for step in refused] == [0, 0]
    assert [step.validated for step in done] == [0, 1]
