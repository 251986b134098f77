"""OpenAI: what its two interfaces, chat completions and responses, have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from pytest_mlrbench.models.adapter import Raw, small
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import Dropped, Request

#: Models that reason refuse a temperature; ``gpt-5-chat`` does not reason.
_REASONS = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))")


class OpenAIBase(ABC):
    """The SDK *openai*; other servers speak its language too."""

    def __init__(self, config: ModelConfig, key: str) -> None:
        import openai

        self._config = config
        self._refused = openai.APIStatusError
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=config.address or None,
            timeout=config.timeout,
            max_retries=0,
            default_headers={name: value.get_secret_value() for name, value in config.headers},
        )

    @property
    @abstractmethod
    def _create(self) -> Any:
        """The SDK's method that asks."""

    async def send(self, arguments: dict[str, Any]) -> Raw:
        """Return the HTTP answer."""
        try:
            answer = await self._create(**arguments)
            response = answer.http_response
        except self._refused as error:
            response = error.response
        return Raw(response.status_code, small(response.headers), response.content)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _reasons(self, wanted: Request) -> bool:
        named = _REASONS.match(self._config.model) is not None
        return wanted.effort not in (None, "none") or (named and wanted.effort is None)

    def _temperature(self, wanted: Request, arguments: dict[str, Any]) -> list[Dropped]:
        """Add the temperature, unless the model would refuse it."""
        if wanted.temperature is None:
            return []
        if self._reasons(wanted):
            why = f"{self._config.model} reasons, and such models take no temperature"
            return [Dropped(name="temperature", why=why)]
        arguments["temperature"] = wanted.temperature
        return []


def schema_format(schema: dict[str, Any]) -> tuple[dict[str, Any], list[Dropped]]:
    """Return name, schema and strictness; a schema that cannot be strict is only a wish."""
    strict = _is_strict(schema)
    why = "not every object forbids other properties and requires all: it is not enforced"
    dropped = [] if strict else [Dropped(name="json_schema.strict", why=why)]
    return {"name": "answer", "schema": schema, "strict": strict}, dropped


def _is_strict(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if isinstance(properties, dict) or schema.get("type") == "object":
        required = set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False or required != set(properties or ()):
            return False
    return all(map(_is_strict, schema.values()))
