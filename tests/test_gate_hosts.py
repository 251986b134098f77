"""Hosts that the user allows are reached through the gate, and no others."""

from __future__ import annotations

import base64
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gate_builders import Echo, Loop, Opened, Provider, behind, chat, open_gate

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox import gate_hosts
from pytest_mlrbench.sandbox.gate_addresses import Host, is_outside

pytest_plugins = ["gate_fixtures"]


@pytest.fixture
def echo() -> Iterator[Echo]:
    found = Echo()
    yield found
    found.close()


def hosts(*names: str) -> list[Host]:
    return [Host.parse(name) for name in names]


def connect(gate: Opened, target: str, *, token: str = "", user: str = "agent") -> socket.socket:
    """Send CONNECT; the answer's first line is still to be read."""
    sock = socket.create_connection(("127.0.0.1", gate.port), timeout=5)
    secret = base64.b64encode(f"{user}:{token or gate.gate.token}".encode()).decode()
    sock.sendall(
        f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        f"Proxy-Authorization: Basic {secret}\r\n\r\n".encode()
    )
    return sock


def status(sock: socket.socket) -> int:
    with sock:
        return int(sock.recv(65536).split(b" ")[1])


def names(monkeypatch: pytest.MonkeyPatch, **addresses: list[str]) -> list[str]:
    """Have names lead where the test wants; return the list of what is looked up."""
    asked: list[str] = []

    async def look_up(name: str, port: int) -> list[str]:
        asked.append(name)
        found = addresses.get(name.replace(".", "_").replace("-", "_"))
        if found is None:
            raise OSError("no such name")
        return found

    monkeypatch.setattr(gate_hosts.HostProxy.__init__, "__defaults__", (look_up,))
    return asked


def test_a_tunnel_carries_bytes_both_ways_and_is_recorded(
    tmp_path: Path, loop: Loop, provider: Provider, echo: Echo
) -> None:
    allowed = hosts(f"127.0.0.1:{echo.port}")
    with open_gate(tmp_path, loop, behind(provider), hosts=allowed) as gate:
        sock = connect(gate, f"127.0.0.1:{echo.port}")
        assert sock.recv(1000) == b"HTTP/1.1 200 Connection established\r\n\r\n"
        sent = b"x" * 3_000_000
        threading.Thread(target=sock.sendall, args=(sent,)).start()
        came = 0
        while came < len(sent):
            came += len(sock.recv(65536))
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(10) == b""
        sock.close()
        (event,) = gate.events("connect-host")
    assert (event["host"], event["port"], event["address"]) == (
        "127.0.0.1",
        echo.port,
        "127.0.0.1",
    )
    assert (event["sent"], event["received"], event["error"]) == (len(sent), len(sent), "")
    assert gate.gate.token not in gate.record


