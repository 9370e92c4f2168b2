"""What stands between the turns, against what is written here by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("transformers", reason="needs the extra hf")

from tiny_lm import WORDS, characters, words

from rtmc.agent.models.chat import TemplateChat
from rtmc.errors import OptionError

CHATML = (
    "{% for m in messages %}"
    "{% if loop.first and m['role'] != 'system' %}"
    "<|im_start|>system\nYou are a bot<|im_end|>\n{% endif %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""As of Qwen 2.5 and SmolLM2: with a system prompt of its own."""
LLAMA_3 = (
    "<|bos|>{% for m in messages %}<|head|>{{ m['role'] }}<|/head|>\n\n"
    "{{ m['content'] | trim }}<|eot|>{% endfor %}"
    "{% if add_generation_prompt %}<|head|>assistant<|/head|>\n\n{% endif %}"
)
LLAMA_2 = (
    "{% for m in messages %}"
    "{% if m['role'] == 'user' %}<s>[INST] {{ m['content'].strip() }} [/INST]"
    "{% else %} {{ m['content'].strip() }} </s>{% endif %}{% endfor %}"
)
"""It has no prompt for the assistant, and a space before the end of its turn."""
THINKING = (
    "{% for m in messages %}{% set c = m['content'] %}{% if m['role'] == 'assistant' %}"
    "{% set c = c.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "<|im_start|>{{ m['role'] }}\n{{ c }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
"""It forgets what was thought, and begins a thought."""
NO_END = (
    "{% for m in messages %}{{ m['role'] }}> {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant> {% endif %}"
)


def user(content):
    return {"role": "user", "content": content}


def system(content):
    return {"role": "system", "content": content}


@pytest.mark.parametrize(
    ("template", "specials", "eos", "ended", "cut"),
    [
        pytest.param(
            CHATML, ["<|im_start|>", "<|im_end|>"], "<|im_end|>", "<|im_end|>",
            "<|im_end|>\n<|im_start|>user\nseen \n<|im_end|>\n<|im_start|>assistant\n",
            id="default system",
        ),
        pytest.param(
            CHATML, ["<|im_start|>", "<|im_end|>", "<|eos|>"], "<|eos|>", "<|im_end|>",
            "<|im_end|>\n<|im_start|>user\nseen \n<|im_end|>\n<|im_start|>assistant\n",
            id="end of sequence is not end of turn",
        ),
        pytest.param(
            LLAMA_3, ["<|bos|>", "<|head|>", "<|/head|>", "<|eot|>"], "<|eot|>", "<|eot|>",
            "<|eot|><|head|>user<|/head|>\n\nseen<|eot|><|head|>assistant<|/head|>\n\n",
            id="trims",
        ),
        pytest.param(
            LLAMA_2, ["<s>", "</s>"], "</s>", "</s>", " </s><s>[INST] seen [/INST]",
            id="space before the end",
        ),
        pytest.param(
            THINKING, ["<|im_start|>", "<|im_end|>"], "<|im_end|>", "<|im_end|>",
            "<|im_end|>\n<|im_start|>user\nseen \n<|im_end|>\n<|im_start|>assistant\n<think>\n",
            id="thinks",
        ),
    ],
)  # fmt: skip
def test_the_end_of_a_turn_stands_there_once(template, specials, eos, ended, cut):
    tokenizer = characters(template, specials, eos)
    chat = TemplateChat(tokenizer)
    stop = tokenizer.convert_tokens_to_ids(ended)
    assert chat.stop_ids == {stop, tokenizer.eos_token_id}
    letter = tokenizer.convert_tokens_to_ids("x")
    assert chat.decode(chat.go_on([user("seen \n")], letter)) == cut
    rest = cut[cut.index(ended) + len(ended) :]
    assert chat.decode(chat.go_on([user("seen \n")], stop)) == rest
    if tokenizer.eos_token_id != stop:  # the turn was ended, but not as the template does
        assert chat.decode(chat.go_on([user("seen \n")], tokenizer.eos_token_id)) == cut


@pytest.mark.parametrize("first", [[], [system("Be good.")]])
@pytest.mark.parametrize("template", [CHATML, LLAMA_3])
def test_the_record_reads_as_the_template_renders_it(template, first):
    """Where a template leaves alone what was said."""
    specials = ["<|im_start|>", "<|im_end|>", "<|bos|>", "<|head|>", "<|/head|>", "<|eot|>"]
    end = "<|im_end|>" if template == CHATML else "<|eot|>"
    tokenizer = characters(template, specials, end)
    chat = TemplateChat(tokenizer)
    messages, record = [*first, user("Do it.")], []
    record += chat.begin(messages)
    for number, said in enumerate(["One.", "Two.", "RTMC", "Four."]):
        record += tokenizer(said + (end if number % 2 else ""))["input_ids"]
        answer = [user(f"seen RTMC-TURN {number}")]
        record += chat.go_on(answer, record[-1])
        messages += [{"role": "assistant", "content": said}, *answer]
    assert chat.decode(record) == tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )


def test_several_answers_to_one_turn():
    chat = TemplateChat(words())
    answers = [user("a b"), {"role": "tool", "content": "c"}]
    assert chat.decode(chat.go_on(answers, WORDS.index("x"))) == (
        "<end> <user> a b <end> <unk> c <end> <assistant>"
    )


def test_a_tokenizer_without_template():
    chat = TemplateChat(characters(None, []))
    assert chat.stop_ids == frozenset()
    messages = [system("Be good."), user("Do it.")]
    assert chat.decode(chat.begin(messages)) == "system: Be good.\nuser: Do it.\nassistant:"
    assert chat.decode(chat.go_on([user("seen")], 0)) == "\nuser: seen\nassistant:"


def test_ends_of_a_turn():
    """A word that follows a turn is no end of it; special tokens that are handed in are."""
    assert TemplateChat(characters(NO_END, [])).stop_ids == frozenset()
    assert TemplateChat(words(), [5, None]).stop_ids == {5, WORDS.index("<end>")}


def test_special_tokens_stay_in_the_text():
    chat = TemplateChat(characters(CHATML, ["<|im_start|>", "<|im_end|>"], "<|im_end|>"))
    ids = chat.begin([user("a . b")])
    assert chat.decode(ids).endswith("user\na . b<|im_end|>\n<|im_start|>assistant\n")


def test_a_template_that_leaves_out_the_assistant():
    template = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
    with pytest.raises(OptionError) as caught:
        TemplateChat(words(template))
    assert str(caught.value) == (
        "the tokenizer's chat template leaves out what the assistant says; hand in a Chat of your "
        "own"
    )
