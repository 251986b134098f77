"""Asking a model: one client, one prompt, one valid answer or one fault."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from pytest_mlrbench.models import faults
from pytest_mlrbench.models.adapter import Adapter, Raw
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import Answer, Completion, Prompt, Request
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.limits import Limit
from pytest_mlrbench.models.redaction import Redaction
from pytest_mlrbench.models.retrying import Retries

_REQUEST_IDS = ("request-id", "x-request-id", "x-goog-request-id")


@dataclass(frozen=True, eq=False)
class Client:
    """A model on one event loop; made by :class:`~pytest_mlrbench.models.registry.Models`.

    :param limit: shared by all clients of the provider.
    """

    config: ModelConfig
    adapter: Adapter = field(repr=False)
    limit: Limit = field(repr=False)
    retries: Retries = field(repr=False)
    hide: Redaction = field(repr=False)
    loop: asyncio.AbstractEventLoop = field(repr=False)


async def complete(client: Client, prompt: Prompt, request: Request | None = None) -> Completion:
    """Ask until there is a valid answer, which is returned whatever it says.

    :param request: null for the parameters of the client's config.
    :raises ModelFault: there was none; no key is in it.
    """
    if client.loop is not asyncio.get_running_loop():
        raise RuntimeError(f"the client of {client.config} belongs to another event loop")
    wanted = client.config.with_defaults(request or Request())
    try:
        call = client.adapter.build(prompt, wanted)
    except (TypeError, ValueError) as error:  # such as a schema the SDK does not understand
        name, timeout = str(client.config), client.config.timeout
        raise faults.of_error(name, error, client.hide, timeout) from None
    (answer, raw, latency), attempts = await client.retries.run(
        lambda: _in_turn(client, call.arguments)
    )
    request_id = next((raw.headers[name] for name in _REQUEST_IDS if name in raw.headers), "")
    return Completion(
        **dict(answer),
        latency=latency,
        request_id=request_id,
        attempts=attempts,
        dropped=call.dropped,
    )


async def _in_turn(client: Client, arguments: dict[str, Any]) -> tuple[Answer, Raw, float]:
    async with client.limit.slot() as slot:
        start = time.perf_counter()
        try:
            raw = await _send(client, arguments)
            latency = time.perf_counter() - start
            answer = _read(client, raw)
        except ModelFault as fault:
            if fault.cause == "rate_limit":
                slot.refused()
            raise
        slot.succeeded()
        return answer, raw, latency


async def _send(client: Client, arguments: dict[str, Any]) -> Raw:
    config = client.config
    try:
        # The SDKs' timeouts are those of single steps: a server that trickles outlives them.
        async with asyncio.timeout(config.timeout):
            raw = await client.adapter.send(arguments)
    except Exception as error:
        raise faults.of_error(str(config), error, client.hide, config.timeout) from None
    if raw.status != 200:
        raise faults.of_status(str(config), raw, client.hide, config.key_names)
    return raw


def _read(client: Client, raw: Raw) -> Answer:
    name = str(client.config)
    try:
        return client.adapter.read(json.loads(raw.body))
    except ModelFault as error:
        words = client.hide(f"{name}: {error.message}.")
        raise ModelFault(error.cause, words, status=200) from None  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:
        raise faults.malformed(name, client.hide(_why(error, raw))) from None


def _why(error: Exception, raw: Raw) -> str:
    if not raw.body.strip():
        return "the body is empty"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        return f"it is no JSON ({error})"
    if not isinstance(error, ValidationError):
        return str(error)
    # Places and no values: the text of an answer is not for a message.
    places = [".".join(map(str, fault["loc"])) or "all of it" for fault in error.errors()]
    return f"it is not of the provider's form ({', '.join(places[:3])})"
