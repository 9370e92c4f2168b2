"""A model behind an endpoint that speaks OpenAI's chat completions (vLLM, SGLang, llama.cpp …).

The token record is what the server says it fed and sampled. It goes on as long as each prompt
begins with it; where a chat template renders an earlier turn anew (it drops old reasoning, say),
the dialogue has no record from then on. The log-probabilities are the server's: vLLM and llama.cpp
give those before temperature and the like, which are those of the sampling policy only where
nothing bends it (``--logprobs-mode processed_logprobs`` has vLLM give the others).
"""

import functools
import json
import logging
import os
import random
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from email.utils import parsedate_to_datetime
from threading import Event
from typing import Any, Self
from zlib import crc32

import msgspec

from rtmc.agent.models.answers import TOKEN_FIELDS, Answer, Tokens, read_answer
from rtmc.agent.models.base import Completion, Dialogue
from rtmc.agent.tools import TOOLS, Tool
from rtmc.errors import MissingExtraError, ModelError, OptionError

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", "agent") from error

__all__ = ["OpenAI"]

_log = logging.getLogger(__name__)

MOST_SAID = 500
"""Characters of what a server said that are shown at most."""

_PASSING = {408, 409, 425, 429}
_FOR_ALL = {
    401: "give the right key as api_key or OPENAI_API_KEY",
    403: "give a key that may use this model",
    404: "check the base_url, which mostly ends in /v1, and the name of the model",
}
_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|maximum (model|prompt|input|allowed) length"
    r"|(prompt|input) is too long|maximum number of (input )?tokens|max_tokens must be at least 1",
    re.IGNORECASE,
)


class _Memory(msgspec.Struct):
    """What is kept with a dialogue: reasoning by its message's number; whether it has a record."""

    reasoning: dict[int, dict[str, str]] = {}
    recording: bool = True


