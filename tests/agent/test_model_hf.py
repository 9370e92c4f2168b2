"""A transformers model in this process, against one that is plainly slow."""

import functools
import math
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("torch", reason="needs the extra hf")
pytest.importorskip("transformers", reason="needs the extra hf")

import torch
from scripts import REPOSITORY, driven
from tiny_lm import WORDS, llama, words
from transformers import MambaConfig, MambaForCausalLM, T5Config, T5ForConditionalGeneration

from rtmc.agent.loop import attempt, recorded
from rtmc.agent.models.base import Dialogue
from rtmc.agent.models.chat import TemplateChat
from rtmc.agent.models.generate import sample, uniforms
from rtmc.agent.models.hf import HF, Sampling
from rtmc.errors import AlignmentError, MissingExtraError, OptionError
from rtmc.rollouts import Span

END, CALL = WORDS.index("<end>"), WORDS.index("</function>")
MODEL = llama()
OBSERVED = ["ls", "a b c d e f g", "z " * 23, "", "k l"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """So tiny a model waits for its threads most of the time, on a busy machine for very long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def hf(model=MODEL, chat=None, *, cache=True, max_batch=None, context=None, **sampling):
    chat = chat or TemplateChat(words())
    return HF(model, chat, Sampling(**sampling), cache=cache, max_batch=max_batch, context=context)


def begun(*prompts):
    return [Dialogue([message("user", text)], seed) for seed, text in enumerate(prompts)]


def message(role, content):
    return {"role": role, "content": content}


def go_on(dialogue, completion, observed):
    dialogue.messages += [message("assistant", completion.text), message("user", observed)]


def play(model, dialogues, turns=3, observed=OBSERVED):
    """Every dialogue has its turns; give the completions by dialogue."""
    said = [[] for _ in dialogues]
    for turn in range(turns):
        for number, completion in enumerate(model.complete(dialogues)):
            said[number].append(completion)
            go_on(dialogues[number], completion, observed[(turn + number) % len(observed)])
    return said


PROMPTS = ["a", "b c d e f g h i j k l m n o p q", "", "r s", "t u v w x", "y " * 40, "z"]


# --- the slow one -------------------------------------------------------------------------------


@dataclass
class Slow:
    """One dialogue, one token at a time, without cache; texts and tokens as written here."""

    model: object
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_new_tokens: int = 12

    def play(self, number, turns=3):
        ids = self.words(f"<user> {PROMPTS[number]} <end> <assistant>")
        logprobs, stops = [0.0] * len(ids), []
        for turn in range(turns):
            sampled = 0
            while True:
                token, logprob = self.next(ids, number)
                ids.append(token)
                logprobs.append(logprob)
                sampled += 1
                if token in (END, CALL) or sampled == self.max_new_tokens:
                    break
            stops.append("stop" if token in (END, CALL) else "length")
            if turn == turns - 1:
                return ids, logprobs, stops
            end = "" if token == END else "<end> "
            seen = OBSERVED[(turn + number) % len(OBSERVED)]
            observed = self.words(f"{end}<user> {seen} <end> <assistant>")
            ids += observed
            logprobs += [0.0] * len(observed)
        return None

    def words(self, text):
        return [WORDS.index(word) for word in text.split()]

    def next(self, ids, seed):
        with torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0, -1].tolist()
        highest = max(logits)
        warm = [(x - highest) / (self.temperature or 1.0) for x in logits]
        norm = math.log(math.fsum(map(math.exp, warm)))
        logprobs = [x - norm for x in warm]
        likely = sorted(range(len(logits)), key=lambda token: -logprobs[token])
        if self.temperature == 0:
            return likely[0], logprobs[likely[0]]
        likely = likely[: self.top_k or None]
        mass = math.fsum(math.exp(logprobs[token]) for token in likely)
        kept, before = [], 0.0
        for token in likely:
            if before < self.top_p:
                kept.append(token)
            before += math.exp(logprobs[token]) / mass
        mass = math.fsum(math.exp(logprobs[token]) for token in kept)
        left = float(uniforms([seed], [len(ids)])[0]) * mass
        for token in sorted(kept):
            left -= math.exp(logprobs[token])
            if left < 0:
                break
        return token, logprobs[token]


@functools.cache
def slowly(number, **sampling):
    return Slow(MODEL, **sampling).play(number)


@pytest.mark.parametrize("options", [{}, {"max_batch": 3}, {"cache": False}])
@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 0},
        {},
        {"top_p": 0.5},
        {"top_k": 3},
        {"temperature": 1.7, "top_p": 0.8, "top_k": 12},
    ],
)
def test_it_is_as_the_slow_one(sampling, options):
    dialogues = begun(*PROMPTS)
    said = play(hf(max_new_tokens=12, **sampling, **options), dialogues)
    lengths = set()
    for number, dialogue in enumerate(dialogues):
        ids, logprobs, stops = slowly(number, **sampling)
        assert dialogue.token_ids == ids
        assert dialogue.logprobs == pytest.approx(logprobs, abs=1e-9)
        assert [completion.stop for completion in said[number]] == stops
        lengths.add(len(ids))
    assert len(lengths) > 4


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_single_precision(attention):
    """Where rounding decides nothing, it samples the same."""
    model = llama(dtype=torch.float32)
    model.set_attn_implementation(attention)
    dialogues = begun(*PROMPTS)
    play(hf(model, max_new_tokens=12), dialogues)
    for number, dialogue in enumerate(dialogues):
        ids, logprobs, _ = slowly(number)
        assert dialogue.token_ids == ids
        assert dialogue.logprobs == pytest.approx(logprobs, abs=1e-4)


def test_half_precision_is_normalised_in_single():
    logits = torch.linspace(-4, 4, 300, dtype=torch.bfloat16)[None]
    _, got = sample(logits, uniforms([0], [0]), 0)
    assert got.dtype == torch.float32
    exact = logits.double().log_softmax(-1).max()
    assert got.item() == pytest.approx(exact.item(), abs=1e-5)


def test_sliding_windows():
    """Old tokens stay in the cache; they are masked as the model masks them."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.25, sliding_window=7,
        use_sliding_window=True, max_window_layers=1, max_position_embeddings=256,
        pad_token_id=None, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config).double()
    dialogues = begun(*PROMPTS[:4])
    play(hf(model, max_new_tokens=12), dialogues)
    for number, dialogue in enumerate(dialogues):
        ids, logprobs, _ = Slow(model.eval()).play(number)
        assert dialogue.token_ids == ids
        assert dialogue.logprobs == pytest.approx(logprobs, abs=1e-9)


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 30), st.integers(0, 2**64), st.lists(st.integers(0, 12), max_size=4)
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 6),
    st.sampled_from([None, 1, 2]),
)
def test_turns_of_any_lengths(dialogues, most, max_batch):
    """Dialogues that take part for so many turns each; each is as if it were alone."""
    model = hf(max_new_tokens=most, max_batch=max_batch)
    alone = hf(max_new_tokens=most)

    def begin(length, seed):
        return Dialogue([message("user", "q " * length)], seed)

    together = [begin(length, seed) for length, seed, _ in dialogues]
    for turn in range(5):
        asked = [n for n, (_, _, seen) in enumerate(dialogues) if turn <= len(seen)]
        for number, completion in zip(
            asked, model.complete([together[n] for n in asked]), strict=True
        ):
            seen = dialogues[number][2]
            if turn < len(seen):
                go_on(together[number], completion, "o " * seen[turn])
    for (length, seed, seen), got in zip(dialogues, together, strict=True):
        single = begin(length, seed)
        for more in [*seen, None]:
            (completion,) = alone.complete([single])
            if more is not None:
                go_on(single, completion, "o " * more)
        assert got.token_ids == single.token_ids
        assert got.logprobs == pytest.approx(single.logprobs, abs=1e-9)


