"""Put step values onto tokens: every token that the model sampled in a step gets its value.

Tokens of observations and prompts get 0, and are told apart by ``credited``. numpy inside; given a
torch tensor, the functions answer with tensors of its kind, without importing torch.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rtmc.batch import Floats
from rtmc.errors import AlignmentError
from rtmc.rollouts import Span

__all__ = ["TokenValues", "from_counts", "to_tokens"]


class TokenValues(NamedTuple):
    """The values of one token sequence, both of shape (tokens,).

    Attributes:
        values: the value of the step that each token belongs to; 0 elsewhere.
        credited: True at the tokens of steps that have a value (NaN = no credit assigned).
        dropped_steps: number of steps none of whose tokens remain, where the sequence was cut.
    """

    values: Any
    credited: Any
    dropped_steps: int = 0


def to_tokens(
    values: Any,
    spans: Sequence[Sequence[Span | tuple[int, int, int]]],
    lengths: Sequence[int],
    *,
    like: Any = None,
    truncated: bool = False,
    name: str = "rollout",
) -> list[TokenValues]:
    """Put step values onto token sequences by recorded spans.

    Args:
        values: one value a step, shape (T,); NaN = no credit.
        spans: for each step its spans (sequence, start, end), end excluded, in tokens.
        lengths: number of tokens of each sequence.
        like: a torch tensor whose dtype and device the answer takes; by default those of
            ``values`` if it is one, else numpy float64.
        truncated: the sequences were cut after recording: spans may reach beyond the end. A step
            keeps the tokens that remain; steps that keep none are counted.
        name: what errors call the rollout.

    Returns:
        One ``TokenValues`` a sequence.

    Raises:
        AlignmentError: as many spans as steps were expected, or a span is reversed, overlaps
            another or lies outside its sequence.
    """
    numbers = _numbers(values)
    if len(spans) != len(numbers):
        raise AlignmentError(f"{name}: expected spans for {len(numbers)} steps, got {len(spans)}")
    if any(spans) and not lengths:
        raise AlignmentError(f"{name}: has spans but no sequence lengths; record the lengths")
    placed = [np.zeros(length) for length in lengths]
    owner = [np.full(length, -1) for length in lengths]
    spanned = [set[int]() for _ in lengths]
    for step, (value, step_spans) in enumerate(zip(numbers, spans, strict=True)):
        for sequence, start, end in (_as_tuple(span, name, step) for span in step_spans):
            where = f"{name}: step {step}, span [{start}, {end}) of sequence {sequence}"
            if not 0 <= sequence < len(lengths):
                raise AlignmentError(f"{where}: there are {len(lengths)} sequences")
            if not 0 <= start < end:
                raise AlignmentError(f"{where}: expected 0 ≤ start < end")
            if end > lengths[sequence] and not truncated:
                raise AlignmentError(
                    f"{where}: the sequence has {lengths[sequence]} tokens; if it was cut, "
                    "say truncated=True"
                )
            spanned[sequence].add(step)
            taken = owner[sequence][start:end]
            if (taken >= 0).any():
                other = int(taken[taken >= 0][0])
                raise AlignmentError(f"{where}: overlaps a span of step {other}")
            owner[sequence][start:end] = step
            placed[sequence][start:end] = 0.0 if np.isnan(value) else value
    has_value = np.append(~np.isnan(numbers), False)  # the last entry stands for "no step"
    kind = like if like is not None else values
    return [
        TokenValues(
            _of_kind(array, kind),
            _of_kind(has_value[owned], kind),
            len(steps - set(owned.tolist())),
        )
        for array, owned, steps in zip(placed, owner, spanned, strict=True)
    ]


def from_counts(
    values: Any, counts: Sequence[int], mask: Any, *, truncated: bool = False, name: str = "rollout"
) -> TokenValues:
    """Put step values onto the model's tokens of one sequence by each step's number of tokens.

    Args:
        values: one value a step, shape (T,); NaN = no credit.
        counts: how many tokens the model sampled in each step.
        mask: shape (tokens,), true at the tokens that the model sampled; numpy or torch.
        truncated: the sequence was cut: the last steps may have fewer tokens, or none.
        name: what errors call the rollout.

    Raises:
        AlignmentError: the counts do not add up to the mask.
    """
    numbers = _numbers(values)
    if len(counts) != len(numbers):
        raise AlignmentError(f"{name}: expected counts for {len(numbers)} steps, got {len(counts)}")
    tokens = _numbers(mask)
    if tokens.ndim != 1:
        raise AlignmentError(
            f"{name}: expected the mask of one sequence, shape (tokens,), got {tokens.shape}; "
            "call from_counts once a row"
        )
    sampled = np.flatnonzero(tokens)
    total = int(sum(counts))
    if any(count < 0 for count in counts):
        raise AlignmentError(f"{name}: a count is negative: {list(counts)}")
    if total < len(sampled) or (total > len(sampled) and not truncated):
        raise AlignmentError(
            f"{name}: the steps have {total} tokens, the mask has {len(sampled)}"
            + ("" if total < len(sampled) else "; if the sequence was cut, say truncated=True")
        )
    step_of_token = np.repeat(np.arange(len(numbers)), counts)[: len(sampled)]
    array = np.zeros(len(tokens))
    credited = np.zeros(len(array), dtype=bool)
    array[sampled] = np.nan_to_num(numbers)[step_of_token]
    credited[sampled] = ~np.isnan(numbers)[step_of_token]
    begins = np.cumsum([0, *counts])[:-1]
    dropped = int(np.sum((begins >= len(sampled)) & (np.asarray(counts) > 0)))
    kind = values if hasattr(values, "new_tensor") else mask
    return TokenValues(_of_kind(array, kind), _of_kind(credited, kind), dropped)


def _as_tuple(span: Span | tuple[int, int, int], name: str, step: int) -> tuple[int, int, int]:
    if isinstance(span, Span):
        return span.sequence, span.start, span.end
    if len(span) != 3:
        raise AlignmentError(
            f"{name}: step {step}: expected spans (sequence, start, end), got {tuple(span)}"
        )
    return span


def _numbers(values: Any) -> Floats:
    """Take numbers out of a numpy array, a list or a torch tensor."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _of_kind(array: np.ndarray, kind: Any) -> Any:
    """Answer in kind: a tensor on the device of ``kind`` if that is one, else the array."""
    if not hasattr(kind, "new_tensor"):
        return array
    if array.dtype == bool:
        return kind.new_tensor(array).bool()
    floating = kind if kind.is_floating_point() else kind.float()
    return floating.new_tensor(array)
