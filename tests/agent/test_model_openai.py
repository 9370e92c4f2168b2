"""The model behind an endpoint, against a server on this machine that answers as it is told."""

import json
import logging
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from scripts import FIX, REPOSITORY, driven, native, xml

from rtmc.agent.calls import calls_of
from rtmc.agent.loop import CUT, attempt, recorded
from rtmc.agent.models.answers import TOKEN_FIELDS, read_answer
from rtmc.agent.models.base import Completion, Dialogue
from rtmc.agent.models.openai import OpenAI
from rtmc.errors import MissingExtraError, ModelError, OptionError
from rtmc.rollouts import Span

KEY = "sk-secret-0123456789"


class Endpoint(ThreadingHTTPServer):
    """Answers with what ``answer`` makes of the request's body; notes what it was sent."""

    daemon_threads, request_queue_size = True, 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.answer = lambda body: said("hello")
        self.bodies, self.headers, self.times, self.paths = [], [], [], []
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def in_turn(self, *answers):
        """Give the answers one after the other."""
        left = list(answers)
        self.answer = lambda body: left.pop(0)

    def handle_error(self, request, client_address):
        """A client that no longer waits is no error."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.times.append(time.monotonic())
            server.bodies.append(body)
            server.headers.append(dict(self.headers))
            server.paths.append(self.path)
            server.now += 1
            server.most = max(server.most, server.now)
        answer = server.answer(body)
        status, headers, content = answer if isinstance(answer, tuple) else (200, {}, answer)
        with server.lock:
            server.now -= 1
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


@pytest.fixture
def connect(endpoint):
    """Make models of the endpoint that do not wait long, and close them."""
    made = []

    def make(**options):
        options = {"base_url": endpoint.url, "pause": 0.001, "api_key": "", **options}
        made.append(OpenAI("m", **options))
        return made[-1]

    yield make
    for model in made:
        model.close()


def said(text, finish="stop", calls=(), top=None, message=None, **choice):
    """What a server answers; ``choice`` goes into the choice, ``top`` beside the choices."""
    message = {"role": "assistant", "content": text, **(message or {})}
    if calls:
        message["tool_calls"] = [
            {
                "id": c["id"],
                "type": "function",
                "function": {k: c[k] for k in ("name", "arguments")},
            }
            for c in calls
        ]
    return {"choices": [{"message": message, "finish_reason": finish, **choice}], **(top or {})}


def with_tokens(text, prompt, sampled, logprobs, **more):
    """An answer as vLLM gives it."""
    content = [{"token": "t", "logprob": number} for number in logprobs]
    return said(
        text, token_ids=sampled, logprobs={"content": content},
        top={"prompt_token_ids": prompt}, **more,
    )  # fmt: skip


def refusal(status, message, **headers):
    return status, headers, {"error": {"message": message, "code": status}}


def talk(seed=0, text="go on"):
    return Dialogue([{"role": "user", "content": text}], seed)


def turns_of(body):
    return sum(message["role"] == "assistant" for message in body["messages"])


def work(bench, model, dialogue=None):
    dialogue = dialogue or Dialogue([])
    one = attempt("Fix add.", bench, dialogue, model.native_tools)
    (episode,) = driven([one], model)
    return episode, dialogue


# --- whole rollouts


@pytest.fixture
def repository(bench):
    bench.sandbox.put(REPOSITORY)
    return bench


def test_a_bug_is_fixed_in_xml(endpoint, connect, repository):
    endpoint.answer = lambda body: said(FIX[turns_of(body)])
    episode, dialogue = work(repository, connect(native_tools=False))
    assert episode.stop_reason == "finished"
    assert repository.sandbox.run("cat calc.py").output.endswith("return a + b\n")
    body = endpoint.bodies[-1]
    assert endpoint.paths == ["/v1/chat/completions"] * len(FIX)
    assert "tools" not in body
    assert "stop" not in body
    assert body["messages"] == dialogue.messages[:-2]
    assert (body["model"], body["temperature"], body["top_p"]) == ("m", 1.0, 1.0)
    assert episode.token_ids == ()
    assert all(step.spans == () for step in episode.steps)


def test_a_bug_is_fixed_with_native_tools(endpoint, connect, repository):
    edit = native(
        "str_replace_editor",
        command="str_replace",
        path="calc.py",
        old_str="a - b",
        new_str="a + b",
    )
    script = [
        said(None, "tool_calls", [native("bash", command="ls"), native("think", thought="x")]),
        said("Now.", "tool_calls", [{**edit, "arguments": json.loads(edit["arguments"])}]),
        said("", "tool_calls", [{"id": "c", "name": "bash", "arguments": '{"command": '}]),
        said("Done.", "tool_calls", [native("finish", message="x")]),
    ]
    endpoint.answer = lambda body: script[turns_of(body)]
    episode, dialogue = work(repository, connect())
    assert episode.stop_reason == "finished"
    assert [[c.name for c in step.calls] for step in episode.steps] == [
        ["bash", "think"], ["str_replace_editor"], ["bash"], ["finish"]
    ]  # fmt: skip
    assert [step.thought for step in episode.steps] == ["", "Now.", "", "Done."]
    assert repository.sandbox.run("cat calc.py").output.endswith("return a + b\n")
    assert episode.steps[2].calls[0].arguments == '{"command": '
    names = [tool["function"]["name"] for tool in endpoint.bodies[0]["tools"]]
    assert "bash" in names
    assert "finish" in names
    assert [m.get("tool_call_id") for m in dialogue.messages[3:5]] == ["id_bash", "id_think"]


# --- requests


def test_settings_are_sent(endpoint, connect):
    model = connect(
        native_tools=False, temperature=0.5, top_p=0.9, max_tokens=7, stop=["END"], api_key=KEY,
        tokens=False, extra={"top_k": 5, "seed": None},
    )  # fmt: skip
    model.complete([talk()])
    assert endpoint.bodies == [
        {
            "model": "m", "messages": [{"role": "user", "content": "go on"}], "temperature": 0.5,
            "top_p": 0.9, "max_tokens": 7, "stop": ["END"], "top_k": 5,
        }
    ]  # fmt: skip
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert (model.name, model.native_tools) == ("m", False)


def test_without_a_key_none_is_sent(endpoint, connect):
    connect().complete([talk()])
    assert "Authorization" not in endpoint.headers[0]


def test_the_environment_gives_address_and_key(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url + "/")
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "\n")
    with OpenAI("m") as model:
        assert model.complete([talk()]) == [Completion("hello")]
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    monkeypatch.delenv("OPENAI_BASE_URL")
    with OpenAI("m") as model:
        assert repr(model) == "OpenAI('m', 'http://localhost:8000/v1/chat/completions')"


def test_seeds_differ_by_rollout_and_turn_and_repeat(endpoint, connect):
    later = talk(1)
    later.messages += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
    for model in (connect(concurrency=1), connect(concurrency=1)):
        model.complete([talk(0), talk(1), later])
    seeds = [body["seed"] for body in endpoint.bodies]
    assert len(set(seeds[:3])) == 3
    assert seeds[:3] == seeds[3:]
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_many_are_asked_at_once_within_the_bound_and_answered_in_order(endpoint, connect):
    barrier = threading.Barrier(4, timeout=5)

    def answer(body):
        text = body["messages"][0]["content"]
        barrier.wait()  # each waits for three others
        time.sleep(0.02 * (int(text) % 3))
        return said(text)

    endpoint.answer = answer
    model = connect(concurrency=4)
    texts = [str(number) for number in range(12)]
    assert [c.text for c in model.complete([talk(text=text) for text in texts])] == texts
    assert endpoint.most == 4
    assert model.complete([]) == []


def test_options_are_checked():
    for wrong in ({"temperature": -1}, {"top_p": 0}, {"retries": -1}, {"concurrency": 0}):
        with pytest.raises(OptionError, match=r"expected temperature >= 0, 0 < top_p <= 1"):
            OpenAI("m", **wrong)
    with pytest.raises(OptionError, match=r"expected http://… or https://…"):
        OpenAI("m", base_url="localhost:8000/v1")
    with pytest.raises(OptionError, match="cannot be read"):
        OpenAI("m", base_url="http://a:port/")
    with pytest.raises(OptionError, match="give the key as api_key") as caught:
        OpenAI("m", base_url=f"http://user:{KEY}@localhost/v1")
    assert KEY not in str(caught.value)
    with pytest.raises(OptionError, match="no HTTP header can") as caught:
        OpenAI("m", api_key=KEY + "\n" + KEY)
    assert KEY not in str(caught.value)


def test_without_httpx_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "rtmc.agent.models.openai")
    with pytest.raises(MissingExtraError, match=r"httpx .* pip install 'rtmc\[agent\]'"):
        import rtmc.agent.models.openai  # noqa: F401


# --- what may pass


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_a_failure_that_passes_is_tried_again(endpoint, connect, status):
    endpoint.in_turn(refusal(status, "busy"), refusal(status, "busy"), said("at last"))
    assert connect(retries=2).complete([talk()]) == [Completion("at last")]
    assert endpoint.bodies[0] == endpoint.bodies[2]


@pytest.mark.parametrize("date", [False, True])
def test_retry_after_is_honoured_up_to_the_longest_pause(endpoint, connect, date):
    header = formatdate(time.time() + 100, usegmt=True) if date else "0.2"
    endpoint.in_turn(refusal(429, "busy", **{"Retry-After": header}), said("x"))
    connect(longest_pause=0.3).complete([talk()])
    waited = endpoint.times[1] - endpoint.times[0]
    assert (0.3 if date else 0.2) <= waited < 2


@pytest.mark.parametrize("header", ["soon", "-5", "nan", "Mon, 99 Foo 2020"])
def test_a_retry_after_that_says_nothing_is_passed_over(endpoint, connect, header):
    endpoint.in_turn(refusal(429, "busy", **{"Retry-After": header}), said("x"))
    assert connect().complete([talk()]) == [Completion("x")]
    assert endpoint.times[1] - endpoint.times[0] < 2


def test_pauses_grow(endpoint, connect):
    endpoint.in_turn(*[refusal(500, "busy")] * 3, said("x"))
    connect(pause=0.08).complete([talk()])
    first, second, third = (b - a for a, b in zip(endpoint.times, endpoint.times[1:], strict=False))
    assert first >= 0.04
    assert second >= 0.08
    assert third >= 0.16


def test_used_up_retries_end_one_dialogue_and_the_others_survive(endpoint, connect):
    def answer(body):
        text = body["messages"][0]["content"]
        return refusal(503, "over\n loaded") if text == "1" else said(text)

    endpoint.answer = answer
    first, second, third = connect(retries=1).complete([talk(text=str(n)) for n in range(3)])
    assert (first, third) == (Completion("0"), Completion("2"))
    assert second.stop.startswith(f"error: {endpoint.url}/chat/completions: 503: ")
    assert "over" in second.stop
    assert len(endpoint.bodies) == 4


def test_a_server_that_is_silent_or_gone(endpoint, connect):
    release = threading.Event()
    endpoint.answer = lambda body: said("late") if release.wait(5) else None
    (silent,) = connect(timeout=0.1, retries=1).complete([talk()])
    release.set()
    assert silent.stop.endswith("ReadTimeout: timed out")
    assert len(endpoint.bodies) == 2
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        port = other.server_port
    gone = f"http://127.0.0.1:{port}/v1"
    with pytest.raises(ModelError, match=f"nothing answers at {gone}.*refused.*start the endpoint"):
        connect(base_url=gone, retries=5).complete([talk()])


def test_a_server_that_goes_away_ends_a_dialogue_and_not_all(endpoint, connect):
    """It was there: so it may come back, and the retries are worth it."""
    endpoint.answer = lambda body: said("on")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        nowhere = f"http://127.0.0.1:{other.server_port}/v1/chat/completions"
    model = connect(retries=1)
    assert model.complete([talk()])[0].text == "on"
    model._url = nowhere
    (gone,) = model.complete([talk()])
    assert "ConnectError" in gone.stop
    assert "refused" in gone.stop


def test_closing_ends_the_wait_for_a_retry(endpoint, connect):
    endpoint.answer = lambda body: refusal(500, "busy")
    model = connect(pause=30)
    closing = threading.Timer(0.2, model.close)
    closing.start()
    began = time.monotonic()
    (ended,) = model.complete([talk()])
    closing.join()
    assert time.monotonic() - began < 5
    assert "500" in ended.stop


# --- refusals


TOO_LONG = [
    # vLLM, of three ages
    (400, "This model's maximum context length is 4096 tokens. However, you requested 4118 tokens "
     "(3118 in the messages, 1000 in the completion). Please reduce the length of the messages."),
    (400, "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context "
     "length is 8192 tokens and your request has 8100 input tokens"),
    (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    (400, "max_tokens must be at least 1, got -186."),
    # SGLang
    (400, "Requested token count exceeds the model's maximum context length of 4096 tokens."),
    (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
    (400, "Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens)."),
    # llama.cpp, before and while it samples
    (400, "the request exceeds the available context size, try increasing it"),
    (500, "Context size has been exceeded."),
    # hosted
    (400, "context_length_exceeded"),
    (413, "prompt is too long: 210000 tokens > 200000 maximum"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "message"), TOO_LONG)
def test_a_dialogue_beyond_the_context_ends_alone(endpoint, connect, status, message):
    def answer(body):
        text = body["messages"][0]["content"]
        return refusal(status, message) if text == "long" else said("fine")

    endpoint.answer = answer
    ended = connect().complete([talk(text="long"), talk()])
    assert ended == [Completion("", stop="length"), Completion("fine")]
    assert len(endpoint.bodies) == 2


def test_another_refusal_ends_one_dialogue_with_what_was_said(endpoint, connect):
    endpoint.answer = lambda body: refusal(400, '"auto" tool choice requires a parser')
    (ended,) = connect().complete([talk()])
    assert ended.stop.startswith("error: the endpoint refuses it with 400: ")
    assert "tool choice requires a parser" in ended.stop
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "OPENAI_API_KEY"), (403, "a key that may"), (404, "base_url")]
)
def test_a_refusal_of_all_is_raised_at_once(endpoint, connect, status, advice, caplog):
    slow = threading.Event()

    def answer(body):
        if body["messages"][0]["content"] == "slow":
            slow.wait(5)
        return refusal(status, f"no, not with {KEY}")

    endpoint.answer = answer
    model = connect(api_key=KEY)
    began = time.monotonic()
    with caplog.at_level(logging.DEBUG), pytest.raises(ModelError) as caught:
        model.complete([talk(text="slow"), talk()])
    assert time.monotonic() - began < 4
    slow.set()
    message = str(caught.value)
    assert message.startswith(
        f"{endpoint.url}/chat/completions refuses the model 'm' with {status}: "
    )
    assert "no, not with [api_key]" in message
    assert advice in message
    assert KEY not in message + caplog.text + repr(model) + repr(caught.value.__context__)


def test_the_key_is_in_no_error_of_a_dialogue(endpoint, connect):
    endpoint.in_turn(refusal(400, f"bad {KEY}"), refusal(500, "x" * 480 + KEY))
    model = connect(api_key=KEY, retries=0)
    for _ in range(2):
        (ended,) = model.complete([talk()])
        assert ended.stop.startswith("error: ")
        assert "sk-s" not in ended.stop
        assert len(ended.stop) < 700


# --- answers


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>Bad gateway</html>", b"\xff\xfe\xfa", b"null", b"[]", b"{}", b"[" * 100_000,
        {"choices": []}, {"choices": None}, {"choices": [{}]}, {"choices": [{"message": None}]},
        said("x", message={"tool_calls": 5}), said("x", message={"tool_calls": [{"id": "a"}]}),
    ],
)  # fmt: skip
def test_what_is_no_chat_completion_is_an_error_of_the_dialogue(endpoint, connect, body):
    endpoint.answer = lambda _: body
    (ended,) = connect().complete([talk()])
    assert (ended.text, ended.calls) == ("", ())
    assert ended.stop.startswith("error: the answer is no chat completion: ")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (said(None), Completion("")),
        (said("x", None), Completion("x")),
        (said("x", "something new"), Completion("x")),
        (said("x", "length"), Completion("x", stop="length")),
        (said("a\ud800b"), Completion("a?b")),
        (said([{"type": "text", "text": "a"}, {"image": 1}, 3, {"text": "b"}]), Completion("ab")),
        (said(5), Completion("")),
        (
            said("x", calls=[{"id": None, "name": "a", "arguments": {"b": 1}}]),
            Completion("x", ({"id": None, "name": "a", "arguments": {"b": 1}},)),
        ),
    ],
)  # fmt: skip
def test_odd_answers_are_turns(answer, expected):
    assert read_answer(json.dumps(answer).encode()).completion == expected


@pytest.mark.parametrize("finish", ["content_filter", "abort", "error"])
def test_a_turn_that_the_endpoint_broke_off_is_no_turn(finish):
    completion = read_answer(json.dumps(said("half a", finish)).encode()).completion
    assert completion == Completion("", stop=f"error: the endpoint ended the turn with {finish!r}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


FULL = with_tokens(
    "x", [1], [2], [-0.5], calls=[native("bash", command="ls")], message={"reasoning": "r"},
    meta_info={"output_token_logprobs": [[-0.5, 2, "t"]]}, prompt_token_ids=[1],
)  # fmt: skip


def places(value, path=()):
    """The paths of all that a value holds, itself first."""
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def put(value, path, new):
    """The value with another at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@given(st.sampled_from(list(places(FULL))), JSON)