# --- the record ---------------------------------------------------------------------------------


def test_logprobs_are_those_of_one_pass_over_the_record():
    dialogues = begun(*PROMPTS)
    said = play(hf(max_new_tokens=12, temperature=0.8, top_p=0.7, top_k=9), dialogues)
    for dialogue, completions in zip(dialogues, said, strict=True):
        ids = torch.tensor([dialogue.token_ids])
        with torch.no_grad():
            logprobs = (MODEL(ids).logits[0] / 0.8).log_softmax(-1)
        spans = [range(one.start, one.start + count(one)) for one in completions]
        sampled = {at for span in spans for at in span}
        for at, logprob in enumerate(dialogue.logprobs):
            expected = logprobs[at - 1, dialogue.token_ids[at]].item() if at in sampled else 0.0
            assert logprob == pytest.approx(expected, abs=1e-9)


def count(completion):
    """Of tokens: those of the text, and the end where it was sampled."""
    ended = completion.stop == "stop" and not completion.text.endswith("</function>")
    return len(completion.text.split()) + ended


def test_the_record_only_grows_and_texts_are_what_was_sampled():
    model, dialogues = hf(max_new_tokens=7), begun(*PROMPTS)
    before = [[] for _ in dialogues]
    for turn in range(4):
        messages = [list(dialogue.messages) for dialogue in dialogues]
        completions = model.complete(dialogues)
        assert [dialogue.messages for dialogue in dialogues] == messages
        for number, (dialogue, completion) in enumerate(zip(dialogues, completions, strict=True)):
            ids = dialogue.token_ids
            assert ids[: len(before[number])] == before[number]
            assert len(dialogue.logprobs) == len(ids)
            said = [WORDS[token] for token in ids[completion.start :]]
            if said[-1] == "<end>":
                said.pop()
            assert completion.text.split() == said
            before[number] = list(ids)
            go_on(dialogue, completion, OBSERVED[turn])


