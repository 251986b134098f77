"""What answers at a container's only socket: the models and hosts that the case may reach.

The agent is given addresses below :data:`INSIDE` and a token in the place of keys. The gate, in the
process that runs the case, knows the keys, adds them, and writes into the ledger what passes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.config import KEYS, PROVIDERS, ModelConfig, Provider
from pytest_mlrbench.sandbox.container_options import GATE_PORT
from pytest_mlrbench.sandbox.gate_account import Account
from pytest_mlrbench.sandbox.gate_addresses import Host
from pytest_mlrbench.sandbox.gate_call import Call
from pytest_mlrbench.sandbox.gate_front import Front, bound
from pytest_mlrbench.sandbox.gate_hosts import LONGEST_HEAD, USER, HostProxy, Tunnel
from pytest_mlrbench.sandbox.gate_models import ModelProxy
from pytest_mlrbench.sandbox.gate_rules import PREFIXES
from pytest_mlrbench.sandbox.ledger import Ledger
from pytest_mlrbench.spent import Spent

if TYPE_CHECKING:
    from aiohttp.web import Server

#: Where a container finds the gate: its own loopback, and nothing else is there.
INSIDE = f"127.0.0.1:{GATE_PORT}"
#: Refused requests that are written down one by one; the others are counted.
REFUSALS = 1000
#: Seconds that answers under way are given when the case ends: only then is known what they used.
LAST = 5.0
_BACKLOG = 128
_ADDRESSES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a case may reach.

    :param deadline: Unix time in seconds; nothing passes afterwards.
    :param config: gives the address, key, headers and prices of a model such as ``openai:gpt-5``,
        and of ``openai:*`` for what names none.
    :param providers: those that may be asked.
    :param models: patterns of models, as ``gpt-5*`` or ``openai:*``; null for all.
    :param hosts: what else may be reached.
    :param max_cost: USD for the case; null for any.
    :param max_tokens: tokens for the case, input and output together; null for any.
    :param web_tools: whether a provider may reach into the network in the agent's place: search,
        fetch files it is given addresses of, connect to other services, run code.
    """

    deadline: float
    config: Callable[[str], ModelConfig]
    providers: Sequence[Provider] = PROVIDERS
    models: Sequence[str] | None = None
    hosts: Sequence[Host] = ()
    max_cost: float | None = None
    max_tokens: int | None = None
    web_tools: bool = False


def check(providers: Sequence[Provider], config: Callable[[str], ModelConfig]) -> None:
    """Check before the first case that providers can be asked.

    :raises InputError: a library is not there, a key is not set, or an address is unusable.
    """
    from importlib.util import find_spec

    if find_spec("aiohttp") is None:
        raise InputError(
            "agents in containers need aiohttp: pip install 'pytest-mlrbench[docker]'."
        )
    for provider in providers:
        found = config(f"{provider}:*")
        _ = found.address
        if not any(os.environ.get(name, "").strip() for name in found.key_names):
            _check_needs_none(provider, found)
        found.key()


def _check_needs_none(provider: Provider, config: ModelConfig) -> None:
    try:
        config.key()
    except InputError:
        names = " or ".join(config.key_names)
        raise InputError(
            f"the agent asks models of {provider}, which needs a key: set {names}."
        ) from None


