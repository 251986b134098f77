"""The way to the hosts that the user allows: a CONNECT proxy, and nothing for any other host."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import io
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, parse_headers

from pytest_mlrbench.sandbox.gate_addresses import Host, Resolve, address_in, is_outside, look_up
from pytest_mlrbench.sandbox.gate_refusals import Refusal

#: Name that a client gives with the token.
USER = "agent"
#: Bytes of what a connection begins with.
LONGEST_HEAD = 16 * 2**10
#: Seconds to say what is wanted, to look up a name, and to reach one address.
_PATIENCE = 10.0
_PIECE = 64 * 2**10

_TARGET = re.compile(r"CONNECT (?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]]+)):(\d{1,5}) HTTP/1\.[01]")


@dataclass
class Tunnel:
    """One connection to a host, as it is recorded."""

    started: float = field(default_factory=time.monotonic)
    host: str = ""
    port: int = 0
    address: str = ""
    sent: int = 0
    received: int = 0
    error: str = ""


class HostProxy:
    """Connects one case to the hosts it may reach.

    A name is looked up once, here, and the connection goes to the address that was looked at. What
    the bytes say is not known: a server that answers for several names can be asked for any.

    :param token: the password that a client must give.
    :param deadline: Unix time in seconds.
    :param record: takes each tunnel when it has ended, or was refused.
    """

    def __init__(
        self,
        token: str,
        hosts: Sequence[Host],
        deadline: float,
        record: Callable[[Tunnel, bool], None],
        resolve: Resolve = look_up,
    ) -> None:
        self._token = token.encode()
        self._hosts = hosts
        self._deadline = deadline
        self._record = record
        self._resolve = resolve

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        tunnel = Tunnel()
        refused = False
        seconds = self._deadline - time.time()
        try:
            if seconds <= 0:
                raise Refusal(403, "deadline", "the time of the case is over.")
            async with asyncio.timeout(seconds):
                await self._serve(reader, writer, tunnel)
        except Refusal as refusal:
            refused = True
            tunnel.error = f"{refusal.cause}: {refusal.message}"
            with contextlib.suppress(OSError):
                writer.write(_refused(refusal))
                await writer.drain()
        except TimeoutError:
            tunnel.error = "deadline: the time of the case was over"
        except OSError as error:
            tunnel.error = f"connection: {error}"
        except asyncio.CancelledError:
            tunnel.error = "cut: the case ended"
            raise
        finally:
            writer.close()
            self._record(tunnel, refused)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tunnel: Tunnel
    ) -> None:
        await self._ask(reader, tunnel)
        addresses = await self._addresses(tunnel)
        there, away = await _connect(addresses, tunnel)
        try:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _both_ways(reader, writer, there, away, tunnel)
        finally:
            away.close()

    async def _ask(self, reader: asyncio.StreamReader, tunnel: Tunnel) -> None:
        """Read what is wanted, and check whether it is allowed."""
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            headers = parse_headers(io.BytesIO(rest))
            found = _TARGET.fullmatch(line.decode("ascii"))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            raise Refusal(400, "head", "the request has no end.") from None
        except (HTTPException, ValueError):
            found = None
        if found is None:
            raise Refusal(400, "head", "the request must be CONNECT HOST:PORT.")
        self._authenticate(headers.get_all("Proxy-Authorization") or [])
        tunnel.host = (found[1] or found[2]).lower().removesuffix(".")[:255]
        tunnel.port = int(found[3])
        if literal := address_in(tunnel.host):
            tunnel.host = str(literal)
        if not any(host.fits(tunnel.host, tunnel.port) for host in self._hosts):
            raise Refusal(
                403,
                "host",
                f"{tunnel.host}:{tunnel.port} is none of the hosts of --mlr-allow-host.",
            )

    def _authenticate(self, given: Sequence[str]) -> None:
        for header in given:
            scheme, _, packed = header.strip().partition(" ")
            try:
                user, _, token = base64.b64decode(packed, validate=True).partition(b":")
            except (binascii.Error, ValueError):
                continue
            right = hmac.compare_digest(token, self._token)
            if right and scheme.lower() == "basic" and user == USER.encode():
                return
        raise Refusal(407, "token", "the password of the proxy is not that of this case.")

    async def _addresses(self, tunnel: Tunnel) -> list[str]:
        """Return where the host is, if the case may go there.

        :raises Refusal: nowhere, or inside: this machine, its network, those who run it.
        """
        if address_in(tunnel.host):
            return [tunnel.host]  # fits only if the user named it
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await self._resolve(tunnel.host, tunnel.port)
        except (OSError, UnicodeError, TimeoutError):
            raise Refusal(502, "dns", f"{tunnel.host} has no address here.") from None
        named = {host.name for host in self._hosts if tunnel.port in host.ports}
        outside = [one for one in found if is_outside(one) or one in named]
        if not outside:
            raise Refusal(
                403,
                "inside",
                f"{tunnel.host} is at {', '.join(found[:3])}, inside this network: name the address"
                " too with --mlr-allow-host if it is meant.",
            )
        return outside


async def _connect(
    addresses: Sequence[str], tunnel: Tunnel
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that answers.

    :raises Refusal: none does.
    """
    for address in addresses:
        tunnel.address = address
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                return await asyncio.open_connection(address, tunnel.port)
    raise Refusal(502, "connection", f"{tunnel.host}:{tunnel.port} cannot be reached.")


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    there: asyncio.StreamReader,
    away: asyncio.StreamWriter,
    tunnel: Tunnel,
) -> None:
    """Copy until both sides have ended, or one is gone."""

    async def out() -> None:
        while piece := await reader.read(_PIECE):
            tunnel.sent += len(piece)
            away.write(piece)
            await away.drain()
        away.write_eof()

    async def back() -> None:
        while piece := await there.read(_PIECE):
            tunnel.received += len(piece)
            writer.write(piece)
            await writer.drain()
        writer.write_eof()

    copying = [asyncio.ensure_future(way()) for way in (out, back)]
    try:
        await asyncio.gather(*copying)
    finally:
        for one in copying:
            one.cancel()
        await asyncio.gather(*copying, return_exceptions=True)


def _refused(refusal: Refusal) -> bytes:
    body = f"mlrbench: {refusal.message}\n".encode()
    ask = 'Proxy-Authenticate: Basic realm="mlrbench"\r\n' if refusal.status == 407 else ""
    head = (
        f"HTTP/1.1 {refusal.status} Refused\r\nContent-Type: text/plain; charset=utf-8\r\n{ask}"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