def test_a_lost_or_foreign_cache_changes_nothing():
    """The record counts; what does not fit to it is made anew."""
    kept, lost, cut = begun("a b"), begun("a b"), begun("a b")
    model = hf(max_new_tokens=9)
    play(model, kept, 3)
    play(model, lost, 2)
    lost[0].state = None
    play(model, lost, 1, [OBSERVED[2]])
    assert lost[0].token_ids == kept[0].token_ids
    # a record that was cut back to its first turn, and goes on otherwise
    (first,) = model.complete(cut)
    record, logprobs = list(cut[0].token_ids), list(cut[0].logprobs)
    go_on(cut[0], first, "x y")
    model.complete(cut)
    cut[0].token_ids, cut[0].logprobs, cut[0].messages = record, logprobs, cut[0].messages[:1]
    go_on(cut[0], first, "z z")
    again = begun("a b")
    play(model, again, 1, ["z z"])
    assert [one.text for one in model.complete(cut)] == [one.text for one in model.complete(again)]
    assert cut[0].token_ids == again[0].token_ids
    assert cut[0].logprobs == pytest.approx(again[0].logprobs, abs=1e-9)


def test_the_cache_is_used_between_turns():
    """A turn feeds what is new: seen by what reaches the embedding."""
    fed = []
    handle = MODEL.model.embed_tokens.register_forward_hook(
        lambda _, inputs, __: fed.append(tuple(inputs[0].shape))
    )
    try:
        for cache in (True, False):
            dialogues = begun("a " * 30, "b " * 20)
            model = hf(max_new_tokens=1, stop=(), cache=cache)
            fed.clear()
            play(model, dialogues, 2, ["c d", "e"])
            # 33 tokens to begin with; the sampled token, <end> <user> c d <end> <assistant>
            assert fed == [(2, 33), (2, 7) if cache else (2, 40)]
            assert (dialogues[0].state.past is not None) == cache
    finally:
        handle.remove()


