"""Addresses of servers, as users give them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from pytest_mlrbench.errors import InputError


def checked(url: str) -> str:
    """Return *url* without a slash at its end.

    :raises ValueError: in words: it is no address to which a path can be added.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("what follows the colon must be the number of a port") from None
    whole = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    if not whole or re.search(r"[\s\x00-\x1f]", url):
        raise ValueError("it must be an address like https://example.org/v1")
    if parts.query or parts.fragment:
        raise ValueError("it must hold no query or fragment")
    return url.rstrip("/")


def without_secrets(url: str) -> str:
    """Return *url*, :func:`checked`, if it can be printed.

    :raises ValueError: in words: it is none, or holds a name or a password.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("it must hold no name, password, query or fragment: use headers")
    return checked(url)


def of_variable(variable: str, default: str, check: Callable[[str], str] = checked) -> str:
    """Return the address in an environment variable, or *default*.

    :raises InputError: it is none; its value is not repeated, as it may hold a password.
    """
    try:
        return check((os.environ.get(variable) or default).strip())
    except ValueError:
        raise InputError(f"{variable} must be an address like {default}.") from None
