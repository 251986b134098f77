"""From what a model says to the JSON document in it, with care: a score is never guessed."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_mlrbench.judges.review import decoder
from pytest_mlrbench.models.exchange import Answer

#: A backslash with what JSON lets follow, or alone. ``\\b`` and ``\\f`` are no text but LaTeX.
_BACKSLASH = re.compile(r'\\(?:["\\/nrt]|u[0-9a-fA-F]{4})?')
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)


#: Characters of a reason: it may quote what is wrong, at any length.
_LONGEST = 300


class UnusableAnswer(ValueError):
    """Why an answer cannot be used, as the end of "it cannot be used because …"."""

    def __init__(self, why: str) -> None:
        why = " ".join(why.split())
        super().__init__(why if len(why) <= _LONGEST else f"{why[:_LONGEST]}…")


def document(answer: Answer) -> dict[str, Any]:
    """Return the JSON object that a model's answer consists of, or that it ends with.

    Models write drafts and remarks; what counts is the last complete object outside all others. If
    something comes after it that may have been meant for another, it is not known to be the last.

    :raises UnusableAnswer: there is none, a key is there twice, or NaN or infinity is in it; it was
        refused, filtered, or cut off.
    """
    if answer.stop == "refusal":
        raise UnusableAnswer("it was refused")
    if answer.stop == "filter":
        raise UnusableAnswer("a filter of the provider ended it")
    text = answer.text.strip()
    if not text:
        raise UnusableAnswer("it is empty")
    # Of an answer that was cut off, the last complete object may be the draft.
    whole = answer.stop == "length"
    try:
        return _read(text, whole, _STRICT)
    except UnusableAnswer as first:
        try:
            return _read(_BACKSLASH.sub(_repaired, text), whole, _LENIENT)
        except UnusableAnswer:
            raise UnusableAnswer(f"it was cut off, and {first}" if whole else str(first)) from None


def _read(text: str, whole: bool, decoder: json.JSONDecoder) -> dict[str, Any]:
    try:
        found = decoder.decode(text)
    except (ValueError, RecursionError) as error:
        if whole:
            raise UnusableAnswer(f"it is not JSON: {error}") from None
        return _last_object(text, decoder)
    if not isinstance(found, dict):
        raise UnusableAnswer("it is no JSON object")
    return found


def _last_object(text: str, decoder: json.JSONDecoder) -> dict[str, Any]:
    last: dict[str, Any] | None = None
    why = "there is no JSON object in it"
    place = text.find("{")
    while place >= 0:
        try:
            last, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            # It is skipped as a whole: what is inside it is none of the outermost.
            last, end = None, _end(text, place)
            why = f"it is not JSON: {error}"
        place = text.find("{", end) if end > 0 else -1
    if last is None:
        raise UnusableAnswer(why)
    return last


def _end(text: str, start: int) -> int:
    """Where the object that begins at *start* ends, though it is not JSON; -1 if nowhere."""
    depth = 0
    for found in _STRING_OR_BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0 and found[0] == "}":
            return found.end()
    return -1


def _repaired(found: re.Match[str]) -> str:
    return "\\\\" if found[0] == "\\" else found[0]


_STRICT = decoder(strict=True)
#: Lets line breaks stand in texts, which some models write into them.
_LENIENT = decoder(strict=False)