class OpenAI:
    """A model behind a chat endpoint; a context manager, or call ``close``."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int | None = 4096,
        stop: Sequence[str] = (),
        native_tools: bool = True,
        tools: Mapping[str, Tool] = TOOLS,
        tokens: bool | None = None,
        concurrency: int = 32,
        timeout: float = 600.0,
        retries: int = 5,
        pause: float = 1.0,
        longest_pause: float = 60.0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn where the model is and how to ask it; nothing is sent yet.

        Args:
            model: its name at the endpoint.
            base_url: the address before ``/chat/completions``; None = ``OPENAI_BASE_URL``, or
                ``http://localhost:8000/v1``.
            api_key: None = ``OPENAI_API_KEY``; where there is none, none is sent.
            temperature: 0 is greedy.
            top_p: probability mass of the tokens that may be sampled, in (0, 1].
            max_tokens: of one turn; None = what the endpoint allows.
            stop: texts that end a turn, besides the model's own end of turn. With
                ``</function>``, the token record holds out only if the tokens that spell it end
                there.
            native_tools: whether the endpoint is offered the tools; else calls are XML in text.
            tools: what is offered natively.
            tokens: whether to ask for the tokens; None = until the endpoint refuses it.
            concurrency: requests at the same time.
            timeout: seconds to wait for an answer.
            retries: of a request that failed in passing.
            pause: seconds before the first retry, doubled at each.
            longest_pause: seconds, also where the server asks for more.
            extra: more fields of the request; None as a value leaves a field out.

        Raises:
            OptionError: the address or the key cannot be one, or a number is out of its range.
        """
        if not (temperature >= 0 and 0 < top_p <= 1 and retries >= 0 and concurrency > 0):
            raise OptionError(
                "expected temperature >= 0, 0 < top_p <= 1, retries >= 0 and concurrency > 0, got "
                f"{temperature}, {top_p}, {retries} and {concurrency}"
            )
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or "http://localhost:8000/v1"
        self._key = (os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip()
        if not self._key.isascii() or not self._key.isprintable():
            raise OptionError("the api_key holds characters that no HTTP header can; copy it anew")
        self.name, self.native_tools = model, native_tools
        self._url = _checked(base_url).rstrip("/") + "/chat/completions"
        self._stop = tuple(stop)
        self._settings = {
            "model": model,
            "tools": [tool.schema() for tool in tools.values()] if native_tools else None,
            "temperature": temperature,
            "top_p": top_p,
            "max_tokens": max_tokens,
            "stop": self._stop or None,
        }
        self._extra = dict(extra or {})
        self._tokens = tokens
        self._token_fields: dict[str, Any] = {} if tokens is False else TOKEN_FIELDS
        self._retries, self._pause, self._longest_pause = retries, pause, longest_pause
        self._reached = False
        self._warned, self._closed, self._jitter = False, Event(), random.Random()
        self._pool = ThreadPoolExecutor(concurrency, "model")
        headers = {"Content-Type": "application/json"}
        self._client = httpx.Client(
            headers=headers | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            verify=_trusted(),
            timeout=httpx.Timeout(timeout, connect=min(timeout, 30.0)),
            limits=httpx.Limits(max_connections=concurrency),
        )

    def __repr__(self) -> str:
        return f"OpenAI({self.name!r}, {self._url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what is under way, without more retries, and close the connections."""
        self._closed.set()
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def complete(self, dialogues: list[Dialogue]) -> list[Completion]:
        """Continue each dialogue by one turn, all at the same time.

        A dialogue that the endpoint refuses stops with ``length`` where it is too long for the
        model's context, else with ``error: …``, as does one whose retries are used up.

        Raises:
            ModelError: nothing ever answered at the address, or the endpoint refuses the key or
                does not know the model.
        """
        for dialogue in dialogues:
            dialogue.state = dialogue.state or _Memory()
        asked = [self._pool.submit(self._ask, self._request(dialogue)) for dialogue in dialogues]
        try:
            for one in wait(asked, return_when=FIRST_EXCEPTION).done:
                one.result()  # raises at once, however long the others take
            answers = [one.result() for one in asked]
        finally:
            for one in asked:
                one.cancel()
        return list(map(self._take, dialogues, answers))

    def _request(self, dialogue: Dialogue) -> dict[str, Any]:
        """Write the request, without what asks for tokens."""
        messages = [
            message | dialogue.state.reasoning.get(number, {})
            for number, message in enumerate(dialogue.messages)
        ]
        turn = sum(message["role"] == "assistant" for message in messages)
        seed = crc32(f"{dialogue.seed} {turn}".encode()) >> 1  # some take 31 bits only
        fields = {**self._settings, "messages": messages, "seed": seed, **self._extra}
        return {name: value for name, value in fields.items() if value is not None}

    def _ask(self, request: dict[str, Any]) -> Answer | Completion:
        """Send a request until it is answered, refused or given up."""
        trial = 0
        while True:
            token_fields, asked_for = self._token_fields, 0.0
            body = json.dumps(token_fields | request).encode()
            try:
                answer = self._client.post(self._url, content=body)
            except httpx.ConnectError as error:
                failure = f"{type(error).__name__}: {self._redacted(str(error))}"
                if trial and not self._reached:
                    raise ModelError(
                        f"nothing answers at {self._url} ({failure[:MOST_SAID]}); start the "
                        "endpoint, or give its base_url"
                    ) from error
            except httpx.RequestError as error:
                failure = f"{type(error).__name__}: {self._redacted(str(error))}"
            else:
                self._reached = True
                if answer.is_success:
                    return read_answer(answer.content, self._stop)
                failure = f"{answer.status_code}: {self._redacted(answer.text)}"
                if not _passes(answer.status_code, failure):
                    return self._refused(request, token_fields, answer.status_code, failure)
                asked_for = _retry_after(answer.headers.get("Retry-After", ""))
            doubled = self._pause * 2 ** min(trial, 30) * self._jitter.uniform(0.5, 1)
            pause = min(max(doubled, asked_for), self._longest_pause)
            if trial == self._retries or self._closed.wait(pause):
                return Completion("", stop=f"error: {self._url}: {failure[:MOST_SAID]}")
            trial += 1

    def _refused(
        self, request: dict[str, Any], token_fields: dict[str, Any], status: int, failure: str
    ) -> Answer | Completion:
        """Tell a refusal of this dialogue from one of the fields for tokens, or of all."""
        if status in _FOR_ALL:
            raise ModelError(
                f"{self._url} refuses the model {self.name!r} with {failure[:MOST_SAID]}; "
                f"{_FOR_ALL[status]}"
            )
        if _TOO_LONG.search(failure):
            return Completion("", stop="length")
        if self._tokens is None and any(field in failure for field in token_fields):
            self._token_fields = {}
            return self._ask(request)
        return Completion("", stop=f"error: the endpoint refuses it with {failure[:MOST_SAID]}")

    def _redacted(self, said: str) -> str:
        """Put it on one line, and take out the key where a server repeats it."""
        said = said.replace(self._key, "[api_key]") if self._key else said
        return " ".join(said.split())

    def _take(self, dialogue: Dialogue, answer: Answer | Completion) -> Completion:
        """Make a turn of an answer; the dialogue's token record and memory grow."""
        if isinstance(answer, Completion):
            return answer
        if answer.completion.stop.startswith("error"):
            return answer.completion
        if answer.reasoning:
            dialogue.state.reasoning[len(dialogue.messages)] = answer.reasoning
        start = self._record(dialogue, answer.tokens)
        return msgspec.structs.replace(answer.completion, start=start)

    def _record(self, dialogue: Dialogue, tokens: Tokens | None) -> int | None:
        """Let the token record grow; give where the sampled tokens begin, None without a record."""
        record = dialogue.token_ids
        if self._tokens is False or not dialogue.state.recording:
            return None
        if tokens is None:
            lost = "an answer held no token ids"
        elif tokens.logprobs is None:
            lost = "a sampled token has no log-probability"
        elif tokens.prompt[: len(record)] != record:
            lost = "a prompt does not begin with the turns before it as they were sampled"
        else:
            seen = tokens.prompt[len(record) :]
            record += seen + tokens.sampled
            dialogue.logprobs += [0.0] * len(seen) + tokens.logprobs
            return len(tokens.prompt)
        expected = bool(record) or tokens is not None or self._tokens is True
        if expected and not self._warned:
            self._warned = True
            _log.warning("%r: some rollouts will have no token record: %s", self, lost)
        dialogue.state.recording = False
        record.clear()
        dialogue.logprobs.clear()
        return None


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Load the certificates, which takes longer than all else, once."""
    return httpx.create_ssl_context()


def _passes(status: int, failure: str) -> bool:
    """Tell whether a failure may pass; llama.cpp says with 500 that its context is full."""
    return status in _PASSING or (status >= 500 and not _TOO_LONG.search(failure))


def _checked(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise OptionError(f"the base_url cannot be read: {error}") from error
    if url.userinfo:
        raise OptionError("the base_url holds a user or password; give the key as api_key")
    if url.scheme not in ("http", "https") or not url.host:
        raise OptionError(f"the base_url is {base_url!r}; expected http://… or https://…")
    return base_url


def _retry_after(header: str) -> float:
    """Read for how many seconds a server asks to wait: a number, or a date; 0 = it says nothing."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return seconds if seconds > 0 else 0.0
