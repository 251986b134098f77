"""Which requests to a provider pass: paths, queries and models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qsl

from pytest_mlrbench.models.config import PROVIDERS, Provider
from pytest_mlrbench.sandbox.gate_reading import Part, each, spelled
from pytest_mlrbench.sandbox.gate_refusals import Refusal

#: Names of models in paths and bodies.
_NAME = r"[A-Za-z0-9][A-Za-z0-9._:@-]*(?:/[A-Za-z0-9][A-Za-z0-9._:@-]*)*"
_GOOGLE = r"/v1[a-z0-9]*/models"
_GENERATES = "generateContent|streamGenerateContent|embedContent|batchEmbedContents"

#: Provider → (method, path below its base address, whether an answer costs tokens).
_ROUTES: Mapping[Provider, tuple[tuple[str, str, bool], ...]] = {
    "anthropic": (
        ("POST", r"/v1/messages", True),
        ("POST", r"/v1/messages/count_tokens", False),
        ("GET", rf"/v1/models(?:/{_NAME})?", False),
    ),
    "openai": (
        ("POST", r"/chat/completions", True),
        ("POST", r"/responses(?:/compact)?", True),
        ("POST", r"/responses/input_tokens", False),
        ("POST", r"/embeddings", True),
        ("GET", rf"/models(?:/{_NAME})?", False),
    ),
    "google": (
        ("POST", rf"{_GOOGLE}/(?P<model>[A-Za-z0-9._-]+):(?:{_GENERATES})", True),
        ("POST", rf"{_GOOGLE}/(?P<model>[A-Za-z0-9._-]+):countTokens", False),
        ("GET", rf"{_GOOGLE}(?:/[A-Za-z0-9._-]+)?", False),
    ),
}
#: What the container's base address of each provider ends in.
PREFIXES: Mapping[Provider, str] = {
    "anthropic": "/anthropic",
    "openai": "/openai/v1",
    "google": "/google",
}
#: Others could hide from us what a call used (``fields``) or carry a key.
_QUERIES = {"alt", "beta", "limit", "after", "after_id", "before_id", "pageSize", "pageToken"}
#: Where models may stand that answer in the place of the one named.
_OTHERS = {"models", "fallbacks", "prompt"}
#: Commas and brackets of a body: each may become an object in memory.
_MOST = 2_000_000
#: Longest name of a model, in characters.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that may pass.

    :param path: below the provider's base address.
    :param query: as it is sent on.
    :param model: empty where none is named, as in a list of models.
    :param costs: whether the answer costs tokens.
    """

    provider: Provider
    path: str
    query: tuple[tuple[str, str], ...]
    model: str
    costs: bool


def provider_of(target: str) -> Provider | None:
    """Return whose base address the *target* of a request is below."""
    return next((who for who in PROVIDERS if target.startswith(f"{PREFIXES[who]}/")), None)


def find(method: str, target: str) -> Asked:
    """Return what a request without its body asks for; *target* is as it was sent.

    Nothing is decoded or made simpler: a path in any other spelling than the plain one is refused.

    :raises Refusal: it is none that passes.
    """
    path, _, query = target.partition("?")
    provider = provider_of(path)
    if provider is not None:
        rest = path.removeprefix(PREFIXES[provider])
        for wanted, pattern, costs in _ROUTES[provider]:
            if wanted == method and (found := re.fullmatch(pattern, rest)):
                model = found.groupdict().get("model") or ""
                return Asked(provider, rest, _queries(query), model, costs)
    raise Refusal(404, "path", "this path does not pass: only those of inference do.")


def _queries(query: str) -> tuple[tuple[str, str], ...]:
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, strict_parsing=bool(query), errors="strict"
        )
    except ValueError:
        raise Refusal(400, "query", "the query cannot be read.") from None
    kept = [(name, value) for name, value in pairs if name != "key"]
    if odd := [name for name, _ in kept if name not in _QUERIES]:
        raise Refusal(400, "query", f"the parameter {odd[0][:40]!r} does not pass.")
    return tuple(kept)


def read_body(body: bytes) -> dict[str, Any]:
    """Return the document in a *body*.

    :raises Refusal: it is none, or could be read in two ways.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > _MOST:
        raise Refusal(413, "body", "the body has too many parts.")
    try:
        document = json.loads(body.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Refusal(400, "body", "the body must be JSON, in UTF-8.") from None
    if not isinstance(document, dict):
        raise Refusal(400, "body", "the body must be a JSON object.")
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise Refusal(400, "body", "a name stands twice in one object of the body.")
    return document


def model_in(asked: Asked, document: Mapping[str, Any]) -> str:
    """Return the model asked for.

    :raises Refusal: none is named, or several are.
    """
    model = asked.model or document.get("model")
    if not isinstance(model, str) or len(model) > _LONGEST or not re.fullmatch(_NAME, model):
        raise Refusal(400, "model", "the body must name one model, in plain letters.")
    if others := _OTHERS.intersection(map(spelled, document)):
        raise Refusal(400, "model", f"{min(others)}, which names other models, does not pass.")
    return model


def check_models(
    asked: Asked,
    model: str,
    parts: Sequence[Part],
    allowed: Sequence[str] | None,
    *,
    counted: bool,
) -> None:
    """Check all models that a body names: a part of it may be for another one than *model*.

    :param counted: whether what is used is counted at the price of *model*.
    :raises Refusal: one of them may not be asked here.
    """
    check_model(asked.provider, model, allowed)
    for number, part in enumerate(parts):
        # At the top Google goes by the path, and below by what is said there.
        alone = counted or (asked.provider == "google" and number > 0)
        named = (
            one for name, value in part.items() if name.endswith("model") for one in each(value)
        )
        for other in (one.removeprefix("models/") for one in named if isinstance(one, str)):
            check_model(asked.provider, other[:_LONGEST], allowed)
            if alone and other != model:
                raise Refusal(403, "model", f"{other[:_LONGEST]} is not asked beside {model}.")


def check_model(provider: Provider, model: str, allowed: Sequence[str] | None) -> None:
    """Check a name against patterns like ``gpt-5*`` or ``openai:*``; null allows all.

    :raises Refusal: none of them fits.
    """
    if allowed is None:
        return
    names = (model, f"{provider}:{model}")
    if not any(fnmatchcase(name, pattern) for pattern in allowed for name in names):
        raise Refusal(403, "model", f"the model {model} is none of this run's.")


def check_countable(asked: Asked, document: Mapping[str, Any], *, limited: bool) -> None:
    """Check that the answer will say what it used.

    :param limited: whether that has to be known.
    :raises Refusal: it will not.
    """
    if document.get("background"):
        raise Refusal(403, "background", "answers are waited for: background does not pass.")
    if limited and asked.path == "/chat/completions" and document.get("stream"):
        options = document.get("stream_options")
        if not (isinstance(options, dict) and options.get("include_usage") is True):
            raise Refusal(
                403, "usage", "set stream_options.include_usage: what the case may use is limited."
            )
