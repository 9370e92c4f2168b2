import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmc.errors import FormatError, RtmcError
from rtmc.rollouts import (
    Rollout,
    Source,
    Span,
    Step,
    ToolCall,
    decode_rollout,
    encode_rollout,
    status_of,
)


@pytest.mark.parametrize(
    ("reward", "stop_reason", "resolved", "status"),
    [
        # a known outcome wins over the stop reason
        (1.0, None, None, "passed"),
        (1.0, "timeout", None, "passed"),
        (None, "max_steps", True, "passed"),
        (0.0, "submitted", True, "passed"),
        # from one half on
        (0.5, None, None, "passed"),
        (0.49, None, None, "failed"),
        (-1.0, None, None, "failed"),
        (80.0, "exit_cost", None, "passed"),
        # what the source says itself wins over the reward
        (0.9, None, False, "failed"),
        # not resolved, and stopped by a limit
        (0.0, "AgentTimeout", None, "incomplete"),
        (0.0, "LimitsExceeded", False, "incomplete"),
        (0.0, "max_iterations", None, "incomplete"),
        (0.0, "exit_cost", None, "incomplete"),
        (0.0, "exit context", None, "incomplete"),
        (0.0, "token-limit", None, "incomplete"),
        (0.0, "length", None, "incomplete"),
        (0.0, "agent_stuck_in_loop", None, "incomplete"),
        (None, "timeout", None, "incomplete"),
        (None, "timeout", False, "incomplete"),
        # not resolved, and stopped by the agent
        (0.0, "submitted", None, "failed"),
        (None, "submitted", False, "failed"),
        (0.0, "", None, "failed"),
        (None, "error: the endpoint said 429, rate limit", None, "unknown"),
        (0.0, "test_timeout", None, "failed"),  # the tests ran out of time, not the agent
        # nothing is known
        (None, None, None, "unknown"),
        (None, "submitted", None, "unknown"),
    ],
)
def test_status_of(reward, stop_reason, resolved, status):
    assert status_of(reward, stop_reason, resolved) == status


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)  # JSON has no lone surrogates
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
INT = st.integers(0, 10**6)


def maybe(strategy):
    return st.none() | strategy


def tuples(strategy):
    return st.lists(strategy, max_size=3).map(tuple)


CALLS = st.builds(
    ToolCall,
    TEXT,
    st.dictionaries(TEXT, VALUE, max_size=3) | TEXT,
    maybe(TEXT),
    maybe(st.integers(-255, 255)),
    maybe(st.booleans()),
    st.booleans(),
    maybe(TEXT),
)
STEPS = st.builds(
    Step,
    tuples(CALLS),
    TEXT,
    NUMBER,
    tuples(st.builds(Span, INT, INT, INT)),
    maybe(TEXT),
    maybe(TEXT),
    maybe(NUMBER),
)
ROLLOUTS = st.builds(
    Rollout,
    TEXT,
    TEXT,
    tuples(STEPS),
    maybe(NUMBER),
    st.sampled_from(["passed", "failed", "incomplete", "unknown"]),
    maybe(TEXT),
    maybe(TEXT),
    maybe(TEXT),
    maybe(TEXT),
    st.booleans(),
    tuples(INT),
    st.builds(Source, TEXT, INT),
    tuples(tuples(INT)),
    tuples(tuples(NUMBER)),
)


@given(ROLLOUTS)
def test_a_line_reads_back_equal(rollout):
    line = encode_rollout(rollout)
    assert b"\n" not in line
    assert decode_rollout(line) == rollout
    assert decode_rollout(line.decode()) == rollout
    assert encode_rollout(decode_rollout(line)) == line


def test_a_line_names_its_schema_first():
    assert encode_rollout(Rollout("p", "r")).startswith(b'{"schema":"rtmc.rollout/1",')


def test_zero_keeps_its_sign_and_numbers_every_bit():
    for number in (-0.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308):
        back = decode_rollout(encode_rollout(Rollout("p", "r", reward=number))).reward
        assert back == number
        assert math.copysign(1, back) == math.copysign(1, number)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "make",
    [
        lambda number: Rollout("p", "r", reward=number),
        lambda number: Rollout("p", "r", (Step(reward=number),)),
    ],
)
def test_a_reward_that_json_cannot_hold_is_refused(make, number):
    """Written as null it would come back as an unknown outcome, or as an unreadable line."""
    with pytest.raises(RtmcError, match=r"reward"):
        encode_rollout(make(number))


@pytest.mark.parametrize("number", [math.nan, -math.inf])
def test_a_log_probability_that_json_cannot_hold_is_refused(number):
    with pytest.raises(FormatError, match=r"^r: a log-probability is not finite"):
        encode_rollout(Rollout("p", "r", token_ids=((1, 2),), logprobs=((-1.0, number),)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{}", "expected schema 'rtmc.rollout/1', got ''"),
        (b'{"schema":"rtmc.rollout/2"}', "expected schema 'rtmc.rollout/1', got 'rtmc.rollout/2'"),
        (
            b'{"schema":"rtmc.rollout/1","problem_id":"p"}',
            "not a rollout of schema rtmc.rollout/1: Object missing required field `rollout_id`",
        ),
        (
            b'{"schema":"rtmc.rollout/1","problem_id":"p","rollout_id":"r","reward":"one"}',
            "not a rollout of schema rtmc.rollout/1: "
            "Expected `float | null`, got `str` - at `$.reward`",
        ),
        (
            b'{"schema":"rtmc.rollout/1","problem_id":"p","rollout_id":"r","status":"won"}',
            "not a rollout of schema rtmc.rollout/1: Invalid enum value 'won' - at `$.status`",
        ),
        (b"", "not a rollout of schema rtmc.rollout/1: Input data was truncated"),
        (b'{"schema":"rt', "not a rollout of schema rtmc.rollout/1: Input data was truncated"),
        (b"[]", "not a rollout of schema rtmc.rollout/1: Expected `object`, got `array`"),
    ],
)
def test_what_is_no_rollout_is_refused(line, message):
    with pytest.raises(FormatError) as error:
        decode_rollout(line)
    assert str(error.value) == message


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(FormatError, match="not a rollout of schema"):
        decode_rollout(b'{"schema":"rtmc.rollout/1","problem_id":"\xff","rollout_id":"r"}')


def test_fields_of_a_later_version_are_passed_over():
    line = b'{"schema":"rtmc.rollout/1","problem_id":"p","rollout_id":"r","colour":"red"}'
    assert decode_rollout(line) == Rollout("p", "r")


def test_a_source_is_written_as_editors_read_it():
    assert str(Source("runs/a.jsonl", 12)) == "runs/a.jsonl:12"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"reward": 1.0}, "passed"),
        ({"reward": 0.0}, "failed"),
        ({"reward": 0.0, "stop_reason": "max_steps"}, "incomplete"),
        ({"reward": 1.0, "stop_reason": "max_steps"}, "passed"),
        ({}, "unknown"),
        ({"reward": 0.0, "status": "passed"}, "passed"),
    ],
)
def test_a_rollout_made_by_hand_knows_its_status(given, status):
    assert Rollout("p", "r", **given).status == status
