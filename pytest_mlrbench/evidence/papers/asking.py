"""Asking one catalogue over HTTP: at its pace, patient with faults that pass, never insisting."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_mlrbench import __version__
from pytest_mlrbench.addresses import of_variable, without_secrets
from pytest_mlrbench.evidence.papers.catalogues import Catalogue, Titles

if TYPE_CHECKING:
    import httpx

#: Largest answer that is read, in bytes.
_LARGEST = 4_000_000


class NotAsked(Exception):
    """There is no answer; the message says why, without a stop."""


@dataclass(frozen=True)
class Patience:
    """How long faults are borne, in tries of one request and in seconds."""

    attempts: int = 4
    first: float = 2.0
    longest: float = 30.0
    #: The longest wait that a catalogue may ask for.
    asked: float = 60.0
    #: How long one answer may take.
    answer: float = 30.0
    #: How long all of it may take.
    total: float = 600.0
    #: What pauses between requests are multiplied with.
    pace: float = 1.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@asynccontextmanager
async def client(patience: Patience) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client.

    :raises NotAsked: the proxy or certificate that the environment names cannot be used.
    """
    import httpx

    try:
        opened = httpx.AsyncClient(
            follow_redirects=True,
            headers={"User-Agent": f"pytest-mlrbench/{__version__}"},
            timeout=httpx.Timeout(patience.answer),
        )
    except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
        # Not the error's own words, which may quote a proxy's password.
        raise NotAsked(
            f"the proxy or certificate cannot be used ({type(error).__name__})"
        ) from None
    async with opened:
        yield opened


class Asker:
    """One catalogue; after a fault that does not pass it is not asked again.

    :raises InputError: the environment names an unusable address.
    """

    def __init__(self, catalogue: Catalogue, http: httpx.AsyncClient, patience: Patience) -> None:
        self._catalogue = catalogue
        self._http = http
        self._patience = patience
        self._url = of_variable(*catalogue.address, without_secrets)
        self._places = asyncio.Semaphore(catalogue.at_once)
        self._turn = asyncio.Lock()
        self._next = 0.0
        self._broken = ""

    async def ask(self, wanted: Sequence[str]) -> Titles:
        """Return the titles of the works that are asked for, none of those that are not known.

        :raises NotAsked: there is no answer.
        """
        import tenacity

        from pytest_mlrbench.fetching.http_faults import Passing
        from pytest_mlrbench.fetching.wanted import Missed, Stopped

        tries = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self._patience.attempts),
            wait=self._wait,
            retry=tenacity.retry_if_exception_type(Passing),
            sleep=self._patience.sleep,
            reraise=True,
        )
        async with self._places:
            if self._broken:
                raise NotAsked(self._broken)
            try:
                return await tries(self._once, wanted)
            except Missed as fault:
                # It was about this work: others may be answered.
                raise NotAsked(str(fault).rstrip(".")) from None
            except (Passing, Stopped) as fault:
                self._broken = str(fault).rstrip(".")
                raise NotAsked(self._broken) from None

    def _wait(self, state: object) -> float:
        from pytest_mlrbench.fetching.http_faults import Passing

        outcome = getattr(state, "outcome", None)
        fault = outcome.exception() if outcome else None
        if isinstance(fault, Passing) and fault.wait is not None:
            return fault.wait
        backoff: float = self._patience.first * 2 ** (getattr(state, "attempt_number", 1) - 1)
        return min(self._patience.longest, backoff + random.uniform(0, self._patience.first))

    async def _once(self, wanted: Sequence[str]) -> Titles:
        import httpx

        from pytest_mlrbench.fetching import http_faults
        from pytest_mlrbench.fetching.wanted import Missed

        path, parameters = self._catalogue.path(wanted)
        request = self._http.build_request("GET", self._url + path, params=parameters)
        await self._pause()
        try:
            async with asyncio.timeout(self._patience.answer):
                response, text = await self._answer(request)
        except (httpx.RequestError, TimeoutError) as error:
            raise http_faults.explain(error, request, self._patience.answer) from None
        name = http_faults.host(request)
        http_faults.check("the work", response, time.time(), self._patience.asked, "")
        if response.status_code == httpx.codes.NOT_FOUND:
            raise Missed(f"{name} is no such catalogue: check {self._catalogue.address[0]}")
        try:
            return self._catalogue.read(wanted, text)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise http_faults.Passing(f"what {name} sends is no answer") from None

    async def _pause(self) -> None:
        async with self._turn:
            now = time.monotonic()
            if now < self._next:
                await self._patience.sleep(self._next - now)
            self._next = max(now, self._next) + self._catalogue.pause * self._patience.pace

    async def _answer(self, request: httpx.Request) -> tuple[httpx.Response, str]:
        """The answer, and of a larger one its beginning, which then is not understood."""
        response = await self._http.send(request, stream=True)
        try:
            data = bytearray()
            async for part in response.aiter_bytes(65536):
                data += part
                if len(data) > _LARGEST:
                    break
        finally:
            await response.aclose()
        return response, data.decode("utf-8", "replace")