def test_no_json_breaks_the_reading(path, new):
    read = read_answer(json.dumps(put(FULL, path, new)).encode(), ("</function>",))
    completion = read.completion
    completion.text.encode()
    assert completion.stop in ("stop", "length") or completion.stop.startswith("error: ")
    calls_of(completion.text, completion.calls)
    if read.tokens is not None and read.tokens.logprobs is not None:
        assert len(read.tokens.sampled) == len(read.tokens.logprobs)
        assert all(-9999 < number < 1 for number in read.tokens.logprobs)


def test_reasoning_is_sent_back_as_it_came_and_is_not_searched_for_calls(
    endpoint, connect, repository
):
    plan = "I could call " + xml("bash", command="touch never")
    script = [
        said("", calls=[native("think", thought="x")], message={"reasoning_content": plan}),
        said("", calls=[native("finish", message="x")], message={"reasoning": "done"}),
    ]
    endpoint.answer = lambda body: script[turns_of(body)]
    episode, _ = work(repository, connect())
    assert episode.stop_reason == "finished"
    (turn,) = [m for m in endpoint.bodies[1]["messages"] if m["role"] == "assistant"]
    assert turn["reasoning_content"] == plan
    assert turn["content"] == ""
    assert "never" not in repository.sandbox.run("ls").output


