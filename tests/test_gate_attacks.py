"""Bytes that no library would send: smuggling, slow heads, floods of connections."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from gate_bench import measure
from gate_builders import ASK, Loop, Opened, Provider, behind, chat, open_gate

from pytest_mlrbench.sandbox import gate_front

pytest_plugins = ["gate_fixtures"]

BODY = json.dumps(ASK).encode()


def head(gate: Opened, *lines: str, target: str = "/openai/v1/chat/completions") -> bytes:
    start = (f"POST {target} HTTP/1.1", "Host: x", f"Authorization: Bearer {gate.gate.token}")
    return "\r\n".join([*start, *lines, "", ""]).encode()


def hidden(gate: Opened) -> bytes:
    """A request that is to get through inside of another one's body."""
    return b"GET /openai/v1/files HTTP/1.1\r\nHost: x\r\nX: " + gate.gate.token.encode()


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Content-Length: {n}"),
        ("Content-Length: {n}, 5",),
        ("Content-Length: +{n}",),
        ("Content-Length: -1",),
        ("Content-Length: 0x10",),
        ("Content-Length : {n}",),
        ("Content-Length: {n}", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: {n}"),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding:\x0bchunked", "Content-Length: {n}"),
        (" Content-Length: {n}",),
        ("X: y\rContent-Length: {n}",),
        ("X\x00: y", "Content-Length: {n}"),
    ],
)
def test_lengths_that_contradict_each_other_are_refused(
    opened: Opened, provider: Provider, lines: tuple[str, ...]
) -> None:
    n = len(BODY)
    came = opened.raw(head(opened, *(line.format(n=n) for line in lines)) + BODY + hidden(opened))
    assert came.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400", b"HTTP/1.1 501")) or came == b""
    assert provider.got == []


@pytest.mark.parametrize(
    "chunks",
    [
        b"%x\n%s\n0\n\n",
        b"-%x\r\n%s\r\n0\r\n\r\n",
        b"0x%x\r\n%s\r\n0\r\n\r\n",
        b"fffffffffffffffff%x\r\n%s\r\n0\r\n\r\n",
        b"%x ;\x00\r\n%s\r\n0\r\n\r\n",
    ],
)
def test_chunks_that_are_none_are_not_sent_on(
    opened: Opened, provider: Provider, chunks: bytes
) -> None:
    opened.raw(head(opened, "Transfer-Encoding: chunked") + chunks % (len(BODY), BODY))
    assert [got.body for got in provider.got] in ([], [BODY])
    assert chat(opened).status_code == 200


def test_two_requests_in_one_go_are_two_requests(opened: Opened, provider: Provider) -> None:
    one = head(opened, f"Content-Length: {len(BODY)}") + BODY
    other = head(opened, "Content-Length: 0", target="/openai/v1/files")
    came = opened.raw(one + other)
    assert came.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 404" in came
    assert [got.body for got in provider.got] == [BODY]


def test_the_trailers_of_a_body_do_not_become_headers(opened: Opened, provider: Provider) -> None:
    chunks = b"%x\r\n%s\r\n0\r\nX-Goog-FieldMask: a\r\nContent-Type: x\r\n\r\n" % (len(BODY), BODY)
    came = opened.raw(head(opened, "Transfer-Encoding: chunked") + chunks)
    assert came.startswith(b"HTTP/1.1 200")
    assert "x-goog-fieldmask" not in provider.got[0].headers


def test_a_header_with_a_line_end_in_it_does_not_add_one(
    opened: Opened, provider: Provider
) -> None:
    opened.raw(head(opened, "User-Agent: a\r\n X-Evil: b", f"Content-Length: {len(BODY)}") + BODY)
    assert all("x-evil" not in got.headers for got in provider.got)


def test_an_upgrade_is_no_way_around_the_rules(opened: Opened, provider: Provider) -> None:
    came = opened.raw(
        head(opened, "Upgrade: websocket", "Connection: Upgrade", f"Content-Length: {len(BODY)}")
        + BODY
        + hidden(opened)
    )
    assert b"101" not in came.partition(b"\r\n")[0]
    assert all(got.body == BODY and "upgrade" not in got.headers for got in provider.got)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
        b"\x00" * 1000,
        b"C",
        b"CONNECT",
    ],
)
def test_what_is_no_request_harms_nobody(
    opened: Opened, provider: Provider, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    opened.raw(data)
    assert provider.got == []
    assert chat(opened).status_code == 200
    assert caplog.records == []


def test_more_connections_than_allowed_are_closed_and_others_still_work(
    tmp_path: Path, loop: Loop, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_front, "CONNECTIONS", 20)
    monkeypatch.setattr(gate_front, "_BEGINS", 1.0)
    with open_gate(tmp_path, loop, behind(provider)) as gate:
        place = ("127.0.0.1", gate.port)
        many = [socket.create_connection(place) for _ in range(40)]
        time.sleep(0.1)
        closed = 0
        for one in many:
            one.settimeout(0.01)
            try:
                closed += one.recv(1) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                closed += 1
        assert closed == 20
        time.sleep(1.2)  # those that say nothing are closed too
        assert chat(gate).status_code == 200
        for one in many:
            one.close()


@pytest.mark.slow
def test_a_long_stream_takes_no_memory() -> None:
    found = measure(number=20)
    assert found["memory after it, MiB"] - found["memory before the stream, MiB"] < 20
