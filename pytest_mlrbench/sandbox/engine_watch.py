"""Whether the engine has been there all the time.

An engine that is stopped ends its containers, which then look as if they had been killed for
something the agent did. What tells is a connection that breaks when the engine goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_mlrbench.sandbox.reading import Reading


class EngineWatch:
    """Holds a stream of the engine's events about one container.

    :param wake: called when the engine is lost; from a thread.
    """

    def __init__(self, client: Any, container: str, wake: Callable[[], None]) -> None:
        self.lost = False
        self._wake = wake
        self._closed = False
        events = client.events(filters={"container": container})
        self._reading = Reading(events, lambda _: None, self._end)

    def _end(self, _: Exception | None) -> None:
        if not self._closed:
            self.lost = True
            self._wake()

    def close(self) -> None:
        """Let go of the stream."""
        self._closed = True
        self._reading.close()
