"""A gate that is open while a test runs, and a provider behind it that shows all it was sent."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from aiohttp import web

from pytest_mlrbench.models.settings import Settings
from pytest_mlrbench.sandbox.gate import Gate, Policy
from pytest_mlrbench.sandbox.ledger import Ledger, read

T = TypeVar("T")
#: One for all tests: to make one takes longer than to ask.
CLIENT = httpx.Client(trust_env=False, verify=False, timeout=20)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

KEY = "sk-real-0123456789abcdef0123456789abcdef"

CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
}
ASK = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]}


class Loop:
    """An event loop in a thread of its own."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


@dataclass
class Got:
    """A request as the provider got it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Provider:
    """A provider on this machine: remembers what it is sent, and does as told."""

    def __init__(self, loop: Loop) -> None:
        self.got: list[Got] = []
        self.answer: Handler = self.chat
        self._loop = loop

    async def chat(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(CHAT)

    def streams(self, *pieces: bytes, pause: float = 0.0) -> None:
        """Answer with server-sent events, in just these pieces."""

        async def answer(request: web.Request) -> web.StreamResponse:
            back = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await back.prepare(request)
            for piece in pieces:
                await back.write(piece)
                await asyncio.sleep(pause)
            return back

        self.answer = answer

    def says(self, **kwargs: Any) -> None:
        """Answer with this response."""

        async def answer(request: web.Request) -> web.StreamResponse:
            return web.Response(**kwargs)

        self.answer = answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.got.append(Got(request.method, request.raw_path, headers, await request.read()))
        return await self.answer(request)

    async def start(self) -> int:
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self.url = f"http://127.0.0.1:{self.port}"
        return self.port

    async def stop(self) -> None:
        await self._runner.cleanup()


class Echo:
    """A service of this machine that repeats what it is told."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._listening = socket.create_server((address, 0))
        self.port = int(self._listening.getsockname()[1])
        self.visitors = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                visitor, _ = self._listening.accept()
            except OSError:
                return
            self.visitors += 1
            threading.Thread(target=self._echo, args=(visitor,), daemon=True).start()

    def _echo(self, visitor: socket.socket) -> None:
        with visitor:
            while data := visitor.recv(65536):
                visitor.sendall(data)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


class Opened:
    """An open gate, seen from the agent's side."""

    def __init__(self, gate: Gate, ledger: Path, loop: Loop) -> None:
        self.gate = gate
        self.loop = loop
        self.variables = gate.environment()
        self.place = self.variables["OPENAI_BASE_URL"].split("/")[2]
        self.port = int(self.place.rpartition(":")[2])
        self._ledger = ledger

    def events(self, kind: str = "api", number: int = 1) -> list[dict[str, Any]]:
        """Wait until there are so many events of a kind, and return them all."""
        for _ in range(1500):
            every = list(read(self._ledger)) if self._ledger.exists() else []
            found = [event for event in every if event["e"] == kind]
            if len(found) >= number:
                return found
            time.sleep(0.02)
        raise AssertionError(f"only {len(found)} events {kind}: {every}")

    @property
    def record(self) -> str:
        """All that was recorded."""
        return self._ledger.read_text()

    def raw(self, data: bytes) -> bytes:
        """Send bytes to the gate, and return all that comes back until it is silent or closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=0.25) as sock:
            sock.sendall(data)
            found = b""
            try:
                while piece := sock.recv(65536):
                    found += piece
            except (TimeoutError, ConnectionError):
                pass
            return found


def settings(**addresses: str) -> Settings:
    """What the user said of models: base addresses by provider."""
    return Settings([f"{who}:* base_url={url}" for who, url in addresses.items()])


@contextmanager
def open_gate(
    folder: Path, loop: Loop, config: Settings, path: Path | None = None, **policy: Any
) -> Iterator[Opened]:
    """Open a gate in *loop* until the block ends."""
    ledger = folder / f"ledger-{time.monotonic_ns()}.jsonl"
    full = Policy(**{"deadline": time.time() + 60, "config": config.config, **policy})

    async def make() -> Gate:
        return await Gate(full, Ledger(ledger), path).__aenter__()

    gate = loop.run(make())
    try:
        yield Opened(gate, ledger, loop)
    finally:
        loop.run(gate.__aexit__(None, None, None))


def behind(provider: Provider) -> Settings:
    """Settings that lead all three providers to *provider*."""
    url = provider.url
    return settings(openai=f"{url}/v1", anthropic=url, google=url)


def post(gate: Opened, path: str, document: Any = ASK, **headers: str) -> httpx.Response:
    given = {"authorization": f"Bearer {gate.gate.token}", **headers}
    return CLIENT.post(f"http://{gate.place}{path}", json=document, headers=given)


def chat(gate: Opened, **more: Any) -> httpx.Response:
    return post(gate, "/openai/v1/chat/completions", {**ASK, **more})


def events_of(*documents: Any) -> bytes:
    """Server-sent events, named as Anthropic and OpenAI name them."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (str(one.get("type")).encode(), json.dumps(one).encode())
        for one in documents
    )
