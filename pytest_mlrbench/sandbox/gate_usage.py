"""How many tokens an answer used, read out of it while it passes."""

from __future__ import annotations

import json
from typing import Any

from pytest_mlrbench.models.config import Provider
from pytest_mlrbench.models.exchange import Usage
from pytest_mlrbench.models.usage import count, usage_of

#: Bytes of one answer, or of one event of a stream, that are looked at; longer ones are not read.
LONGEST = 32 * 2**20


class UsageReader:
    """Is fed an answer piece by piece, and knows afterwards what it used.

    It holds a whole answer in JSON, and of a stream of server-sent events one line; what is longer
    than :data:`LONGEST` passes unread, and its usage is not known.

    :param stream: whether the answer is a stream of events.
    """

    def __init__(self, provider: Provider, *, stream: bool) -> None:
        #: The model as the provider calls it; empty if it does not.
        self.model = ""
        self._provider = provider
        self._stream = stream
        self._counts: dict[str, Any] = {}
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take the next *piece*."""
        if not self._stream:
            self._hold(piece)
            return
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._hold(line)
            self._end_line()
        self._hold(rest)

    def end(self) -> None:
        """Nothing more comes."""
        if self._stream:
            self._end_line()
        elif self._size <= LONGEST:
            self._read(b"".join(self._held))
        self._held = []

    @property
    def usage(self) -> Usage:
        """What has been said up to now; null where nothing was."""
        return usage_of(self._provider, self._counts)

    @property
    def written(self) -> tuple[int, int]:
        """Tokens put into Anthropic's cache, for five minutes and for an hour."""
        all_of_them = count(self._counts.get("cache_creation_input_tokens")) or 0
        parts = self._counts.get("cache_creation")
        hour = count(parts.get("ephemeral_1h_input_tokens")) if isinstance(parts, dict) else None
        return max(0, all_of_them - (hour or 0)), hour or 0

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= LONGEST:
            self._held.append(piece)
        else:
            self._held = []

    def _end_line(self) -> None:
        if self._size <= LONGEST:
            line = b"".join(self._held)
            # Most events are a few letters of the answer, and say nothing of usage.
            if line.startswith(b"data:") and b'"usage' in line:
                self._read(line[5:])
        self._held, self._size = [], 0

    def _read(self, text: bytes) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return
        for part in document if isinstance(document, list) else [document]:
            # An answer is at the top, or, in streams of Anthropic and OpenAI, one step below.
            if isinstance(part, dict):
                for place in (part, part.get("message"), part.get("response")):
                    self._enter(place)

    def _enter(self, place: Any) -> None:
        if not isinstance(place, dict):
            return
        counts = place.get("usageMetadata" if self._provider == "google" else "usage")
        if isinstance(counts, dict):
            # Later events count all up to now, and leave out what has not changed.
            self._counts.update({key: one for key, one in counts.items() if one is not None})
        model = place.get("modelVersion" if self._provider == "google" else "model")
        if isinstance(model, str):
            self.model = model
