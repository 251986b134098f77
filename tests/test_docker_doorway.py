"""What containers reach: the gate's port and nothing else, or a network of their own."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker_bench import Bench, names

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine"]
ASK = "python3 -c \"import socket; s = socket.create_connection(('{}', {}), 3); print(s.recv(99))\""


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A socket at which everybody is told ``gate``."""
    place = tmp_path / "gate" / "gate.sock"
    place.parent.mkdir(mode=0o700)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place))
    place.chmod(0o666)
    listening.listen()

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"gate")

    thread = threading.Thread(target=serve)
    thread.start()
    yield place
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def test_the_gate_is_reached_and_nothing_else(boxes: Bench, engine: Any, gate: Path) -> None:
    bridge = engine.networks.get("bridge").attrs["IPAM"]["Config"] or [{}]
    gateway = bridge[0].get("Gateway", "172.17.0.1")
    script = [ASK.format("127.0.0.1", 8080)]
    script += [ASK.format(*there) for there in (("1.1.1.1", 53), (gateway, 22), ("::1", 8080))]
    script += [ASK.format(name, 80) for name in ("example.com", "host.docker.internal")]
    script += [ASK.format("169.254.169.254", 80), "ls -d /gate; ls /sys/class/net"]
    said = boxes.say("; ".join(script), network="models", gate=gate)
    assert said.startswith("b'gate'\n")
    assert said.count("b'gate'") == 1
    assert said.count("Traceback") == 6
    assert "No such file or directory" in said
    assert said.endswith("\nlo\n")


def test_without_a_gate_there_is_nothing(boxes: Bench) -> None:
    said = boxes.say(f"{ASK.format('127.0.0.1', 8080)}; ls /sys/class/net", network="models")
    assert "ConnectionRefusedError" in said
    assert said.endswith("\nlo\n")


def test_the_doorway_cannot_be_touched(boxes: Bench, gate: Path) -> None:
    """It is another container, of another account: not seen, not ended, its port not taken."""
    said = boxes.say("cat /proc/[0-9]*/comm; kill -9 -1; echo on", network="models", gate=gate)
    assert "sh\n" in said
    assert "socat" not in said
    said = boxes.say(
        "python3 -c \"import socket; socket.create_server(('127.0.0.1', 8080))\" 2>&1 | tail -n 1;"
        + ASK.format("127.0.0.1", 8080),
        network="models",
        gate=gate,
    )
    assert "Address already in use" in said
    assert said.endswith("b'gate'\n")


def test_many_connections_at_once(boxes: Bench, gate: Path) -> None:
    script = (
        "import socket\n"
        "for _ in range(5):\n"
        "    all = [socket.create_connection(('127.0.0.1', 8080), 5) for _ in range(40)]\n"
        "    assert {s.recv(9) for s in all} == {b'gate'}, all\n"
        "print('well')"
    )
    assert boxes.say(f'python3 -c "{script}"', network="models", gate=gate) == "well\n"


@pytest.mark.skipif(os.getuid() != 0, reason="another owner can be given by root only")
def test_the_socket_is_for_nobody_else_on_this_machine(boxes: Bench, gate: Path) -> None:
    boxes.say("true", network="models", gate=gate)
    status = gate.parent.stat()
    assert status.st_uid not in (0, 1000)
    assert status.st_mode & 0o077 == 0


def test_a_network_of_its_own(boxes: Bench, engine: Any, gate: Path) -> None:
    said = boxes.say(
        f"{ASK.format('127.0.0.1', 8080)}; ls /sys/class/net", network="full", gate=gate
    )
    assert said.startswith("b'gate'\n")
    assert "eth0" in said
    assert names(engine, boxes.run_id) == []


def test_cases_do_not_reach_each_other(boxes: Bench, engine: Any) -> None:
    """Also not where each has a way out."""
    import asyncio

    sandbox = boxes.sandbox()
    one = boxes.job(
        "hostname -i > address; exec python3 -m http.server 80", seconds=15, network="full"
    )
    wait = "while ! [ -s /data/one/address ]; do sleep 0.1; done; sleep 1; "
    other = boxes.job(
        f"{wait} {ASK.format('$(cat /data/one/address)', 80)}",
        network="full",
        data={"one": one.workspace},
    )

    async def together() -> None:
        task = asyncio.ensure_future(sandbox.run(one))
        await sandbox.run(other)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(together())
    assert "imeout" in other.log.read_text() or "unreachable" in other.log.read_text()
