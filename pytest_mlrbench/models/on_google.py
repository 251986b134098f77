"""Google's Gemini."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from pytest_mlrbench.models.adapter import Call, Raw, small
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

_EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
_FILTERS = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
)
_STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_FILTERS, "filter"),
}


class _Camel(Value):
    model_config = ConfigDict(alias_generator=to_camel)


class _Part(_Camel):
    text: str = ""
    thought: bool = False


class _Content(_Camel):
    parts: tuple[_Part, ...] = ()


class _Candidate(_Camel):
    # An answer without a text is still one, but it says why.
    finish_reason: str
    content: _Content = _Content()


class _Feedback(_Camel):
    block_reason: str


class _Answer(_Camel):
    candidates: tuple[_Candidate, ...] = Field(min_length=1)
    usage_metadata: Any = None
    model_version: str = ""


class _Blocked(_Camel):
    prompt_feedback: _Feedback
    usage_metadata: Any = None
    model_version: str = ""


class GoogleAdapter:
    """:class:`~pytest_mlrbench.models.adapter.Adapter` of the SDK *google-genai*."""

    def __init__(self, config: ModelConfig, key: str) -> None:
        from google import genai
        from google.genai import errors, types

        self._config = config
        self._refused = errors.APIError
        self._http = _http()
        # Kept: a client that is collected closes the connections of its parts.
        self._client = genai.Client(
            api_key=key,
            vertexai=False,  # whatever the environment says: another service, with other keys
            http_options=types.HttpOptions(
                base_url=config.address or None,
                timeout=max(1, round(config.timeout * 1000)),  # it has none of its own
                headers={name: value.get_secret_value() for name, value in config.headers},
                httpx_async_client=self._http,
            ),
        )

    def build(self, prompt: Prompt, wanted: Request) -> Call:
        """Put the request into the SDK's words."""
        settings: dict[str, Any] = {
            "should_return_http_response": True,
            "max_output_tokens": wanted.max_tokens,
            "temperature": wanted.temperature,
            "seed": wanted.seed,
            "system_instruction": prompt.system or None,
        }
        dropped = []
        if wanted.effort in _EFFORTS:
            settings["thinking_config"] = {"thinking_level": wanted.effort.upper()}
        elif wanted.effort:
            dropped.append(Dropped(name="effort", why=f"Google has no effort {wanted.effort}"))
        if wanted.json_schema is not None:
            settings["response_mime_type"] = "application/json"
            settings["response_json_schema"] = wanted.json_schema
        arguments = {
            "model": self._config.model,
            "contents": [_message(message) for message in prompt.messages],
            "config": {name: value for name, value in settings.items() if value is not None},
        }
        return Call(arguments, tuple(dropped))

    async def send(self, arguments: dict[str, Any]) -> Raw:
        """Return the HTTP answer."""
        try:
            answer: Any = await self._client.aio.models.generate_content(**arguments)
        except self._refused as error:
            response: Any = error.response
            headers = small(getattr(response, "headers", None) or {})
            return Raw(error.code, headers, json.dumps(error.details, default=str).encode())
        response = answer.sdk_http_response
        return Raw(200, small(response.headers or {}), (response.body or "").encode())

    def read(self, document: Any) -> Answer:
        """Return the answer in a JSON document."""
        if isinstance(document, dict) and not document.get("candidates"):
            blocked = _Blocked.model_validate(document)
            stop = blocked.prompt_feedback.block_reason
            return _answer("", "filter", stop, blocked)
        found = _Answer.model_validate(document)
        first = found.candidates[0]
        text = "".join(part.text for part in first.content.parts if not part.thought)
        return _answer(text, _STOPS.get(first.finish_reason, "other"), first.finish_reason, found)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        await self._http.aclose()
        self._client.close()


def _http() -> Any:
    """Return the HTTP client that the SDK would make itself were aiohttp not installed.

    With aiohttp it takes that, by a class that aiohttp warns of, and warnings may be errors.
    """
    name = "httpx2" if find_spec("httpx2") else "httpx"
    return import_module(name).AsyncClient(follow_redirects=True)


def _answer(text: str, stop: Stop, raw: str, found: _Answer | _Blocked) -> Answer:
    counts = found.usage_metadata
    used = usage_of("google", counts)
    if isinstance(counts, dict) and counts.get("candidatesTokenCount") is None:
        # It may have been left out for being 0; whoever pays is better told of the worst.
        used = used.model_copy(update={"output": None})
    return Answer(
        text=text,
        stop=stop,
        raw_stop=raw,
        usage=used,
        model=found.model_version,
    )


def _message(message: Message) -> dict[str, Any]:
    role = "user" if message.role == "user" else "model"
    return {"role": role, "parts": [_part(part) for part in message.parts]}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"inline_data": {"data": part.data, "mime_type": part.media_type}}
    return {"text": part}
