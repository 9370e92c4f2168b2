"""Read what chat endpoints answer: a turn, and its tokens where the server gives them.

    prompt ids    ``prompt_token_ids`` beside the choices (vLLM) or in the choice (SGLang)
    sampled ids   ``token_ids`` of the choice (both), or ``meta_info.output_token_logprobs`` of it
                  (SGLang 0.5.13 and what followed)
    logprobs      ``logprobs.content[].logprob`` of the choice, one for each sampled id

llama.cpp's server gives an id with each log-probability, but no ids of the prompt, and so no
record; neither do hosted endpoints.
"""

import json
from typing import Annotated, Any

import msgspec

from rtmc.agent.models.base import Completion
from rtmc.formats.xml_calls import MARK

__all__ = ["TOKEN_FIELDS", "Answer", "Tokens", "read_answer"]

TOKEN_FIELDS = {
    "logprobs": True,
    "return_token_ids": True,
    "return_prompt_token_ids": True,
    "return_meta_info": True,
}
"""What a request asks for to get the tokens; vLLM and SGLang pass over those they do not know."""

UNLIKELY = -9999.0
"""What servers write in place of a log-probability that they do not have."""

CLOSING = "</function>"


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of one turn.

    Attributes:
        prompt: all that was fed.
        sampled: what the model made of it.
        logprobs: of each that was sampled; None where one is missing.
    """

    prompt: list[int]
    sampled: list[int]
    logprobs: list[float] | None


class Answer(msgspec.Struct, frozen=True):
    """One turn, as answered.

    Attributes:
        completion: without its place in the token record.
        reasoning: what the server split off the text, by the name of its field.
        tokens: None where the server gives none.
    """

    completion: Completion
    reasoning: dict[str, str] = {}
    tokens: Tokens | None = None


class _Function(msgspec.Struct):
    name: Any = None
    arguments: Any = None


class _Call(msgspec.Struct):
    function: _Function
    id: Any = None


class _Message(msgspec.Struct):
    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None
    logprobs: Any = None
    token_ids: Any = None
    prompt_token_ids: Any = None
    meta_info: Any = None


class _Reply(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    prompt_token_ids: Any = None


def read_answer(body: bytes, stop: tuple[str, ...] = ()) -> Answer:
    """Read the body of an answer; what is no chat completion stops with ``error: …``.

    Reasoning that the server split off is the text only where nothing else was written. Servers
    cut off the stop text that they met: the end of a call is put back.

    Args:
        body: of an HTTP answer with a status of success.
        stop: the stop texts that were asked for.
    """
    try:
        reply = msgspec.convert(json.loads(body), _Reply)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        return Answer(Completion("", stop=f"error: the answer is no chat completion: {error}"))
    choice = reply.choices[0]
    if choice.finish_reason in ("abort", "content_filter", "error"):
        ended = f"error: the endpoint ended the turn with {choice.finish_reason!r}"
        return Answer(Completion("", stop=ended))
    message, cut = choice.message, choice.finish_reason == "length"
    reasoning = {
        field: _clean(said)
        for field in ("reasoning", "reasoning_content")
        if isinstance(said := getattr(message, field), str) and said
    }
    text = _text(message.content)
    calls = tuple(
        {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
        for call in message.tool_calls or []
    )
    if reasoning and not text and not calls:
        text, reasoning = next(iter(reasoning.values())), {}
    if CLOSING in stop and not cut and text.rfind(MARK) > text.rfind(CLOSING):
        text += CLOSING
    completion = Completion(text, calls, "length" if cut else "stop")
    return Answer(completion, reasoning, _tokens(reply, choice))


def _text(content: Any) -> str:
    """Take the text, which some endpoints give in parts."""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return _clean("".join(text for text in texts if isinstance(text, str)))


def _clean(text: str) -> str:
    """Replace halves of characters, which no file and no JSON can hold."""
    return text.encode(errors="replace").decode()


def _tokens(reply: _Reply, choice: _Choice) -> Tokens | None:
    prompt = reply.prompt_token_ids or choice.prompt_token_ids
    sampled = choice.token_ids or _column(choice.meta_info, "output_token_logprobs", 1)
    if not _are_ids(prompt) or not _are_ids(sampled):
        return None
    logprobs = _column(choice.logprobs, "content", "logprob")
    known = len(logprobs) == len(sampled) and all(map(_is_logprob, logprobs))
    return Tokens(prompt, sampled, [float(number) for number in logprobs] if known else None)


def _column(table: Any, name: str, key: str | int) -> list[Any]:
    """Take one value of each row of ``table[name]``; none where they are not there."""
    try:
        return [row[key] for row in table[name]]
    except (TypeError, LookupError):
        return []


def _are_ids(ids: Any) -> bool:
    return (
        isinstance(ids, list) and bool(ids) and all(type(i) is int and 0 <= i < 2**32 for i in ids)
    )


def _is_logprob(number: Any) -> bool:
    return type(number) in (int, float) and UNLIKELY < number < 1  # rounding may pass 0
