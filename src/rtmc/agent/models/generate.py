"""Sample one turn of many rows from a transformers causal LM. This module imports torch.

A row's tokens stand at the right end of the batch, padded on the left, in the cache as well. What
is new differs in length from row to row: each row is fed as many of its last tokens as the one
with the most new ones needs, so that there is no padding between what is cached and what is new.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

from rtmc.errors import OptionError

__all__ = ["Past", "Row", "check", "generate", "sample", "uniforms"]

_ROOM = 64
"""Tokens by which a cache grows at least."""


@dataclass(frozen=True)
class Past:
    """Keys and values of a row's first tokens; never written to, so rows may share it.

    Attributes:
        ids: the tokens.
        layers: keys and values of each layer, shape ``[heads, len(ids), head size]``.
    """

    ids: list[int]
    layers: list[tuple[torch.Tensor, torch.Tensor]]


@dataclass
class Row:
    """One turn to sample.

    Attributes:
        ids: all tokens before it, one at least.
        seed: of its random numbers.
        room: how many tokens it may have, one at least.
        past: of its first tokens, if it is kept.
        sampled: the turn.
        logprobs: of the turn.
        stop: why it ended: ``stop`` or ``length``.
    """

    ids: list[int]
    seed: int
    room: int
    past: Past | None = None
    sampled: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stop: str | None = None

    def __post_init__(self) -> None:
        if self.past is not None and self.ids[: len(self.past.ids)] != self.past.ids:
            self.past = None  # of another history

    @property
    def length(self) -> int:
        """All tokens so far."""
        return len(self.ids) + len(self.sampled)

    @property
    def new(self) -> int:
        """How many tokens are not in the past."""
        return len(self.ids) - (len(self.past.ids) if self.past is not None else 0)


def check(model: Any) -> None:
    """Refuse a model whose memory of a token is not one key and one value for each layer.

    Raises:
        OptionError: it is an encoder with a decoder, or has states of another kind.
    """
    layers = DynamicCache(config=model.config).layers
    kinds = {type(layer) for layer in layers} - {DynamicLayer, DynamicSlidingWindowLayer}
    if kinds or model.config.is_encoder_decoder:
        kind = ", ".join(sorted(kind.__name__ for kind in kinds)) or "an encoder"
        raise OptionError(
            f"{type(model).__name__} has {kind}; expected a causal LM with attention alone"
        )


def generate(
    model: Any,
    rows: Sequence[Row],
    ended: Callable[[list[int]], bool],
    *,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    keep: bool = True,
) -> None:
    """Sample a turn of each row; the rows are filled in, their past included.

    Args:
        model: in evaluation mode.
        rows: of any lengths.
        ended: whether a turn ends with the last of the tokens sampled so far.
        temperature: 0 takes the likeliest token.
        top_p: see ``sample``.
        top_k: see ``sample``.
        keep: leave the rows their past; else they have none afterwards.

    Raises:
        FloatingPointError: the model gives NaN.
    """
    with torch.inference_mode():
        batch = _Batch(model, rows)
        logits = batch.prefill()
        while True:
            seeds, positions = zip(*((row.seed, row.length) for row in batch.rows), strict=True)
            tokens, logprobs = sample(logits, uniforms(seeds, positions), temperature, top_p, top_k)
            sampled = tokens.tolist()
            for row, token, logprob in zip(batch.rows, sampled, logprobs.tolist(), strict=True):
                if row.stop is not None:
                    continue
                if not math.isfinite(logprob):
                    raise FloatingPointError(
                        f"the model's logits at token {row.length} are not finite; look at its "
                        "weights"
                    )
                row.sampled.append(token)
                row.logprobs.append(logprob)
                if ended(row.sampled):
                    row.stop = "stop"
                elif len(row.sampled) >= row.room:
                    row.stop = "length"
            going = [number for number, row in enumerate(batch.rows) if row.stop is None]
            if 2 * len(going) <= len(batch.rows):
                batch.release(keep)
                if not going:
                    return
                batch.select(going)
                sampled = [sampled[number] for number in going]
            logits = batch.step(sampled)


def sample(
    logits: torch.Tensor,
    uniform: np.ndarray,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample a token of each row by inverting its distribution function.

    The log-probabilities are those of ``log_softmax(logits / temperature)``, in single precision at
    least, before anything is cut off: as a trainer computes them again.

    Args:
        logits: shape ``[rows, vocabulary]``.
        uniform: shape ``[rows]``, in [0, 1).
        temperature: 0 takes the likeliest token; its log-probability is that at temperature 1.
        top_p: sample from the fewest likeliest tokens whose probabilities add up to it, in (0, 1].
        top_k: sample from so many likeliest tokens; 0 for all. It is applied before ``top_p``.

    Returns:
        Tokens and log-probabilities, shape ``[rows]`` each.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    logprobs = (logits / (temperature or 1.0)).log_softmax(-1)
    if temperature == 0:
        tokens = logprobs.argmax(-1)
    else:
        total = _cut(logprobs.exp().double(), top_p, top_k).cumsum(-1)
        level = torch.as_tensor(uniform, device=total.device)[:, None] * total[:, -1:]
        tokens = torch.searchsorted(total, level, right=True).squeeze(-1)
        tokens = tokens.clamp(max=logits.shape[-1] - 1)  # NaN is beyond the end
    return tokens, logprobs.gather(-1, tokens[:, None]).squeeze(-1)


def _cut(probs: torch.Tensor, top_p: float, top_k: int) -> torch.Tensor:
    """Set to 0 what is not to be sampled."""
    if 0 < top_k < probs.shape[-1]:
        least = probs.topk(top_k).values[:, -1:]
        probs = probs.where(probs >= least, 0.0)
    if top_p < 1:
        ordered, order = probs.sort(descending=True, stable=True)
        before = ordered.cumsum(-1) - ordered
        ordered = ordered.where(before < top_p * ordered.sum(-1, keepdim=True), 0.0)
        probs = torch.zeros_like(probs).scatter(-1, order, ordered)
    return probs


def uniforms(seeds: Sequence[int], positions: Sequence[int]) -> np.ndarray:
    """Give a random number in [0, 1) for each pair of a seed and a position: SplitMix64."""
    bits = np.array([seed % 2**64 for seed in seeds], np.uint64)
    state = _mixed(bits) + np.array(positions, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (_mixed(state) >> np.uint64(12)) * 2.0**-52


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class _Batch:
    """Rows that are fed together, and their cache."""

    def __init__(self, model: Any, rows: Sequence[Row]) -> None:
        self.rows = list(rows)
        self._model = model
        self._cache = Cache(layer_class_to_replicate=_InPlaceLayer)
        known = inspect.signature(model.forward).parameters
        # transformers is renaming it
        self._cache_name = "cache" if "cache" in known else "past_key_values"
        self._padding = np.zeros(0, int)  # how many slots of each row stand empty on the left

    def prefill(self) -> torch.Tensor:
        """Feed what is not in the rows' pasts; give the logits of the last token of each."""
        lengths = np.array([len(row.ids) for row in self.rows])
        self._padding = lengths.max() - lengths
        fed = max(max(row.new for row in self.rows), 1)
        self._restore(int(lengths.max()) - fed, fed)
        return self._feed([[0] * (fed - len(row.ids)) + row.ids[-fed:] for row in self.rows])

    def step(self, tokens: list[int]) -> torch.Tensor:
        """Feed one token of each row; give the logits after it."""
        return self._feed([[token] for token in tokens])

    def release(self, keep: bool) -> None:
        """Give the rows that have ended their pasts."""
        for number, row in enumerate(self.rows):
            if keep and row.stop is not None:
                ids = [*row.ids, *row.sampled[:-1]]  # the last one was not fed
                at = int(self._padding[number])
                layers = [layer.of_row(number, at, at + len(ids)) for layer in self._layers]
                row.past = Past(ids, layers)

    def select(self, numbers: list[int]) -> None:
        """Go on with some rows only."""
        self.rows = [self.rows[number] for number in numbers]
        spare = int(self._padding[numbers].min())
        self._padding = self._padding[numbers] - spare
        for layer in self._layers:
            layer.select(numbers, spare)

    @property
    def _layers(self) -> list[Any]:
        return self._cache.layers

    def _restore(self, width: int, fed: int) -> None:
        """Put all but the last tokens of each row into the cache."""
        kept = [
            (number, row.past.layers, len(row.ids) - fed)
            for number, row in enumerate(self.rows)
            if row.past is not None and len(row.ids) > fed
        ]
        for index in range(len(kept[0][1]) if kept else 0):
            layer = _InPlaceLayer()
            pasts = {number: (layers[index], length) for number, layers, length in kept}
            layer.restore(pasts, len(self.rows), width, fed)
            self._cache.layers.append(layer)
        for row in self.rows:
            row.past = None

    def _feed(self, tokens: list[list[int]]) -> torch.Tensor:
        """Feed tokens, shape ``[rows, any]``; give the logits after the last of each row."""
        device = self._model.device
        fed = torch.tensor(tokens, device=device)
        end = self._cache.get_seq_length() + fed.shape[1]
        slots = torch.arange(end, device=device) - torch.tensor(
            self._padding[:, None], device=device
        )
        output = self._model(
            input_ids=fed,
            attention_mask=(slots >= 0).long(),
            position_ids=slots[:, -fed.shape[1] :].clamp(min=0),
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_name: self._cache},
        )
        return output.logits[:, -1]


