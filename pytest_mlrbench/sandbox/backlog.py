"""What was read of a trace and waits to be followed, so that reading need not wait for that.

A trace that nobody reads makes the engine hold up the container that writes it, and later lose it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

#: Bytes that may wait; with more, the container has to. When it ends, what waits is to be followed
#: in the time that there is for it (``DRAIN``): of the shortest lines, it is half a minute's work.
BACKLOG = 4 * 2**20


class Backlog:
    """Passes on what is put into it, in its order, from a thread of its own.

    :param follow: called with each piece; what it raises ends it.
    :param wake: called once, at the end.
    """

    def __init__(
        self, follow: Callable[[bytes], object], wake: Callable[[], object], room: int = BACKLOG
    ) -> None:
        #: Set when all has been passed on, or nothing more can be.
        self.ended = threading.Event()
        #: What *follow* raised.
        self.error: Exception | None = None
        self._follow, self._wake, self._room = follow, wake, room
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, piece: bytes) -> None:
        """Take a piece; wait while there is no room, and drop it if it would not be passed on."""
        with self._news:
            self._news.wait_for(lambda: self._size < self._room or self._is_over)
            if not self._is_over:
                self._pieces.append(piece)
                self._size += len(piece)
                self._news.notify_all()

    def end(self) -> None:
        """Say that nothing more will come."""
        with self._news:
            self._is_closed = True
            self._news.notify_all()

    def close(self) -> None:
        """Drop what waits; when this returns, nothing is passed on any more."""
        with self._news:
            self._pieces.clear()
        self.end()
        self._thread.join(timeout=5)

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self.ended.is_set()

    def _run(self) -> None:
        try:
            while (piece := self._next()) is not None:
                self._follow(piece)
        except Exception as raised:
            self.error = raised
        finally:
            with self._news:
                self.ended.set()
                self._news.notify_all()
            self._wake()

    def _next(self) -> bytes | None:
        with self._news:
            self._news.wait_for(lambda: bool(self._pieces) or self._is_closed)
            if not self._pieces:
                return None
            piece = self._pieces.popleft()
            self._size -= len(piece)
            self._news.notify_all()
            return piece
