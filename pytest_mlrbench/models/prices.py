"""What a call costs: from the price table of ``genai-prices``, or as the user said."""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from ipaddress import ip_address
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import Usage

_TABLE = "genai-prices"


def table_version() -> str:
    """Return name and version of the price table, to be kept with a run; empty without one."""
    try:
        return f"{_TABLE} {version(_TABLE)}"
    except PackageNotFoundError:
        return ""


def cost_usd(
    config: ModelConfig, usage: Usage, answered_by: str = "", *, at: datetime | None = None
) -> float | None:
    """Return what a call cost in USD; null, and never 0, where that is not known.

    The user's own prices come first; they make no difference between tokens from a cache and
    others. The table's are those of the provider behind the address: an address that the table
    does not know, as one on this machine, has none. Tokens that were written into a cache, and
    tools of the provider, are not counted: we ask for neither.

    :param answered_by: the model as the provider calls it, which is what is billed; where the table
        does not know it, the configured one counts.
    :param at: when the call was made; null for now. Prices change.
    """
    if not (_is_count(usage.input) and _is_count(usage.output)):
        return None
    if config.price_in is not None and config.price_out is not None:
        return (usage.input * config.price_in + usage.output * config.price_out) / 1e6
    where = _where(config)
    if where is None:
        return None
    names = dict.fromkeys(name for name in (answered_by, config.model) if name)
    found = (_from_table(name, where, usage, at) for name in names)
    return next((cost for cost in found if cost is not None), None)


def _is_count(value: int | None) -> TypeGuard[int]:
    """Whether it is a sum of tokens; larger ones cannot be multiplied with a price."""
    return value is not None and 0 <= value < 2**53


def _where(config: ModelConfig) -> dict[str, str] | None:
    """Return what the table calls a place by; null where it cannot know it.

    To ask the table imports it, which takes a while.
    """
    address = config.address
    if not address:
        return {"provider_id": config.provider}
    host = urlsplit(address).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return {"provider_api_url": address} if "." in host else None
    return None


def _from_table(
    name: str, where: dict[str, str], usage: Usage, at: datetime | None
) -> float | None:
    try:
        table: Any = import_module("genai_prices")
    except ModuleNotFoundError:
        return None
    # Parts that are more than the whole are an error there.
    parts = {
        "cache_read_tokens": min(usage.cached_input or 0, usage.input or 0),
        "output_reasoning_tokens": min(usage.reasoning or 0, usage.output or 0),
    }
    used = table.Usage(input_tokens=usage.input, output_tokens=usage.output, **parts)
    try:
        found = table.calc_price(used, name, genai_request_timestamp=at, **where)
    except LookupError:
        return None
    price = found.model_price
    # What has no price counts as 0 there.
    if price.input_mtok is None or price.output_mtok is None:
        return None
    return float(found.total_price)
