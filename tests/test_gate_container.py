"""An agent in a real container reaches the models through the gate, and nothing else at all."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from docker_bench import Bench
from gate_builders import KEY, Echo, Loop, Opened, Provider, behind, open_gate

from pytest_mlrbench.sandbox.gate_addresses import Host

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine", "gate_fixtures"]

ASK = """
import json, os, urllib.error, urllib.request

def ask(base=os.environ["OPENAI_BASE_URL"], token=os.environ["OPENAI_API_KEY"]):
    body = json.dumps({"model": "gpt-5", "messages": []}).encode()
    headers = {"authorization": "Bearer " + token, "content-type": "application/json"}
    request = urllib.request.Request(base + "/chat/completions", body, headers)
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code
"""
#: Tries all ways out it is given; prints what became of each.
TRY = """
import json, os, socket, sys

def tried(way):
    try:
        return str(way())
    except OSError as error:
        return type(error).__name__

def tcp(host, port):
    with socket.create_connection((host, port), timeout=2):
        return "CONNECTED"

def udp(host):
    query = bytes.fromhex("abcd01000001000000000000076578616d706c65036f72670000010001")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(2)
        sock.sendto(query, (host, 53))
        return "ANSWERED" if sock.recv(100) else "?"

def raw():
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)

ways = json.loads(sys.argv[1])
found = {f"{host} {port}": tried(lambda: tcp(host, port)) for host, port in ways}
found |= {f"udp {host}": tried(lambda: udp(host)) for host in ("8.8.8.8", "127.0.0.11", "::1")}
for name in ("example.org", "host.docker.internal", "gateway.docker.internal"):
    found[f"dns {name}"] = tried(lambda: socket.getaddrinfo(name, 443))
found["raw"] = tried(raw)
interfaces = sorted(name for _, name in socket.if_nameindex())
routes = open("/proc/net/route").read().splitlines()[1:]
sockets = [line.split()[-1] for line in open("/proc/net/unix").read().splitlines()[1:]]
print("FOUND", json.dumps({"found": found, "interfaces": interfaces, "routes": routes,
    "sockets": [name for name in sockets if name[:1] in "@/"],
    "gate": os.path.exists("/gate"), "docker": os.path.exists("/var/run/docker.sock")}))
"""


@contextmanager
def case(
    boxes: Bench, loop: Loop, config: Any, name: str = "gate", **policy: Any
) -> Iterator[Opened]:
    """A gate at a socket in a folder of its own, as a case has one."""
    folder = boxes.folder / name
    folder.mkdir()
    with open_gate(boxes.folder, loop, config, folder / "gate.sock", **policy) as gate:
        yield gate


def say(boxes: Bench, gate: Opened, code: str, *words: str, network: str = "models") -> str:
    """Return what Python code prints in a container that has *gate*."""
    return boxes.say(
        "",
        command=["python3", "-c", code, *words],
        environment=gate.variables,
        network=network,
        gate=gate.gate.path,
    )


def own_addresses() -> list[str]:
    """All addresses of IPv4 that this machine has, the engine's gateway among them."""
    cards = psutil.net_if_addrs().values()
    return [it.address for card in cards for it in card if it.family == socket.AF_INET]


def test_a_model_is_reached_and_the_key_is_nowhere(
    boxes: Bench, loop: Loop, provider: Provider
) -> None:
    look = """
import os, pathlib
for path in ("/proc/self/environ", "/proc/1/environ", "/proc/1/cmdline"):
    try:
        print(pathlib.Path(path).read_bytes())
    except OSError as error:
        print(error)
print(os.environ)
"""
    with case(boxes, loop, behind(provider)) as gate:
        said = say(boxes, gate, ASK + look + "print('STATUS', ask())")
        (event,) = gate.events()
    assert "STATUS 200" in said
    assert KEY not in said
    assert gate.gate.token in said
    assert (event["provider"], event["model"], event["status"]) == ("openai", "gpt-5", 200)
    assert provider.got[0].headers["authorization"] == f"Bearer {KEY}"


