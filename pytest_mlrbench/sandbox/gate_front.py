"""The gate's door: where it listens, and to whom a connection is given."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

#: Connections at once, and the seconds in which one has to begin.
CONNECTIONS = 256
_BEGINS = 30.0
#: Bytes of the path of a Unix socket, which the kernel limits to 107.
_LONGEST_PATH = 100
_WORD = b"CONNECT "


class Front(asyncio.Protocol):
    """Reads how a connection begins, and gives it to who answers such."""

    def __init__(
        self,
        connections: set[asyncio.Transport],
        http: Callable[[], asyncio.Protocol],
        tunnel: Callable[[], asyncio.Protocol],
    ) -> None:
        self._connections = connections
        self._http = http
        self._tunnel = tunnel
        self._begun = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in, unless there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._connections.difference_update([one for one in self._connections if one.is_closing()])
        if len(self._connections) >= CONNECTIONS:
            transport.abort()
            return
        self._connections.add(transport)
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(_BEGINS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Give the connection away as soon as it is known what it is."""
        self._begun += data
        undecided = len(self._begun) < len(_WORD) and _WORD.startswith(self._begun)
        if self._transport is None or undecided:
            return
        if self._timer is not None:
            self._timer.cancel()
        protocol = self._tunnel() if self._begun.startswith(_WORD) else self._http()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(self._begun)

    def connection_lost(self, _: Exception | None) -> None:
        """It ended before it began."""
        if self._timer is not None:
            self._timer.cancel()


def bound(path: Path) -> socket.socket:
    """Return a socket at *path* that every user of the container may connect to: the token counts.

    The folder can be named by its descriptor, which is short, where the path is too long.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.ExitStack() as stack:
            short = str(path)
            if len(os.fsencode(short)) > _LONGEST_PATH:
                folder = os.open(path.parent, os.O_RDONLY)
                stack.callback(os.close, folder)
                short = f"/proc/self/fd/{folder}/{path.name}"
            path.unlink(missing_ok=True)  # of a process that was killed
            listening.bind(short)
        path.chmod(0o666)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
