"""An agent asks models through the gate: with the SDKs, and without ever seeing a key."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from gate_builders import (
    ASK,
    CLIENT,
    KEY,
    Loop,
    Opened,
    Provider,
    behind,
    chat,
    events_of,
    open_gate,
    post,
)
from gate_builders import settings as settings_of

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.settings import Settings
from pytest_mlrbench.sandbox.gate import check
from pytest_mlrbench.stub.replies import Reply, rate_limited
from pytest_mlrbench.stub.server import StubProvider

pytest_plugins = ["gate_fixtures"]


def before(stub: StubProvider) -> Settings:
    """Settings that lead all three providers to the scripted one."""
    return settings_of(**{who: stub.base_url(who) for who in ("openai", "anthropic", "google")})


# What passes


@pytest.mark.slow
def test_all_three_sdks_reach_their_models(
    tmp_path: Path, loop: Loop, mlr_stub_provider: StubProvider
) -> None:
    anthropic = pytest.importorskip("anthropic")
    openai = pytest.importorskip("openai")
    genai = pytest.importorskip("google.genai")
    with open_gate(tmp_path, loop, before(mlr_stub_provider)) as gate:
        given = gate.variables
        claude = anthropic.Anthropic(
            base_url=given["ANTHROPIC_BASE_URL"], api_key=given["ANTHROPIC_API_KEY"]
        )
        said = claude.messages.create(
            model="claude-x", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
        )
        assert said.content[0].text == "This is a scripted answer."
        gpt = openai.OpenAI(base_url=given["OPENAI_BASE_URL"], api_key=given["OPENAI_API_KEY"])
        assert gpt.chat.completions.create(**ASK).choices[0].message.content
        assert gpt.responses.create(model="gpt-5", input="Hi").output_text
        gemini = genai.Client(
            api_key=given["GEMINI_API_KEY"],
            http_options={"base_url": given["GOOGLE_GEMINI_BASE_URL"]},
        )
        assert gemini.models.generate_content(model="gemini-x", contents="Hi").text
        for client in (claude, gpt, gemini):
            client.close()
        events = gate.events(number=4)
        spent = gate.gate.spent()
    assert [(event["provider"], event["model"], event["status"]) for event in events] == [
        ("anthropic", "claude-x", 200),
        ("openai", "gpt-5", 200),
        ("openai", "gpt-5", 200),
        ("google", "gemini-x", 200),
    ]
    assert [event["path"] for event in events] == [
        "/anthropic/v1/messages",
        "/openai/v1/chat/completions",
        "/openai/v1/responses",
        "/google/v1/models/gemini-x:generateContent",
    ]
    for event in events:
        assert event["usage"] == {"input": 11, "output": 7, "cached_input": 3, "reasoning": 2}
        assert event["sent"] > 0
        assert event["received"] > 0
    assert (spent.calls, spent.attempts, spent.input, spent.output) == (4, 4, 44, 28)
    assert all(asked.key_sent for asked in mlr_stub_provider.requests)


def test_a_stream_of_anthropic_passes_and_is_counted(opened: Opened, provider: Provider) -> None:
    anthropic = pytest.importorskip("anthropic")
    start: dict[str, Any] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 1,
            "cache_read_input_tokens": 1000,
            "cache_creation_input_tokens": 400,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 300,
                "ephemeral_1h_input_tokens": 100,
            },
        },
    }
    provider.streams(
        events_of(
            {"type": "message_start", "message": start},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": 'a "usage" of words'},
            },
            {"type": "content_block_stop", "index": 0},
        ),
        events_of(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 50},
            },
            {"type": "message_stop"},
        ),
    )
    client = anthropic.Anthropic(
        base_url=opened.variables["ANTHROPIC_BASE_URL"], api_key=opened.gate.token
    )
    with client.messages.stream(
        model="claude-x", max_tokens=99, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        assert "".join(stream.text_stream) == 'a "usage" of words'
    client.close()
    (event,) = opened.events()
    used = event["usage"]
    assert (used["input"], used["output"], used["cached_input"]) == (1500, 50, 1000)


def test_a_stream_of_openai_responses_passes_and_is_counted(
    opened: Opened, provider: Provider
) -> None:
    openai = pytest.importorskip("openai")
    answer = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "output": [],
        "status": "completed",
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 12},
            "total_tokens": 50,
        },
    }
    delta = {
        "type": "response.output_text.delta",
        "item_id": "i",
        "output_index": 0,
        "content_index": 0,
        "delta": "Yes.",
        "sequence_number": 1,
        "logprobs": [],
    }
    done = events_of(delta, {"type": "response.completed", "response": answer})
    # Cut anywhere, as the network does.
    provider.streams(*(done[n : n + 7] for n in range(0, len(done), 7)))
    client = openai.OpenAI(base_url=opened.variables["OPENAI_BASE_URL"], api_key=opened.gate.token)
    kinds = [
        event.type for event in client.responses.create(model="gpt-5", input="Hi", stream=True)
    ]
    client.close()
    assert kinds == ["response.output_text.delta", "response.completed"]
    (event,) = opened.events()
    assert event["usage"] == {"input": 20, "output": 30, "cached_input": 8, "reasoning": 12}


def test_a_stream_of_google_passes_and_is_counted(opened: Opened, provider: Provider) -> None:
    genai = pytest.importorskip("google.genai")

    def part(text: str, out: int) -> bytes:
        document = {
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}],
            "usageMetadata": {
                "promptTokenCount": 10,
                "candidatesTokenCount": out,
                "thoughtsTokenCount": 5,
            },
            "modelVersion": "gemini-x-001",
        }
        return b"data: %s\r\n\r\n" % json.dumps(document).encode()

    provider.streams(part("Yes", 1), part(".", 2))
    client = genai.Client(
        api_key=opened.gate.token,
        http_options={"base_url": opened.variables["GOOGLE_GEMINI_BASE_URL"]},
    )
    stream = client.models.generate_content_stream(model="gemini-x", contents="Hi")
    assert "".join(piece.text for piece in stream) == "Yes."
    client.close()
    (got,) = provider.got
    assert got.target.endswith(":streamGenerateContent?alt=sse")
    (event,) = opened.events()
    assert (event["usage"]["input"], event["usage"]["output"]) == (10, 7)


def test_an_answer_comes_piece_by_piece_and_not_at_its_end(
    opened: Opened, provider: Provider
) -> None:
    provider.streams(b"data: 1\n\n", b"data: 2\n\n", pause=0.4)
    headers = {"authorization": f"Bearer {opened.gate.token}"}
    url = f"{opened.variables['OPENAI_BASE_URL']}/chat/completions"
    came = []
    with CLIENT.stream("POST", url, json={**ASK, "stream": True}, headers=headers) as answer:
        for _ in answer.iter_raw():
            came.append(time.monotonic())
    assert came[-1] - came[0] >= 0.3


def test_lists_of_models_and_counts_of_tokens_pass_and_cost_nothing(
    opened: Opened, provider: Provider
) -> None:
    headers = {"x-api-key": opened.gate.token}
    for path in ("/openai/v1/models", "/openai/v1/models/org/m:1", "/google/v1beta/models"):
        assert CLIENT.get(f"http://{opened.place}{path}", headers=headers).status_code == 200
    assert post(opened, "/anthropic/v1/messages/count_tokens").status_code == 200
    assert post(opened, "/google/v1beta/models/g:countTokens", {"contents": []}).status_code == 200
    assert len(opened.events(number=5)) == 5
    assert opened.gate.spent().attempts == 0


def test_the_reply_of_a_provider_that_refuses_is_passed_on_as_it_is(
    tmp_path: Path, loop: Loop, mlr_stub_provider: StubProvider
) -> None:
    mlr_stub_provider.script = rate_limited(after=7)
    with open_gate(tmp_path, loop, before(mlr_stub_provider)) as gate:
        answer = chat(gate)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "7"
        assert answer.json()["error"]["message"] == "too many requests"
        assert "429" in gate.gate.failing
        mlr_stub_provider.script = Reply()
        assert chat(gate).status_code == 200
        assert gate.gate.failing == ""
        spent = gate.gate.spent()
    assert (spent.calls, spent.attempts, spent.input) == (1, 2, 11)


def test_usage_that_nobody_tells_is_not_known_and_not_zero(
    tmp_path: Path, loop: Loop, mlr_stub_provider: StubProvider
) -> None:
    mlr_stub_provider.script = Reply(tokens=None)
    with open_gate(tmp_path, loop, before(mlr_stub_provider)) as gate:
        chat(gate)
        (event,) = gate.events()
        assert event["usage"]["input"] is None
        assert gate.gate.spent().input is None


def test_what_an_answer_used_is_known_though_the_agent_does_not_wait_for_it(
    opened: Opened, provider: Provider
) -> None:
    last = {"usage": {"prompt_tokens": 5, "completion_tokens": 6}, "model": "gpt-5"}
    provider.streams(b"data: {}\n\n", b"data: {}\n\n", events_of(last), pause=0.15)
    url = f"{opened.variables['OPENAI_BASE_URL']}/chat/completions"
    headers = {"authorization": f"Bearer {opened.gate.token}"}
    with CLIENT.stream("POST", url, json={**ASK, "stream": True}, headers=headers) as answer:
        next(answer.iter_raw())
    (event,) = opened.events()
    assert (event["usage"]["input"], event["usage"]["output"]) == (5, 6)
    assert event["error"].startswith("left:")
    assert opened.gate.spent().output == 6


# The key


def test_the_provider_gets_the_key_where_it_looks_for_it_and_never_the_token(
    opened: Opened, provider: Provider
) -> None:
    token = opened.gate.token
    base = f"http://{opened.place}"
    body = {"contents": [], "model": "m"}
    ways: list[tuple[str, dict[str, str], str]] = [
        ("/openai/v1/chat/completions", {"Authorization": f"Bearer {token}"}, "authorization"),
        ("/anthropic/v1/messages", {"Authorization": f"bearer {token}"}, "authorization"),
        ("/anthropic/v1/messages", {"X-Api-Key": token}, "x-api-key"),
        ("/google/v1beta/models/g:generateContent", {"x-goog-api-key": token}, "x-goog-api-key"),
        (f"/google/v1beta/models/g:generateContent?key={token}", {}, "x-goog-api-key"),
    ]
    for path, headers, place in ways:
        provider.got.clear()
        assert CLIENT.post(base + path, json=body, headers=headers).status_code == 200
        (got,) = provider.got
        assert got.headers[place].removeprefix("Bearer ") == KEY
        sent = f"{got.target} {got.headers} {got.body!r}"
        assert sent.count(KEY) == 1
        assert token not in sent
    assert KEY not in opened.record
    assert token not in opened.record
    assert KEY not in json.dumps(opened.variables)


def test_a_key_that_a_provider_repeats_does_not_reach_the_agent(
    opened: Opened, provider: Provider
) -> None:
    provider.says(
        body=json.dumps({"error": {"message": f"bad key {KEY}"}}).encode(),
        status=400,
        headers={"x-request-id": f"r {KEY}", "set-cookie": "a=b", "x-echo": KEY},
        content_type="application/json",
    )
    answer = chat(opened)
    assert answer.json()["error"]["message"] == "bad key " + "*" * len(KEY)
    assert KEY not in str(answer.headers)
    assert "set-cookie" not in answer.headers
    # In two pieces, and in pieces of one byte.
    text = f"data: {KEY[:10]} {KEY} {KEY}".encode()
    for size in (20, 1):
        provider.streams(*(text[n : n + size] for n in range(0, len(text), size)))
        assert chat(opened, stream=True).text == f"data: {KEY[:10]} {'*' * 40} {'*' * 40}"


def test_headers_that_pay_steer_or_remember_are_not_sent_on(
    opened: Opened, provider: Provider
) -> None:
    steering = {
        "cookie": "a=b",
        "x-forwarded-for": "10.0.0.1",
        "forwarded": "for=10.0.0.1",
        "x-http-method-override": "DELETE",
        "x-goog-fieldmask": "candidates",
        "openai-organization": "org-other",
        "x-goog-user-project": "other",
        "te": "trailers",
        "host": "metadata.google.internal",
        "proxy-authorization": "Basic YTpi",
    }
    answer = post(opened, "/openai/v1/chat/completions", ASK, **steering)
    assert answer.status_code == 200
    (got,) = provider.got
    assert got.headers["host"] == provider.url.removeprefix("http://")
    assert not {*steering} & {*got.headers} - {"host"}


def test_a_redirect_is_not_followed(opened: Opened, provider: Provider) -> None:
    for status in (301, 302, 307, 308):
        provider.says(status=status, headers={"location": "http://127.0.0.1:1/steal"})
        answer = chat(opened)
        assert answer.status_code == 502
        assert "redirect" in answer.text
        assert "location" not in answer.headers
    assert len(provider.got) == 4


def test_headers_of_the_users_own_are_added_and_hidden(
    tmp_path: Path, loop: Loop, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cr3t-of-the-house")
    line = f"openai:* base_url={provider.url}/v1 header.X-Team=$MY_SECRET header.X-Beta=1"
    provider.says(text="you sent s3cr3t-of-the-house, 1")
    with open_gate(tmp_path, loop, Settings([line])) as gate:
        answer = post(gate, "/openai/v1/chat/completions", ASK, **{"x-team": "mine"})
    assert answer.text == f"you sent {'*' * 19}, 1"
    assert provider.got[0].headers["x-team"] == "s3cr3t-of-the-house"


# Before the first case


def test_a_key_that_is_not_there_is_said_before_the_first_case(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(["openai", "anthropic", "google"], Settings().config)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(InputError, match="models of anthropic, which needs a key: set ANTHROPIC"):
        check(["openai", "anthropic"], Settings().config)
    check(["openai"], Settings().config)
    monkeypatch.setenv("OPENAI_BASE_URL", "no address")
    with pytest.raises(InputError, match="OPENAI_BASE_URL is not usable"):
        check(["openai"], Settings().config)
    # A server of this machine wants none.
    check(["anthropic"], Settings(["anthropic:* base_url=http://127.0.0.1:1"]).config)


def test_nothing_of_the_server_is_imported_before_a_gate_opens() -> None:
    code = "import sys, pytest_mlrbench.sandbox.gate; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_only_the_variables_of_the_providers_allowed_are_given(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    with open_gate(tmp_path, loop, behind(provider), providers=["openai"]) as gate:
        names = sorted(name for name in gate.variables if "proxy" not in name.lower())
        assert names == ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
        assert post(gate, "/anthropic/v1/messages").status_code == 403


def test_the_gate_answers_at_a_unix_socket_however_long_its_path(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as left:  # of a process that was killed
        link = tmp_path / "s"
        link.symlink_to(folder)
        left.bind(str(link / "gate.sock"))
    with open_gate(tmp_path, loop, behind(provider), folder / "gate.sock") as gate:
        assert gate.variables["OPENAI_BASE_URL"] == "http://127.0.0.1:8080/openai/v1"
        transport = httpx.HTTPTransport(uds=str(link / "gate.sock"))
        with httpx.Client(transport=transport) as client:
            answer = client.post(
                f"{gate.variables['OPENAI_BASE_URL']}/chat/completions",
                json=ASK,
                headers={"authorization": f"Bearer {gate.gate.token}"},
            )
        assert answer.status_code == 200
    assert list(folder.iterdir()) == []
