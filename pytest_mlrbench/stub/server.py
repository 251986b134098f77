"""The stub itself: an HTTP server in a thread of its own, with a loop of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Self
from urllib.parse import unquote

from pytest_mlrbench.stub.replies import Reply, failing
from pytest_mlrbench.stub.wire import Received, route, write

#: By request number (from 1), in order, or by what was asked; null stands for a right answer.
Script = (
    Mapping[int, Reply] | Sequence[Reply | None] | Callable[[Received], Reply | None] | Reply | None
)

_SECRET = {"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key"}
_HIDDEN = {*_SECRET, "cookie"}


class StubProvider:
    """A model provider that does what a script says, on a free port of 127.0.0.1.

    :param script: may be replaced while the stub is running.
    """

    def __init__(self, script: Script = None) -> None:
        self._begun = 0
        self._script = script
        #: All requests, in the order in which they were complete.
        self.requests: list[Received] = []
        self.in_flight = 0
        #: Most requests that were being answered at once.
        self.max_in_flight = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="mlr-stub", daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, provider: str) -> str:
        """Return what the SDK of *provider* (``openai``, …) takes for its base address."""
        return f"{self.url}/v1" if provider == "openai" else self.url

    @property
    def script(self) -> Script:
        """What requests are answered; one that is set counts from the next request on."""
        return self._script

    @script.setter
    def script(self, script: Script) -> None:
        self._begun = len(self.requests)
        self._script = script

    def reset(self, script: Script = None) -> None:
        """Forget all requests and follow another script."""
        self.requests = []
        self.script = script
        self.max_in_flight = 0

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))  # transports close in the next round
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the other side has gone, or the stub is being stopped
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection can be used again."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = self._receive(head[0].split(" ")[1], headers, content)
        if asked is None:
            return await _send(writer, Reply(status=404), b'{"error": {"message": "no such"}}')
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            reply = self._reply(asked)
            await asyncio.sleep(reply.delay)
            if reply.transport == "hang":
                await reader.read()  # until the other side closes
                return False
        finally:
            # Before the answer is sent: who has it may ask the next at once.
            self.in_flight -= 1
        if reply.transport == "reset":
            _reset(writer)
            return False
        try:
            answer = write(reply, asked)
        except Exception as error:  # a schema the stub cannot fill: say so, do not hang up
            answer = json.dumps(
                {"error": {"message": f"the stub cannot answer: {error!r}"}}
            ).encode()
            reply = Reply(status=500)
        return await _send(writer, reply, answer, asked.number)

    def _receive(self, target: str, headers: dict[str, str], content: bytes) -> Received | None:
        path = unquote(target.partition("?")[0])
        try:
            body = json.loads(content)
        except ValueError:
            return None
        found = route(path, body) if isinstance(body, dict) else None
        if found is None:
            return None
        asked = Received(
            number=len(self.requests) + 1,
            format=found[0],
            path=path,
            model=found[1],
            body=body,
            key_sent=any(headers.get(name, "").removeprefix("Bearer").strip() for name in _SECRET),
            headers={name: value for name, value in headers.items() if name not in _HIDDEN},
        )
        self.requests.append(asked)
        return asked

    def _reply(self, asked: Received) -> Reply:
        script, number = self.script, asked.number - self._begun
        if isinstance(script, Mapping):
            script = script.get(number)
        elif isinstance(script, Sequence):
            script = script[number - 1] if number <= len(script) else None
        elif callable(script):
            try:
                script = script(asked)
            except Exception as error:
                # Nobody would see it in this thread, and whoever asks must not wait for ever.
                script = failing(418, f"the script failed: {type(error).__name__}: {error}")
        return script or Reply()


async def _send(
    writer: asyncio.StreamWriter, reply: Reply, content: bytes, number: int = 0
) -> bool:
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Scripted"
    headers = {
        "content-type": "application/json",
        "content-length": str(len(content)),
        "request-id": f"req_{number}",
        "x-request-id": f"req_{number}",
        **reply.headers,
    }
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    if reply.transport == "truncate":
        content = content[: len(content) // 2]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    if reply.transport == "trickle":
        for byte in head + content:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.1)
        return True
    writer.write(head + content)
    await writer.drain()
    return reply.transport == "whole"


def _reset(writer: asyncio.StreamWriter) -> None:
    """Make the other side see a reset and not an end."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