def test_finished_rows_leave_the_batch():
    rows = []
    handle = MODEL.model.embed_tokens.register_forward_hook(
        lambda _, inputs, __: rows.append(len(inputs[0]))
    )
    try:
        dialogues = begun(*"abcdefghijklmnopqrst")
        hf(max_new_tokens=40).complete(dialogues)
    finally:
        handle.remove()
    lengths = [len(dialogue.token_ids) - 4 for dialogue in dialogues]
    for step, fed in enumerate(rows):
        assert fed < 2 * sum(length > step for length in lengths) + 1
    assert all(earlier >= later for earlier, later in pairwise(rows))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda dialogue: dialogue.messages.pop(),
        lambda dialogue: dialogue.messages.__delitem__(slice(1, None)),
        lambda dialogue: dialogue.messages.extend([message("assistant", "x"), message("user", "")]),
    ],
    ids=["no answer", "no turn", "two turns"],
)
def test_messages_that_do_not_follow_the_record(spoil):
    model, dialogues = hf(max_new_tokens=3), begun("a")
    play(model, dialogues, 1)
    spoil(dialogues[0])
    record = list(dialogues[0].token_ids)
    with pytest.raises(AlignmentError) as caught:
        model.complete(dialogues)
    roles = [one["role"] for one in dialogues[0].messages]
    assert str(caught.value) == (
        f"the record ends with a turn of the assistant, the messages are {roles}; expected that "
        "turn once, and what answers it"
    )
    assert dialogues[0].token_ids == record


def test_logprobs_that_do_not_follow_the_record():
    model, dialogues = hf(max_new_tokens=3), begun("a")
    play(model, dialogues, 1)
    dialogues[0].logprobs.append(0.0)
    with pytest.raises(AlignmentError) as caught:
        model.complete(dialogues)
    tokens = len(dialogues[0].token_ids)
    assert str(caught.value) == (
        f"the record has {tokens} tokens and {tokens + 1} log-probabilities; expected as many"
    )


# --- the end of a turn --------------------------------------------------------------------------


class Letters:
    """A chat of a caller's own: a token is a character of text."""

    stop_ids = frozenset({0})

    def begin(self, messages):
        return [ord(letter) for letter in messages[-1]["content"]]

    def go_on(self, messages, last):
        return self.begin(messages) if last == 0 else [0, *self.begin(messages)]

    def decode(self, ids):
        return "".join(map(chr, ids))


class Says(torch.nn.Module):
    """A layer for logits that makes the model say a text, by the number of the token it is at."""

    def __init__(self, texts, start):
        super().__init__()
        self.texts, self.start, self.at = texts, start, 0

    def forward(self, hidden):
        logits = torch.full((*hidden.shape[:2], 128), -50.0)
        for row in range(len(hidden)):
            logits[row, -1, ord(self.texts[row][self.at])] = 0.0
        self.at += 1
        return logits


def says(*texts, chat=None, **sampling):
    """Complete one turn of dialogues whose model says the texts."""
    model = llama(128)
    model.lm_head = Says(texts, 3)
    dialogues = begun(*["abc"] * len(texts))
    return hf(model, chat or Letters(), **sampling).complete(dialogues), dialogues


def test_a_stop_text_over_many_tokens():
    (first, second), (one, two) = says("f()</f>x</function>\n\0", "</function> </function>")
    assert (first.text, first.stop) == ("f()</f>x</function>", "stop")
    assert (second.text, second.stop) == ("</function>", "stop")
    assert one.token_ids == [*map(ord, "abcf()</f>x</function>")]
    assert two.token_ids == [*map(ord, "abc</function>")]
    assert two.logprobs == [0.0] * 3 + [pytest.approx(0, abs=1e-6)] * 11


def test_other_stop_texts():
    (first,), _ = says("one; two. three", stop=("three", ". "))
    assert first.text == "one; two. "
    (first,), _ = says("</function>\0", stop=())
    assert first.text == "</function>"


def test_a_stop_token_is_recorded_and_no_text():
    (first,), (dialogue,) = says("ab\0")
    assert (first.text, first.stop, first.start) == ("ab", "stop", 3)
    assert dialogue.token_ids == [97, 98, 99, 97, 98, 0]
    (first,), (dialogue,) = says("\0")
    assert (first.text, first.stop) == ("", "stop")
    assert dialogue.token_ids == [97, 98, 99, 0]


