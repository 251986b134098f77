"""The way from the gate to the providers: their addresses, their keys, one pool of connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.config import NO_KEY, ModelConfig, Provider
from pytest_mlrbench.sandbox.gate_headers import credentials
from pytest_mlrbench.sandbox.gate_hiding import Hiding
from pytest_mlrbench.sandbox.gate_refusals import Refusal
from pytest_mlrbench.sandbox.gate_rules import Asked

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

#: Seconds without a byte after which an answer is given up.
SILENCE = 900.0
#: Seconds to reach a provider.
_CONNECT = 30.0
#: Statuses that are not the asking agent's doing.
_BROKEN = (401, 402, 429)

_ADDRESSES: Mapping[Provider, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
}


@dataclass(frozen=True, slots=True)
class Ready:
    """A request with all that the provider must be sent.

    :param headers: with the key.
    :param hiding: what must not come back.
    """

    method: str
    asked: Asked
    address: str
    headers: Mapping[str, str]
    body: bytes
    hiding: Hiding


def ready(
    method: str,
    asked: Asked,
    body: bytes,
    headers: Mapping[str, str],
    place: str,
    config: ModelConfig,
) -> Ready:
    """Add the key, and the headers that the user has set for the model.

    :param place: the header in which the agent sent its token.
    :raises Refusal: there is no key.
    """
    try:
        key = config.key().get_secret_value()
        address = config.address or _ADDRESSES[asked.provider]
    except InputError as error:
        raise Refusal(403, "key", str(error)) from None
    own = {name.lower(): value.get_secret_value() for name, value in config.headers}
    hiding = Hiding([*([] if key == NO_KEY else [key]), *own.values()])
    with_key = {**headers, **credentials(asked.provider, place, key), **own}
    return Ready(method, asked, address, with_key, body, hiding)


class Upstream:
    """Asks providers, and remembers whether they answer."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None
        self._proxy_for = lru_cache(64)(_proxy_for)  # reading the environment takes a while
        #: What is wrong with a provider, if its last answer was none; empty otherwise.
        self.failing = ""

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def send(self, request: Ready) -> ClientResponse:
        """Return the answer, of which the head is there.

        :raises Refusal: there is none, or it sends us elsewhere, where the key has no business.
        """
        import aiohttp
        from yarl import URL

        asked = request.asked
        query = f"?{urlencode(asked.query)}" if asked.query else ""
        try:
            answer = await self._pool().request(
                request.method,
                URL(f"{request.address.rstrip('/')}{asked.path}{query}", encoded=True),
                # Not as bytes: aiohttp warns of long ones, and warnings may be errors.
                data=BytesIO(request.body) if request.body else None,
                headers=request.headers,
                allow_redirects=False,
                proxy=self._proxy_for(request.address),
            )
        except (aiohttp.ClientError, OSError) as error:
            self.broke(request, "cannot be reached", error)
            raise Refusal(502, "connection", f"{asked.provider} cannot be reached.") from None
        bad = answer.status in _BROKEN or answer.status >= 500
        self.failing = f"{asked.provider} answered with HTTP status {answer.status}" if bad else ""
        if 300 <= answer.status < 400:
            answer.close()
            raise Refusal(502, "redirect", f"{asked.provider} answered with a redirect.")
        return answer

    def broke(self, request: Ready, what: str, error: Exception) -> None:
        """Remember that a provider failed."""
        words = request.hiding.in_text(str(error) or type(error).__name__)
        self.failing = f"{request.asked.provider} {what}: {words}"

    def _pool(self) -> ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(connect=_CONNECT, sock_read=SILENCE),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._session


def _proxy_for(address: str) -> str | None:
    """Return the proxy that the user's environment names for an address."""
    parts = urlsplit(address)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
