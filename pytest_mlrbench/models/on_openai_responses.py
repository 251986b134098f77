"""OpenAI's responses."""

from __future__ import annotations

from typing import Any

from pytest_mlrbench.models.adapter import Call, as_data_url, drop
from pytest_mlrbench.models.exchange import (
    Answer,
    Image,
    Message,
    Part,
    Prompt,
    Request,
    Stop,
)
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.on_openai import OpenAIBase, schema_format
from pytest_mlrbench.models.usage import usage_of
from pytest_mlrbench.values import Value

_NEVER = {"seed": "OpenAI's responses have no seeds: use api='chat'"}
_STOPS: dict[str, Stop] = {
    "completed": "end",
    "max_output_tokens": "length",
    "content_filter": "filter",
}


class _Content(Value):
    type: str
    text: str = ""
    refusal: str = ""


class _Item(Value):
    type: str
    content: tuple[_Content, ...] | None = None


class _Reason(Value):
    reason: str | None = None


class _Error(Value):
    code: str = ""
    message: str = ""


class _Answer(Value):
    status: str
    output: tuple[_Item, ...]
    model: str = ""
    incomplete_details: _Reason | None = None
    error: _Error | None = None
    usage: Any = None


class ResponsesAdapter(OpenAIBase):
    """:class:`~pytest_mlrbench.models.adapter.Adapter` of responses."""

    @property
    def _create(self) -> Any:
        return self._client.responses.with_raw_response.create

    def build(self, prompt: Prompt, wanted: Request) -> Call:
        """Put the request into the SDK's words."""
        arguments: dict[str, Any] = {
            "model": self._config.model,
            "input": [_message(message) for message in prompt.messages],
            # The texts of others are not left on the provider's side.
            "store": False,
        }
        dropped = [*drop(wanted, _NEVER), *self._temperature(wanted, arguments)]
        if prompt.system:
            arguments["instructions"] = prompt.system
        if wanted.max_tokens is not None:
            arguments["max_output_tokens"] = wanted.max_tokens
        if wanted.effort is not None:
            arguments["reasoning"] = {"effort": wanted.effort}
        if wanted.json_schema is not None:
            form, loose = schema_format(wanted.json_schema)
            arguments["text"] = {"format": {"type": "json_schema", **form}}
            dropped += loose
        return Call(arguments, tuple(dropped))

    def read(self, document: Any) -> Answer:
        """Return the answer in a JSON document.

        :raises ModelFault: it says that the model failed.
        """
        found = _Answer.model_validate(document)
        if found.status == "failed":
            raise _failure(found.error or _Error())
        parts = [
            part for item in found.output if item.type == "message" for part in item.content or ()
        ]
        refusal = "".join(part.refusal for part in parts if part.type == "refusal")
        reason = found.incomplete_details.reason if found.incomplete_details else None
        raw = "refusal" if refusal else reason or found.status
        return Answer(
            text=refusal or "".join(part.text for part in parts if part.type == "output_text"),
            stop="refusal" if refusal else _STOPS.get(raw, "other"),
            raw_stop=raw,
            usage=usage_of("openai", found.usage),
            model=found.model,
        )


def _failure(error: _Error) -> ModelFault:
    words = f"the model failed: {error.code} {error.message}".strip()
    if error.code == "rate_limit_exceeded":
        return ModelFault("rate_limit", words, status=200)
    passing = error.code in ("", "server_error", "vector_store_timeout")
    return ModelFault("provider" if passing else "bad_request", words, status=200)


def _message(message: Message) -> dict[str, Any]:
    content = [_part(part, message.role) for part in message.parts]
    return {"role": message.role, "content": content}


def _part(part: Part, role: str) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": as_data_url(part), "detail": "auto"}
    return {"type": "input_text" if role == "user" else "output_text", "text": part}
