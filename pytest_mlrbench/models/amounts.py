"""Amounts of money and tokens, and the book that a budget is kept in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.shared import Content, is_alive
from pytest_mlrbench.values import Value


@dataclass(frozen=True, slots=True)
class Amount:
    """Money in billionths of a USD, so that sums are exact, and tokens of input and output."""

    nano: int = 0
    tokens: int = 0


def nano(cost: float | None) -> int:
    """Return USD in billionths, rounded up; what is not known is 0."""
    return math.ceil(round(cost * 1e9, 3)) if cost is not None else 0


def nothing() -> dict[str, int]:
    """Return a sum of no calls."""
    return {"nano": 0, "tokens": 0, "calls": 0}


class _Sum(Value):
    nano: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    calls: int = Field(default=0, ge=0)


class _Book(Value):
    nano: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    unpriced: int = Field(default=0, ge=0)
    held: dict[str, _Sum] = Field(default_factory=dict)
    cut: _Sum = _Sum()


def book_of(content: Content) -> Content:
    """Return the part of a shared document that a budget is kept in, new if there is none yet.

    *nano*, *tokens* and *unpriced* are what is spent, *held* what each process holds, by its name,
    and *cut* what nobody knows of.
    """
    try:
        return _Book.model_validate(content.get("budget") or {}).model_dump()
    except ValidationError:
        raise InputError(
            "shared.json in the run folder is damaged, and what the run has spent is in it: delete"
            " it to begin at 0."
        ) from None


def held_in(book: Content) -> Amount:
    """Return what all processes hold together."""
    parts: list[Any] = list(book["held"].values())
    return Amount(sum(part["nano"] for part in parts), sum(part["tokens"] for part in parts))


def move(into: dict[str, int], amount: Amount, calls: int) -> None:
    """Add as many calls of *amount*; take them away if they are fewer than none."""
    into["nano"] += calls * amount.nano
    into["tokens"] += calls * amount.tokens
    into["calls"] += calls


def bury(book: Content) -> None:
    """Let go of what processes hold that are not there any more."""
    for name, held in list(book["held"].items()):
        if not is_alive(name):
            del book["held"][name]
            for key, value in held.items():
                book["cut"][key] += value
