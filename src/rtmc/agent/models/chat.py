"""Between messages and tokens: what a model in this process reads, and what it wrote as text.

The record of a dialogue only grows, so a chat never renders a history twice: it gives the tokens
that begin a dialogue, and later those that stand between a turn as it was sampled and the next.
"""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from rtmc.agent.models.base import Message
from rtmc.errors import OptionError

__all__ = ["PLAIN", "Chat", "TemplateChat"]

PLAIN = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
"""The template of a tokenizer without one: ``role: content`` a message."""

_TURN = "RTMC-TURN"  # a word that no template trims, escapes or takes apart


class Chat(Protocol):
    """Tokens of messages, and text of tokens."""

    @property
    def stop_ids(self) -> Collection[int]:
        """The tokens that end a turn; they are sampled and recorded, and no part of its text."""
        ...

    def begin(self, messages: Sequence[Message]) -> list[int]:
        """Give the tokens up to where the model's first turn begins.

        Args:
            messages: all so far, one at least.
        """
        ...

    def go_on(self, messages: Sequence[Message], last: int) -> list[int]:
        """Give the tokens from the end of the model's turn to where its next one begins.

        Args:
            messages: those since its turn, one at least.
            last: the last token of its turn, as sampled: one of ``stop_ids``, after which the end
                of the turn must not be written again, or any other, after which it must.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of sampled tokens."""
        ...


class TemplateChat:
    """The chat template of a transformers tokenizer, or ``PLAIN`` where it has none.

    What stands between two turns is rendered behind a turn that stands for the sampled one, and
    taken from the text behind it: so it does not matter what a template does to what was said, nor
    what it puts in front. It is tokenised alone, without special tokens of the tokenizer's own.
    """

    def __init__(self, tokenizer: Any, stop_ids: Collection[int] = ()) -> None:
        """Find out how a turn ends.

        Args:
            tokenizer: of the model.
            stop_ids: tokens that end a turn, beyond the tokenizer's end of sequence and the special
                token that the template writes behind a turn.

        Raises:
            OptionError: the template leaves out what the assistant says.
        """
        self._tokenizer = tokenizer
        self._template = tokenizer.chat_template or PLAIN
        stops = {*stop_ids, tokenizer.eos_token_id}
        mark = self._encode(self._behind([_message("user", "x")]).lstrip())[:1]
        stops.update(id for id in mark if id in tokenizer.added_tokens_decoder)
        self.stop_ids = frozenset(stops - {None})

    def begin(self, messages: Sequence[Message]) -> list[int]:
        """Render all messages."""
        return self._encode(self._render(messages))

    def go_on(self, messages: Sequence[Message], last: int) -> list[int]:
        """Render what stands behind a turn; its end is not written twice."""
        text = self._behind(messages)
        if last in self.stop_ids and text.lstrip().startswith(self.decode([last])):
            return self._encode(text.lstrip())[1:]
        return self._encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text, special tokens included."""
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def _behind(self, messages: Sequence[Message]) -> str:
        """Render what follows a turn of the assistant."""
        said = [_message("user", "x"), _message("assistant", _TURN)]
        _, found, text = self._render([*said, *messages]).partition(_TURN)
        if not found:
            raise OptionError(
                "the tokenizer's chat template leaves out what the assistant says; hand in a Chat "
                "of your own"
            )
        return text

    def _render(self, messages: Sequence[Message]) -> str:
        return self._tokenizer.apply_chat_template(
            list(messages),
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=True,
        )

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