def test_reasoning_that_is_cut_is_the_text_for_nothing_else_was_said(endpoint, connect, repository):
    script = [
        said(None, "length", message={"reasoning": "let me think"}),
        said("", calls=[native("finish", message="x")]),
    ]
    endpoint.answer = lambda body: script[turns_of(body)]
    episode, _ = work(repository, connect())
    assert episode.stop_reason == "finished"
    assert episode.steps[0].thought == "let me think"
    assert endpoint.bodies[1]["messages"][-2:] == [
        {"role": "assistant", "content": "let me think"}, {"role": "user", "content": CUT}
    ]  # fmt: skip


def test_the_end_of_a_call_that_was_the_stop_text_is_put_back(endpoint, connect, repository):
    call = xml("think", thought="x")
    script = [call.removesuffix("</function>"), "No call.", FIX[-1]]
    endpoint.answer = lambda body: said(script[turns_of(body)])
    episode, dialogue = work(repository, connect(native_tools=False, stop=["</function>"]))
    assert episode.stop_reason == "finished"
    assert endpoint.bodies[0]["stop"] == ["</function>"]
    spoken = [m["content"] for m in dialogue.messages if m["role"] == "assistant"]
    assert spoken == [call, "No call.", FIX[-1]]
    cut = read_answer(json.dumps(said("<function=a>", "length")).encode(), ("</function>",))
    assert cut.completion.text == "<function=a>"
    kept = read_answer(json.dumps(said("<function=a>")).encode())
    assert kept.completion.text == "<function=a>"


