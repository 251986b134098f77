"""GitHub over HTTP: patient with faults that pass, one sentence about those that do not."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import quote

import httpx
import tenacity

from pytest_mlrbench import __version__
from pytest_mlrbench.addresses import of_variable
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.fetching import http_faults
from pytest_mlrbench.fetching.http_faults import Passing
from pytest_mlrbench.fetching.listing import Listing, parse_listing
from pytest_mlrbench.fetching.wanted import Missed, Stopped
from pytest_mlrbench.suites.source import Source

#: Environment variable with the address of a mirror → the address otherwise.
RAW = ("MLRBENCH_GITHUB_RAW_URL", "https://raw.githubusercontent.com")
API = ("MLRBENCH_GITHUB_API_URL", "https://api.github.com")


@dataclass(frozen=True)
class Patience:
    """How long faults are borne. Times are in seconds."""

    #: How often one request is tried, and how often if there is no way to the server.
    attempts: int = 5
    knocks: int = 3
    #: The wait after the first failure; it doubles each time, up to *longest*, with some jitter.
    first: float = 1.0
    longest: float = 20.0
    #: The longest wait that a server may ask for; one that asks for more is left alone.
    asked: float = 60.0
    #: How long a server may be silent, and how long one answer may take in all.
    silence: float = 30.0
    answer: float = 300.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class GitHub:
    """The files of one repository at one commit; an async context manager.

    :param jobs: how many connections are open at once.
    :raises InputError: an address, proxy or token in the environment cannot be used.
    """

    def __init__(self, source: Source, jobs: int, patience: Patience) -> None:
        self._source = source
        self._patience = patience
        self._raw, self._api = of_variable(*RAW), of_variable(*API)
        self._token = _token()
        try:
            # Proxies and certificates are taken from the environment, which is httpx's default.
            self._client = httpx.AsyncClient(
                follow_redirects=True,
                headers={"User-Agent": f"pytest-mlrbench/{__version__}"},
                limits=httpx.Limits(max_connections=jobs),
                timeout=httpx.Timeout(patience.silence),
            )
        except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
            # Not the error's own words, which may quote a proxy's password.
            raise InputError(
                "the proxy or certificate that the environment names cannot be used"
                f" ({type(error).__name__}): check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and"
                " SSL_CERT_FILE."
            ) from None

    async def __aenter__(self) -> GitHub:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def file(self, path: str, *, fresh: bool = False) -> bytes:
        """Return what the repository holds under *path*, unchecked.

        :param fresh: ask caches on the way to ask anew.
        :raises Missed: this file cannot be had.
        :raises Stopped: nothing can be had from there.
        """
        source = self._source
        url = f"{self._raw}/{source.repository}/{source.commit}/{quote(path)}"
        response = await self._get(path, url, {"Cache-Control": "no-cache"} if fresh else {})
        if response.status_code == httpx.codes.NOT_FOUND:
            raise Missed(f"{path} is not in the repository at commit {source.commit[:12]}.")
        return response.content

    async def listing(self) -> Listing:
        """Return the repository's list of files, as far as it is needed.

        :raises Missed: it cannot be used.
        :raises Stopped: it cannot be had.
        """
        source = self._source
        url = f"{self._api}/repos/{source.repository}/git/trees/{source.commit}?recursive=1"
        headers = {"Accept": "application/vnd.github+json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        what = "the list of files"
        response = await self._get(what, url, headers)
        host = http_faults.host(response.request)
        if response.status_code == httpx.codes.NOT_FOUND:
            raise Missed(
                f"{host} knows no repository {source.repository} with commit {source.commit[:12]}:"
                f" check {API[0]}, if it is set."
            )
        try:
            return parse_listing(response.content, source)
        except ValueError as error:
            raise Missed(
                f"{what} from {host} {error}: try again later, or clone the repository at commit"
                f" {source.commit[:12]} and name its folder with --mlr-tasks-dir when you run"
                " pytest."
            ) from None

    async def _get(self, what: str, url: str, headers: Mapping[str, str]) -> httpx.Response:
        """Return an answer with status 200 or 404."""
        patience = self._patience
        tries = tenacity.AsyncRetrying(
            stop=self._is_enough,
            wait=self._wait,
            retry=tenacity.retry_if_exception_type(Passing),
            sleep=patience.sleep,
            reraise=True,
        )
        try:
            return await tries(self._once, what, url, headers)
        except Passing as fault:
            if fault.unreached or fault.limited:  # so are all other files
                raise Stopped(f"{fault}.") from None
            raise Missed(
                f"{what} could not be fetched, tried {patience.attempts} times ({fault}):"
                " run it again later.",
                tired=True,
            ) from None

    async def _once(self, what: str, url: str, headers: Mapping[str, str]) -> httpx.Response:
        request = self._client.build_request("GET", url, headers=dict(headers))
        try:
            async with asyncio.timeout(self._patience.answer):
                response = await self._client.send(request)
        except (httpx.RequestError, TimeoutError) as error:
            raise http_faults.explain(error, request, self._patience.silence) from None
        http_faults.check(what, response, time.time(), self._patience.asked, self._advice(url))
        return response

    def _advice(self, url: str) -> str:
        """A token is for the API only, and raises its limit of requests from 60 to 5000 an hour."""
        helps = url.startswith(self._api) and not self._token
        return ", or set GITHUB_TOKEN, which raises the limit" if helps else ""

    def _is_enough(self, state: tenacity.RetryCallState) -> bool:
        unreached = (fault := _fault(state)) is not None and fault.unreached
        patience = self._patience
        return state.attempt_number >= (patience.knocks if unreached else patience.attempts)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        if (fault := _fault(state)) is not None and fault.wait is not None:
            return fault.wait
        patience = self._patience
        backoff: float = patience.first * 2 ** (state.attempt_number - 1)
        # Not all who were refused at once should come back at once.
        return min(patience.longest, backoff + random.uniform(0, patience.first))


def _fault(state: tenacity.RetryCallState) -> Passing | None:
    fault = state.outcome.exception() if state.outcome else None
    return fault if isinstance(fault, Passing) else None


def _token() -> str:
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError("GITHUB_TOKEN holds a character that no token has: set it again.")
    return token
