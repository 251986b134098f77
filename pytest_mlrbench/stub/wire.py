"""The wire formats: what a request asks for, and how each provider spells an answer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_mlrbench.stub.filling import fill
from pytest_mlrbench.stub.replies import TEXT, Reply, Tokens

Format = Literal["anthropic", "chat", "responses", "google"]

_PATHS: dict[Format, re.Pattern[str]] = {
    "anthropic": re.compile(r"/v1/messages"),
    "chat": re.compile(r"/v1/chat/completions"),
    "responses": re.compile(r"/v1/responses"),
    "google": re.compile(r"/v1(?:beta)?/models/(?P<model>[^:]+):generateContent"),
}


@dataclass(frozen=True, slots=True)
class Received:
    """One request.

    :param number: 1 for the first one since the stub was started.
    :param model: as asked for.
    :param body: the JSON document.
    :param key_sent: whether there was a key; the key itself is not kept.
    :param headers: by names in small letters, without any that can hold a key.
    """

    number: int
    format: Format
    path: str
    model: str
    body: Mapping[str, Any]
    key_sent: bool
    headers: Mapping[str, str]

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the answer has to fill."""
        found: Any = self.body
        for step in _SCHEMAS[self.format]:
            found = found.get(step) if isinstance(found, Mapping) else None
        return found if isinstance(found, dict) else None

    @property
    def text(self) -> str:
        """All texts of the prompt, the system's first."""
        system = self.body.get("system") or self.body.get("instructions") or ""
        system = self.body.get("systemInstruction") or system
        rest = [self.body.get(key) for key in ("messages", "input", "contents")]
        return "\n".join(text for text in (*_texts(system), *_texts(rest)) if text)

    @property
    def images(self) -> list[bytes]:
        """The data of all images of the prompt."""
        return list(_images(self.body))


_SCHEMAS: dict[Format, tuple[str, ...]] = {
    "anthropic": ("output_config", "format", "schema"),
    "chat": ("response_format", "json_schema", "schema"),
    "responses": ("text", "format", "schema"),
    "google": ("generationConfig", "responseJsonSchema"),
}


def route(path: str, body: Mapping[str, Any]) -> tuple[Format, str] | None:
    """Return the format and model of a request; null if no provider knows the path."""
    for format_, pattern in _PATHS.items():
        if found := pattern.fullmatch(path):
            return format_, found.groupdict().get("model") or str(body.get("model"))
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, Mapping):
        for key in ("text", "content", "parts"):
            yield from _texts(value.get(key))


def _images(value: Any) -> Iterator[bytes]:
    if isinstance(value, list):
        for part in value:
            yield from _images(part)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key == "data" and isinstance(part, str):
                # Google's SDK uses the alphabet for URLs.
                yield base64.b64decode(part, altchars=b"-_" if set(part) & {"-", "_"} else None)
            yield from _images(part)
    elif isinstance(value, str) and value.startswith("data:image/"):
        yield base64.b64decode(value.partition(",")[2])


def write(reply: Reply, asked: Received) -> bytes:
    """Return the body of an answer, or of an error, as the provider would write it."""
    if reply.body is not None:
        return reply.body
    if reply.status != 200:
        return json.dumps(_ERRORS[asked.format](reply)).encode()
    text = reply.text
    if text is None:
        schema = asked.schema
        text = TEXT if schema is None else json.dumps(fill(schema, asked.text))
    return json.dumps(_ANSWERS[asked.format](reply, text, asked)).encode()


def _anthropic_error(reply: Reply) -> Any:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
    kind = {**kinds, 529: "overloaded_error"}.get(reply.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": reply.message}}


def _openai_error(reply: Reply) -> Any:
    return {"error": {"message": reply.message, "type": "scripted", "param": None, "code": None}}


def _google_error(reply: Reply) -> Any:
    kinds = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
    status = kinds.get(reply.status, "INTERNAL")
    return {"error": {"code": reply.status, "message": reply.message, "status": status}}


def _anthropic(reply: Reply, text: str, asked: Received) -> Any:
    stops = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
    silent = reply.stop in ("refusal", "filter")
    answer: dict[str, Any] = {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [] if silent else [{"type": "text", "text": text}],
        "stop_reason": stops.get(reply.stop, "pause_turn"),
        "stop_sequence": None,
    }
    if tokens := reply.tokens:
        answer["usage"] = {
            "input_tokens": tokens.input - tokens.cached,
            "output_tokens": tokens.output,
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens_details": {"thinking_tokens": tokens.reasoning},
        }
    return answer


def _chat(reply: Reply, text: str, asked: Received) -> Any:
    stops = {"end": "stop", "refusal": "stop", "length": "length", "filter": "content_filter"}
    refused = reply.stop == "refusal"
    message = {
        "role": "assistant",
        "content": None if refused else text,
        "refusal": text if refused else None,
    }
    choice = {"index": 0, "message": message, "finish_reason": stops.get(reply.stop, "tool_calls")}
    answer = {
        "id": f"chatcmpl_{asked.number}",
        "object": "chat.completion",
        "created": 1,
        "model": asked.model,
        "choices": [choice],
    }
    return {**answer, **_openai_usage(reply.tokens, "prompt", "completion")}


def _openai_usage(tokens: Tokens | None, into: str, out: str) -> dict[str, Any]:
    if tokens is None:
        return {}
    usage = {
        f"{into}_tokens": tokens.input,
        f"{into}_tokens_details": {"cached_tokens": tokens.cached},
        f"{out}_tokens": tokens.output,
        f"{out}_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }
    return {"usage": usage}


def _responses(reply: Reply, text: str, asked: Received) -> Any:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    if reply.stop == "refusal":
        part = {"type": "refusal", "refusal": text}
    whys = {"length": "max_output_tokens", "filter": "content_filter", "other": "scripted"}
    why = whys.get(reply.stop)
    status = "incomplete" if why else "completed"
    message = {"type": "message", "id": "m1", "status": status, "role": "assistant"}
    answer = {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "model": asked.model,
        "output": [{**message, "content": [part]}],
    }
    return {**answer, **_openai_usage(reply.tokens, "input", "output")}


def _google(reply: Reply, text: str, asked: Received) -> Any:
    stops = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "filter": "RECITATION"}
    candidate: dict[str, Any] = {"finishReason": stops.get(reply.stop, "OTHER"), "index": 0}
    if reply.stop not in ("refusal", "filter"):
        candidate["content"] = {"role": "model", "parts": [{"text": text}]}
    answer: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": asked.model,
        "responseId": f"r{asked.number}",
    }
    if tokens := reply.tokens:
        answer["usageMetadata"] = {
            "promptTokenCount": tokens.input,
            "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": tokens.output - tokens.reasoning,
            "thoughtsTokenCount": tokens.reasoning,
            "totalTokenCount": tokens.input + tokens.output,
        }
    return answer


_ANSWERS = {"anthropic": _anthropic, "chat": _chat, "responses": _responses, "google": _google}
_ERRORS = {
    "anthropic": _anthropic_error,
    "chat": _openai_error,
    "responses": _openai_error,
    "google": _google_error,
}
