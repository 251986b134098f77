"""What the gate costs: seconds for each request, processor time, memory for a long stream.

``python tests/gate_bench.py`` prints it. Client, gate and provider are a process each.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

from aiohttp import web
from gate_builders import CHAT

from pytest_mlrbench.models.settings import Settings
from pytest_mlrbench.sandbox.gate import Gate, Policy
from pytest_mlrbench.sandbox.ledger import Ledger

ASK = {"model": "gpt-5", "messages": [{"role": "user", "content": "word " * 2000}]}
MEGABYTES = 100


async def serve_provider() -> None:
    """Answer chats, and streams of 100 MB in events of 2 KB."""
    event = b"data: " + json.dumps({"choices": [{"delta": {"content": "x" * 2000}}]}).encode()
    last = b'data: {"usage": {"prompt_tokens": 5, "completion_tokens": 6}}\n\n'

    async def answer(request: web.Request) -> web.StreamResponse:
        if not (await request.json()).get("stream"):
            return web.json_response(CHAT)
        back = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await back.prepare(request)
        piece = (event + b"\n\n") * 32
        for _ in range(MEGABYTES * 10**6 // len(piece)):
            await back.write(piece)
        await back.write(last)
        return back

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def serve_gate(port: str, folder: str) -> None:
    """Be a gate; say what it has used at each line of input."""
    line = f"openai:* base_url=http://127.0.0.1:{port}/v1 price_in=1 price_out=1"
    policy = Policy(deadline=time.time() + 600, config=Settings([line]).config)
    place = Path(folder)
    async with Gate(policy, Ledger(place / "ledger.jsonl"), place / "gate.sock") as gate:
        print(gate.token, flush=True)
        while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            used = resource.getrusage(resource.RUSAGE_SELF)
            print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, flush=True)


class Child:
    """A process of this file."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self.line()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def used(self) -> tuple[float, float]:
        """Seconds of processor and most MiB of memory up to now."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seconds, mib = self.line().split()
        return float(seconds), float(mib)

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class _Unix(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("127.0.0.1:8080", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def ask(connection: HTTPConnection, path: str, token: str, **more: object) -> float:
    """Return the seconds that an answer took."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    start = time.perf_counter()
    connection.request("POST", path, json.dumps({**ASK, **more}), headers)
    answer = connection.getresponse()
    while answer.read(2**16):
        pass
    assert answer.status == 200, answer.status
    return time.perf_counter() - start


def measure(number: int = 1000) -> dict[str, float]:
    """Return what was measured: milliseconds, seconds, MiB."""
    os.environ.setdefault("OPENAI_API_KEY", "sk-real-0123456789abcdef")
    with tempfile.TemporaryDirectory() as folder:
        provider = Child("provider")
        gate = Child("gate", provider.first, folder)
        direct = HTTPConnection("127.0.0.1", int(provider.first))
        through = _Unix(f"{folder}/gate.sock")
        plain, inside = "/v1/chat/completions", "/openai/v1/chat/completions"
        for _ in range(50):
            ask(direct, plain, "x")
            ask(through, inside, gate.first)
        before, memory = gate.used()
        pairs = [(ask(direct, plain, "x"), ask(through, inside, gate.first)) for _ in range(number)]
        after, _ = gate.used()
        alone, stream = ask(direct, plain, "x", stream=True), 0.0
        stream = ask(through, inside, gate.first, stream=True)
        streamed, most = gate.used()
        direct.close()
        through.close()
        gate.end()
        provider.end()
    return {
        "direct, median ms": statistics.median(one for one, _ in pairs) * 1000,
        "through the gate, median ms": statistics.median(two for _, two in pairs) * 1000,
        "added, median ms": statistics.median(two - one for one, two in pairs) * 1000,
        "processor s for 1000 requests": (after - before) / number * 1000,
        f"stream of {MEGABYTES} MB direct, s": alone,
        f"stream of {MEGABYTES} MB through the gate, s": stream,
        "processor s for that stream": streamed - after,
        "memory before the stream, MiB": memory,
        "memory after it, MiB": most,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["provider"]:
        asyncio.run(serve_provider())
    elif sys.argv[1:2] == ["gate"]:
        asyncio.run(serve_gate(*sys.argv[2:]))
    else:
        for what, value in measure().items():
            print(f"{what:40} {value:8.2f}")