def test_programs_find_the_proxy_by_the_variables_they_know(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    allowed = hosts(f"127.0.0.1:{provider.port}")
    code = """
import os, sys, http.client, urllib.request
from urllib.parse import urlsplit
import base64
proxy = urlsplit(urllib.request.getproxies()["https"])
client = http.client.HTTPConnection(proxy.hostname, proxy.port)
secret = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
client.set_tunnel(sys.argv[1], int(sys.argv[2]), {"Proxy-Authorization": f"Basic {secret}"})
client.request("GET", "/hello")
print(client.getresponse().status)
"""
    with open_gate(tmp_path, loop, behind(provider), hosts=allowed) as gate:
        command = [sys.executable, "-c", code, "127.0.0.1", str(provider.port)]
        done = subprocess.run(
            command, env=gate.variables, capture_output=True, text=True, timeout=20, check=False
        )
    assert done.stdout == "200\n", done.stderr
    assert gate.variables["no_proxy"] == "127.0.0.1,localhost"
    assert provider.got[0].target == "/hello"


def test_without_hosts_there_is_no_proxy(opened: Opened, echo: Echo) -> None:
    assert not [name for name in opened.variables if name.lower().endswith(("p_proxy", "s_proxy"))]
    assert status(connect(opened, f"127.0.0.1:{echo.port}")) == 403
    assert echo.visitors == 0


@pytest.mark.parametrize(
    "target",
    [
        "127.0.0.1:{other}",
        "127.0.0.2:{port}",
        "localhost:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "0x7f000001:{port}",
        "0177.0.0.1:{port}",
        "[::1]:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "0.0.0.0:{port}",
        "127.0.0.1:{port}@evil.example:443",
        "evil.example:443",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0{port}0",
        "127.0.0.1%00:{port}",
        "http://127.0.0.1:{port}/",
        "127.0.0.1:{port} x",
        "/",
    ],
)
def test_any_other_spelling_or_port_is_refused(
    tmp_path: Path, loop: Loop, provider: Provider, echo: Echo, target: str
) -> None:
    allowed = hosts(f"127.0.0.1:{echo.port}")
    with open_gate(tmp_path, loop, behind(provider), hosts=allowed) as gate:
        asked = target.format(port=echo.port, other=provider.port)
        assert status(connect(gate, asked)) in (400, 403)
    assert echo.visitors == 0
    assert provider.got == []


def test_a_stolen_or_missing_token_opens_no_tunnel(
    tmp_path: Path, loop: Loop, provider: Provider, echo: Echo
) -> None:
    target = f"127.0.0.1:{echo.port}"
    with (
        open_gate(tmp_path, loop, behind(provider), hosts=hosts(target)) as gate,
        open_gate(tmp_path, loop, behind(provider), hosts=hosts(target)) as other,
    ):
        assert status(connect(gate, target, token=other.gate.token)) == 407
        assert status(connect(gate, target, token="x")) == 407
        assert status(connect(gate, target, user="root")) == 407
        bare = f"CONNECT {target} HTTP/1.1\r\n\r\n".encode()
        assert gate.raw(bare).startswith(b"HTTP/1.1 407")
        odd = f"CONNECT {target} HTTP/1.1\r\nProxy-Authorization: Basic ===\r\n\r\n".encode()
        assert gate.raw(odd).startswith(b"HTTP/1.1 407")
    assert echo.visitors == 0


INSIDE = [
    "127.0.0.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.17.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "no address",
]


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_are_known(address: str) -> None:
    assert not is_outside(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "140.82.121.4", "2606:4700::1111"])
def test_addresses_outside_are_known(address: str) -> None:
    assert is_outside(address)


