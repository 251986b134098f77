"""Strings with values in them: joined, filled, taken apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from string import Formatter

from pytest_mlrbench.evidence.code.merging import parts, text
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    Items,
    Leaf,
    Place,
    Value,
    listed,
    literal,
)

#: Longest text that is worked out.
LONGEST = 20_000


_TEXTS = listed(
    """
    title upper lower strip lstrip rstrip replace capitalize split splitlines startswith endswith
    ljust rjust center zfill partition
    """
)


def of_text(
    name: str, one: Leaf, values: Sequence[Value], named: Mapping[str, Value], place: Place
) -> Value | None:
    """Return what a method of a known string returns; none if it is not known here."""
    assert isinstance(one.value, str)
    if name == "join" and values and isinstance(values[0], Items):
        pieces: list[str | Leaf] = []
        for item in values[0].items[:2000]:
            pieces += [*([one.value] if pieces else []), *parts(item)]
        return text(pieces, place)
    if name == "format":
        return _formatted(one.value[:LONGEST], values, named, place)
    known = [v.value for v in values if isinstance(v, Leaf) and isinstance(v.value, str | int)]
    if name not in _TEXTS or len(known) < len(values) or len(one.value) > LONGEST:
        return None
    if name in ("ljust", "rjust", "center", "zfill"):
        return one
    try:
        result: object = getattr(one.value, name)(*known)
    except (TypeError, ValueError):
        return None
    if isinstance(result, list | tuple):
        return Items([literal(piece, place) for piece in result[:400]])
    return literal(result, place)


def _formatted(
    form: str, values: Sequence[Value], named: Mapping[str, Value], place: Place
) -> Value | None:
    """Return ``"{} {1:.2f} {name[0]}"`` filled in; none if it is no such form."""
    found: list[str | Leaf] = []
    following = iter(values)
    try:
        for piece, field, _, _ in islice(Formatter().parse(form), 2000):
            found.append(piece)
            if field is None:
                continue
            if not field:
                value = next(following, COMPUTED)
            elif re.fullmatch(r"\d{1,4}", field):
                value = dict(enumerate(values)).get(int(field), COMPUTED)
            else:
                value = named.get(field, COMPUTED)
            found += parts(value)
    except ValueError:
        return None
    return text(found, place)


def filled(pieces: Sequence[str], values: Sequence[Value], place: Place) -> Value:
    """Return a text whose gaps, every second piece, are filled with *values* in their order."""
    found: list[str | Leaf] = []
    waiting = list(values)
    for index, piece in enumerate(pieces[:2000]):
        if index % 2 == 0:
            found.append(piece)
        else:
            found += parts(waiting.pop(0)) if waiting else [COMPUTED]
    return text(found, place)


def percent(form: str) -> list[str]:
    """Split ``"a %.2f b"`` into texts and gaps in turns."""
    pieces: list[str] = []
    start = index = 0
    while (index := form.find("%", index)) >= 0 and len(pieces) < 2000:
        end = index + 1
        while end < len(form) and form[end] in "0123456789.-+# ":
            end += 1
        if form[end : end + 1] == "%":
            index = end + 1
            continue
        pieces += [form[start:index], form[index : end + 1]]
        start = index = end + 1
    return [*pieces, form[start:]]
