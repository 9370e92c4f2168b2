import subprocess
import sys

import numpy as np
import pytest

import rtmc
from rtmc.errors import AlignmentError
from rtmc.rollouts import Span
from rtmc.tokens import from_counts, to_tokens


def rows(placed):
    return [list(sequence.values) for sequence in placed]


def test_every_token_of_a_step_gets_its_value():
    # step 0 has tokens 1–2, step 1 token 4; 0, 3 and 5 are prompt and observations
    (got,) = to_tokens([0.5, -1.0], [[(0, 1, 3)], [(0, 4, 5)]], [6])
    assert list(got.values) == [0, 0.5, 0.5, 0, -1, 0]
    assert list(got.credited) == [False, True, True, False, True, False]
    assert got.credited.dtype == bool
    assert got.dropped_steps == 0


def test_several_spans_and_sequences():
    # step 0 has two runs in sequence 0; step 1 is in sequence 1; sequence 2 has none
    spans = [[Span(0, 0, 1), Span(0, 2, 3)], [Span(1, 1, 2)]]
    assert rows(to_tokens([2.0, 3.0], spans, [3, 2, 1])) == [[2, 0, 2], [0, 3], [0]]


def test_no_credit_is_not_zero_credit():
    (got,) = to_tokens([np.nan, 0.0, None], [[(0, 0, 1)], [(0, 1, 2)], [(0, 2, 3)]], [4])
    assert list(got.values) == [0, 0, 0, 0]
    assert list(got.credited) == [False, True, False, False]


def test_a_step_may_have_no_tokens():
    assert rows(to_tokens([1.0, 2.0], [[], [(0, 0, 1)]], [1])) == [[2]]
    assert to_tokens([1.0], [[]], []) == []
    assert to_tokens([], [], []) == []


@pytest.mark.parametrize(
    ("spans", "lengths", "message"),
    [
        ([[(0, 0, 1)]], [4], "r7: expected spans for 2 steps, got 1"),
        ([[], [], []], [4], "r7: expected spans for 2 steps, got 3"),
        (
            [[(0, 0, 2)], [(0, 1, 3)]],
            [4],
            "r7: step 1, span [1, 3) of sequence 0: overlaps a span of step 0",
        ),
        (
            [[(0, 0, 2), (0, 1, 3)], []],
            [4],
            "r7: step 0, span [1, 3) of sequence 0: overlaps a span of step 0",
        ),
        (
            [[(0, 2, 1)], []],
            [4],
            "r7: step 0, span [2, 1) of sequence 0: expected 0 ≤ start < end",
        ),
        (
            [[(0, 1, 1)], []],
            [4],
            "r7: step 0, span [1, 1) of sequence 0: expected 0 ≤ start < end",
        ),
        (
            [[(0, -1, 1)], []],
            [4],
            "r7: step 0, span [-1, 1) of sequence 0: expected 0 ≤ start < end",
        ),
        (
            [[], [(0, 3, 5)]],
            [4],
            "r7: step 1, span [3, 5) of sequence 0: the sequence has 4 tokens; "
            "if it was cut, say truncated=True",
        ),
        (
            [[], [(1, 0, 1)]],
            [4],
            "r7: step 1, span [0, 1) of sequence 1: there are 1 sequences",
        ),
        (
            [[], [(-1, 0, 1)]],
            [4],
            "r7: step 1, span [0, 1) of sequence -1: there are 1 sequences",
        ),
        (
            [[(0, 0, 1)], []],
            [],
            "r7: has spans but no sequence lengths; record the lengths",
        ),
    ],
)
def test_what_does_not_fit_is_refused(spans, lengths, message):
    with pytest.raises(AlignmentError) as error:
        to_tokens([1.0, 2.0], spans, lengths, name="r7")
    assert str(error.value) == message


def test_a_cut_sequence_keeps_what_remains():
    # cut at 5: step 0 whole, step 1 loses its last token, step 2 loses all
    spans = [[(0, 0, 2)], [(0, 3, 6)], [(0, 7, 9)]]
    (got,) = to_tokens([1.0, 2.0, 3.0], spans, [5], truncated=True)
    assert list(got.values) == [1, 1, 0, 2, 2]
    assert got.dropped_steps == 1


def test_a_step_cut_off_whole_is_counted_once():
    spans = [[(0, 0, 2)], [(0, 4, 6), (0, 8, 9)]]
    (got,) = to_tokens([1.0, 2.0], spans, [3], truncated=True)
    assert got.dropped_steps == 1


def test_a_step_that_keeps_a_token_is_not_dropped():
    (got,) = to_tokens([1.0], [[(0, 0, 2), (0, 4, 6)]], [3], truncated=True)
    assert list(got.values) == [1, 1, 0]
    assert got.dropped_steps == 0


def test_a_cut_does_not_excuse_what_overlaps():
    with pytest.raises(AlignmentError, match="overlaps a span of step 0"):
        to_tokens([1.0, 2.0], [[(0, 0, 9)], [(0, 1, 3)]], [4], truncated=True)


def test_counts_fill_the_mask_in_order():
    # tokens 0, 1 and 4, 5 are the model's: two of step 0, one of step 1, one of step 2
    got = from_counts([1.0, 2.0, np.nan], [2, 1, 1], np.array([1, 1, 0, 0, 1, 1]))
    assert list(got.values) == [1, 1, 0, 0, 2, 0]
    assert list(got.credited) == [True, True, False, False, True, False]


