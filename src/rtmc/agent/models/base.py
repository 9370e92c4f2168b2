"""What a model is to the loop: it continues dialogues, many at once.

A dialogue is one rollout's conversation. Its token record, where the model has one, only ever
grows: what the model sampled is kept as sampled and never tokenised again.
"""

from typing import Any, Protocol

import msgspec

__all__ = ["Completion", "Dialogue", "Message", "Model"]

Message = dict[str, Any]
"""A chat message: role, content, and tool_calls or tool_call_id where they belong."""


class Completion(msgspec.Struct, frozen=True):
    """One turn of the model.

    Attributes:
        text: what it wrote.
        calls: native tool calls, ``{"id", "name", "arguments"}``; empty where it wrote none.
        stop: why it stopped: ``stop``; ``length``, with nothing written where there was no room at
            all; or ``error: …`` where the endpoint failed.
        start: where in the dialogue's token record the sampled tokens begin; None where the model
            gives no tokens.
    """

    text: str
    calls: tuple[dict[str, Any], ...] = ()
    stop: str = "stop"
    start: int | None = None


class Dialogue(msgspec.Struct):
    """One conversation.

    Attributes:
        messages: all so far.
        seed: of this rollout's sampling.
        token_ids: the token record: prompt, sampled tokens, observations, sampled tokens …
        logprobs: log-probability of each sampled token under the policy that sampled it; 0
            elsewhere.
        state: what the model itself keeps, such as a cache.
    """

    messages: list[Message]
    seed: int = 0
    token_ids: list[int] = []
    logprobs: list[float] = []
    state: Any = None


class Model(Protocol):
    """Continues dialogues."""

    @property
    def name(self) -> str:
        """What the rollouts' ``model`` says."""
        ...

    @property
    def native_tools(self) -> bool:
        """Whether tools are offered natively; else they are described in the first message."""
        ...

    def complete(self, dialogues: list[Dialogue]) -> list[Completion]:
        """Continue each dialogue by one turn of the assistant, in the same order.

        The dialogue's messages are left alone; its token record grows.
        """
        ...
