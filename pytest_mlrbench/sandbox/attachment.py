"""The two streams of a container, read from before its start to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pytest_mlrbench.sandbox.reading import Reading


class Attachment:
    """Passes on what a container prints, piece by piece.

    :param container: of the SDK; not started yet.
    :param out: takes pieces of its standard output; *err* of its standard error.
    :param wake: called after each piece of standard error, and at the end; from a thread.
    """

    def __init__(
        self,
        container: Any,
        out: Callable[[bytes], None],
        err: Callable[[bytes], None],
        wake: Callable[[], None],
    ) -> None:
        self._out, self._err, self._wake = out, err, wake
        #: Set when the streams have ended, or can no longer be passed on.
        self.ended = threading.Event()
        #: What *out* or *err* raised, or the way to the engine.
        self.error: Exception | None = None
        pieces = container.attach(stdout=True, stderr=True, stream=True, logs=False, demux=True)
        self._reading = Reading(pieces, self._take, self._end)

    def close(self) -> None:
        """Pass on no more."""
        self._reading.close()

    def _take(self, piece: tuple[bytes | None, bytes | None]) -> None:
        out, err = piece
        if out:
            self._out(out)
        if err:
            self._err(err)
            self._wake()

    def _end(self, error: Exception | None) -> None:
        self.error = error
        self.ended.set()
        self._wake()
