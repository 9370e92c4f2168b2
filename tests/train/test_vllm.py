"""Turns through TRL's vLLM, played by an engine that follows a script."""

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra train")

from scripted_training import CHAT, saved_model
from transformers import LlamaForCausalLM

from rtmc.agent.models.base import Dialogue
from rtmc.agent.models.hf import Sampling
from rtmc.train.vllm import ThroughVLLM


class Engine:
    """Gives the same turns, and keeps what it was asked."""

    def __init__(self, *turns: str, first: float | None = -0.25) -> None:
        self.first = first
        self.turns, self.asked = [CHAT.encode(turn.split()) for turn in turns], []

    def generate(self, prompts: list[list[int]], images: None, num_generations: int) -> tuple:
        assert (images, num_generations) == (None, 1)
        self.asked.append(prompts)
        turns = [self.turns.pop(0) for _ in prompts]
        logprobs = [[[-0.5 if at else self.first] for at in range(len(turn))] for turn in turns]
        return prompts, turns, logprobs, None


def test_the_record_grows_by_what_was_sampled(tmp_path: Path) -> None:
    model = LlamaForCausalLM.from_pretrained(saved_model(tmp_path))
    engine = Engine("view farm end", "search", "test end")
    asked = ThroughVLLM(engine, model, CHAT, Sampling())
    dialogues = [Dialogue([{"role": "user", "content": "fee 3"}], seed=n) for n in range(2)]
    first, second = asked.complete(dialogues)
    assert (first.stop, second.stop) == ("stop", "length")
    assert first.text.startswith("<function=str_replace_editor>")
    assert [
        CHAT.words[id] for id in dialogues[0].token_ids
    ] == "issue fee 3 go view farm end".split()
    assert dialogues[0].logprobs == [0.0, 0.0, 0.0, 0.0, -0.25, -0.5, -0.5]
    dialogues[0].messages += [
        {"role": "assistant", "content": first.text},
        {"role": "user", "content": "edited farm.py; it reads now:"},
    ]
    asked.complete(dialogues[:1])
    assert engine.asked[1] == [CHAT.encode("issue fee 3 go view farm end ok go".split())]
    assert dialogues[0].token_ids == CHAT.encode(
        "issue fee 3 go view farm end ok go test end".split()
    )


def test_a_token_without_log_probability_is_an_error(tmp_path: Path) -> None:
    model = LlamaForCausalLM.from_pretrained(saved_model(tmp_path))
    asked = ThroughVLLM(Engine("test end", first=None), model, CHAT, Sampling())
    with pytest.raises(FloatingPointError, match="without a log-probability"):
        asked.complete([Dialogue([{"role": "user", "content": "fee 3"}])])
