"""Keys are taken out of what comes back from a provider, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable

#: Characters of a secret: what is shorter may be any word or number of an answer.
SHORTEST = 8


class Hiding:
    """Puts asterisks, as many, in the place of secrets, also of one that is cut in two.

    It knows a secret as it is sent, not in other spellings: no provider has a reason to repeat it
    at all. Nothing is held back but what may be the beginning of one.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        # The longest first: a short one may be part of it.
        long = {secret.encode() for secret in secrets if len(secret) >= SHORTEST}
        self._secrets = sorted(long, key=len, reverse=True)
        self._held = b""

    def __repr__(self) -> str:
        return "Hiding()"

    def in_text(self, text: str) -> str:
        """Return a whole *text* without secrets."""
        return self._replace(text.encode("utf-8", "surrogateescape")).decode(
            "utf-8", "surrogateescape"
        )

    def feed(self, piece: bytes) -> bytes:
        """Return what can be sent on now that *piece* is there."""
        data = self._replace(self._held + piece)
        begun = max((_begun(data, secret) for secret in self._secrets), default=0)
        self._held = data[len(data) - begun :]
        return data[: len(data) - begun]

    def end(self) -> bytes:
        """Return what is left."""
        held, self._held = self._held, b""
        return held

    def _replace(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, b"*" * len(secret))
        return data


def _begun(data: bytes, secret: bytes) -> int:
    """How many bytes at the end of *data* a secret may begin with."""
    for size in range(min(len(secret) - 1, len(data)), 0, -1):
        if secret.startswith(data[-size:]):
            return size
    return 0
