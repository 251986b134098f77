"""A stream of the engine, read by a thread of its own: those of a pool are few, and these wait."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any


class Reading:
    """Passes on each piece of a stream until it ends, from a thread.

    :param stream: of the Docker SDK; closed when it has ended.
    :param take: called with each piece; what it raises ends the reading.
    :param wake: called once, at the end.
    """

    def __init__(
        self, stream: Any, take: Callable[[Any], object], wake: Callable[[], object]
    ) -> None:
        #: Set when the stream has ended, or can no longer be passed on.
        self.ended = threading.Event()
        #: What *take* raised, or the way to the engine.
        self.error: Exception | None = None
        self._stream, self._take, self._wake = stream, take, wake
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for piece in self._stream:
                self._take(piece)
        except Exception as raised:
            self.error = raised
        finally:
            with contextlib.suppress(Exception):
                # The stream's own close() leaves the connection open if the engine has ended it.
                self._stream._response.close()
            self.ended.set()
            self._wake()

    def close(self) -> None:
        """End the reading; when this returns, nothing is passed on any more."""
        with contextlib.suppress(Exception):
            self._stream.close()
        self._thread.join(timeout=5)