def test_a_token_may_hold_more_than_the_stop():
    class Pairs(Letters):
        def decode(self, ids):
            return super().decode(ids).replace("!", ">\n\n")

    (first,), _ = says("</function!more", chat=Pairs())
    assert first.text == "</function>\n\n"


def test_a_character_of_several_tokens_may_end_the_stop():
    class Bytes(Letters):
        def decode(self, ids):
            return bytes(194 if id == 1 else 187 if id == 2 else id for id in ids).decode(
                errors="replace"
            )

    (first,), _ = says("stop\x01\x02more", chat=Bytes(), stop=("p»",))
    assert first.text == "stop»"


def test_max_new_tokens():
    (first,), (dialogue,) = says("abcdef", max_new_tokens=4)
    assert (first.text, first.stop) == ("abcd", "length")
    assert len(dialogue.token_ids) == 7


def test_the_stop_at_the_last_token_is_a_stop():
    (first,), _ = says("abc\0", max_new_tokens=4)
    assert (first.text, first.stop) == ("abc", "stop")


def test_the_context_is_full():
    model = hf(llama(max_position_embeddings=20), max_new_tokens=50, stop=(), temperature=0)
    dialogues = begun("a", "a " * 16, "a " * 17, "a " * 99)  # 4, 19, 20, 102 tokens
    completions = model.complete(dialogues)
    # the model knows positions 0 … 19
    assert [len(dialogue.token_ids) for dialogue in dialogues[1:]] == [20, 0, 0]
    assert len(dialogues[0].token_ids) <= 20
    assert [one.stop for one in completions[1:]] == ["length"] * 3
    assert [one.text for one in completions[2:]] == ["", ""]
    assert dialogues[2].logprobs == []
    go_on(dialogues[1], completions[1], "b")
    (more,) = model.complete([dialogues[1]])
    assert (more.text, more.stop, more.start) == ("", "length", 20)
    assert len(dialogues[1].token_ids) == 20
    assert hf(context=9).complete(begun("a b c d e f"))[0].text == ""
    (short,) = begun("a b c d e")
    hf(context=9, temperature=0).complete([short])
    assert len(short.token_ids) == 9


# --- random numbers -----------------------------------------------------------------------------


