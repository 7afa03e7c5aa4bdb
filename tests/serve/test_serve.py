"""`stepglass serve`, called by the official client and by people with other intentions."""

import http.client
import importlib
import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from helpers import command
from stepglass.cli import main
from stepglass.data.marked_text import encode_text
from stepglass.models.decoding import Draw, generate
from stepglass.sample.completions import Completions
from stepglass.sample.load import Sampler, load_run
from stepglass.serve import worker as worker_module
from stepglass.serve.command import serve_model
from stepglass.serve.serve_config import ServeConfig

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.finished_run


@pytest.fixture(autouse=True)
def official_client() -> None:
    """Imported here: it takes two seconds, and every process of the tests imports this file."""
    global openai
    openai = importlib.import_module("openai")


class Served:
    """A server in a thread of its own, with the model of the finished run."""

    def __init__(self, **settings: Any) -> None:
        self.lines: list[str] = []
        self._clients: list[openai.OpenAI] = []
        self._heard, self._stop = threading.Event(), threading.Event()
        self.loaded = load_run(Path("out"), torch.device("cpu"), on_skip=self.lines.append)
        cfg = ServeConfig(**({"token": False} | settings))
        self._thread = threading.Thread(
            target=serve_model, args=(self.loaded, "out", cfg, self._say, self._stop.is_set)
        )

    def _say(self, line: str) -> None:
        self.lines.append(line)
        self._heard.set()

    def __enter__(self) -> "Served":
        self._thread.start()
        assert self._heard.wait(60)
        self.url = re.search(r"base_url=(\S+)", self.lines[-1])[1]
        self.port = int(self.url.rsplit(":", 1)[1].split("/")[0])
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self._stop.set()
        self._thread.join()

    def client(self, key: str = "any") -> "openai.OpenAI":
        client = openai.OpenAI(base_url=self.url, api_key=key, max_retries=0)
        self._clients.append(client)
        return client

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        fields = {"Content-Type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, fields)
        with connection.getresponse() as response:
            text = response.read()
        connection.close()
        is_json = response.headers["content-type"].startswith("application/json")
        return response.status, json.loads(text) if is_json else {"text": text.decode()}


@pytest.fixture(autouse=True)
def quick_ticks(monkeypatch):
    monkeypatch.setattr("stepglass.web.server.TICK_S", 0.02)


@pytest.fixture
def served() -> Iterator[Served]:
    with Served() as running:
        yield running


def written(loaded: Sampler, prompt: str, num_tokens: int) -> str:
    ids = encode_text(prompt, loaded.tokenizer)
    tokens = generate(loaded.model, ids, max_new_tokens=num_tokens, draw=Draw(0))
    return loaded.tokenizer.decode(list(tokens))


def test_the_official_client_streams_a_completion(served):
    stream = served.client().completions.create(
        model="out", prompt="To be", max_tokens=30, temperature=0, stream=True
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks) == written(served.loaded, "To be", 30)
    assert len(chunks) > 20  # piece by piece, not at the end
    assert [chunk.choices[0].finish_reason for chunk in chunks][-2:] == [None, "length"]


def test_the_official_client_gets_whole_completions_with_usage(served):
    client = served.client()
    assert [model.id for model in client.models.list()] == ["out"]
    done = client.completions.create(
        model="out", prompt=["To be", "that is"], max_tokens=12, temperature=0, n=2, echo=True
    )
    texts = [choice.text for choice in done.choices]
    first, second = (p + written(served.loaded, p, 12) for p in ("To be", "that is"))
    assert texts == [first, first, second, second]
    assert done.usage.completion_tokens == 48
    assert done.usage.prompt_tokens == 2 * len("To be") + 2 * len("that is")


def test_the_official_client_chats_by_whole_answers_and_by_streams(served):
    asking = {"model": "out", "messages": [{"role": "user", "content": "To be"}]}
    asking |= {"max_tokens": 20, "temperature": 0}
    want = written(served.loaded, "To be", 20)  # this model has no template
    client = served.client()
    done = client.chat.completions.create(**asking)
    assert done.choices[0].message.content == want
    stream = client.chat.completions.create(
        **asking, stream=True, stream_options={"include_usage": True}
    )
    *chunks, last = list(stream)
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == want
    assert chunks[0].choices[0].delta.role == "assistant"
    assert (last.choices, last.usage.completion_tokens) == ([], 20)


def test_a_stop_string_ends_the_text_before_it(served):
    whole = written(served.loaded, "To be", 30)
    stop = whole[9:12]
    done = served.client().completions.create(
        model="out", prompt="To be", max_tokens=30, temperature=0, stop=[stop, "never"]
    )
    assert done.choices[0].text == whole[: whole.index(stop)]
    assert done.choices[0].finish_reason == "stop"


def test_same_seed_same_text(served):
    client = served.client()
    texts = [
        client.completions.create(model="x", prompt="T", max_tokens=40, seed=seed).choices[0].text
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_requests_at_the_same_time_are_answered_together(served, monkeypatch):
    sizes: list[int] = []
    step = Completions.step

    def counted(self: Completions) -> Any:
        sizes.append(len(self))
        return step(self)

    monkeypatch.setattr(Completions, "step", counted)
    client, texts = served.client(), {}

    def ask(number: int) -> None:
        done = client.completions.create(model="x", prompt="T", max_tokens=300, temperature=0)
        texts[number] = done.choices[0].text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(texts.values()) == {written(served.loaded, "T", 300)}
    assert max(sizes) > 1


BAD = {
    "no JSON": (b"{", "expected JSON, found something else"),
    "deep": (b"[" * 100_000, "expected JSON, found something else"),
    "a list": ([1], "expected a JSON object, found [1]"),
    "letters": ({"prompt": "é"}, "characters the model has never seen: 'é' (U+00E9)"),
    "a number": ({"prompt": 7}, "prompt: expected text, found 7"),
    "a token": ({"prompt": [10**6]}, "prompt: expected text, or tokens from 0 to "),
    "many": ({"prompt": ["a"] * 17}, "prompt: expected text, found "),
    "heat": ({"prompt": "T", "temperature": 3}, "temperature: expected a number from 0 to 2"),
    "nan": (b'{"prompt": "T", "temperature": NaN}', "temperature: expected a number from 0 to 2"),
    "length": ({"prompt": "T", "max_tokens": 0}, "max_tokens: expected a whole number from 1"),
    "truth": ({"prompt": "T", "n": True}, "n: expected a whole number from 1 to 16, found True"),
    "stop": ({"prompt": "T", "stop": [1]}, "stop: expected a text or at most 16 of them"),
    "stream": ({"prompt": "T", "stream": "yes"}, "stream: expected true or false, found 'yes'"),
    "logprobs": ({"prompt": "T", "logprobs": 3}, "logprobs is not supported here; leave it out"),
    "long": (b" " * (1 << 20) + b"{}", "expected at most 1,048,576 bytes"),
}


def test_a_wrong_request_is_refused_with_its_reason(served):
    for name, (body, message) in BAD.items():
        status, answer = served.post("/v1/completions", body)
        assert (name, status) == (name, 400)
        assert message in answer["error"]["message"], name
        assert answer["error"]["type"] == "invalid_request_error"
    for messages in (None, [], ["x"], [{"role": "user"}], [{"role": "user", "content": [{}]}]):
        status, answer = served.post("/v1/chat/completions", {"messages": messages})
        assert (status, answer["error"]["param"]) == (400, "messages")
    with pytest.raises(openai.BadRequestError, match="has never seen"):
        served.client().completions.create(model="x", prompt="é")


def test_only_our_own_programs_are_answered(served):
    body = {"prompt": "T", "max_tokens": 2}
    assert served.post("/v1/completions", body)[0] == 200
    refused = [
        ({"Host": "evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),  # what a page may send without asking
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ]
    for headers, status in refused:
        assert served.post("/v1/completions", body, **headers)[0] == status
    assert served.post("/v1/nothing", body)[0] == 404
    assert served.post("/../v1/completions", body)[0] == 404
    assert served.post("/v1/models", body)[0] == 405


def test_with_a_token_only_its_owner_is_answered():
    with Served(token=True) as served:
        key = re.search(r"api_key=(\S+)", served.lines[-1])[1]
        with pytest.raises(openai.PermissionDeniedError):
            served.client().completions.create(model="x", prompt="T")
        done = served.client(key).completions.create(model="x", prompt="T", max_tokens=3)
        assert done.usage.completion_tokens == 3


def test_a_client_that_leaves_is_not_written_for_any_longer(served):
    stream = served.client().completions.create(
        model="x", prompt="T", max_tokens=60_000, stream=True
    )
    next(iter(stream))
    stream.close()
    # The model is free again: 60,000 tokens would keep it busy for minutes.
    done = served.client().completions.create(model="x", prompt="T", max_tokens=5)
    assert done.usage.completion_tokens == 5


def test_too_many_requests_are_refused(served, monkeypatch):
    monkeypatch.setattr(worker_module, "MOST_WAITING", 1)
    with pytest.raises(openai.RateLimitError, match="too many requests are waiting"):
        served.client().completions.create(model="x", prompt=["T", "T"])


def test_a_failure_of_the_model_is_an_answer_and_not_the_end(served, monkeypatch):
    def broken(self: Completions) -> Any:
        raise ZeroDivisionError("a bug of ours")

    with monkeypatch.context() as patch:
        patch.setattr(Completions, "step", broken)
        with pytest.raises(openai.InternalServerError, match="a bug of ours"):
            served.client().completions.create(model="x", prompt="T")
    assert served.client().completions.create(model="x", prompt="T").usage.completion_tokens == 16


@contextmanager
def process(*args: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(command(*args), stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.long
@pytest.mark.slow
def test_the_command_says_where_it_is_and_ends_on_ctrl_c():
    with process("serve", "out", "--token=False", "--device=cpu") as running:
        line = running.stdout.readline()
        url = re.fullmatch(
            r"serving out: base_url=(\S+)  \(any api_key\)  \(Ctrl-C ends\)\n", line
        )[1]
        with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client:
            done = client.completions.create(model="x", prompt="T")
        assert done.choices[0].finish_reason == "length"
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


def test_wrong_command_lines_are_named(capsys):
    cases = {
        ("nowhere",): "nowhere: expected a run directory, found nothing",
        ("out", "again"): "expected one run directory, found",
        ("out", "--port=99999"): "--port: port must be at most 65535, found 99999",
        ("out", "--host=0.0.0.0", "--token=False"): "--token=False: others can reach",
    }
    for words, message in cases.items():
        assert main(["serve", *words]) == 2
        assert message in capsys.readouterr().err