def test_nothing_else_is_reached_by_any_way(boxes: Bench, loop: Loop, provider: Provider) -> None:
    listener = Echo("0.0.0.0")
    own = [*own_addresses(), "172.17.0.1"]
    ways = [
        *((host, listener.port) for host in own),
        *((host, provider.port) for host in ("127.0.0.1", "0.0.0.0", "localhost")),
        *(("1.1.1.1", 443), ("8.8.8.8", 53), ("169.254.169.254", 80), ("172.17.0.2", 8080)),
        *(("2606:4700::1111", 443), ("fd00:ec2::254", 80), ("::1", 8080), ("fe80::1", 80)),
        *(("::ffff:8.8.8.8", 53), ("127.0.0.1", 22), ("127.0.0.1", 2375)),
    ]
    for host in own_addresses():  # they are there, for those who may
        with socket.create_connection((host, listener.port), timeout=5) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"
    before = listener.visitors
    with case(boxes, loop, behind(provider)) as gate:
        said = say(boxes, gate, TRY, json.dumps([*ways, ("127.0.0.1", 8080)]))
    listener.close()
    shown = json.loads(said.partition("FOUND ")[2])
    found = shown["found"]
    assert found.pop("127.0.0.1 8080") == "CONNECTED"
    assert {what for what in found.values() if what in ("CONNECTED", "ANSWERED")} == set()
    assert all("Error" in what or "error" in what for what in found.values()), found
    assert len(found) >= len(ways)
    assert shown["interfaces"] == ["lo"]
    assert shown["routes"] == []
    assert shown["sockets"] == []
    assert not shown["gate"]
    assert not shown["docker"]
    assert listener.visitors == before
    assert provider.got == []


def test_the_token_of_another_case_opens_nothing_and_its_container_is_out_of_reach(
    boxes: Bench, loop: Loop, provider: Provider
) -> None:
    with (
        case(boxes, loop, behind(provider), "mine") as mine,
        case(boxes, loop, behind(provider), "other") as other,
    ):
        # The other case is under way: its token is valid, there.
        waiting = ASK + "import time; print('OTHER', ask()); time.sleep(6)"
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(say, boxes, other, waiting)
            other.events()
            stealing = ASK + f"print('STOLEN', ask(token={other.gate.token!r}), ask())"
            said = say(boxes, mine, stealing)
        words = running.result()
    assert "OTHER 200" in words
    assert "STOLEN 401 200" in said
    assert [event["status"] for event in mine.events(number=2)] == [401, 200]
    assert [event["status"] for event in other.events()] == [200]


def test_a_host_that_is_allowed_is_reached_through_the_proxy_and_no_other(
    boxes: Bench, loop: Loop, provider: Provider
) -> None:
    code = """
import base64, http.client, os, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTPS_PROXY"])
secret = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
for host in sys.argv[1:]:
    client = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
    name, _, port = host.rpartition(":")
    client.set_tunnel(name, int(port), {"Proxy-Authorization": "Basic " + secret})
    try:
        client.request("GET", "/hello")
        print(host, client.getresponse().status)
    except OSError as error:
        print(host, error)
"""
    place = f"127.0.0.1:{provider.port}"
    allowed = [Host.parse(place)]
    with case(boxes, loop, behind(provider), hosts=allowed) as gate:
        said = say(boxes, gate, code, place, "169.254.169.254:80", "example.org:443")
        events = gate.events("connect-host", 3)
    assert f"{place} 200" in said
    assert said.count("403") == 2
    assert sorted((event["host"], bool(event["error"])) for event in events) == [
        ("127.0.0.1", False),
        ("169.254.169.254", True),
        ("example.org", True),
    ]
    assert [got.target for got in provider.got] == ["/hello"]


def test_without_a_gate_there_is_no_network_at_all(boxes: Bench) -> None:
    said = boxes.say("", command=["python3", "-c", TRY, json.dumps([("127.0.0.1", 8080)])])
    shown = json.loads(said.partition("FOUND ")[2])
    assert shown["interfaces"] == ["lo"]
    assert "CONNECTED" not in str(shown)


def test_a_stream_comes_through_piece_by_piece(
    boxes: Bench, loop: Loop, provider: Provider, tmp_path: Path
) -> None:
    provider.streams(b"data: 1\n\n", b"data: 2\n\n", pause=1.0)
    code = """
import http.client, json, os, time
client = http.client.HTTPConnection("127.0.0.1", 8080, timeout=20)
body = json.dumps({"model": "gpt-5", "stream": True})
headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
client.request("POST", "/openai/v1/chat/completions", body, headers)
answer, start = client.getresponse(), time.time()
answer.read1(100)
first = time.time() - start
answer.read()
print("PIECES", first < 0.7, time.time() - start > 0.9)
"""
    with case(boxes, loop, behind(provider)) as gate:
        assert "PIECES True True" in say(boxes, gate, code)
