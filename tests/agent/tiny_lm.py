"""A tiny Llama with random weights, and tokenizers whose every token is a word or a character."""

import string

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = ["<unk>", "<pad>", "<end>", "<user>", "<system>", "<assistant>", "</function>",
         "<function=finish>", "<function=bash>", "<parameter=command>", "</parameter>", "ls", "cut",
         "off", *string.ascii_lowercase]  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def words(template=TEMPLATE):
    """A token is a word; there is none for spaces."""
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<end>", chat_template=template
    )


def characters(template, specials, eos=None):
    """A token is a character, or a special token."""
    vocabulary = {c: n for n, c in enumerate(string.printable)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(specials))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="?", eos_token=eos, chat_template=template
    )


def llama(vocabulary=len(WORDS), dtype=torch.float64, seed=0, **config):
    """Random weights, large enough that what is likely depends on all that was said."""
    torch.manual_seed(seed)
    shape = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
        "initializer_range": 0.25, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    model = LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **(shape | config)))
    return model.to(dtype)