def test_counts_of_a_cut_sequence():
    # the mask has 3 of 6 tokens: step 0 whole, step 1 half, step 2 none; step 3 never had any
    got = from_counts([1.0, 2.0, 3.0, 4.0], [2, 2, 2, 0], [1, 0, 1, 1], truncated=True)
    assert list(got.values) == [1, 0, 1, 2]
    assert got.dropped_steps == 1


@pytest.mark.parametrize(
    ("counts", "mask", "truncated", "message"),
    [
        ([1], [1, 1], False, "r7: expected counts for 2 steps, got 1"),
        ([3, -1], [1, 1], False, "r7: a count is negative: [3, -1]"),
        ([1, 0], [1, 1], False, "r7: the steps have 1 tokens, the mask has 2"),
        ([1, 0], [1, 1], True, "r7: the steps have 1 tokens, the mask has 2"),
        (
            [1, 2],
            [1, 1],
            False,
            "r7: the steps have 3 tokens, the mask has 2; if the sequence was cut, "
            "say truncated=True",
        ),
    ],
)
def test_counts_that_do_not_fit_are_refused(counts, mask, truncated, message):
    with pytest.raises(AlignmentError) as error:
        from_counts([1.0, 2.0], counts, mask, truncated=truncated, name="r7")
    assert str(error.value) == message


def recorded(name, reward, spans, lengths):
    steps = tuple(rtmc.Step(thought="x", spans=(Span(*span),)) for span in spans)
    return rtmc.Rollout("p", name, steps, reward, sequence_lengths=lengths)


def test_a_credit_puts_its_advantages_onto_tokens():
    # GRPO without deviation: 1/2 and −1/2
    group = rtmc.Group(
        "p",
        (
            recorded("r1", 1.0, [(0, 1, 2), (0, 3, 5)], (6,)),
            recorded("r2", 0.0, [(0, 0, 1)], (2,)),
        ),
    )
    credit = rtmc.credit(group, rtmc.Config(estimator=rtmc.GRPO("none")))
    assert [rows(tokens) for tokens in credit.to_tokens()] == [
        [[0, 0.5, 0, 0.5, 0.5, 0]],
        [[-0.5, 0]],
    ]


def test_a_credit_names_the_rollout_that_does_not_fit():
    group = rtmc.Group("p", (recorded("r1", 1.0, [(0, 1, 2)], (2,)), recorded("r2", 0.0, [], ())))
    rtmc.credit(group).to_tokens()
    wrong = rtmc.Group("p", (*group.rollouts, recorded("r3", 0.0, [(0, 1, 9)], (2,))))
    with pytest.raises(AlignmentError, match=r"^r3: step 0, span \[1, 9\) of sequence 0"):
        rtmc.credit(wrong).to_tokens()
    rtmc.credit(wrong).to_tokens(truncated=True)


def test_numpy_needs_no_torch():
    program = """
import sys
import numpy as np
from rtmc.tokens import from_counts, to_tokens
to_tokens(np.array([1.0]), [[(0, 0, 1)]], [2])
from_counts(np.array([1.0]), [1], np.array([1, 0]))
print("torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_torch_tensors_are_answered_in_kind():
    torch = pytest.importorskip("torch")
    values = torch.tensor([0.5, float("nan")], dtype=torch.float32)
    (got,) = to_tokens(values, [[(0, 0, 1)], [(0, 1, 2)]], [3])
    assert got.values.dtype == torch.float32
    assert got.credited.dtype == torch.bool
    assert got.values.tolist() == [0.5, 0, 0]
    assert got.credited.tolist() == [True, False, False]


def test_torch_kind_is_taken_from_like():
    torch = pytest.importorskip("torch")
    spans = [[(0, 0, 1)]]
    for like, dtype in (
        (torch.zeros(1, dtype=torch.bfloat16), torch.bfloat16),
        (torch.zeros(1, dtype=torch.int64), torch.float32),  # ids are no home for fractions
    ):
        (got,) = to_tokens(np.array([0.5]), spans, [2], like=like)
        assert got.values.dtype == dtype
        assert got.values.tolist() == [0.5, 0]


def test_torch_values_that_need_a_gradient_are_only_read():
    torch = pytest.importorskip("torch")
    values = torch.tensor([0.5], requires_grad=True)
    (got,) = to_tokens(values, [[(0, 0, 1)]], [1])
    assert not got.values.requires_grad


def test_torch_mask_of_counts():
    torch = pytest.importorskip("torch")
    mask = torch.tensor([1, 0, 1], dtype=torch.int64)
    got = from_counts(np.array([0.5, -0.5]), [1, 1], mask)
    assert got.values.dtype == torch.float32
    assert got.values.tolist() == [0.5, 0, -0.5]
    assert got.credited.tolist() == [True, False, True]
    assert from_counts(torch.tensor([0.5, -0.5]).double(), [1, 1], mask).values.dtype == (
        torch.float64
    )


def test_a_mask_of_several_sequences_is_refused():
    with pytest.raises(AlignmentError) as error:
        from_counts([1.0], [2], np.ones((2, 2)))
    assert str(error.value) == (
        "rollout: expected the mask of one sequence, shape (tokens,), got (2, 2); "
        "call from_counts once a row"
    )


def test_a_span_needs_a_sequence():
    with pytest.raises(AlignmentError, match=r"step 0: expected spans \(sequence, start, end\)"):
        to_tokens([1.0], [[(0, 1)]], [3])
