"""What an agent may not do at the gate, and what it is told."""

from __future__ import annotations

import gzip
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
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
    settings,
)

from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Usage
from pytest_mlrbench.models.settings import Settings
from pytest_mlrbench.sandbox import gate_account, gate_models, gate_rules
from pytest_mlrbench.sandbox.gate_account import Account
from pytest_mlrbench.stub.replies import Reply, hanging
from pytest_mlrbench.stub.server import StubProvider

pytest_plugins = ["gate_fixtures"]


def priced(provider: Provider) -> Settings:
    """A dollar for 1,000 tokens of input, two of output: an answer of the provider is 1.20 USD."""
    return Settings([f"openai:* base_url={provider.url}/v1 price_in=1000 price_out=2000"])


# Who asks


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer mlr-guess"},
        {"authorization": "Basic {token}"},
        {"authorization": "{token}"},
        {"x-api-key": "{token}x"},
        {"x-api-key": "\u00e9"},
        {"cookie": "key={token}"},
        {"authorization": f"Bearer {KEY}"},
    ],
)
def test_without_the_token_of_the_case_nothing_passes(
    opened: Opened, provider: Provider, headers: dict[str, str]
) -> None:
    filled = {
        name.encode(): value.format(token=opened.gate.token).encode()
        for name, value in headers.items()
    }
    for path in ("/openai/v1/chat/completions", "/anthropic/v1/messages", "/", "/nothing"):
        answer = CLIENT.post(f"http://{opened.place}{path}", json=ASK, headers=filled)
        assert answer.status_code == 401
        assert answer.headers["x-should-retry"] == "false"
    assert provider.got == []
    assert all(event["error"].startswith("token:") for event in opened.events(number=4))