# --- tokens

THINK, FINISH = xml("think", thought="x"), xml("finish", message="x")
# Three turns as vLLM tells of them: 1–3 are the first prompt, 4–6 what the tools said, 90 the end
# of a turn.
THREE = [
    with_tokens(THINK, [1, 2, 3], [10, 11, 90], [-0.5, -0.25, 0]),
    with_tokens(THINK, [1, 2, 3, 10, 11, 90, 4], [12, 90], [-1.5, -0.125]),
    with_tokens(FINISH, [1, 2, 3, 10, 11, 90, 4, 12, 90, 5, 6], [13], [-2.0]),
]
RECORD = (1, 2, 3, 10, 11, 90, 4, 12, 90, 5, 6, 13)
LOGPROBS = (0, 0, 0, -0.5, -0.25, 0, 0, -1.5, -0.125, 0, 0, -2.0)


def test_three_turns_give_the_exact_record(endpoint, connect, repository, caplog):
    endpoint.answer = lambda body: THREE[turns_of(body)]
    with caplog.at_level(logging.WARNING):
        episode, _ = work(repository, connect(native_tools=False))
    assert episode.token_ids == RECORD
    assert episode.logprobs == LOGPROBS
    assert [step.spans for step in episode.steps] == [
        (Span(0, 3, 6),), (Span(0, 7, 9),), (Span(0, 11, 12),)
    ]  # fmt: skip
    rollout = recorded(episode, "p", "r")
    assert rollout.sequence_lengths == (12,)
    assert all(TOKEN_FIELDS.items() <= body.items() for body in endpoint.bodies)
    assert caplog.records == []


