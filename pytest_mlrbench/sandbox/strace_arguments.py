"""What strace writes for an argument of a call, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = re.compile(rb'@?"((?:[^"\\]|\\.)*)"(\.\.\.)?', re.DOTALL)
_DESCRIPTOR = re.compile(rb"(AT_FDCWD|-?\d+)(?:<([^<>]*)>)?(\(deleted\))?")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-f]{2}|.)", re.DOTALL)
_NAMED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
_UNIX = re.compile(rb'sun_path=(@?)"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PORT = re.compile(rb"sin6?_port=htons\((\d+)\)")
_HOST = re.compile(rb'(?:inet_addr\(|inet_pton\(AF_INET6, )"([0-9a-fA-F.:]+)"')


def unescape(text: bytes) -> bytes:
    """What stood in strace's quotation marks or angle brackets."""
    return _ESCAPE.sub(_plain, text) if b"\\" in text else text


def _plain(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1].isdigit():
        return bytes([int(code, 8) & 0xFF])
    if len(code) == 3:
        return bytes([int(code[1:], 16)])
    return _NAMED.get(code, code)


def text(name: bytes) -> str:
    """A name as it is kept: bytes that are no UTF-8 become surrogates."""
    return name.decode("utf-8", "surrogateescape")


def string(argument: bytes) -> bytes | None:
    """The text of a quoted argument; null for a pointer that leads nowhere."""
    found = _STRING.fullmatch(argument)
    return unescape(found[1]) if found else None


def strings(argument: bytes) -> tuple[list[bytes], bool]:
    """The texts of a list of quoted arguments, and whether strace left some of it out."""
    texts, cut = [], not argument.endswith(b"]")
    for token in _STRING.finditer(argument):
        texts.append(unescape(token[1]))
        cut = cut or token[2] is not None
    return texts, cut or argument.endswith(b"...]")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor and where it leads; *number* null is the working directory."""

    number: int | None
    path: bytes | None
    deleted: bool


def descriptor(argument: bytes) -> Descriptor | None:
    """A descriptor, or the working directory, as an argument; null if it is neither."""
    found = _DESCRIPTOR.fullmatch(argument)
    if not found:
        return None
    path = None if found[2] is None else unescape(found[2])
    number = None if found[1] == b"AT_FDCWD" else int(found[1])
    return Descriptor(number, path, found[3] is not None)


def address(argument: bytes) -> str | None:
    """``host:port``, ``unix:path`` or ``unix:@name`` of a socket; null for its other kinds.

    >>> address(b'{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}')
    '127.0.0.1:80'
    """
    if found := _UNIX.search(argument):
        return f"unix:{found[1].decode()}{text(unescape(found[2]))}"
    port, host = _PORT.search(argument), _HOST.search(argument)
    if not port or not host:
        return None
    name = host[1].decode()
    return f"[{name}]:{int(port[1])}" if ":" in name else f"{name}:{int(port[1])}"
