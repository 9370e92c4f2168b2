"""A model that says what it was told to: for tests, and to replay a known solution."""

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import msgspec

from rtmc.agent.models.base import Completion, Dialogue
from rtmc.errors import OptionError

__all__ = ["Scripted", "Turn", "fake_logprob", "fake_tokens"]

Turn = str | Sequence[dict[str, Any]] | Completion
"""A text, native calls, or a whole completion."""

Policy = Callable[[Dialogue], Turn]
"""Makes the next turn of the dialogue so far."""

Script = Sequence[Turn] | Policy
"""All turns of a rollout in order, or what makes the next one."""


class Scripted:
    """A deterministic model: a dialogue's seed is the number of its script, where it has several.

    It holds no state: the turn follows from the dialogue alone, whatever is asked together. Its
    token record is fake, one token a word; the loop's own text between the turns is in it too.
    """

    def __init__(
        self,
        scripts: Sequence[Script] | Policy,
        *,
        native_tools: bool = False,
        tokens: bool = True,
        name: str = "scripted",
    ) -> None:
        """Learn the scripts.

        Args:
            scripts: one for each seed, from 0; or what makes the next turn of any dialogue.
            native_tools: whether it wants the tools natively.
            tokens: whether it keeps a token record.
            name: what rollouts call it.
        """
        self.name, self.native_tools = name, native_tools
        self._scripts, self._tokens = scripts, tokens

    def complete(self, dialogues: list[Dialogue]) -> list[Completion]:
        """Say the next turn of each."""
        return [self._next(dialogue) for dialogue in dialogues]

    def _next(self, dialogue: Dialogue) -> Completion:
        said = _as_completion(self._turn(dialogue))
        if not self._tokens or said.stop.startswith("error"):
            return said
        for message in dialogue.messages[dialogue.state or 0 :]:
            seen = fake_tokens(f"{message['role']} {message['content']}")
            dialogue.token_ids += seen
            dialogue.logprobs += [0.0] * len(seen)
        start = len(dialogue.token_ids)
        calls = [f"{call.get('name')} {call.get('arguments')}" for call in said.calls]
        sampled = fake_tokens(" ".join([said.text, *calls]))
        dialogue.token_ids += sampled
        dialogue.logprobs += map(fake_logprob, sampled)
        dialogue.state = len(dialogue.messages) + 1  # this turn is in the record as it was said
        return msgspec.structs.replace(said, start=start)

    def _turn(self, dialogue: Dialogue) -> Turn:
        if not isinstance(self._scripts, Sequence):
            return self._scripts(dialogue)
        if not 0 <= dialogue.seed < len(self._scripts):
            raise OptionError(
                f"there are {len(self._scripts)} scripts, and none of the seed {dialogue.seed}; "
                "give one function of the dialogue instead"
            )
        script = self._scripts[dialogue.seed]
        if not isinstance(script, Sequence):
            return script(dialogue)
        number = sum(message["role"] == "assistant" for message in dialogue.messages)
        if number < len(script):
            return script[number]
        return Completion("", stop=f"error: the script {dialogue.seed} has {len(script)} turns")


def _as_completion(turn: Turn) -> Completion:
    if isinstance(turn, Completion):
        return turn
    return Completion(turn) if isinstance(turn, str) else Completion("", tuple(turn))


def fake_tokens(text: str) -> list[int]:
    """Give each word a number."""
    return [crc32(word.encode(errors="replace")) % 50_000 for word in text.split()]


def fake_logprob(token: int) -> float:
    """Give each token a log-probability."""
    return -(token % 97 + 1) / 97
