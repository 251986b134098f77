"""How many requests a provider is sent at once: more while it goes well, half when it refuses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slot:
    """Permission for one request; told what came of it."""

    def __init__(self, limit: Limit, window: int) -> None:
        self._limit = limit
        self._window = window

    def succeeded(self) -> None:
        """There was an answer."""
        self._limit.grow()

    def refused(self) -> None:
        """There were too many requests (429)."""
        self._limit.shrink(self._window)


class Limit:
    """Additive increase, multiplicative decrease, within one process and one thread.

    It grows by one after as many successes as it is high, and halves on a refusal; requests that
    were under way at that time cannot halve it again. For several processes there is
    :class:`~pytest_mlrbench.models.shared_limits.SharedLimit`.

    :param highest: most requests at once.
    :param start: how many at first; null for *highest*.
    """

    def __init__(self, highest: int = 32, start: int | None = None) -> None:
        if highest < 1 or not 1 <= (start or highest) <= highest:
            raise ValueError("a limit is at least 1 and starts at no more than its highest")
        self.highest = highest
        self.current = start or highest
        self.in_flight = 0
        self.successes = 0
        #: How often it was halved.
        self.window = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait until one more request may be sent; first come, first served."""
        await self._enter()
        try:
            yield Slot(self, self.window)
        finally:
            self.in_flight -= 1
            self._wake()

    def refresh(self) -> None:
        """Bring *current* and *window* up to date, where others change them."""

    def grow(self) -> None:
        """Count a success."""
        self.successes += 1
        if self.successes >= self.current:
            self.successes = 0
            self.current = min(self.highest, self.current + 1)

    def shrink(self, window: int) -> None:
        """Halve, because a request was refused that was sent in *window*."""
        if window != self.window:
            return
        self.window += 1
        self.successes = 0
        self.current = max(1, self.current // 2)

    async def _enter(self) -> None:
        self.refresh()
        if self.in_flight < self.current and not self._waiting:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn had come all the same
                self.in_flight -= 1
            self._wake()
            raise

    def _wake(self) -> None:
        if self._waiting:
            self.refresh()
        while self._waiting:
            turn = self._waiting[0]
            if turn.done() or turn.get_loop().is_closed():
                self._waiting.popleft()
            elif self.in_flight < self.current:
                self._waiting.popleft()
                self.in_flight += 1
                turn.set_result(None)
            else:
                return