def test_the_token_of_another_case_opens_nothing(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    with (
        open_gate(tmp_path, loop, behind(provider)) as mine,
        open_gate(tmp_path, loop, behind(provider)) as other,
    ):
        url = f"{mine.variables['OPENAI_BASE_URL']}/chat/completions"
        headers = {"authorization": f"Bearer {other.gate.token}"}
        assert CLIENT.post(url, json=ASK, headers=headers).status_code == 401
    assert provider.got == []


def test_nothing_passes_after_the_deadline_and_what_runs_then_is_cut(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    provider.streams(*[b"data: {}\n\n"] * 100, pause=0.05)
    with open_gate(tmp_path, loop, behind(provider), deadline=time.time() + 0.5) as gate:
        with pytest.raises(httpx.RemoteProtocolError):
            chat(gate, stream=True)
        answer = chat(gate)
        cut, late = gate.events(number=2)
    assert answer.status_code == 403
    assert "the time of the case is over" in answer.text
    assert cut["error"].startswith("deadline:")
    assert cut["usage"]["input"] is None
    assert late["status"] == 403
    assert len(provider.got) == 1


def test_after_the_case_nobody_answers(tmp_path: Path, loop: Loop, provider: Provider) -> None:
    with open_gate(tmp_path, loop, behind(provider)) as gate:
        place = gate.variables["OPENAI_BASE_URL"]
    with pytest.raises(httpx.ConnectError):
        CLIENT.get(f"{place}/models")


def test_a_request_under_way_when_the_case_ends_is_counted(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    usage = {"model": "gpt-5", "usage": {"prompt_tokens": 5, "completion_tokens": 6}}
    provider.streams(b"data: {}\n\n", events_of(usage), pause=0.3)
    with ThreadPoolExecutor(1) as pool:
        with open_gate(tmp_path, loop, behind(provider)) as gate:
            asked = pool.submit(chat, gate, stream=True)
            for _ in range(500):
                if provider.got:
                    break
                time.sleep(0.01)
        assert asked.result().status_code == 200
    (event,) = gate.events()
    assert event["usage"]["output"] == 6


def test_a_request_that_is_never_answered_is_cut_with_the_case(
    tmp_path: Path, loop: Loop, mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_mlrbench.sandbox.gate.LAST", 0.1)
    mlr_stub_provider.script = hanging()
    config = settings(openai=mlr_stub_provider.base_url("openai"))
    with ThreadPoolExecutor(1) as pool:
        with open_gate(tmp_path, loop, config) as gate:
            asked = pool.submit(chat, gate)
            for _ in range(500):
                if mlr_stub_provider.in_flight:
                    break
                time.sleep(0.01)
        assert isinstance(asked.exception(), httpx.RemoteProtocolError)
    (event,) = gate.events()
    assert event["error"] == "cut: the case ended"
    assert (gate.gate.spent().calls, gate.gate.spent().input) == (1, None)


# What is asked


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/openai/v1/files"),
        ("POST", "/openai/v1/files"),
        ("POST", "/openai/v1/fine_tuning/jobs"),
        ("GET", "/openai/v1/organization/admin_api_keys"),
        ("GET", "/openai/v1/chat/completions"),
        ("DELETE", "/openai/v1/models/gpt-5"),
        ("DELETE", "/openai/v1/responses"),
        ("PUT", "/anthropic/v1/messages"),
        ("HEAD", "/anthropic/v1/messages"),
        ("OPTIONS", "/anthropic/v1/messages"),
        ("POST", "/anthropic/v1/messages/batches"),
        ("POST", "/anthropic/v1/messages/"),
        ("POST", "/anthropic//v1/messages"),
        ("POST", "//anthropic/v1/messages"),
        ("POST", "/anthropic/v1/../v1/messages"),
        ("POST", "/anthropic/v1/messages/../../v1/files"),
        ("POST", "/anthropic/v1/%6dessages"),
        ("POST", "/anthropic/v1/messages%2f..%2ffiles"),
        ("POST", "/anthropic/v1/messages%00"),
        ("POST", "/anthropic/v1/messages;x"),
        ("POST", "/anthropic/v1/messages#x"),
        ("POST", "/anthropic/./v1/messages"),
        ("POST", "/ANTHROPIC/v1/messages"),
        ("POST", "/anthropic\\v1\\messages"),
        ("POST", "/openai/v1/../../google/v1/models"),
        ("GET", "/openai/v1/models/../files"),
        ("GET", "/openai/v1/models/a/../../files"),
        ("GET", "/openai/v1/models/%2e%2e/files"),
        ("POST", "/google/v1beta/models/g:generateContent/x"),
        ("POST", "/google/v1beta/models/a/../g:generateContent"),
        ("POST", "/google/v1beta/models/g%3AgenerateContent"),
        ("POST", "/google/v1beta/models/g:batchGenerateContent"),
        ("POST", "/google/v1beta/cachedContents"),
        ("POST", "/google/upload/v1beta/files"),
        ("POST", "/openai/chat/completions"),
        ("POST", "http://127.0.0.1:1/openai/v1/chat/completions"),
        ("POST", "http://api.openai.com/v1/chat/completions"),
        ("POST", "https://api.openai.com/v1/chat/completions"),
        ("OPTIONS", "*"),
    ],
)
def test_other_paths_and_other_spellings_do_not_pass(
    opened: Opened, provider: Provider, method: str, path: str
) -> None:
    body = json.dumps(ASK).encode()
    came = opened.raw(
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {opened.gate.token}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    assert came.split(b" ")[1] in (b"400", b"403", b"404"), came
    assert provider.got == []


@pytest.mark.parametrize(
    "query",
    ["fields=candidates", "access_token=x", "alt=sse&$fields=a", "callback=f", "%66ields=x", "alt"],
)
def test_parameters_that_could_hide_what_is_used_do_not_pass(
    opened: Opened, provider: Provider, query: str
) -> None:
    path = f"/google/v1beta/models/g:generateContent?{query}"
    answer = post(opened, path, {"contents": []})
    assert answer.status_code == 400
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert provider.got == []


def test_only_the_models_named_pass(tmp_path: Path, loop: Loop, provider: Provider) -> None:
    models = ["gpt-5*", "google:gemini-x"]
    with open_gate(tmp_path, loop, behind(provider), models=models) as gate:
        assert chat(gate, model="gpt-5-mini").status_code == 200
        path = "/google/v1/models/{}:generateContent"
        assert post(gate, path.format("gemini-x"), {"contents": []}).status_code == 200
        assert post(gate, path.format("gpt-5"), {"contents": []}).status_code == 200
        assert post(gate, path.format("gemini-y"), {"contents": []}).status_code == 403
        # The path counts, and not what the body says beside it.
        document = {"contents": [], "model": "gemini-x"}
        assert post(gate, path.format("gemini-y"), document).status_code == 403
        answer = post(gate, "/anthropic/v1/messages", {**ASK, "model": "claude-x"})
        assert answer.status_code == 403
        assert answer.json()["type"] == "error"
        assert "claude-x is none of this run's" in answer.json()["error"]["message"]
        assert chat(gate, model="o3").json()["error"]["code"] == "model"
    assert len(provider.got) == 3


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "gpt-5", "model": "o3"}',
        b'{"model": "gpt-5", "a": {"b": 1, "b": 2}}',
        b'{"model": ["gpt-5"]}',
        b'{"model": "gpt-5", "models": ["o3"]}',
        b'{"model": "gpt-5", "fallbacks": [{"model": "o3"}]}',
        b'{"model": "gpt-5", "prompt": {"id": "p1"}}',
        b'{"model": "gpt-5 o3"}',
        b'{"model": ""}',
        b'{"model": "../../files"}',
        b'{"messages": []}',
        b'["gpt-5"]',
        b"{'model': 'gpt-5'}",
        b"",
        b"\xef\xbb\xbf{}",
        '{"model": "gpt-5"}'.encode("utf-16"),
        b'{"model": "gpt-5", "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"model": "gpt-5", "messages": ' + b'[{"content": ' * 900 + b"0" + b"}]" * 900 + b"}",
    ],
)
def test_a_body_that_can_be_read_in_two_ways_or_in_none_does_not_pass(
    opened: Opened, provider: Provider, body: bytes
) -> None:
    headers = {"authorization": f"Bearer {opened.gate.token}"}
    url = f"{opened.variables['OPENAI_BASE_URL']}/chat/completions"
    assert CLIENT.post(url, content=body, headers=headers).status_code == 400
    assert provider.got == []


