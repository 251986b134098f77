"""OpenAI's chat completions, which servers of others speak as well."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pytest_mlrbench.models.adapter import Call, as_data_url
from pytest_mlrbench.models.exchange import (
    Answer,
    Image,
    Message,
    Part,
    Prompt,
    Request,
    Stop,
)
from pytest_mlrbench.models.on_openai import OpenAIBase, schema_format
from pytest_mlrbench.models.usage import usage_of
from pytest_mlrbench.values import Value

_STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "content_filter": "filter"}


class _Message(Value):
    # One of the two must be there, if only as null: a message without is not of this kind.
    content: str | None
    refusal: str | None = None


class _Choice(Value):
    message: _Message
    finish_reason: str


class _Answer(Value):
    choices: tuple[_Choice, ...] = Field(min_length=1)
    model: str = ""
    usage: Any = None


class ChatAdapter(OpenAIBase):
    """:class:`~pytest_mlrbench.models.adapter.Adapter` of chat completions."""

    @property
    def _create(self) -> Any:
        return self._client.chat.completions.with_raw_response.create

    def build(self, prompt: Prompt, wanted: Request) -> Call:
        """Put the request into the SDK's words."""
        messages = [_message(message) for message in prompt.messages]
        if prompt.system:
            messages.insert(0, {"role": "system", "content": prompt.system})
        # Not as arguments: the SDK would hold messages and schema against every form they might
        # have, at each call, which takes a quarter of the time of all it does.
        body: dict[str, Any] = {"messages": messages}
        arguments: dict[str, Any] = {
            "model": self._config.model,
            "messages": [],
            "extra_body": body,
        }
        dropped = self._temperature(wanted, arguments)
        if wanted.max_tokens is not None:
            # The old name is the one that servers of others know; models that reason refuse it.
            new = self._reasons(wanted) or not self._config.address
            arguments["max_completion_tokens" if new else "max_tokens"] = wanted.max_tokens
        if wanted.seed is not None:
            arguments["seed"] = wanted.seed
        if wanted.effort is not None:
            arguments["reasoning_effort"] = wanted.effort
        if wanted.json_schema is not None:
            form, loose = schema_format(wanted.json_schema)
            body["response_format"] = {"type": "json_schema", "json_schema": form}
            dropped += loose
        return Call(arguments, tuple(dropped))

    def read(self, document: Any) -> Answer:
        """Return the answer in a JSON document."""
        found = _Answer.model_validate(document)
        choice = found.choices[0]
        refusal = choice.message.refusal
        return Answer(
            text=refusal or choice.message.content or "",
            stop="refusal" if refusal else _STOPS.get(choice.finish_reason, "other"),
            raw_stop="refusal" if refusal else choice.finish_reason,
            usage=usage_of("openai", found.usage),
            model=found.model,
        )


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": _content(message.parts)}


def _content(parts: tuple[Part, ...]) -> Any:
    # A single text goes as it is: not every server knows lists of parts.
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": as_data_url(part)}}
    return {"type": "text", "text": part}
