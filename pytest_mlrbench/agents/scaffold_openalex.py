"""The catalogue OpenAlex over HTTP: from queries to works, patient with faults that pass."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from pytest_mlrbench import __version__
from pytest_mlrbench.addresses import of_variable, without_secrets
from pytest_mlrbench.agents.scaffold_works import Work, distinct, read_work
from pytest_mlrbench.errors import InputError, SystemFault

if TYPE_CHECKING:
    import httpx

#: Environment variable with the address of a mirror → the address otherwise.
ADDRESS = ("MLR_OPENALEX_URL", "https://api.openalex.org")
#: Environment variables with an address of yours, and with your key, both optional.
MAILTO = "MLR_OPENALEX_MAILTO"
KEY = "OPENALEX_API_KEY"

#: Works asked for with each query, and most that are kept of all.
PER_QUERY = 10
MOST_WORKS = 30
_FIELDS = (
    "id,doi,display_name,publication_year,authorships,primary_location,abstract_inverted_index"
)


@dataclass(frozen=True)
class Patience:
    """How long faults are borne, in tries of one request and in seconds."""

    attempts: int = 5
    first: float = 1.0
    longest: float = 20.0
    #: The longest wait that the catalogue may ask for.
    asked: float = 60.0
    #: How long one answer may take.
    answer: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def check() -> None:
    """Check, without asking it, that the catalogue can be asked.

    :raises InputError: it cannot.
    """
    if missing := [name for name in ("httpx", "tenacity") if find_spec(name) is None]:
        raise InputError(
            f"the literature search needs {' and '.join(missing)}:"
            " pip install 'pytest-mlrbench[fetch]'."
        )
    of_variable(*ADDRESS, without_secrets)
    for name in (MAILTO, KEY):
        value = os.environ.get(name, "").strip()
        if not value.isascii() or not value.isprintable() or " " in value:
            raise InputError(f"{name} holds a character that it cannot have: set it again.")


def clean_query(text: str) -> str:
    """Return a query as plain words: operators and quotation marks have a meaning of their own."""
    return " ".join(re.findall(r"\w+(?:-\w+)*", text.lower()))[:200].strip()


async def search(
    queries: Sequence[str], say: Callable[[str], None], patience: Patience | None = None
) -> tuple[Work, ...]:
    """Return the works that *queries* find, each once, the first of every query in front.

    :param say: is told what each query found.
    :raises SystemFault: the catalogue cannot be asked.
    """
    patience = patience or Patience()
    found: list[list[Work]] = []
    async with _client(patience) as client:
        for query in queries:
            works = await _query(client, query, patience)
            what = "was refused" if works is None else f"found {len(works)} works"
            say(f"literature: the query {query!r} {what}")
            found.append(works or [])
    in_turn = chain.from_iterable(zip_longest(*found))
    return tuple(distinct(work for work in in_turn if work))[:MOST_WORKS]


def _client(patience: Patience) -> httpx.AsyncClient:
    import httpx

    # It logs every address, and ours may hold a key.
    logging.getLogger("httpx").addFilter(_holds_no_key)
    try:
        return httpx.AsyncClient(
            follow_redirects=True,
            headers={"User-Agent": f"pytest-mlrbench/{__version__}"},
            timeout=httpx.Timeout(patience.answer),
        )
    except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
        # Not the error's own words, which may quote a proxy's password.
        raise SystemFault(
            "search",
            "the literature search cannot use the proxy or certificate that the environment names"
            f" ({type(error).__name__}).",
        ) from None


def _holds_no_key(record: logging.LogRecord) -> bool:
    return "api_key=" not in record.getMessage()


async def _query(client: httpx.AsyncClient, query: str, patience: Patience) -> list[Work] | None:
    """The works of one query; null where the catalogue does not understand it."""
    import tenacity

    from pytest_mlrbench.fetching.http_faults import Passing
    from pytest_mlrbench.fetching.wanted import Missed, Stopped

    def wait(state: tenacity.RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        if isinstance(fault, Passing) and fault.wait is not None:
            return fault.wait
        backoff: float = patience.first * 2 ** (state.attempt_number - 1)
        return min(patience.longest, backoff + random.uniform(0, patience.first))

    tries = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(patience.attempts),
        wait=wait,
        retry=tenacity.retry_if_exception_type(Passing),
        sleep=patience.sleep,
        reraise=True,
    )
    try:
        return await tries(_once, client, query, patience)
    except (Passing, Missed, Stopped) as fault:
        why = str(fault).rstrip(".")
    raise SystemFault("search", f"the literature search failed: {why}.")


async def _once(client: httpx.AsyncClient, query: str, patience: Patience) -> list[Work] | None:
    import httpx

    from pytest_mlrbench.fetching import http_faults
    from pytest_mlrbench.fetching.wanted import Missed

    asked = {
        "search": query,
        "filter": "is_retracted:false",
        "per_page": f"{PER_QUERY}",
        "select": _FIELDS,
    }
    for name, variable in (("mailto", MAILTO), ("api_key", KEY)):
        if value := os.environ.get(variable, "").strip():
            asked[name] = value
    request = client.build_request(
        "GET", f"{of_variable(*ADDRESS, without_secrets)}/works", params=asked
    )
    name = http_faults.host(request)
    try:
        async with asyncio.timeout(patience.answer):
            response = await client.send(request)
    except (httpx.RequestError, TimeoutError) as error:
        raise http_faults.explain(error, request, patience.answer) from None
    if response.status_code == httpx.codes.BAD_REQUEST:
        return None
    if response.status_code == httpx.codes.NOT_FOUND:
        raise Missed(f"{name} has no works: check {ADDRESS[0]}")
    advice = "" if os.environ.get(KEY) else f", or set {KEY}, which raises the limit"
    http_faults.check("the works", response, time.time(), patience.asked, advice)
    try:
        entries = response.json()["results"]
        return [work for entry in entries if (work := read_work(entry))]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise http_faults.Passing(f"what {name} sends is no list of works") from None
