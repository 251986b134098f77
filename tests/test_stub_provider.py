"""The stub speaks as the providers do, right or wrong as it is told, and remembers what it got."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.filling import fill
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider

PATHS = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/models/m:generateContent": "google",
    "/v1beta/models/m:generateContent": "google",
}


def post(
    stub: StubProvider, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", stub.port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body or {"model": "m"}), headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_every_path_is_known(mlr_stub_provider: StubProvider, path: str) -> None:
    status, headers, body = post(mlr_stub_provider, path)
    assert status == 200
    assert headers["request-id"] == "req_1"
    assert replies.TEXT in body.decode()
    (asked,) = mlr_stub_provider.requests
    assert (asked.format, asked.model, asked.number) == (PATHS[path], "m", 1)


def test_another_path_is_not_known(mlr_stub_provider: StubProvider) -> None:
    assert post(mlr_stub_provider, "/v1/embeddings")[0] == 404
    assert mlr_stub_provider.requests == []


def test_requests_are_counted_and_scripted_by_number(mlr_stub_provider: StubProvider) -> None:
    mlr_stub_provider.script = {2: replies.rate_limited(7)}
    found = [post(mlr_stub_provider, "/v1/messages") for _ in range(3)]
    assert [status for status, _, _ in found] == [200, 429, 200]
    assert found[1][1]["retry-after"] == "7"
    assert len(mlr_stub_provider.requests) == 3
    mlr_stub_provider.reset([None, Reply(text="second")])
    texts = [post(mlr_stub_provider, "/v1/messages")[2].decode() for _ in range(3)]
    assert ["second" in text for text in texts] == [False, True, False]


def test_a_function_answers_what_was_asked(mlr_stub_provider: StubProvider) -> None:
    mlr_stub_provider.script = lambda asked: Reply(text=asked.text.upper())
    body = {"model": "m", "messages": [{"role": "user", "content": "louder"}]}
    assert b"LOUDER" in post(mlr_stub_provider, "/v1/chat/completions", body)[2]


def test_a_script_that_fails_says_so(mlr_stub_provider: StubProvider) -> None:
    mlr_stub_provider.script = lambda asked: Reply(text=asked.body["nothing"])
    status, _, body = post(mlr_stub_provider, "/v1/messages")
    assert status == 418
    assert b"KeyError: 'nothing'" in body


def test_it_knows_that_a_key_was_sent_and_not_which(mlr_stub_provider: StubProvider) -> None:
    secret = "sk-0123456789"
    for headers in (
        {"Authorization": f"Bearer {secret}"},
        {"x-goog-api-key": secret},
        {"x-a": "b"},
    ):
        post(mlr_stub_provider, f"/v1/messages?key={secret}", headers=headers)
    assert [asked.key_sent for asked in mlr_stub_provider.requests] == [True, True, False]
    assert secret not in repr(mlr_stub_provider.requests)
    assert mlr_stub_provider.requests[2].headers["x-a"] == "b"


def test_it_knows_how_many_were_answered_at_once(mlr_stub_provider: StubProvider) -> None:
    mlr_stub_provider.script = Reply(delay=0.3)
    start = time.monotonic()
    threads = [
        threading.Thread(target=post, args=(mlr_stub_provider, "/v1/messages")) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - start >= 0.3
    assert 2 <= mlr_stub_provider.max_in_flight <= 8
    assert mlr_stub_provider.in_flight == 0


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (replies.resetting(), ConnectionResetError),
        (replies.truncated(), http.client.IncompleteRead),
    ],
)
def test_connections_end_as_they_are_told(
    mlr_stub_provider: StubProvider, reply: Reply, error: type[Exception]
) -> None:
    mlr_stub_provider.script = reply
    with pytest.raises(error):
        post(mlr_stub_provider, "/v1/messages")


def test_it_stops_while_somebody_waits_for_an_answer() -> None:
    with StubProvider(replies.hanging()) as stub:
        connection = http.client.HTTPConnection("127.0.0.1", stub.port, timeout=30)
        connection.request("POST", "/v1/messages", '{"model": "m"}')
        while not stub.requests:
            time.sleep(0.01)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        connection.getresponse()
    connection.close()


REVIEW: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "scored": {
            "type": "object",
            "properties": {
                "score": {"type": "integer", "minimum": 1, "maximum": 10},
                "justification": {"type": "string", "minLength": 5, "maxLength": 200},
            },
            "required": ["score", "justification"],
            "additionalProperties": False,
        }
    },
    "properties": {
        "clarity": {"$ref": "#/$defs/scored"},
        "overall": {"allOf": [{"$ref": "#/$defs/scored"}]},
        "kind": {"enum": ["a", "b"]},
        "version": {"const": 3},
        "maybe": {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, {}]},
        "list": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
        "null": {"type": ["null", "string"]},
        "long": {"type": "string", "minLength": 300},
    },
    "required": ["clarity", "overall", "kind", "version", "maybe", "list", "null", "long"],
    "additionalProperties": False,
}


@given(st.text())
def test_any_seed_fills_a_schema_and_always_in_the_same_way(seed: str) -> None:
    found = fill(REVIEW, seed)
    jsonschema.validate(found, REVIEW)
    assert fill(REVIEW, seed) == found


def test_seeds_give_different_scores() -> None:
    scores = {fill(REVIEW, str(seed))["clarity"]["score"] for seed in range(100)}
    assert scores == set(range(1, 11))


@given(st.integers(-50, 50), st.integers(0, 30))
def test_numbers_are_within_their_limits(low: int, width: int) -> None:
    schema = {"type": "integer", "minimum": low, "maximum": low + width}
    assert low <= fill(schema, "x") <= low + width


def test_limits_that_an_sdk_put_into_the_description_are_kept_to() -> None:
    schema = {"type": "integer", "description": "How clear?\n\n{minimum: 3, maximum: 4}"}
    assert {fill(schema, str(seed)) for seed in range(20)} == {3, 4}


def test_an_answer_off_the_schema_can_be_asked_for(mlr_stub_provider: StubProvider) -> None:
    mlr_stub_provider.script = replies.off_schema()
    form = {"format": {"type": "json_schema", "schema": REVIEW}}
    body = {"model": "m", "output_config": form}
    found = json.loads(post(mlr_stub_provider, "/v1/messages", body)[2])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(found["content"][0]["text"]), REVIEW)
    mlr_stub_provider.script = None
    found = json.loads(post(mlr_stub_provider, "/v1/messages", body)[2])
    jsonschema.validate(json.loads(found["content"][0]["text"]), REVIEW)


@pytest.mark.parametrize("schema", [{"enum": []}, {"type": "array", "items": True}])
def test_what_the_stub_cannot_answer_is_told_in_an_answer(
    mlr_stub_provider: StubProvider, schema: dict[str, Any]
) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    body = {"model": "m", "messages": [], "response_format": wanted}
    status, _, said = post(mlr_stub_provider, "/v1/chat/completions", body)
    assert status == 500
    assert b"the stub cannot answer" in said


def test_a_body_that_is_no_object_is_not_known(mlr_stub_provider: StubProvider) -> None:
    assert post(mlr_stub_provider, "/v1/messages", [1])[0] == 404


@given(st.integers(-50, 50))
def test_an_upper_limit_alone_is_kept(highest: int) -> None:
    assert fill({"type": "integer", "maximum": highest}) <= highest
