"""The one place where a model is asked again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from pytest_mlrbench.models.faults import ModelFault

T = TypeVar("T")


@dataclass(frozen=True)
class Retries:
    """How long we go on: faults that may pass are tried again, answers and other faults never.

    :param attempts: tries in all.
    :param first: seconds of the first wait; each further one is twice as long, up to *longest*,
        and any share of it from a half on is drawn, so that not all who failed come back at once.
    :param asked: seconds; who asks to wait longer is tried again after that long.
    :param total: seconds since the first try after which there is no further one: timeouts add up.
    :param sleep: how to wait.
    :param draw: a number between two.
    """

    attempts: int = 6
    first: float = 2.0
    longest: float = 60.0
    asked: float = 120.0
    total: float = 1800.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[float, float], float] = random.uniform

    async def run(self, once: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        """Return what *once* returned in the end, and how often it was called.

        :raises ModelFault: the last one; it knows how often it was tried.
        """
        tries = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.attempts) | tenacity.stop_after_delay(self.total),
            wait=self._wait,
            retry=tenacity.retry_if_exception(_is_passing),
            sleep=self.sleep,
            reraise=True,
        )
        number = 0

        async def counted() -> T:
            nonlocal number
            number += 1
            return await once()

        try:
            return await tries(counted), number
        except ModelFault as fault:
            last = fault.after(number)
        # A new one, and out here: the SDK's error, which holds the request and so the key, is not
        # its context.
        raise last

    def _wait(self, state: tenacity.RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        if isinstance(fault, ModelFault) and fault.wait is not None:
            # Not before the time is up, and not all at once then.
            return min(fault.wait, self.asked) + self.draw(0, min(self.first, fault.wait / 10))
        # Python cannot take 2.0 to any power.
        backoff = min(self.longest, self.first * 2.0 ** min(state.attempt_number - 1, 60))
        return self.draw(backoff / 2, backoff)


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, ModelFault) and error.passing
