"""The models that continue dialogues, one module for each kind, and the dict of their names.

A model is named as ``scripted``, ``openai:NAME`` (any endpoint that speaks OpenAI's chat
completions), or ``hf:NAME`` (a transformers model in this process).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from rtmc.agent.models.base import Completion, Dialogue, Model
from rtmc.errors import OptionError

__all__ = ["MODELS", "Completion", "Dialogue", "Model", "Sampling", "open_model"]


class Sampling(msgspec.Struct, frozen=True):
    """How turns are sampled, whatever the model.

    Attributes:
        temperature: 0 takes the likeliest token.
        top_p: sample from the fewest likeliest tokens whose probabilities add up to it, in (0, 1].
        max_tokens: of one turn.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024


def _scripted(name: str, sampling: Sampling, options: dict[str, Any]) -> Model:
    from rtmc.agent.models.rules import mixed
    from rtmc.agent.models.scripted import Scripted

    if name:
        raise OptionError(f"scripted takes no name, got {name!r}; it plays the task tiny by rules")
    return Scripted(mixed)


def _openai(name: str, sampling: Sampling, options: dict[str, Any]) -> Model:
    from rtmc.agent.models.openai import OpenAI

    return OpenAI(name, **msgspec.structs.asdict(sampling), **options)


def _hf(name: str, sampling: Sampling, options: dict[str, Any]) -> Model:
    from rtmc.agent.models.hf import HF
    from rtmc.agent.models.hf import Sampling as Tokens

    return HF.load(
        name, Tokens(sampling.temperature, sampling.top_p, max_new_tokens=sampling.max_tokens),
        **options,
    )  # fmt: skip


MODELS: dict[str, Callable[[str, Sampling, dict[str, Any]], Model]] = {
    "scripted": _scripted,
    "openai": _openai,
    "hf": _hf,
}


def open_model(spec: str, sampling: Sampling = Sampling(), **options: Any) -> Model:
    """Make a model of its name.

    Args:
        spec: ``scripted``, ``openai:NAME`` or ``hf:NAME``.
        sampling: how turns are sampled; rules do not sample.
        options: more of that kind's own, such as ``base_url`` or ``device``.

    Raises:
        OptionError: no such model.
        MissingExtraError: what it needs is not installed.
    """
    kind, _, name = spec.partition(":")
    if kind not in MODELS or (kind != "scripted" and not name):
        raise OptionError(f"no model {spec!r}; expected scripted, openai:NAME or hf:NAME")
    return MODELS[kind](name, sampling, options)
