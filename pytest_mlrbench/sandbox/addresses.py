"""Addresses of sockets, as strace writes them."""

from __future__ import annotations

import re

from pytest_mlrbench.sandbox.strace import unescape

_UNIX = re.compile(rb'sun_path=(@?)"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PORT = re.compile(rb"sin6?_port=htons\((\d+)\)")
_HOST = re.compile(rb'(?:inet_addr\(|inet_pton\(AF_INET6, )"([0-9a-fA-F.:]+)"')


def address(argument: bytes) -> str | None:
    """``host:port``, ``unix:path`` or ``unix:@name``; null for other kinds of sockets.

    >>> address(b'{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}')
    '127.0.0.1:80'
    """
    if found := _UNIX.search(argument):
        name = unescape(found[2]).decode("utf-8", "surrogateescape")
        return f"unix:{found[1].decode()}{name}"
    port, host = _PORT.search(argument), _HOST.search(argument)
    if not port or not host:
        return None
    name = host[1].decode()
    return f"[{name}]:{int(port[1])}" if ":" in name else f"{name}:{int(port[1])}"
