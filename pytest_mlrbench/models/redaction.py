"""Keys are taken out of whatever others say before it is repeated."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

HIDDEN = "[key]"


class Redaction:
    """Knows secret values and hides them, also as they are spelled in JSON, Python, HTML or URLs.

    Its own representation shows none of them.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        spelled = {form for secret in secrets if secret.strip() for form in _spellings(secret)}
        # The longest first: a short one may be part of it.
        forms = sorted(spelled, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, forms))) if forms else None

    def __repr__(self) -> str:
        return "Redaction()"

    def __call__(self, text: str) -> str:
        """Return *text* without the secrets."""
        return self._found.sub(HIDDEN, text) if self._found else text


def of_environment() -> Redaction:
    """Return what hides the keys of providers that are set."""
    from pytest_mlrbench.models.config import KEYS

    names = [name for names in KEYS.values() for name in names]
    return Redaction(value for name in names if (value := os.environ.get(name)))


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(json.dumps(secret))[3:-3]
    yield html.escape(secret)
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield base64.b64encode(secret.encode()).decode()
    # A header like "Bearer abc": the key alone is the secret.
    yield from (word for word in secret.split() if word != secret and len(word) >= 8)
