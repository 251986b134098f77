"""Hosts that the user allows, and whether an address is outside of this network."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Self

from pytest_mlrbench.errors import InputError

#: Ports of a host that is named without one.
PORTS = (443, 80)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*")
#: Addresses of IPv4 in IPv6: where they lead depends on the network's gateways.
_TRANSLATED = ip_network("64:ff9b::/96")

Address = IPv4Address | IPv6Address
#: Looks up a name and a port: the addresses, most wanted first.
Resolve = Callable[[str, int], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class Host:
    """A host that may be reached.

    :param name: a name in small letters, an address, or ``*.`` and a name: all names below it.
    """

    name: str
    ports: tuple[int, ...] = PORTS

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the host that ``--mlr-allow-host`` names: ``HOST[:PORT]``.

        :raises InputError: it names none.
        """
        found = re.fullmatch(
            r"(?:\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\]|([^:\s]+))(?::(\d{1,5}))?", text.strip()
        )
        given = (found[1] or found[2]).lower().rstrip(".") if found else ""
        port = int(found[3]) if found and found[3] else None
        if not _is_host(given) or port == 0 or (port or 0) > 65535:
            raise InputError(
                f"--mlr-allow-host {text!r} names no host: write HOST, *.HOST or an address, and"
                " :PORT if it is not 443 or 80."
            )
        name = str(ip_address(given)) if address_in(given) else given
        return cls(name, PORTS if port is None else (port,))

    def fits(self, name: str, port: int) -> bool:
        """Whether this is the host of that name."""
        if port not in self.ports:
            return False
        if self.name.startswith("*."):
            return name.endswith(self.name[1:]) and address_in(name) is None
        return name == self.name


async def look_up(name: str, port: int) -> list[str]:
    """Return the addresses of a name, as this machine knows them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_outside(text: str) -> bool:
    """Whether an address is one of the open internet; none is that is private, or leads to one."""
    address = address_in(text)
    if address is None:
        return False
    if isinstance(address, IPv6Address):
        teredo = address.teredo[1] if address.teredo else None
        inner = address.ipv4_mapped or address.sixtofour or teredo
        if address in _TRANSLATED:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_outside(str(inner))
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def address_in(text: str) -> Address | None:
    """Return the address that *text* is; null for a name."""
    try:
        return ip_address(text) if "%" not in text else None
    except ValueError:
        return None


def _is_host(text: str) -> bool:
    name = text.removeprefix("*.")
    return bool(address_in(text) or _NAME.fullmatch(name)) and not (
        text.startswith("*.") and address_in(name)
    )