def test_a_name_that_leads_inside_is_refused_unless_its_address_is_named_too(
    tmp_path: Path,
    loop: Loop,
    provider: Provider,
    echo: Echo,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names(monkeypatch, mirror_example=["127.0.0.1"], metadata_example=["169.254.169.254"])
    some = [f"mirror.example:{echo.port}", "metadata.example"]
    with open_gate(tmp_path, loop, behind(provider), hosts=hosts(*some)) as gate:
        sock = connect(gate, f"mirror.example:{echo.port}")
        words = sock.recv(65536).decode()
        sock.close()
        assert words.startswith("HTTP/1.1 403")
        assert "name the address too with --mlr-allow-host" in words
        assert status(connect(gate, "metadata.example:80")) == 403
    assert echo.visitors == 0
    both = [*some, f"127.0.0.1:{echo.port}"]
    with open_gate(tmp_path, loop, behind(provider), hosts=hosts(*both)) as gate:
        assert status(connect(gate, f"mirror.example:{echo.port}")) == 200
        assert status(connect(gate, f"Mirror.Example.:{echo.port}")) == 200
    (event, _) = gate.events("connect-host", 2)
    assert (event["host"], event["address"]) == ("mirror.example", "127.0.0.1")


def test_a_name_is_looked_up_once_so_it_cannot_lead_elsewhere_afterwards(
    tmp_path: Path,
    loop: Loop,
    provider: Provider,
    echo: Echo,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = names(monkeypatch, rebinding_example=["10.0.0.1", "127.0.0.1"])
    real = socket.getaddrinfo
    looked: list[Any] = []

    def watched(host: Any, *args: Any, **kwargs: Any) -> Any:
        looked.append(host)
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", watched)
    some = [f"rebinding.example:{echo.port}", f"127.0.0.1:{echo.port}"]
    with open_gate(tmp_path, loop, behind(provider), hosts=hosts(*some)) as gate:
        assert status(connect(gate, f"rebinding.example:{echo.port}")) == 200
    assert asked == ["rebinding.example"]
    assert "rebinding.example" not in looked
    assert gate.events("connect-host")[0]["address"] == "127.0.0.1"


def test_a_name_without_an_address_and_a_port_without_a_listener_are_said(
    tmp_path: Path, loop: Loop, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    names(monkeypatch)
    some = hosts("gone.example", "127.0.0.1:9")
    with open_gate(tmp_path, loop, behind(provider), hosts=some) as gate:
        assert status(connect(gate, "gone.example:443")) == 502
        assert status(connect(gate, "127.0.0.1:9")) == 502
        errors = [event["error"] for event in gate.events("connect-host", 2)]
    assert errors == [
        "dns: gone.example has no address here.",
        "connection: 127.0.0.1:9 cannot be reached.",
    ]


def test_plain_http_through_the_proxy_is_refused_with_a_sentence(
    tmp_path: Path, loop: Loop, provider: Provider, echo: Echo
) -> None:
    with open_gate(tmp_path, loop, behind(provider), hosts=hosts("127.0.0.1")) as gate:
        secret = base64.b64encode(f"agent:{gate.gate.token}".encode())
        came = gate.raw(
            b"GET http://127.0.0.1/simple HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Proxy-Authorization: Basic " + secret + b"\r\n\r\n"
        )
    assert b"403" in came.partition(b"\r\n")[0]
    assert b"use https" in came


def test_a_tunnel_ends_with_the_deadline_and_with_the_case(
    tmp_path: Path, loop: Loop, provider: Provider, echo: Echo
) -> None:
    target = f"127.0.0.1:{echo.port}"
    soon = time.time() + 0.5
    with open_gate(tmp_path, loop, behind(provider), hosts=hosts(target), deadline=soon) as gate:
        with connect(gate, target) as sock:
            assert sock.recv(1000).startswith(b"HTTP/1.1 200")
            assert sock.recv(1000) == b""
        assert time.time() >= soon
        assert gate.events("connect-host")[0]["error"].startswith("deadline:")
        assert status(connect(gate, target)) == 403
    with open_gate(tmp_path, loop, behind(provider), hosts=hosts(target)) as gate:
        sock = connect(gate, target)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")
    with sock:
        assert sock.recv(1000) == b""
    assert gate.events("connect-host")[0]["error"].startswith("cut:")


def test_a_tunnel_is_no_way_to_the_models_and_leaves_the_gate_working(
    tmp_path: Path, loop: Loop, provider: Provider, echo: Echo
) -> None:
    target = f"127.0.0.1:{echo.port}"
    with open_gate(tmp_path, loop, behind(provider), hosts=hosts(target)) as gate:
        for begun in (b"CONNECT x", b"CONNECT x:1 HTTP/1.1\r\n" + b"a" * 70_000):
            sock = socket.create_connection(("127.0.0.1", gate.port))
            sock.sendall(begun)
            sock.close()
        assert chat(gate).status_code == 200
        # On a connection that has served a request, CONNECT is none that passes.
        one = (
            b"GET /openai/v1/models HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n\r\n"
            % gate.gate.token.encode()
        )
        come = gate.raw(one + f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert come.startswith(b"HTTP/1.1 200")
        assert b"Connection established" not in come
    assert echo.visitors == 0


@pytest.mark.parametrize(
    ("text", "name", "port", "fits"),
    [
        ("pypi.org", "pypi.org", 443, True),
        ("pypi.org", "pypi.org", 80, True),
        ("pypi.org", "pypi.org", 22, False),
        ("pypi.org", "www.pypi.org", 443, False),
        ("PyPI.org.", "pypi.org", 443, True),
        ("pypi.org:8443", "pypi.org", 8443, True),
        ("pypi.org:8443", "pypi.org", 443, False),
        ("*.pypi.org", "files.pypi.org", 443, True),
        ("*.pypi.org", "a.b.pypi.org", 443, True),
        ("*.pypi.org", "pypi.org", 443, False),
        ("*.pypi.org", "evilpypi.org", 443, False),
        ("10.0.0.1", "10.0.0.1", 443, True),
        ("[::1]:81", "::1", 81, True),
    ],
)
def test_hosts_are_what_they_are_called(text: str, name: str, port: int, fits: bool) -> None:
    assert Host.parse(text).fits(name, port) is fits


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "*.", "a b", "http://a.b", "a.b/c", "a.b:0", "a.b:99999", "a.b:x"),
        *("*.10.0.0.1", "a..b", "-a.b", "a.*.b", "[::1", "user@a.b", "[a.b]", "a.b:443:80"),
    ],
)
def test_what_is_no_host_is_said(text: str) -> None:
    with pytest.raises(InputError, match="names no host: write HOST"):
        Host.parse(text)
