"""Joining the records of one rollout: what is kept of each token sequence stays aligned."""

from rtmc import Rollout, Step, ToolCall
from rtmc.formats.merge import join_samples
from rtmc.rollouts import Span


def record(command, *, tokens=None):
    step = Step((ToolCall("bash", {"command": command}),), spans=(Span(0, 1, 3),))
    kept = {} if tokens is None else {"token_ids": (tokens,), "logprobs": ((0.0, -0.1, -0.2),)}
    return Rollout("p", "r", (step,), sequence_lengths=(3,), **kept)


def test_tokens_of_both_records_are_kept_in_the_order_of_their_sequences():
    joined = join_samples(record("ls", tokens=(5, 6, 7)), record("pwd", tokens=(8, 9, 4))).rollout
    assert joined.sequence_lengths == (3, 3)
    assert joined.token_ids == ((5, 6, 7), (8, 9, 4))
    assert joined.logprobs == ((0.0, -0.1, -0.2),) * 2
    assert joined.steps[1].spans == (Span(1, 1, 3),)


def test_tokens_are_dropped_where_one_record_lacks_them():
    joined = join_samples(record("ls", tokens=(5, 6, 7)), record("pwd")).rollout
    assert joined.sequence_lengths == (3, 3)
    assert joined.token_ids == joined.logprobs == ()