def test_sglang_tells_of_tokens_in_the_choice():
    """Both its ways: ids of their own, and, before those, in the meta information."""
    logprobs = {"content": [{"logprob": -0.5}, {"logprob": -0.25}]}
    meta = {"output_token_logprobs": [[-0.5, 10, "a"], [-0.25, 11, None]]}
    for how in ({"token_ids": [10, 11]}, {"meta_info": meta}):
        answer = said("x", prompt_token_ids=[1, 2], logprobs=logprobs, **how)
        tokens = read_answer(json.dumps(answer).encode()).tokens
        assert (tokens.prompt, tokens.sampled, tokens.logprobs) == ([1, 2], [10, 11], [-0.5, -0.25])


def without(answer, **changes):
    """The answer with fields of its choice changed."""
    return {**answer, "choices": [{**answer["choices"][0], **changes}]}


BROKEN = {
    "rendered anew": (
        with_tokens(THINK, [1, 2, 3, 10, 99, 90, 4], [12, 90], [-1.5, -0.125]),
        "a prompt does not begin with the turns before it as they were sampled",
    ),
    "shorter": (
        with_tokens(THINK, [1, 2, 3], [12, 90], [-1.5, -0.125]),
        "a prompt does not begin with the turns before it as they were sampled",
    ),
    "a logprob less": (
        with_tokens(THINK, [1, 2, 3, 10, 11, 90, 4], [12, 90], [-1.5]),
        "a sampled token has no log-probability",
    ),
    "a logprob null": (
        with_tokens(THINK, [1, 2, 3, 10, 11, 90, 4], [12, 90], [None, -1]),
        "a sampled token has no log-probability",
    ),
    "a placeholder": (
        with_tokens(THINK, [1, 2, 3, 10, 11, 90, 4], [12, 90], [-9999.0, -1]),
        "a sampled token has no log-probability",
    ),
    "no content": (without(THREE[1], logprobs={}), "a sampled token has no log-probability"),
    "no numbers": (
        without(THREE[1], logprobs={"content": [{}, {}]}),
        "a sampled token has no log-probability",
    ),
    "no logprobs": (without(THREE[1], logprobs=None), "a sampled token has no log-probability"),
    "no ids": (without(THREE[1], token_ids=None), "an answer held no token ids"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_record_that_cannot_go_on_is_given_up_with_its_spans(
    endpoint, connect, repository, open_bench, caplog, broken
):
    second, why = BROKEN[broken]
    endpoint.answer = lambda body: [THREE[0], second, THREE[2]][turns_of(body)]
    model = connect(native_tools=False)
    with caplog.at_level(logging.WARNING):
        for bench in (repository, open_bench()):
            episode, dialogue = work(bench, model)
            assert episode.stop_reason == "finished"
            assert (episode.token_ids, episode.logprobs) == ((), ())
            assert [step.spans for step in episode.steps] == [()] * 3
            assert dialogue.token_ids == []
            assert recorded(episode, "p", "r").sequence_lengths == ()
    assert [record.getMessage() for record in caplog.records] == [  # one for both
        f"{model!r}: some rollouts will have no token record: {why}"
    ]


def test_an_error_or_a_full_context_leaves_the_record_as_it_is(endpoint, connect):
    for last in (refusal(400, "context_length_exceeded"), refusal(400, "bad"), b"{}"):
        endpoint.in_turn(THREE[0], last)
        model, dialogue = connect(native_tools=False), talk()
        assert model.complete([dialogue]) == [Completion(THINK, start=3)]
        dialogue.messages += [{"role": "assistant", "content": THINK}]
        model.complete([dialogue])
        assert dialogue.token_ids == [1, 2, 3, 10, 11, 90]
        assert dialogue.logprobs == [0, 0, 0, -0.5, -0.25, 0]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unrecognized request argument supplied: return_token_ids"),
        (422, [{"type": "extra_forbidden", "loc": ["body", "return_meta_info"]}]),
        (400, "This model does not support logprobs"),
    ],
)
def test_fields_that_the_endpoint_does_not_know_are_asked_once(endpoint, connect, status, message):
    def answer(body):
        return refusal(status, message) if "logprobs" in body else said("fine")

    endpoint.answer = answer
    model = connect(concurrency=1, retries=0)
    assert model.complete([talk(), talk()]) == [Completion("fine")] * 2
    assert model.complete([talk()]) == [Completion("fine")]
    assert ["logprobs" in body for body in endpoint.bodies] == [True, False, False, False]


def test_tokens_that_were_demanded_are_not_dropped(endpoint, connect, caplog):
    endpoint.in_turn(refusal(400, "unknown field return_token_ids"), said("x"))
    model = connect(tokens=True)
    (refused,) = model.complete([talk()])
    assert refused.stop.startswith("error: the endpoint refuses it with 400")
    with caplog.at_level(logging.WARNING):
        assert model.complete([talk()]) == [Completion("x")]
    assert "an answer held no token ids" in caplog.text


def test_an_endpoint_without_tokens_is_nothing_to_warn_of(endpoint, connect, caplog):
    with caplog.at_level(logging.WARNING):
        assert connect().complete([talk()]) == [Completion("hello")]
    assert caplog.records == []


def test_tokens_that_nobody_wants_are_not_asked_for_nor_kept(endpoint, connect):
    endpoint.in_turn(THREE[0])
    dialogue = talk()
    assert connect(tokens=False).complete([dialogue]) == [Completion(THINK)]
    assert dialogue.token_ids == []
    assert not TOKEN_FIELDS.keys() & endpoint.bodies[0].keys()
