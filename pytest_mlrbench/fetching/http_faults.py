"""What went wrong with a request, in words, and whether it may pass."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.request import getproxies

import httpx

from pytest_mlrbench.fetching.wanted import Missed, Stopped


class Passing(Exception):
    """A fault that may pass; the message is a sentence without its stop.

    :param unreached: whether there is no way to the server.
    :param limited: whether the server allows no more requests.
    :param wait: seconds the server asks to wait; null if it asks for nothing.
    """

    def __init__(
        self,
        words: str,
        *,
        unreached: bool = False,
        limited: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(words)
        self.unreached = unreached
        self.limited = limited
        self.wait = wait


def host(request: httpx.Request) -> str:
    """Return the server's name for people, without the name and password an address may hold."""
    url = request.url
    return url.host if url.port is None else f"{url.host}:{url.port}"


def explain(error: Exception, request: httpx.Request, silence: float) -> Exception:
    """Return the fault behind an error of httpx: a Passing, Missed or Stopped.

    :param silence: seconds that were waited for an answer.
    """
    name = host(request)
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return Stopped(
            f"the certificate of {name} cannot be verified: if a proxy of yours opens the traffic,"
            " name its certificate with SSL_CERT_FILE."
        )
    if isinstance(error, httpx.ProxyError):
        return Passing(
            f"the proxy{_proxies()} does not let us to {name} ({error}): check it, or name the host"
            " in NO_PROXY if it can be reached without",
            unreached=True,
        )
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            why = "its name is not known here"
        elif isinstance(error, httpx.ConnectTimeout):
            why = "no answer"
        else:
            numbers = (c.errno for c in causes if isinstance(c, OSError) and c.errno)
            why = next(map(os.strerror, numbers), str(error))
        proxies = _proxies()
        advice = (
            f", and the proxy{proxies}" if proxies else ", and HTTPS_PROXY if you are behind one"
        )
        return Passing(
            f"{name} cannot be reached ({why}): check the network{advice}", unreached=True
        )
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return Passing(f"{name} was silent for {silence:g} s, or took too long in all")
    if isinstance(error, httpx.TooManyRedirects | httpx.UnsupportedProtocol):
        return Missed(
            f"{name} sends us on to nowhere: check the address of the mirror.", tired=True
        )
    return Passing(f"the connection to {name} broke off")


def check(what: str, response: httpx.Response, now: float, longest: float, advice: str) -> None:
    """Raise the fault that a status stands for; 200 and 404 are none.

    :param what: what was asked for.
    :param now: Unix time.
    :param longest: seconds; a server that asks to wait longer is not waited for.
    :param advice: what else than waiting helps against a limit of requests.
    """
    status = response.status_code
    if status in (httpx.codes.OK, httpx.codes.NOT_FOUND):
        return
    name = host(response.request)
    said = f"{status} {response.reason_phrase}".strip()
    wait = _asked(response, now)
    limited = status == httpx.codes.TOO_MANY_REQUESTS or (
        status == httpx.codes.FORBIDDEN and wait is not None
    )
    if limited or status >= httpx.codes.INTERNAL_SERVER_ERROR:
        if wait is not None and wait > longest:
            raise Stopped(_until(name, said, now, wait, advice))
        if limited:
            raise Passing(
                f"{name} allows no more requests for now ({said}): run it again in some minutes"
                f"{advice}",
                limited=True,
                wait=wait,
            )
        raise Passing(f"{name} answers {said}", wait=wait)
    if status == httpx.codes.PROXY_AUTHENTICATION_REQUIRED:
        raise Stopped(
            f"the proxy{_proxies()} wants a name and password ({said}): add them to its address."
        )
    if status == httpx.codes.UNAUTHORIZED and "authorization" in response.request.headers:
        raise Stopped(f"{name} does not accept GITHUB_TOKEN ({said}): set a valid one, or none.")
    raise Missed(f"{what} could not be fetched: {name} answers {said}.", tired=True)


def _asked(response: httpx.Response, now: float) -> float | None:
    """Seconds that the server asks to wait."""
    headers = response.headers
    asked = headers.get("retry-after", "").strip()
    if asked.isdecimal():
        return float(asked)
    if asked:
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - now)
        except ValueError:
            pass
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return max(0.0, float(reset) - now) + 1  # its clock has no parts of a second
    return None


def _until(name: str, said: str, now: float, wait: float, advice: str) -> str:
    until = datetime.fromtimestamp(now + min(wait, 1e8), UTC)  # no nonsense makes a date fail
    minutes = round(wait / 60)
    return (
        f"{name} allows no more requests until {until:%Y-%m-%d %H:%M} UTC, in"
        f" {f'{minutes} minutes' if minutes > 1 else f'{wait:.0f} s'} ({said}):"
        f" run it again then{advice}."
    )


def _proxies() -> str:
    """The variables that name a proxy; not its address, which may hold a password."""
    names = [f"{kind.upper()}_PROXY" for kind in ("https", "http", "all") if getproxies().get(kind)]
    return f" in {', '.join(names)}" if names else ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for part in error.exceptions:
                yield from _causes(part)
        error = error.__cause__ or error.__context__
