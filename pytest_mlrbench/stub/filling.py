"""Answers that a JSON schema allows, the same for the same seed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

_WORDS = "The stub fills this text from the schema and knows nothing of the work. "
#: The Anthropic SDK moves limits that the API does not enforce into the description.
_MOVED = re.compile(r"\b(minimum|maximum|minLength|maxLength|minItems|maxItems): (\d+)")


def fill(schema: Mapping[str, Any], seed: str = "") -> Any:
    """Return a value that *schema* allows.

    Understands objects, arrays, enums, constants, numbers and texts with limits, ``$ref``,
    ``anyOf``, ``oneOf`` and ``allOf``; not patterns and formats. Numbers depend on *seed* and on
    the place in the document, so that two prompts get two answers.
    """
    return _fill(schema, schema, seed)


def _fill(schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> Any:
    schema = _resolve(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][_draw(place, len(schema["enum"]))]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return _fill(schema[choice][0], root, place)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind == "object":
        parts = schema.get("properties", {})
        return {name: _fill(part, root, f"{place}/{name}") for name, part in parts.items()}
    if kind == "array":
        return _array(schema, root, place)
    return _scalar(kind, schema, place)


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[step]
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_resolve(found, root), **rest}
    merged = dict(schema)
    for part in merged.pop("allOf", ()):
        more = _resolve(part, root)
        properties = {**merged.get("properties", {}), **more.get("properties", {})}
        merged.update(more)
        if properties:
            merged["properties"] = properties
    moved = _MOVED.findall(str(schema.get("description", "")))
    return {**{name: int(number) for name, number in moved}, **merged}


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> list[Any]:
    fewest = schema.get("minItems", 0)
    number = min(schema.get("maxItems", max(fewest, 2)), max(fewest, 2))
    items = schema.get("items", {"type": "string"})
    return [_fill(items, root, f"{place}/{index}") for index in range(number)]


def _scalar(kind: str, schema: Mapping[str, Any], place: str) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return bool(_draw(place, 2))
    if kind in ("integer", "number"):
        return _number(kind, schema, place)
    longest = schema.get("maxLength", len(_WORDS) - 1)
    length = max(schema.get("minLength", 0), min(longest, len(_WORDS) - 1))
    return (_WORDS * (length // len(_WORDS) + 1))[:length]


def _number(kind: str, schema: Mapping[str, Any], place: str) -> int | float:
    step = 1 if kind == "integer" else 0.5
    highest = schema.get("maximum", schema.get("exclusiveMaximum", 10 + step) - step)
    low = schema.get("minimum", schema.get("exclusiveMinimum", min(0, highest) - step) + step)
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10 + step) - step)
    steps = int((high - low) / step) + 1
    value: int | float = low + _draw(place, max(steps, 1)) * step
    return value


def _draw(place: str, number: int) -> int:
    """A number below *number*."""
    return int.from_bytes(hashlib.sha256(place.encode()).digest()[:8], "big") % number
