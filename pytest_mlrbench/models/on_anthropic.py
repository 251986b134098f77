"""Anthropic's messages."""

from __future__ import annotations

from typing import Any

from pytest_mlrbench.models.adapter import Call, Raw, drop, in_base64, small
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import (
    Answer,
    Dropped,
    Image,
    Message,
    Part,
    Prompt,
    Request,
    Stop,
)
from pytest_mlrbench.models.usage import usage_of
from pytest_mlrbench.values import Value

#: Anthropic must be told a limit; where nobody asks for one, this leaves room for a long review.
DEFAULT_MAX_TOKENS = 16_000

_NEVER = {
    "temperature": "the Anthropic SDK has no such argument",
    "seed": "Anthropic has no seeds",
}
#: Models of which the SDK knows the end → the day.
_ENDING: dict[str, str] = {}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class _Block(Value):
    type: str
    text: str = ""


class _Answer(Value):
    content: tuple[_Block, ...]
    stop_reason: str
    model: str = ""
    usage: Any = None


class AnthropicAdapter:
    """:class:`~pytest_mlrbench.models.adapter.Adapter` of the SDK *anthropic*."""

    def __init__(self, config: ModelConfig, key: str) -> None:
        import anthropic

        self._config = config
        self._refused = anthropic.APIStatusError
        self._transform = anthropic.transform_schema
        self._ends = _end_of_life(config.model)
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=config.address or None,
            timeout=config.timeout,
            max_retries=0,
            default_headers={name: value.get_secret_value() for name, value in config.headers},
        )

    def build(self, prompt: Prompt, wanted: Request) -> Call:
        """Put the request into the SDK's words."""
        dropped = [*drop(wanted, _NEVER), *self._ends]
        output: dict[str, Any] = {}
        if wanted.effort in _EFFORTS:
            output["effort"] = wanted.effort
        elif wanted.effort:
            dropped.append(Dropped(name="effort", why=f"Anthropic has no effort {wanted.effort}"))
        if wanted.json_schema is not None:
            schema = self._transform(wanted.json_schema)
            output["format"] = {"type": "json_schema", "schema": schema}
            dropped += [
                Dropped(name=f"json_schema.{name}", why="said to the model, but not enforced")
                for name in sorted(_keys(wanted.json_schema) - _keys(schema))
            ]
        arguments: dict[str, Any] = {
            "model": self._config.model,
            "max_tokens": wanted.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": [_message(message) for message in prompt.messages],
            # Said with each request: the SDK refuses long answers where it is its own default.
            "timeout": self._config.timeout,
        }
        if prompt.system:
            arguments["system"] = prompt.system
        if output:
            arguments["output_config"] = output
        return Call(arguments, tuple(dropped))

    async def send(self, arguments: dict[str, Any]) -> Raw:
        """Return the HTTP answer."""
        try:
            answer = await self._client.messages.with_raw_response.create(**arguments)
            response = answer.http_response
        except self._refused as error:
            response = error.response
        return Raw(response.status_code, small(response.headers), response.content)

    def read(self, document: Any) -> Answer:
        """Return the answer in a JSON document."""
        found = _Answer.model_validate(document)
        return Answer(
            text="".join(block.text for block in found.content if block.type == "text"),
            stop=_STOPS.get(found.stop_reason, "other"),
            raw_stop=found.stop_reason,
            usage=usage_of("anthropic", found.usage),
            model=found.model,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _end_of_life(model: str) -> list[Dropped]:
    """Say once, with the answers, what the SDK would warn of at every call.

    Its warning is an error where a session is run with ``-W error``, and would end the call.
    """
    from anthropic.resources.messages import messages

    known: dict[str, str] = getattr(messages, "DEPRECATED_MODELS", {})
    ends = known.pop(model, "")
    if ends:
        _ENDING[model] = ends
    return [
        Dropped(name="model", why=f"{model} will be no more on {day}")
        for day in [_ENDING.get(model, "")]
        if day
    ]


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: Part) -> dict[str, Any]:
    if not isinstance(part, Image):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": in_base64(part)}
    return {"type": "image", "source": source}


def _keys(schema: Any) -> set[str]:
    """All keys anywhere in a schema."""
    if isinstance(schema, dict):
        return set(schema).union(*map(_keys, schema.values()))
    return set().union(*map(_keys, schema)) if isinstance(schema, list) else set()
