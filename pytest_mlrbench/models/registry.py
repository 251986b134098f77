"""The clients of this process: one for each model and event loop, and one limit a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Self

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.adapter import Adapter
from pytest_mlrbench.models.client import Client
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.limits import Limit
from pytest_mlrbench.models.redaction import Redaction
from pytest_mlrbench.models.retrying import Retries

#: Provider and interface → the SDK's module, its distribution, our module and class.
_SDKS = {
    ("anthropic", "chat"): ("anthropic", "anthropic", "on_anthropic", "AnthropicAdapter"),
    ("openai", "chat"): ("openai", "openai", "on_openai_chat", "ChatAdapter"),
    ("openai", "responses"): ("openai", "openai", "on_openai_responses", "ResponsesAdapter"),
    ("google", "chat"): ("google.genai", "google-genai", "on_google", "GoogleAdapter"),
}


def check(config: ModelConfig) -> None:
    """Check, without asking it, that a model can be asked: the SDK and the key are there.

    :raises InputError: one of them is not.
    """
    _adapter_of(config)
    config.key()


class Models:
    """Makes clients, keeps them, and closes those of the loop it is closed on.

    :param retries: for all clients.
    :param highest: most requests at once to one provider at one address.
    """

    def __init__(self, retries: Retries | None = None, highest: int = 32) -> None:
        self._retries = retries or Retries()
        self.highest = highest
        self._new_limit: Callable[[str], Limit] = lambda place: Limit(highest)
        self._limits: dict[str, Limit] = {}
        self._clients: dict[
            asyncio.AbstractEventLoop, dict[tuple[ModelConfig, str, str], Client]
        ] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def client(self, config: ModelConfig) -> Client:
        """Return the client of a model on the running loop.

        :raises InputError: the SDK or the key is not there.
        """
        loop = asyncio.get_running_loop()
        # Those of closed loops have no connections left; a client holds its loop, so no weak
        # reference would ever let go of them.
        self._clients = {one: held for one, held in self._clients.items() if not one.is_closed()}
        clients = self._clients.setdefault(loop, {})
        place = (config, config.address, config.key().get_secret_value())
        if place not in clients:
            clients[place] = self._make(config, loop)
        return clients[place]

    def limit(self, config: ModelConfig) -> Limit:
        """Return the limit that a model shares with all others of its provider and address."""
        place = f"{config.provider} {config.address}".strip()
        if place not in self._limits:
            self._limits[place] = self._new_limit(place)
        return self._limits[place]

    def share(self, new_limit: Callable[[str], Limit]) -> None:
        """Have all limits made anew, by *new_limit*; no call may be under way.

        :param new_limit: takes the name of a provider and address.
        """
        self._new_limit = new_limit
        self._limits = {}
        for clients in self._clients.values():
            for place, client in clients.items():
                clients[place] = replace(client, limit=self.limit(client.config))

    async def close(self) -> None:
        """Close the clients of the running loop; those of a closed one have no connections."""
        clients = self._clients.pop(asyncio.get_running_loop(), {})
        for client in clients.values():
            await client.adapter.close()

    def _make(self, config: ModelConfig, loop: asyncio.AbstractEventLoop) -> Client:
        make = _adapter_of(config)
        key = config.key().get_secret_value()
        headers = [value.get_secret_value() for _, value in config.headers]
        return Client(
            config=config,
            adapter=make(config, key),
            limit=self.limit(config),
            retries=self._retries,
            hide=Redaction([key, *headers]),
            loop=loop,
        )


def _adapter_of(config: ModelConfig) -> Callable[[ModelConfig, str], Adapter]:
    """Return what makes the adapter; the SDK is looked for and not imported.

    :raises InputError: it is not installed, or the provider has no such interface.
    """
    entry = _SDKS.get((config.provider, config.api))
    if entry is None:
        raise InputError(f"{config}: api={config.api!r} is for models of openai only.")
    module, distribution, ours, name = entry
    if not _is_there(module):
        raise InputError(f"{config} needs {distribution}: pip install 'pytest-mlrbench[models]'.")
    make: Callable[[ModelConfig, str], Adapter] = getattr(
        import_module(f"pytest_mlrbench.models.{ours}"), name
    )
    return make


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False
