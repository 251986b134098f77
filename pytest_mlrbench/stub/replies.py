"""What the stub is told to do with one request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Stop = Literal["end", "length", "refusal", "filter", "other"]

#: What the stub says where no schema has to be filled.
TEXT = "This is a scripted answer."


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts the stub claims; *input* includes *cached*, *output* includes *reasoning*."""

    input: int = 11
    output: int = 7
    cached: int = 3
    reasoning: int = 2


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, right or wrong.

    :param text: the answer; null for one that fills the schema of the request, or ``TEXT``.
    :param stop: why it ends, in our words; it is spelled as the provider would.
    :param status: of HTTP; other than 200, the body is an error in the provider's form.
    :param message: the error's text.
    :param headers: added to those of the answer.
    :param delay: seconds before anything is sent.
    :param body: sent in place of the right body.
    :param transport: what becomes of it on its way: all of it is sent, or nothing ever; the
        connection is reset before it, or ends in the middle of it, or it comes byte by byte.
    :param tokens: the usage; null for an answer without.
    """

    text: str | None = None
    stop: Stop = "end"
    status: int = 200
    message: str = "scripted fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    body: bytes | None = None
    transport: Literal["whole", "hang", "reset", "truncate", "trickle"] = "whole"
    tokens: Tokens | None = field(default_factory=Tokens)


def rate_limited(after: float | str | None = None, message: str = "too many requests") -> Reply:
    """429; *after* is the Retry-After header, seconds or any text."""
    headers = {} if after is None else {"retry-after": str(after)}
    return Reply(status=429, message=message, headers=headers)


def failing(status: int = 500, message: str = "scripted fault") -> Reply:
    """An HTTP error."""
    return Reply(status=status, message=message)


def hanging() -> Reply:
    """No answer at all, until the other side gives up."""
    return Reply(transport="hang")


def resetting() -> Reply:
    """The connection is reset."""
    return Reply(transport="reset")


def trickling() -> Reply:
    """The body comes byte by byte, ten in a second: never silent for long, and never done."""
    return Reply(transport="trickle", text=TEXT * 20)


def truncated() -> Reply:
    """The connection ends in the middle of the body."""
    return Reply(transport="truncate")


def not_json() -> Reply:
    """200 with a page of HTML."""
    return Reply(body=b"<html><body>Bad gateway</body></html>")


def broken_json() -> Reply:
    """200 with JSON that stops in the middle, though the length is as announced."""
    return Reply(body=b'{"id": "x", "content": [')


def empty() -> Reply:
    """200 without a body."""
    return Reply(body=b"")


def wrong_shape() -> Reply:
    """200 with JSON that is no answer of any provider."""
    return Reply(body=b'{"hello": "world"}')


def refusing() -> Reply:
    """The model says that it will not answer."""
    return Reply(stop="refusal", text="I cannot help with that.")


def filtered() -> Reply:
    """The provider's filter ends the answer."""
    return Reply(stop="filter", text="")


def cut(text: str = '{"clarity": {"score": 7, "justif') -> Reply:
    """The answer is cut off at ``max_tokens``."""
    return Reply(stop="length", text=text)


def off_schema() -> Reply:
    """A well-formed answer that is not what the schema asks for."""
    return Reply(text=json.dumps({"verdict": "fine", "score": 42}))