URL = "https://example.org/secret?stolen"
REACHES: list[tuple[str, dict[str, Any]]] = [
    ("/anthropic/v1/messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    ("/anthropic/v1/messages", {"tools": [{"type": "code_execution_20250825", "name": "c"}]}),
    ("/anthropic/v1/messages", {"mcp_servers": [{"type": "url", "url": URL, "name": "x"}]}),
    (
        "/anthropic/v1/messages",
        {"messages": [{"content": [{"type": "document", "source": {"type": "url", "url": URL}}]}]},
    ),
    ("/openai/v1/responses", {"tools": [{"type": "web_search"}]}),
    ("/openai/v1/responses", {"tools": [{"type": "mcp", "server_url": URL}]}),
    ("/openai/v1/responses", {"input": [{"content": [{"type": "input_file", "file_url": URL}]}]}),
    ("/openai/v1/responses", {"input": [{"type": "function_call_output", "output": [
        {"type": "input_image", "image_url": URL}]}]}),
    ("/openai/v1/responses", {"input": [{"type": "additional_tools", "tools": [
        {"type": "mcp", "server_url": URL}]}]}),
    ("/openai/v1/responses", {"tools": [{"type": "namespace", "name": "n", "tools": [
        {"type": "code_interpreter"}]}]}),
    ("/openai/v1/responses", {"tools": [{"type": "shell", "environment": {
        "type": "container_auto"}}]}),
    ("/openai/v1/responses", {"tools": [{"type": "not_yet_invented"}]}),
    ("/openai/v1/chat/completions", {"web_search_options": {}}),
    ("/openai/v1/chat/completions", {"messages": [{"content": [
        {"type": "image_url", "image_url": {"url": URL}}]}]}),
    ("/google/v1beta/models/g:generateContent", {"tools": [{"googleSearch": {}}]}),
    ("/google/v1beta/models/g:generateContent", {"tools": [{"url_context": {}}]}),
    ("/google/v1beta/models/g:generateContent", {"contents": [{"parts": [
        {"fileData": {"fileUri": URL}}]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "more"), REACHES)
def test_a_provider_is_not_asked_to_reach_into_the_network_unless_that_is_allowed(
    tmp_path: Path, loop: Loop, provider: Provider, path: str, more: dict[str, Any]
) -> None:
    with open_gate(tmp_path, loop, behind(provider)) as gate:
        assert post(gate, path, {"model": "gpt-5", **more}).status_code == 403
        assert provider.got == []
    with open_gate(tmp_path, loop, behind(provider), web_tools=True) as gate:
        assert post(gate, path, {"model": "gpt-5", **more}).status_code == 200


def test_tools_of_the_agents_own_pass(opened: Opened, provider: Provider) -> None:
    own: list[tuple[str, list[dict[str, Any]]]] = [
        ("/anthropic/v1/messages", [{"name": "url", "input_schema": {"type": "url", "url": URL}}]),
        ("/anthropic/v1/messages", [{"type": "bash_20250124", "name": "bash"}]),
        ("/openai/v1/responses", [{"type": "function", "name": "f"}, {"type": "local_shell"}]),
        ("/openai/v1/responses", [{"type": "shell", "environment": {"type": "local"}}]),
        ("/google/v1/models/g:generateContent", [{"functionDeclarations": [{"name": "f"}]}]),
    ]
    for path, tools in own:
        assert post(opened, path, {"model": "m", "tools": tools}).status_code == 200
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert chat(opened, messages=[{"role": "user", "content": [picture]}]).status_code == 200
    call = {"type": "tool_use", "name": "x", "input": {"type": "url", "url": URL}}
    document = {"model": "m", "messages": [{"role": "assistant", "content": [call]}]}
    assert post(opened, "/anthropic/v1/messages", document).status_code == 200


# How much


def test_a_body_that_is_too_long_is_refused_with_a_sentence(
    opened: Opened, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_models, "LONGEST_BODY", 2**20)
    answer = chat(opened, pad="x" * 2**20)
    assert answer.status_code == 413
    assert "longer than 1 MiB" in answer.json()["error"]["message"]

    def pieces() -> Any:
        yield from [b"x" * 2**18] * 8

    url = f"{opened.variables['OPENAI_BASE_URL']}/chat/completions"
    headers = {"authorization": f"Bearer {opened.gate.token}"}
    assert CLIENT.post(url, content=pieces(), headers=headers).status_code == 413
    assert provider.got == []


def test_a_client_that_asks_before_it_sends_its_body_is_answered(
    opened: Opened, provider: Provider
) -> None:
    body = json.dumps(ASK).encode()
    lines = (
        "POST /openai/v1/chat/completions HTTP/1.1",
        f"Host: x\r\nAuthorization: Bearer {opened.gate.token}",
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
    )
    with socket.create_connection(("127.0.0.1", opened.port), timeout=5) as sock:
        sock.sendall("\r\n".join(lines).encode())
        assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_body_of_very_many_parts_is_refused_before_it_fills_the_memory(
    opened: Opened, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_rules, "_MOST", 1000)
    assert chat(opened, pad=[[]] * 2000).status_code == 413
    assert provider.got == []


@pytest.mark.parametrize("packing", ["gzip", "deflate", "br", "zstd", "identity, gzip"])
def test_a_body_is_not_compressed_as_it_could_become_any_length(
    opened: Opened, provider: Provider, packing: str
) -> None:
    url = f"{opened.variables['OPENAI_BASE_URL']}/chat/completions"
    headers = {"authorization": f"Bearer {opened.gate.token}", "content-encoding": packing}
    answer = CLIENT.post(url, content=gzip.compress(b"x" * 2**24), headers=headers)
    assert answer.status_code == 400
    assert "must not be compressed" in answer.text
    assert provider.got == []


def test_the_maximum_of_a_case_ends_its_calls_and_is_passed_by_the_last_one_only(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    with open_gate(tmp_path, loop, priced(provider), max_cost=2.0) as gate:
        assert [chat(gate).status_code for _ in range(4)] == [200, 200, 403, 403]
        assert "used up its $2.00" in chat(gate).text
        assert gate.gate.spent().cost_usd == pytest.approx(2.4)
        assert [e["cost_usd"] for e in gate.events(number=5)[:2]] == pytest.approx([1.2, 1.2])
    assert len(provider.got) == 2


def test_a_maximum_of_tokens_needs_no_price(tmp_path: Path, loop: Loop, provider: Provider) -> None:
    with open_gate(tmp_path, loop, behind(provider), max_tokens=1500) as gate:
        assert [chat(gate).status_code for _ in range(3)] == [200, 200, 403]
        assert "1500 tokens" in chat(gate).text


def test_a_model_without_a_price_is_refused_where_money_is_limited(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    with open_gate(tmp_path, loop, behind(provider), max_cost=1.0) as gate:
        answer = chat(gate)
        assert answer.status_code == 403
        assert "the price of gpt-5 is not known" in answer.text
        assert "price_in" in answer.text
    assert provider.got == []


def test_answers_that_hide_what_they_used_count_by_their_size(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    provider.says(text=json.dumps({"choices": [], "pad": "x" * 3000}))
    with open_gate(tmp_path, loop, priced(provider), max_cost=2.0) as gate:
        assert [chat(gate).status_code for _ in range(3)] == [200, 200, 403]
        assert gate.gate.spent().cost_usd is None
        # A stream of chat completions tells only if it is asked to.
        stream = chat(gate, stream=True)
        assert stream.status_code == 403
        assert "include_usage" in stream.text
        assert "background" in chat(gate, background=True).text


def test_what_anthropic_asks_for_its_cache_is_in_the_cost() -> None:
    account = Account(parse_model)
    config = parse_model("anthropic:claude-sonnet-4-5")
    used = Usage(input=1500, output=50, cached_input=1000)
    # Per million: 3 USD of input, 0.30 from the cache, 3.75 and 6 into it, 15 of output.
    real = (100 * 3 + 1000 * 0.3 + 300 * 3.75 + 100 * 6 + 50 * 15) / 1e6
    assert account.cost(config, used, "", (300, 100)) == pytest.approx(real)


def test_requests_at_once_are_limited_and_the_others_wait(
    tmp_path: Path, loop: Loop, mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_account, "AT_ONCE", 3)
    mlr_stub_provider.script = Reply(delay=0.1)
    config = settings(openai=mlr_stub_provider.base_url("openai"))
    with open_gate(tmp_path, loop, config) as gate, ThreadPoolExecutor(9) as pool:
        assert {*pool.map(lambda _: chat(gate).status_code, range(9))} == {200}
    assert mlr_stub_provider.max_in_flight == 3


def test_bodies_under_way_are_limited_in_all(
    opened: Opened, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_models, "LONGEST_BODIES", 2**20)
    assert chat(opened, pad="x" * 2**20).status_code == 429
    assert [chat(opened, pad="x" * 2**19).status_code for _ in range(3)] == [200] * 3


def test_a_ledger_does_not_grow_with_refusals(
    tmp_path: Path, loop: Loop, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_mlrbench.sandbox.gate.REFUSALS", 10)
    with open_gate(tmp_path, loop, behind(provider)) as gate:
        for _ in range(30):
            CLIENT.get(f"http://{gate.place}/{'x' * 1000}")
        assert chat(gate).status_code == 200
    events = gate.events(number=11)
    assert [event["status"] for event in events] == [401] * 10 + [200]
    assert gate.events("api-refused")[0]["number"] == 20
    assert max(len(line) for line in gate.record.splitlines()) < 1000


# What goes wrong


def test_a_provider_that_is_not_there_is_said_and_is_not_the_agents_fault(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    gone = Settings(["openai:* base_url=http://127.0.0.1:9/v1"])
    with open_gate(tmp_path, loop, gone) as gate:
        answer = chat(gate)
        assert answer.status_code == 502
        assert answer.json()["error"]["message"] == "mlrbench: openai cannot be reached."
        assert gate.gate.failing.startswith("openai cannot be reached: ")
        assert gate.gate.spent().attempts == 1
        assert gate.gate.spent().input == 0


def test_an_answer_that_breaks_off_breaks_off_for_the_agent_too(
    opened: Opened, provider: Provider
) -> None:
    async def broken(request: Any) -> Any:
        from aiohttp import web

        back = web.StreamResponse(headers={"content-length": "1000"})
        await back.prepare(request)
        await back.write(b"{")
        request.transport.abort()
        return back

    provider.answer = broken
    with pytest.raises(httpx.RemoteProtocolError):
        chat(opened)
    (event,) = opened.events()
    assert event["error"].startswith("truncated:")
    assert opened.gate.failing.startswith("openai broke off its answer")
    assert opened.gate.spent().input is None


def test_an_answer_that_the_agent_does_not_read_does_not_fill_the_memory(
    opened: Opened, provider: Provider
) -> None:
    written = 0

    async def endless(request: Any) -> Any:
        nonlocal written
        from aiohttp import web

        back = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await back.prepare(request)
        while written < 100 * 2**20:
            await back.write(b"data: " + b"x" * 2**16 + b"\n\n")
            written += 2**16
        return back

    provider.answer = endless
    with socket.create_connection(("127.0.0.1", opened.port)) as sock:
        body = json.dumps({**ASK, "stream": True}).encode()
        head = f"Authorization: Bearer {opened.gate.token}\r\nContent-Length: {len(body)}"
        line = b"POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
        sock.sendall(line + head.encode() + b"\r\n\r\n" + body)
        sock.recv(1000)
        before = -1
        while written != before:
            before = written
            time.sleep(0.2)
        assert 0 < written < 50 * 2**20


def test_a_long_body_arrives_as_it_was_sent_though_warnings_are_errors(
    opened: Opened, provider: Provider
) -> None:
    pad = "x" * 3 * 2**20
    assert chat(opened, pad=pad).status_code == 200
    (got,) = provider.got
    assert json.loads(got.body)["pad"] == pad
    assert got.headers["content-length"] == str(len(got.body))
    assert got.headers["content-type"] == "application/json"
    assert not {"transfer-encoding", "content-disposition"} & {*got.headers}
