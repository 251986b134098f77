"""What goes wrong with a provider has a cause, is tried again only if it may pass, and is told."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest
from test_models import QUICK, ask, asking, configure, every_model

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.models.client import complete
from pytest_mlrbench.models.exchange import Prompt, Request
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.registry import Models
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.stub.wire import Received

pytestmark = pytest.mark.usefixtures("_keys")


@pytest.fixture
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("ANTHROPIC", "OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-test-0123456789")


PASSING = {
    "429": (replies.rate_limited(), "rate_limit"),
    "500": (replies.failing(500), "provider"),
    "503": (replies.failing(503), "provider"),
    "529": (replies.failing(529), "provider"),
    "502 html": (Reply(status=502, body=b"<html>Bad gateway</html>"), "provider"),
    "reset": (replies.resetting(), "connection"),
    "truncated": (replies.truncated(), "connection"),
    "hang": (replies.hanging(), "timeout"),
    "408": (replies.failing(408), "timeout"),
}
FINAL = {
    "400": (replies.failing(400), "bad_request"),
    "404": (replies.failing(404), "bad_request"),
    "500 of llama.cpp": (replies.failing(500, "image input is not supported"), "bad_request"),
    "401": (replies.failing(401), "auth"),
    "403": (replies.failing(403), "auth"),
    "not json": (replies.not_json(), "malformed"),
    "broken json": (replies.broken_json(), "malformed"),
    "empty": (replies.empty(), "malformed"),
    "wrong shape": (replies.wrong_shape(), "malformed"),
    "a list": (Reply(body=b"[]"), "malformed"),
    "null": (Reply(body=b"null"), "malformed"),
    "no utf-8": (Reply(body=b'{"a": "\xff"}'), "malformed"),
    "a deep one": (Reply(body=b"[" * 100_000), "malformed"),
}


def fail(stub: StubProvider, kind: str, **settings: Any) -> ModelFault:
    with pytest.raises(ModelFault) as caught:
        ask(configure(stub, kind, **settings))
    return caught.value


@every_model
def test_a_fault_that_may_pass_is_tried_again(mlr_stub_provider: StubProvider, kind: str) -> None:
    for name, (reply, cause) in PASSING.items():
        seconds = 0.6 if name == "hang" else 60
        with asking(configure(mlr_stub_provider, kind, timeout=seconds)) as question:
            mlr_stub_provider.reset({1: reply})
            answer = question()
            assert answer.attempts == len(mlr_stub_provider.requests) == 2, name

            mlr_stub_provider.reset(reply)
            with pytest.raises(ModelFault, match="tried 3 times") as caught:
                question()
            assert (caught.value.cause, caught.value.attempts) == (cause, 3), name
            assert len(mlr_stub_provider.requests) == 3, name


@every_model
def test_a_fault_that_stays_is_not_tried_again(mlr_stub_provider: StubProvider, kind: str) -> None:
    with asking(configure(mlr_stub_provider, kind)) as question:
        for name, (reply, cause) in FINAL.items():
            mlr_stub_provider.reset(reply)
            with pytest.raises(ModelFault) as caught:
                question()
            assert (caught.value.cause, caught.value.attempts) == (cause, 1), name
            assert len(mlr_stub_provider.requests) == 1, name


@every_model
def test_a_fault_is_a_sentence_and_can_be_pickled(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    with asking(configure(mlr_stub_provider, kind)) as question:
        for name, (reply, _) in {**PASSING, **FINAL}.items():
            if name == "hang":
                continue
            mlr_stub_provider.reset(reply)
            with pytest.raises(ModelFault) as caught:
                question()
            found = caught.value
            assert isinstance(found, SystemFault)
            assert found.message.endswith(".")
            assert "\n" not in found.message
            assert len(found.message) < 600
            # Nothing of the SDK's own error, which holds the request, hangs on it.
            assert found.__cause__ is found.__context__ is None
            twin = pickle.loads(pickle.dumps(found))
            assert type(twin) is ModelFault
            assert vars(twin) == vars(found)
            assert str(twin) == str(found)


@every_model
def test_what_the_provider_says_is_repeated(mlr_stub_provider: StubProvider, kind: str) -> None:
    mlr_stub_provider.script = replies.failing(400, 'no such "field":\n in it')
    found = fail(mlr_stub_provider, kind)
    assert "(400" not in found.message
    assert '400 Bad Request, "no such "field": in it".' in found.message
    assert found.status == 400


@every_model
def test_a_server_that_is_not_there_is_a_connection_fault(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    found = fail(mlr_stub_provider, kind, base_url=f"http://127.0.0.1:{port}/v1")
    assert (found.cause, found.attempts) == ("connection", 3)


@every_model
def test_a_server_that_trickles_is_timed_out(mlr_stub_provider: StubProvider, kind: str) -> None:
    mlr_stub_provider.script = replies.trickling()
    start = time.monotonic()
    assert fail(mlr_stub_provider, kind, timeout=0.3).cause == "timeout"
    assert time.monotonic() - start < 20


class Clock:
    """Waits without waiting, and remembers how long."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def retries(self, **settings: Any) -> Retries:
        return Retries(sleep=self.sleep, **{"draw": lambda low, high: low, **settings})