class _InPlaceLayer(DynamicLayer):
    """Keys and values, shape ``[rows, heads, tokens, head size]``, that grow in place.

    The parent copies all of them at every token.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._room: list[torch.Tensor] = []

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append; give all."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        at = self.get_seq_length()
        end = at + key_states.shape[-2]
        states = (key_states, value_states)
        if not self._room or self._room[0].shape[-2] < end:
            old = self._room
            self._room = [_room(new, len(new), end) for new in states]
            for which, room in enumerate(old):
                self._room[which][:, :, :at] = room[:, :, :at]
        for room, new in zip(self._room, states, strict=True):
            room[:, :, at:end] = new
        return self._show(end)

    def restore(
        self,
        pasts: dict[int, tuple[tuple[torch.Tensor, torch.Tensor], int]],
        rows: int,
        width: int,
        more: int,
    ) -> None:
        """Begin with what is known of some rows, at the right end.

        Args:
            pasts: keys and values by row, and how many of them are taken.
            rows: how many there are.
            width: slots in use.
            more: slots that will soon be.
        """
        (like, _), *_ = pasts.values()
        self.lazy_initialization(*like)
        self._room = [_room(states, rows, width + more) for states in like]
        for which, room in enumerate(self._room):
            for number in range(rows):
                states, length = pasts.get(number, (like, 0))
                room[number, :, : width - length] = 0  # masked, but it must not be NaN
                room[number, :, width - length : width] = states[which][:, :length]
        self._show(width)

    def of_row(self, number: int, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Copy some tokens of a row."""
        keys, values = (room[number, :, start:end].clone() for room in self._room)
        return keys, values

    def select(self, numbers: list[int], start: int) -> None:
        """Keep some rows, without their first slots."""
        end = self.get_seq_length() - start
        self._room = [room[numbers, :, start:] for room in self._room]
        self._show(end)

    def _show(self, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = (room[:, :, :end] for room in self._room)
        self.keys, self.values = keys, values
        return keys, values


def _room(like: torch.Tensor, rows: int, slots: int) -> torch.Tensor:
    """Allocate slots and some more, for states whose last dimensions are heads, tokens, size."""
    heads, _, size = like.shape[-3:]
    return like.new_empty(rows, heads, slots + max(slots // 4, _ROOM), size)
