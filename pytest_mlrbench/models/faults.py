"""Why there is no valid answer: every fault of a model is one of these."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.models.adapter import Raw

Hide = Callable[[str], str]

Cause = Literal[
    "rate_limit", "provider", "timeout", "connection", "auth", "bad_request", "malformed"
]
#: Causes that may be gone a little later.
_PASSING = ("rate_limit", "provider", "timeout", "connection")

#: Characters of what a provider says that are repeated.
_LONGEST = 300
#: llama.cpp says with 500 what it will never do: "image input is not supported".
_NEVER = re.compile(r"\binput is not supported\b")
#: Google says the wait in the body.
_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')


class ModelFault(SystemFault):
    """A model gave no valid answer. It can be pickled and holds nothing of the SDKs.

    :param cause: see ``Cause``; *malformed* is a success in HTTP that is no answer.
    :param status: of HTTP, if there was an answer.
    :param wait: seconds the provider asks to wait; null if it asks for nothing.
    :param passing: whether to try again; null for what the cause suggests.
    :param attempts: how often it was tried.
    """

    def __init__(
        self,
        cause: Cause,
        message: str,
        *,
        status: int | None = None,
        wait: float | None = None,
        passing: bool | None = None,
        attempts: int = 1,
    ) -> None:
        super().__init__(cause, message)
        self.status = status
        self.wait = wait
        self.passing = cause in _PASSING if passing is None else passing
        self.attempts = attempts

    def __reduce__(self) -> Any:
        return type(self), (self.cause, self.message), self.__dict__

    def after(self, attempts: int) -> ModelFault:
        """Return this fault as the last of *attempts*."""
        tries = f" (tried {attempts} times)" if attempts > 1 else ""
        return ModelFault(
            self.cause,  # type: ignore[arg-type]
            f"{self.message.removesuffix('.')}{tries}.",
            status=self.status,
            wait=self.wait,
            passing=self.passing,
            attempts=attempts,
        )


def of_status(name: str, raw: Raw, hide: Hide, key_names: tuple[str, ...]) -> ModelFault:
    """Return the fault an HTTP status other than 200 stands for.

    :param name: of the model.
    :param hide: takes the keys out of a text.
    :param key_names: the variables the key may be in.
    """
    status, said = raw.status, raw.text
    words = f"{status} {_phrase(status)}".strip()
    # Google answers a wrong key with 400.
    if status in (401, 403) or (status == 400 and "API_KEY_INVALID" in said):
        # Not what it says: some providers repeat the end of the key.
        where = " or ".join(key_names)
        message = f"{name} does not accept the key in {where} ({words})."
        return ModelFault("auth", message, status=status)
    about = f"{words}{_quoted(said, hide)}"
    if status == 429:
        used_up = "insufficient_quota" in said
        state = "has no quota left" if used_up else "allows no more requests for now"
        return ModelFault(
            "rate_limit",
            f"{name} {state}: {about}.",
            status=status,
            wait=_asked(raw.headers, said),
            passing=not used_up,
        )
    if status == 408:
        return ModelFault("timeout", f"{name} took too long: {about}.", status=status)
    if status >= 500 and not _NEVER.search(said):
        wait = _asked(raw.headers, said)
        return ModelFault("provider", f"{name} failed: {about}.", status=status, wait=wait)
    return ModelFault("bad_request", f"{name} refuses the request: {about}.", status=status)


def of_error(name: str, error: Exception, hide: Hide, seconds: float) -> ModelFault:
    """Return the fault behind what an SDK raised where there was no HTTP answer.

    :param hide: takes the keys out of a text.
    :param seconds: the timeout.
    """
    # By name: the SDKs bring HTTP libraries of their own (httpx, httpx2, aiohttp), whose errors
    # they wrap or not, and which of them is there is none of our business.
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
        return ModelFault("timeout", f"{name} gave no answer within {seconds:g} s.")
    if kinds & {"APIConnectionError", "TransportError", "OSError", "ClientError"}:
        why = _short(hide(_root(error)))
        return ModelFault("connection", f"{name} cannot be reached: {why}.")
    why = _short(hide(f"{type(error).__name__}: {error}"))
    return ModelFault("bad_request", f"{name}: the SDK refuses the request: {why}.")


def malformed(name: str, why: str) -> ModelFault:
    """Return the fault of a success in HTTP that is no answer; *why* holds no keys."""
    return ModelFault("malformed", f"{name} sent no usable answer: {_short(why)}.", status=200)


def _root(error: BaseException) -> str:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)"')


def _quoted(said: str, hide: Hide) -> str:
    """What the provider says, as ``, "…"``."""
    found = _MESSAGE.search(said)
    try:
        # Decoded either way: a key that is spelled with escapes is a key as well.
        said = json.loads(f'"{found.group(1)}"', strict=False) if found else _decoded(said)
    except ValueError:
        said = "(what it says cannot be read)"
    # Hidden in the text as it is printed, and before it is cut: half a key is one as well.
    words = _short(hide(said))
    return f', "{words}"' if words else ""


def _decoded(said: str) -> str:
    """A JSON document without its escapes; what is none as it is."""
    try:
        return json.dumps(json.loads(said), ensure_ascii=False)
    except ValueError:
        return said


def _short(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _asked(headers: Mapping[str, str], said: str) -> float | None:
    """Seconds that the provider asks to wait."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after", "").strip()
    seconds = _number(asked)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    except (ValueError, OverflowError):
        delay = _DELAY.search(said)
        return float(delay.group(1)) if delay else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) else None
