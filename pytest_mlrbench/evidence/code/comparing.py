"""Comparisons: what is known of them, and what they make of the values compared."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pytest_mlrbench.evidence.code.merging import kind_of
from pytest_mlrbench.evidence.code.values import ANSWER, COMPUTED, Items, Kind, Leaf, Table, Value


def decision(values: Sequence[Value]) -> Leaf:
    """Return what comparing *values* comes to where it is not known: chance makes it a result."""
    kind = max((kind_of(value) for value in values), default=Kind.LITERAL)
    return COMPUTED if kind >= Kind.DRAWN else Leaf(kind, ANSWER)


def compared(sign: ast.cmpop, left: Value, right: Value) -> bool | None:
    """Return what a comparison comes to; none if that is not known."""
    is_none = isinstance(right, Leaf) and right.value is None
    if isinstance(sign, ast.Is | ast.IsNot) and is_none and not isinstance(left, Leaf):
        return isinstance(sign, ast.IsNot)
    if isinstance(sign, ast.In | ast.NotIn) and isinstance(left, Leaf) and left.is_known:
        keys = _keys(right)
        return None if keys is None else (left.value in keys) is isinstance(sign, ast.In)
    if not (isinstance(left, Leaf) and isinstance(right, Leaf)):
        return None
    if not (left.is_known and right.is_known and max(left.kind, right.kind) is Kind.LITERAL):
        return None
    a, b = left.value, right.value
    try:
        match sign:
            case ast.Eq() | ast.Is():
                return a == b
            case ast.NotEq() | ast.IsNot():
                return a != b
            case ast.Lt():
                return bool(a < b)  # type: ignore[operator]
            case ast.LtE():
                return bool(a <= b)  # type: ignore[operator]
            case ast.Gt():
                return bool(a > b)  # type: ignore[operator]
            case ast.GtE():
                return bool(a >= b)  # type: ignore[operator]
    except TypeError:
        pass
    return None


def _keys(value: Value) -> list[object] | str | None:
    if isinstance(value, Table):
        return None if value.rest is not None else list(value.cells)
    if isinstance(value, Items):
        found = [item.value for item in value.items if isinstance(item, Leaf) and item.is_known]
        return found if len(found) == len(value.items) and value.length is Kind.LITERAL else None
    return None
