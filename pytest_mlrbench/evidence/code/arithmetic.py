"""Operators and number makers, applied to values of which little but the origin is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pytest_mlrbench.evidence.code.merging import kind_of, made_of, parts, text
from pytest_mlrbench.evidence.code.strings import LONGEST
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    UNKNOWN,
    Items,
    Kind,
    Leaf,
    Place,
    Text,
    Value,
    literal,
)


def curved(leaf: Leaf, place: Place, name: str) -> Leaf:
    """Return what a function that is no line makes of *leaf*."""
    if leaf.kind >= Kind.DRAWN:
        return COMPUTED
    known = UNKNOWN
    if isinstance(leaf.value, int | float) and hasattr(math, name) and name not in ("pow", "power"):
        try:
            known = getattr(math, name)(float(leaf.value))
        except (ValueError, OverflowError):
            return COMPUTED
    return made_of([leaf], place, known)


def as_number(values: Sequence[Value], place: Place, name: str) -> Value:
    """Return ``float(x)``, ``int(x, 16)``, ``Fraction(a, b)``: the number that is meant."""
    one = values[0]
    if not isinstance(one, Leaf):
        return made_of(values, place)
    if one.is_answer:
        return COMPUTED
    if len(values) == 2 and name == "Fraction":
        return operate("/", one, values[1], place)
    if one.is_known and len(values) == 1:
        try:
            number = float(str(one.value)[:60])
        except ValueError:
            return made_of([one], place)
        whole = name.startswith("int") and math.isfinite(number)
        return Leaf(one.kind, int(number) if whole else number, one.draws, one.depth, place)
    return made_of(values, place) if len(values) > 1 else one


def operate(sign: str, left: Value, right: Value, place: Place) -> Value:
    """Return what an operator makes of two values."""
    if isinstance(left, Text) or isinstance(right, Text):
        return text([*parts(left), *parts(right)], place) if sign == "+" else COMPUTED
    if isinstance(left, Items) or isinstance(right, Items):
        return _operate_on_items(sign, left, right, place)
    if not (isinstance(left, Leaf) and isinstance(right, Leaf)):
        return COMPUTED
    if isinstance(left.value, str) or isinstance(right.value, str):
        return _operate_on_strings(sign, left, right, place)
    drawn = max(left.kind, right.kind) is Kind.DRAWN
    # A mean of squares, a covariance, an energy: draws on both sides are a calculation with them.
    if drawn and (sign in ("**", "%", "//") or (sign == "*" and left.draws & right.draws)):
        return COMPUTED
    if sign == "+" and (left.is_answer or right.is_answer):
        return COMPUTED  # a count
    made = made_of([left, right], place, _worked_out(sign, left.value, right.value))
    is_level = sign in "+-" and not (left.is_spread and right.is_spread)
    return replace(made, is_spread=False) if made.is_spread and is_level else made


def _operate_on_items(sign: str, left: Value, right: Value, place: Place) -> Value:
    if isinstance(left, Items) and isinstance(right, Items):
        if sign == "+" and not (left.is_array or right.is_array):
            return Items([*left.items, *right.items][:2000], max(left.length, right.length))
        pairs = list(zip(left.items, right.items, strict=False))
        items = [operate(sign, a, b, place) for a, b in pairs[:400]]
        return Items(items, max(left.length, right.length), True)
    whole, other = (left, right) if isinstance(left, Items) else (right, left)
    assert isinstance(whole, Items)
    if sign == "*" and not whole.is_array:
        times = other.value if isinstance(other, Leaf) else UNKNOWN
        known = isinstance(times, int) and 0 <= times * len(whole.items) <= 2000
        items = whole.items * times if known and isinstance(times, int) else whole.items
        return Items(list(items), whole.length if known else max(whole.length, kind_of(other)))
    if isinstance(other, Leaf):
        turned = whole is right
        pairs = [(other, item) if turned else (item, other) for item in whole.items]
        items = [operate(sign, a, b, place) for a, b in pairs]
        return Items(items, whole.length, True)
    return COMPUTED


def _operate_on_strings(sign: str, left: Leaf, right: Leaf, place: Place) -> Value:
    if sign == "+":
        return text([*parts(left), *parts(right)], place)
    if sign == "*" and isinstance(left.value, str) and isinstance(right.value, int):
        return literal((left.value * min(right.value, 1000))[:LONGEST], place)
    return made_of([left, right], place)


def _worked_out(sign: str, a: object, b: object) -> object:
    if not (isinstance(a, int | float) and isinstance(b, int | float)):
        return UNKNOWN
    if max(abs(a), abs(b)) > 1e15 or (sign == "**" and abs(b) > 64):
        return UNKNOWN
    try:
        match sign:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return a / b
            case "//":
                return a // b
            case "%":
                return a % b
            case "**":
                return float(a) ** float(b)
    except (ArithmeticError, ValueError):
        pass
    return UNKNOWN
