"""The JSON documents a judge is asked for, and whether an answer is one of them.

Providers enforce schemas in part or not at all, so every answer is checked here. All properties are
required and no others allowed, as OpenAI asks for; an answer with others is taken all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_mlrbench.judges.review import HALLUCINATIONS, snake
from pytest_mlrbench.suites.rubrics import HIGHEST, LOWEST, Rubric

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
#: How sure a judge is.
SUREST = 5
_CONFIDENCE = {"type": "integer", "minimum": LOWEST, "maximum": SUREST}
_TYPES: Mapping[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
}


def review_schema(rubric: Rubric, stage: str) -> dict[str, Any]:
    """Return the schema of a review of *stage*.

    Models write properties in this order: reasons come before the score they lead to, and the
    overall score, in which everything counts, after everything.
    """
    score = {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}
    scored = _object(justification=_TEXT, score=score)
    parts: dict[str, Any] = dict.fromkeys(rubric.names(stage), scored)
    if rubric.hallucination:
        parts["hallucination"] = _object(details=_TEXT, has_hallucination={"type": "boolean"})
    parts["overall"] = _object(
        strengths=_TEXTS, weaknesses=_TEXTS, justification=_TEXT, score=score
    )
    if rubric.confidence:
        parts["confidence"] = _CONFIDENCE
    return _object(**parts)


def hallucination_schema() -> dict[str, Any]:
    """Return the schema of a review that looks for what was made up."""
    kind = {"type": "string", "enum": list(HALLUCINATIONS)}
    one = _object(kind=kind, description=_TEXT, evidence=_TEXT)
    return _object(hallucinations={"type": "array", "items": one}, confidence=_CONFIDENCE)


def normalised(raw: Any) -> Any:
    """Return a review with the names of its parts as the schema spells them."""
    if not isinstance(raw, dict):
        return raw
    parts = {snake(key): value for key, value in raw.items()}
    if "overall" not in parts and "overall_assessment" in parts:
        parts["overall"] = parts.pop("overall_assessment")
    return parts


def violation(value: Any, schema: Mapping[str, Any], place: str = "the answer") -> str:
    """Return how *value* is not what *schema* of this module asks for; empty if it is."""
    kind = schema["type"]
    right = type(value) is _TYPES[kind]  # not isinstance: true is no number
    if not right:
        return f"{place} must be of the type {kind}"
    if kind == "object":
        for name, part in schema["properties"].items():
            if name not in value:
                return f"{place} has no {name}"
            if why := violation(
                value[name], part, name if place == "the answer" else f"{place}.{name}"
            ):
                return why
    if kind == "array":
        for number, item in enumerate(value, start=1):
            if why := violation(item, schema["items"], f"{place} {number}"):
                return why
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} must be one of {', '.join(schema['enum'])}"
    if kind == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        return f"{place} must be from {schema['minimum']} to {schema['maximum']}"
    return ""


def form(schema: Mapping[str, Any]) -> str:
    """Return a document of this form with what belongs where, for a model that sees no schema."""
    text = json.dumps(_example(schema), indent=1)
    # A number in quotes would be an example of what is refused.
    return re.sub(r'"(<(?:whole number|true or false)[^"]*>)"', r"\1", text)


def _example(schema: Mapping[str, Any]) -> Any:
    kind = schema["type"]
    if kind == "object":
        return {name: _example(part) for name, part in schema["properties"].items()}
    if kind == "array":
        return [_example(schema["items"])]
    if kind == "integer":
        return f"<whole number {schema['minimum']}-{schema['maximum']}>"
    if "enum" in schema:
        return f"<{' or '.join(schema['enum'])}>"
    return "<true or false>" if kind == "boolean" else "<text>"


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
