"""What a person at a terminal is told while a run goes on: done of how many, money, time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_mlrbench.spent import usd

#: Seconds between two lines.
EVERY = 20.0


class Progress:
    """Counts finished cases and prints a line now and then, from a thread of its own.

    :param total: number of cases of the session.
    :param in_flight: says how many cases are under way.
    :param running: says more of each, a line for one.
    """

    def __init__(
        self,
        total: int,
        in_flight: Callable[[], int],
        running: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        self.total = total
        self._in_flight = in_flight
        self._running = running
        self._start = time.monotonic()
        self._done = self._reused = self._tokens = 0
        self._unknown = False
        self._usd = 0.0
        self._over = threading.Event()
        # pytest puts its capture over the terminal while tests run; this one stays what it is.
        self._terminal = os.dup(1)

    @staticmethod
    def wanted() -> bool:
        """Whether somebody is looking: logs of CI jobs are left alone."""
        return os.isatty(1) and not os.environ.get("CI")

    def begin(self) -> None:
        """Start to print."""
        threading.Thread(target=self._print, name="mlr-progress", daemon=True).start()

    def end(self) -> None:
        """Print no more."""
        self._over.set()

    def count(self, properties: Mapping[str, Any]) -> None:
        """Count a finished case by its test properties."""
        self._done += 1
        self._reused += bool(properties.get("mlr.resumed"))
        for role in ("agent", "judge"):
            tokens = [properties.get(f"mlr.tokens.{role}.{way}") for way in ("input", "output")]
            self._tokens += sum(number for number in tokens if number is not None)
            asked = tokens != [None, None]
            cost = properties.get(f"mlr.cost_usd.{role}")
            self._unknown |= asked and cost is None
            self._usd += cost or 0.0

    def line(self) -> str:
        """Return the state in one line."""
        parts = [f"{self._done}/{self.total} done", f"{self._in_flight()} in flight"]
        if self._tokens:
            parts.append(f"{self._tokens:,} tokens")
            least = "at least " if self._unknown else ""
            parts.append(f"{least}{usd(self._usd)}")
        if left := self._left():
            parts.append(f"about {left} left")
        return "mlrbench: " + ", ".join(parts)

    def _left(self) -> str:
        """How long it will take, if the rest takes as long as what was measured now."""
        measured = self._done - self._reused
        if not measured or self._done >= self.total:
            return ""
        seconds = (time.monotonic() - self._start) / measured * (self.total - self._done)
        minutes = round(seconds / 60)
        if minutes < 1:
            return "a minute" if seconds > 20 else f"{seconds:.0f} s"
        return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"

    def _print(self) -> None:
        while not self._over.wait(EVERY):
            try:
                text = "\r\n".join(["", self.line(), *self._running(), ""])
                os.write(self._terminal, text.encode("utf-8", "replace"))
            except OSError:
                break  # the terminal is gone, and the run goes on
        os.close(self._terminal)