def test_random_numbers_are_those_of_splitmix64():
    """The published sequence of seed 1234567, and the mixing of the seed in front of it."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    start = 1234567
    for number in published:
        start = (start + 0x9E3779B97F4A7C15) % 2**64
        assert mix(start) == number
    for seed in (0, 7, -1, 2**70 + 3):
        state = mix((seed + 0x9E3779B97F4A7C15) % 2**64)
        expected = [
            (mix((state + (n + 1) * 0x9E3779B97F4A7C15) % 2**64) >> 12) / 2**52 for n in range(5)
        ]
        assert uniforms([seed] * 5, range(5)).tolist() == expected


def mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def test_random_numbers_are_uniform():
    grid = [(seed, at) for seed in range(200) for at in range(200)]
    numbers = uniforms(*zip(*grid, strict=True)).reshape(200, 200)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert len(set(numbers.ravel())) == 40_000
    # mean 1/2 with deviation 1/√12: each row within 5 deviations of its mean
    for means in (numbers.mean(0), numbers.mean(1)):
        assert abs(means - 0.5).max() < 5 * 12**-0.5 / 200**0.5


def test_a_sampled_token_has_its_probability():
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.0]]).expand(20_000, -1)
    numbers = uniforms(range(20_000), [3] * 20_000)
    tokens, _ = sample(logits, numbers, 0.5)
    got = torch.bincount(tokens, minlength=4) / 20_000
    expected = (logits[0] / 0.5).softmax(-1)
    assert (got - expected).abs().max() < 5 * 0.5 / 20_000**0.5
    # e² / (e² + e + 1 + 1/e) = 0.64: alone it is not yet 0.7, with the next one it is
    tokens, logprobs = sample(logits, numbers, top_p=0.7)
    assert set(tokens.tolist()) == {1, 3}
    assert logprobs[tokens == 3][0].item() == pytest.approx(math.log(0.6439), abs=1e-4)
    assert set(sample(logits, numbers, top_p=0.6)[0].tolist()) == {3}
    assert set(sample(logits, numbers, top_k=3)[0].tolist()) == {0, 1, 3}
    assert set(sample(logits, numbers, top_k=9)[0].tolist()) == {0, 1, 2, 3}


def test_what_cannot_be_sampled_is_not():
    """Also where the random number is next to 0 or 1."""
    logits = torch.tensor([[-math.inf, 0.0, -math.inf]]).expand(2, -1)
    edges = uniforms([0, 0], [0, 0]) * 0 + [0.0, 1 - 2.0**-52]
    assert sample(logits, edges)[0].tolist() == [1, 1]


def test_what_is_sampled_together_makes_no_difference():
    """Float64: the rounding is too small to be seen."""
    orders = [[0, 1, 2, 3, 4, 5, 6], [6, 2, 0], [3], [5, 4, 1]]
    records = {}
    for order in orders:
        dialogues = {seed: begun(*PROMPTS)[seed] for seed in order}
        play(hf(max_new_tokens=12), list(dialogues.values()), observed=["a b", "a b"])
        for seed, dialogue in dialogues.items():
            assert records.setdefault(seed, dialogue.token_ids) == dialogue.token_ids
    alike = [Dialogue([message("user", "a")], seed=5) for _ in range(3)]
    hf(max_new_tokens=12).complete(alike)
    assert alike[0].token_ids == alike[1].token_ids == alike[2].token_ids
    assert len({tuple(record) for record in records.values()}) == len(PROMPTS)


# --- the model ----------------------------------------------------------------------------------


def test_the_model_is_left_as_it_was():
    model = llama()
    model.train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    threads = torch.get_num_threads()
    play(hf(model, max_new_tokens=3), begun("a", "b"), 2)
    assert [module.training for module in model.modules()] == modes
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    model.model.layers[1].mlp.up_proj.weight.data.fill_(math.nan)
    with pytest.raises(FloatingPointError) as caught:
        hf(model, temperature=0).complete(begun("a"))
    assert str(caught.value) == "the model's logits at token 4 are not finite; look at its weights"
    with pytest.raises(FloatingPointError):
        hf(model).complete(begun("a"))
    assert [module.training for module in model.modules()] == modes


def test_dropout_is_off():
    model = llama(attention_dropout=0.5)
    model.train()
    dialogues = begun(PROMPTS[0])
    play(hf(model, max_new_tokens=12), dialogues, 2)
    assert dialogues[0].token_ids == Slow(model.eval()).play(0, 2)[0]


def test_what_was_sampled_can_be_trained_on():
    model = llama()
    dialogues = begun("a b c")
    play(hf(model, max_new_tokens=8), dialogues, 2)
    ids = torch.tensor([dialogues[0].token_ids])
    model.train()
    model(ids).logits.log_softmax(-1).sum().backward()
    assert model.lm_head.weight.grad is not None


def test_names():
    assert hf().name == "LlamaForCausalLM"
    assert HF(MODEL, TemplateChat(words()), name="tiny").name == "tiny"
    assert hf().native_tools is False


def test_nothing_to_complete():
    assert hf().complete([]) == []


def test_models_that_it_cannot_run():
    small = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "state_size": 2}
    with pytest.raises(OptionError) as caught:
        hf(MambaForCausalLM(MambaConfig(**small)))
    assert str(caught.value) == (
        "MambaForCausalLM has LinearAttentionLayer; expected a causal LM with attention alone"
    )
    t5 = T5Config(vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    with pytest.raises(OptionError, match="T5ForConditionalGeneration has an encoder; expected"):
        hf(T5ForConditionalGeneration(t5))


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"max_new_tokens": 0},
        {"stop": ("",)},
    ],
)
def test_options_out_of_range(options):
    with pytest.raises(OptionError, match=r"^expected temperature >= 0, 0 < top_p <= 1, top_k >= "):
        Sampling(**options)


def test_max_batch_out_of_range():
    with pytest.raises(OptionError, match="max_batch is 0; expected 1 or more, or None"):
        hf(max_batch=0)


def test_a_chat_that_gives_no_tokens():
    with pytest.raises(AlignmentError, match="the chat gives no token to begin with"):
        hf(chat=Letters()).complete(begun(""))


# --- loading ------------------------------------------------------------------------------------


def test_a_saved_model_is_loaded(tmp_path):
    MODEL.save_pretrained(tmp_path)
    words().save_pretrained(tmp_path)
    model = HF.load(str(tmp_path), Sampling(max_new_tokens=9), dtype="float64", max_batch=2)
    assert model.name == str(tmp_path)
    assert model.chat.stop_ids == {END}
    loaded, given = begun(*PROMPTS), begun(*PROMPTS)
    play(model, loaded)
    play(hf(max_new_tokens=9), given)
    assert [one.token_ids for one in loaded] == [one.token_ids for one in given]
    assert HF.load(str(tmp_path)).model.dtype == torch.float32
    with pytest.raises(OptionError, match="there is no dtype 'float31'; torch has"):
        HF.load(str(tmp_path), dtype="float31")


def test_folders_without_a_model(tmp_path):
    with pytest.raises(OptionError, match=r"has no config\.json and 0 GGUF files; expected one"):
        HF.load(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(OptionError, match=f"cannot load '{tmp_path}': "):
        HF.load(str(tmp_path))


def test_missing_packages(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"torch is not installed; .* 'rtmc\[hf\]'"):
        hf()
    with pytest.raises(MissingExtraError, match=r"torch is not installed; .* 'rtmc\[hf\]'"):
        HF.load("smollm2")


# --- the loop -----------------------------------------------------------------------------------


def test_the_loop_with_a_model_that_knows_what_to_do(open_bench):
    """Two turns are taught by heart; then it works in a real sandbox."""
    chat, model = TemplateChat(words()), llama(dtype=torch.float32, max_position_embeddings=1024)
    turns = [
        "<function=bash> <parameter=command> ls </parameter> </function>",
        "<function=finish> </function>",
    ]

    def episode(cache):
        bench = open_bench()
        bench.sandbox.put(REPOSITORY)
        dialogue = Dialogue([])
        one = attempt("Fix add.", bench, dialogue, False)
        policy = hf(model, chat, cache=cache, temperature=0, max_new_tokens=12)
        (ended,) = driven([one], policy)
        return ended, dialogue

    _, dialogue = episode(True)
    taught = chat.begin(dialogue.messages[:2])
    known = [False] * len(taught)
    for turn, seen in zip(turns, ["calc.py\ntest_calc.py\n", None], strict=True):
        said = [WORDS.index(word) for word in turn.split()]
        observed = chat.go_on([message("user", seen)], said[-1]) if seen else []
        taught += [*said, *observed]
        known += [True] * len(said) + [False] * len(observed)
    ids, mask = torch.tensor([taught]), torch.tensor(known[1:])
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(100):
        loss = -model(ids).logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[mask].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss < 0.02:
            break
    for cache in (True, False):
        ended, dialogue = episode(cache)
        assert ended.stop_reason == "finished"
        calls = [step.calls[0] for step in ended.steps]
        assert [(call.name, call.output) for call in calls] == [
            ("bash", "calc.py\ntest_calc.py\n"), ("finish", "finished")
        ]  # fmt: skip
        rollout = recorded(ended, "p", "r", 1.0)
        assert rollout.token_ids == (tuple(taught),)
        ends = [(n.start, n.end) for step in rollout.steps for n in step.spans]
        assert [chat.decode(taught[start:end]) for start, end in ends] == turns
        assert rollout.steps[0].spans == (Span(0, ends[0][0], ends[0][1]),)
        assert -sum(rollout.logprobs[0]) < 0.5