class Gate:
    """Answers for one case while the context lasts.

    :param path: of the Unix socket to listen at; null for a free port of 127.0.0.1, which is for
        agents that run on this machine themselves.
    """

    def __init__(self, policy: Policy, ledger: Ledger, path: Path | None = None) -> None:
        self.path = path
        #: What the agent has in place of keys; it is worth nothing elsewhere or afterwards.
        self.token = f"mlr-{secrets.token_urlsafe(32)}"
        self._policy = policy
        self._ledger = ledger
        self._account = Account(policy.config, policy.max_cost, policy.max_tokens)
        self._models = ModelProxy(self.token, self._account, policy, self._record_call)
        self._hosts = HostProxy(self.token, policy.hosts, policy.deadline, self._record_tunnel)
        self._place = INSIDE
        self._refused = 0
        self._tunnels: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.Transport] = set()
        self._http: Server | None = None
        self._server: asyncio.AbstractServer | None = None

    async def __aenter__(self) -> Self:
        from aiohttp import web

        quiet = logging.Logger("mlrbench.gate", logging.CRITICAL + 1)  # agents may send anything
        self._http = web.Server(
            self._models.answer,
            access_log=None,
            logger=quiet,
            keepalive_timeout=600,
            auto_decompress=False,
        )
        loop = asyncio.get_running_loop()
        if self.path is None:
            self._server = await loop.create_server(self._front, "127.0.0.1", 0, backlog=_BACKLOG)
            self._place = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        else:
            listening = bound(self.path)
            self._server = await loop.create_unix_server(
                self._front, sock=listening, backlog=_BACKLOG
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        assert self._http is not None
        self._server.close()
        await self._models.end(LAST)
        for task in self._tunnels:
            task.cancel()
        await asyncio.gather(*self._tunnels, return_exceptions=True)
        await self._http.shutdown(0.1)
        for transport in self._connections:
            transport.abort()
        await self._models.upstream.close()
        if self._refused > REFUSALS:
            self._ledger.write("api-refused", number=self._refused - REFUSALS)
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    @property
    def failing(self) -> str:
        """What is wrong with a provider, if its last answer was none; empty otherwise.

        An agent that ends badly while this is so may not be to blame.
        """
        return self._models.upstream.failing

    def spent(self) -> Spent:
        """Return what the models asked up to now have used."""
        return self._account.spent

    def environment(self) -> dict[str, str]:
        """Return the variables by which SDKs, coding agents and other programs find the gate."""
        found: dict[str, str] = {}
        for provider, variable in zip(PROVIDERS, _ADDRESSES, strict=True):
            if provider in self._policy.providers:
                found[variable] = f"http://{self._place}{PREFIXES[provider]}"
                found |= dict.fromkeys(KEYS[provider], self.token)
        if self._policy.hosts:
            proxy = f"http://{USER}:{self.token}@{self._place}"
            found |= {"HTTPS_PROXY": proxy, "https_proxy": proxy}
            found |= {"HTTP_PROXY": proxy, "http_proxy": proxy, "NODE_USE_ENV_PROXY": "1"}
        # An agent on this machine may have been given a proxy of the user's by other variables.
        own = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") if not self.path else ""
        direct = ",".join(filter(None, (own, "127.0.0.1,localhost")))
        return {**found, "NO_PROXY": direct, "no_proxy": direct}

    def _front(self) -> asyncio.Protocol:
        return Front(self._connections, self._serve_http, self._serve_tunnel)

    def _serve_http(self) -> asyncio.Protocol:
        assert self._http is not None
        protocol: asyncio.Protocol = self._http()
        return protocol

    def _serve_tunnel(self) -> asyncio.Protocol:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tunnels.add(task)
            task.add_done_callback(self._tunnels.discard)
            await self._hosts.answer(reader, writer)

        return asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=LONGEST_HEAD), serve)

    def _record_call(self, method: str, path: str, call: Call) -> None:
        refused = call.received == 0 and bool(call.error)
        if not self._may_write(refused):
            return
        self._ledger.write(
            "api",
            provider=call.provider,
            method=method[:16],
            path=path[:200],
            model=call.model[:200],
            status=call.status,
            usage=call.usage.model_dump(),
            cost_usd=call.cost,
            seconds=round(time.monotonic() - call.started, 4),
            sent=call.sent,
            received=call.received,
            error=call.error,
        )

    def _record_tunnel(self, tunnel: Tunnel, refused: bool) -> None:
        if self._may_write(refused):
            self._ledger.write(
                "connect-host",
                host=tunnel.host,
                port=tunnel.port,
                address=tunnel.address,
                seconds=round(time.monotonic() - tunnel.started, 4),
                sent=tunnel.sent,
                received=tunnel.received,
                error=tunnel.error,
            )

    def _may_write(self, refused: bool) -> bool:
        """Count refusals: an agent can make any number of them, and the ledger shall not grow."""
        self._refused += refused
        return not refused or self._refused <= REFUSALS
