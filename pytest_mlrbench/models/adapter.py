"""What there is to say about each provider."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_mlrbench.models.exchange import Answer, Dropped, Image, Prompt, Request


@dataclass(frozen=True, slots=True)
class Raw:
    """An HTTP answer, right or wrong; *headers* by names in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text, whatever is in it."""
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Call:
    """A request in the words of an SDK."""

    arguments: dict[str, Any]
    dropped: tuple[Dropped, ...] = ()


class Adapter(Protocol):
    """One provider's SDK, with its own retries off."""

    def build(self, prompt: Prompt, wanted: Request) -> Call:
        """Put the request into the SDK's words."""

    async def send(self, arguments: dict[str, Any]) -> Raw:
        """Return the HTTP answer; whatever the SDK raises without one is let through."""

    def read(self, document: Any) -> Answer:
        """Return the answer in a JSON document.

        :raises ValueError: it is none.
        :raises ModelFault: it says that the model failed.
        """

    async def close(self) -> None:
        """Close the connections."""


def small(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers by names in small letters."""
    return {name.lower(): value for name, value in headers.items()}


def in_base64(image: Image) -> str:
    """Return the picture's data as text."""
    return base64.b64encode(image.data).decode("ascii")


def as_data_url(image: Image) -> str:
    """Return the picture as an address that holds it."""
    return f"data:{image.media_type};base64,{in_base64(image)}"


def drop(wanted: Request, whys: Mapping[str, str]) -> tuple[Dropped, ...]:
    """Return those of the parameters in *whys* that were asked for."""
    return tuple(
        Dropped(name=name, why=why)
        for name, why in whys.items()
        if getattr(wanted, name) is not None
    )
