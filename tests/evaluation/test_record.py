"""Counting rollouts, and the file."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmc.errors import FormatError, OptionError
from rtmc.evaluation import (
    SCHEMA,
    Evaluation,
    decode_evaluation,
    encode_evaluation,
    evaluate,
    with_figures,
)
from rtmc.rollouts import Group, Rollout, Span, Step


def runs(problem: str, *rewards: float | None, stop: str | None = None) -> Group:
    rollouts = (
        Rollout(problem, f"r{i}", (Step(),), reward, stop_reason=stop, model="m")
        for i, reward in enumerate(rewards)
    )
    return Group(problem, tuple(rollouts))


def joined(problem: str, *groups: Group) -> Group:
    return Group(problem, tuple(rollout for group in groups for rollout in group.rollouts))


EXAMPLE = [runs("q", 1, 1, 0), runs("p", 1, 0, None, 0.6), runs("r", None)]


def test_counts_and_figures_by_hand() -> None:
    found = evaluate(EXAMPLE, name="e", task="t")
    p, q, r = found.problems
    assert (p.id, p.runs, p.counted, p.passed, p.unknown) == ("p", 4, 3, 2, 1)
    assert (q.runs, q.counted, q.passed, q.unknown) == (3, 3, 2, 0)
    assert (r.runs, r.counted, r.rate) == (1, 0, None)
    assert (found.name, found.model, found.task, found.schema) == ("e", "m", "t", SCHEMA)
    # the median problem with a counted run has 3: k = 1, 2; majority of 3
    assert (found.settings.k, found.settings.majority) == ((1, 2), 3)
    assert found.pass_at_k[1].value == pytest.approx(2 / 3)
    assert (found.pass_at_k[1].problems, found.pass_at_k[1].left_out) == (2, 1)
    assert found.pass_at_k[2].value == 1
    assert found.majority.value == 1
    # failed: (2/4 + 2/3 + 0/1)/3; passed: (3/4 + 2/3 + 1)/3
    assert found.bounds == pytest.approx((7 / 18, 29 / 36))


def test_unknown_as_failures() -> None:
    found = evaluate(EXAMPLE, unknown="fail")
    assert [(p.counted, p.passed) for p in found.problems] == [(4, 2), (3, 2), (1, 0)]
    assert found.bounds[0] == found.bounds[1] == found.pass_at_k[1].value


def test_a_limit_is_a_failure_unless_left_out() -> None:
    cut = joined("p", runs("p", 0, 0.2, stop="limit of 40 steps"), runs("p", 1, 1))
    found = evaluate([cut]).problems[0]
    assert (found.counted, found.passed, found.incomplete) == (4, 2, 2)
    left = evaluate([cut], incomplete="exclude").problems[0]
    assert (left.counted, left.passed, left.incomplete) == (2, 2, 2)
    # a known pass wins over the limit, as everywhere
    solved = evaluate([runs("p", 1, stop="limit of 40 steps")], incomplete="exclude").problems[0]
    assert (solved.counted, solved.passed, solved.incomplete) == (1, 1, 0)


def test_an_error_says_nothing_of_the_agent_whatever_was_judged() -> None:
    broken = joined("p", runs("p", None, 0, 1, stop="error: the sandbox has ended"), runs("p", 1))
    found = evaluate([broken])
    one = found.problems[0]
    assert (one.runs, one.counted, one.passed, one.errors, one.unknown) == (4, 1, 1, 3, 0)
    assert found.stop_reasons == {"error": 3}
    one = evaluate([broken], unknown="fail").problems[0]
    assert (one.counted, one.passed, one.errors) == (4, 1, 3)
    # words like it in other sources are not this project's
    assert evaluate([runs("p", 0, stop="errors_found")]).problems[0].counted == 1


def test_a_pass_without_a_reward_is_unknown() -> None:
    odd = Rollout("p", "a", reward=None, status="passed")
    group = Group("p", (odd, Rollout("p", "b", reward=0.0)))
    one = evaluate([group]).problems[0]
    assert (one.counted, one.passed, one.unknown) == (1, 0, 1)
    one = evaluate([group], unknown="fail").problems[0]
    assert (one.counted, one.passed, one.unknown) == (2, 0, 1)


def test_what_a_run_takes() -> None:
    timed = Step(spans=(Span(0, 0, 5), Span(0, 7, 9)), seconds=1.5)
    group = Group("p", (
        Rollout("p", "a", (timed, timed), 1.0, stop_reason="finished"),
        Rollout("p", "b", (timed, Step()), 0.0, stop_reason="finished"),
        Rollout("p", "c", (), 0.0),
    ))  # fmt: skip
    found = evaluate([group])
    # steps 2 2 0; tokens 14 and 7 of the two that have spans; seconds of the first only
    assert (found.steps, found.tokens, found.seconds) == (pytest.approx(4 / 3), 10.5, 3.0)
    assert found.stop_reasons == {"finished": 2}
    assert evaluate([runs("p", 1)]).tokens is None


def test_default_sizes_follow_the_median_problem() -> None:
    found = evaluate([runs("p", *[1] * 8), runs("q", *[0] * 8), runs("r", 1)])
    assert (found.settings.k, found.settings.majority) == ((1, 2, 4, 8), 3)
    two = evaluate([runs("p", 1, 0), runs("q", 1, 1), runs("r", *[0] * 8)])
    assert (two.settings.k, two.settings.majority) == ((1, 2), 2)
    # a tie is no majority
    assert two.majority.value == pytest.approx(1 / 3)


def test_other_sizes_from_the_counts() -> None:
    found = evaluate([runs("p", 1, 0, 0, 1), runs("q", 1, 1, 1)])
    again = with_figures(found, k=[3], majority=1)
    assert (again.settings.k, again.settings.majority) == ((1, 3), 1)
    assert again == evaluate([runs("p", 1, 0, 0, 1), runs("q", 1, 1, 1)], k=[3], majority=1)
    with pytest.raises(OptionError, match="k is 5; expected 1 to 4, the most counted runs"):
        with_figures(found, k=[5])
    with pytest.raises(OptionError, match="majority is 0"):
        with_figures(found, majority=0)
    with pytest.raises(OptionError, match="k is 0"):
        evaluate([runs("p", 1)], k=[0])


def test_what_cannot_be_evaluated_is_refused() -> None:
    with pytest.raises(OptionError, match=r"no rollout with a known outcome; .* --unknown fail"):
        evaluate([runs("p", None)])
    with pytest.raises(OptionError, match="no rollout"):
        evaluate([])
    with pytest.raises(OptionError, match="two groups of problem 'p'; evaluate each model"):
        evaluate([runs("p", 1), runs("p", 0)])


rewards = st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=5)


@given(st.lists(rewards, min_size=1, max_size=6), st.integers(0, 1000))
def test_order_does_not_matter(outcomes: list[list[float | None]], seed: int) -> None:
    if not any(reward is not None for row in outcomes for reward in row):
        return
    groups = [runs(f"p{i}", *row) for i, row in enumerate(outcomes)]
    found = evaluate(groups)
    random = Random(seed)
    mixed = [Group(g.problem_id, tuple(random.sample(g.rollouts, len(g.rollouts)))) for g in groups]
    random.shuffle(mixed)
    assert evaluate(mixed) == found
    # names change nothing, to the last bit
    renamed = evaluate([runs(f"z{9 - i}", *row) for i, row in enumerate(outcomes)])
    assert (renamed.pass_at_k, renamed.majority) == (found.pass_at_k, found.majority)
    low, high = found.bounds
    value = found.pass_at_k[1].value
    assert value is not None
    assert 0 <= low <= high <= 1
    assert decode_evaluation(encode_evaluation(found)) == found


# --- the file ------------------------------------------------------------------------------------


def test_the_file_says_first_what_it_is() -> None:
    raw = encode_evaluation(evaluate(EXAMPLE))
    assert raw.startswith(b'{"schema":"rtmc.evaluation/1",')
    assert raw.endswith(b"}\n")
    assert msgspec.json.decode(raw)["pass_at_k"]["2"]["value"] == 1


def changed(**values: object) -> bytes:
    plain = msgspec.to_builtins(evaluate([runs("p", 1, 0)]))
    return msgspec.json.encode(plain | values)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", r"x\.json: not an evaluation of schema rtmc\.evaluation/1: Input data was trunc"),
        (b"\xff", "x.json: not an evaluation"),
        (b"[]", "x.json: not an evaluation"),
        (changed(schema="rtmc.evaluation/2"), "expected schema .*/1', got 'rtmc.evaluation/2'"),
        (changed(majority="x"), r"not an evaluation .*\$\.majority"),
        (changed(problems=[{"id": "p", "runs": 2, "counted": 1, "passed": 2}]),
         "problem 'p' has 2 passed of 1 counted of 2 runs; expected 0 ≤ passed"),
        (changed(problems=[{"id": "p", "runs": 1, "counted": 1, "passed": 1}] * 2),
         "expected problems of different ids"),
        (changed(problems=[]), "one of them with a run"),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        decode_evaluation(raw, "x.json")


def test_it_is_small() -> None:
    found = evaluate(runs(f"django__django-{i}", 1, 0, 1) for i in range(500))
    assert isinstance(found, Evaluation)
    assert len(encode_evaluation(found)) < 60_000