@every_model
@pytest.mark.parametrize(
    ("after", "least", "most"),
    [
        (2, 2, 2),
        ("1.5", 1.5, 1.5),
        (9999, 120, 120),
        ("date", 25, 31),
        ("soon", 1, 1),
        (0, 0, 0),
    ],
)
def test_who_says_when_to_come_back_is_obeyed_within_reason(
    mlr_stub_provider: StubProvider, kind: str, after: Any, least: float, most: float
) -> None:
    if after == "date":
        after = formatdate(time.time() + 30, usegmt=True)
    mlr_stub_provider.script = {1: replies.rate_limited(after)}
    clock = Clock()
    answer = ask(configure(mlr_stub_provider, kind), retries=clock.retries())
    assert answer.attempts == 2
    (wait,) = clock.waits
    assert least <= wait <= most


def test_google_says_in_the_body_when_to_come_back(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("google.genai", reason="the SDK google-genai is not installed")
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    error = {"error": {"code": 429, "message": "slow", "details": [info]}}
    mlr_stub_provider.script = {1: Reply(status=429, body=json.dumps(error).encode())}
    clock = Clock()
    ask(configure(mlr_stub_provider, "google"), retries=clock.retries())
    assert clock.waits == [34]


def test_a_quota_that_is_used_up_does_not_come_back(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    error = {"error": {"message": "Check your plan.", "code": "insufficient_quota"}}
    mlr_stub_provider.script = Reply(status=429, body=json.dumps(error).encode())
    found = fail(mlr_stub_provider, "openai")
    assert (found.cause, found.attempts) == ("rate_limit", 1)
    assert "has no quota left" in found.message


@pytest.mark.parametrize(("share", "factor"), [(lambda a, b: a, 0.5), (lambda a, b: b, 1.0)])
def test_waits_double_up_to_a_longest_and_are_drawn_from_their_upper_half(
    share: Callable[[float, float], float], factor: float
) -> None:
    clock = Clock()

    async def once() -> None:
        raise ModelFault("provider", "it failed.")

    retries = clock.retries(attempts=7, first=1, longest=10, draw=share)
    with pytest.raises(ModelFault):
        asyncio.run(retries.run(once))
    assert clock.waits == [factor * wait for wait in (1, 2, 4, 8, 10, 10)]


def test_nothing_is_tried_again_when_too_much_time_has_passed() -> None:
    calls = []

    async def once() -> None:
        calls.append(1)
        await asyncio.sleep(0.05)
        raise ModelFault("timeout", "it was silent.")

    with pytest.raises(ModelFault) as caught:
        asyncio.run(Clock().retries(attempts=1000, total=0.12).run(once))
    assert caught.value.attempts == len(calls) <= 3


def test_a_failed_response_of_openai_is_no_answer(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    body = {"status": "failed", "output": [], "error": {"code": "server_error", "message": "Oh"}}
    mlr_stub_provider.script = {1: Reply(body=json.dumps(body).encode())}
    assert ask(configure(mlr_stub_provider, "responses")).attempts == 2
    body["error"] = {"code": "invalid_prompt", "message": "No"}
    mlr_stub_provider.reset(Reply(body=json.dumps(body).encode()))
    found = fail(mlr_stub_provider, "responses")
    assert (found.cause, found.attempts) == ("bad_request", 1)


def test_a_schema_the_sdk_does_not_understand_is_a_bad_request(
    mlr_stub_provider: StubProvider,
) -> None:
    pytest.importorskip("anthropic", reason="the SDK anthropic is not installed")
    with pytest.raises(ModelFault, match="the SDK refuses the request") as caught:
        ask(configure(mlr_stub_provider, "anthropic"), Request(json_schema={"title": "?"}))
    assert caught.value.cause == "bad_request"
    assert mlr_stub_provider.requests == []


@every_model
def test_a_cancelled_call_is_cancelled_and_frees_its_place(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    mlr_stub_provider.script = {1: replies.hanging()}

    async def story() -> str:
        async with Models(QUICK, highest=1) as models:
            client = models.client(configure(mlr_stub_provider, kind))
            task = asyncio.create_task(complete(client, Prompt.of("Hello")))
            while not mlr_stub_provider.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert client.limit.in_flight == 0
            return (await complete(client, Prompt.of("Hello"))).text

    assert asyncio.run(story()) == replies.TEXT


@every_model
def test_in_a_storm_no_call_is_lost(mlr_stub_provider: StubProvider, kind: str) -> None:
    """200 calls, of whose requests a fifth fails in five ways."""
    draw = random.Random(7)
    bad = [
        replies.rate_limited("0.01"),
        replies.failing(500),
        replies.failing(529),
        replies.resetting(),
        replies.truncated(),
    ]
    mlr_stub_provider.script = lambda asked: _weather(draw, bad)
    patient = Retries(attempts=12, first=0.01, longest=0.1)

    async def story() -> list[Any]:
        async with Models(patient, highest=64) as models:
            client = models.client(configure(mlr_stub_provider, kind))
            calls = (complete(client, Prompt.of(f"Call {n}")) for n in range(200))
            return await asyncio.gather(*calls)

    answers = asyncio.run(story())
    assert [answer.text for answer in answers] == [replies.TEXT] * 200
    assert sum(answer.attempts for answer in answers) == len(mlr_stub_provider.requests) > 220
    assert mlr_stub_provider.max_in_flight <= 64
    asked: dict[str, list[Received]] = {}
    for received in mlr_stub_provider.requests:
        asked.setdefault(received.text, []).append(received)
    # Each answer knows how often its own question was asked.
    for number, answer in enumerate(answers):
        assert answer.attempts == len(asked[f"Call {number}"])


def _weather(draw: random.Random, bad: list[Reply]) -> Reply | None:
    return draw.choice(bad) if draw.random() < 0.2 else None
