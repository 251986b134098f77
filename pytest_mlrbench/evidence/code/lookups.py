"""Where a program stands, and what stands in its lists and dictionaries."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_mlrbench.evidence.code.merging import computed, either, kind_of
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    SETTING,
    UNKNOWN,
    Class,
    Function,
    Items,
    Kind,
    Leaf,
    Library,
    Place,
    Scope,
    Table,
    Text,
    Thing,
    Value,
    literal,
)

#: Turns of a loop that are followed one by one.
TURNS = 16


class Spent(Exception):
    """The program is larger than what is looked at."""


@dataclass(slots=True)
class Call:
    """A call that is being followed.

    :param under: what the branches depend on that lead here, from the outside in.
    :param fresh: names that were given a value in this turn of the innermost loop.
    :param cut: loops around this place that are not followed to their end.
    """

    scope: Scope
    function: object = None
    returned: list[Value] = field(default_factory=list)
    under: list[Kind] = field(default_factory=list)
    turns: list[Kind] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    cut: int = 0


class Lookups(ABC):
    """Calls that are being followed, and what is looked up in values."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.calls: list[Call] = []

    @property
    def call(self) -> Call:
        """The innermost call."""
        return self.calls[-1]

    def place(self, node: ast.AST) -> Place:
        """Return where *node* stands."""
        return Place(self.call.scope.path, getattr(node, "lineno", 1))

    def spend(self) -> None:
        """Count a step.

        :raises Spent: after the last.
        """
        self.steps -= 1
        if self.steps < 0:
            raise Spent

    def put(self, table: Table, key: Value, value: Value, certain: bool = True) -> None:
        """Store *value* under *key*."""
        if isinstance(key, Leaf) and key.is_known and len(table.cells) < 2000:
            old = None if certain else table.cells.get(key.value)
            table.cells[key.value] = either(old, value) if old is not None else value
        elif isinstance(key, Text):
            self.put(table, literal("".join(p for p in key.parts if isinstance(p, str))), value)
        else:
            table.rest = either(table.rest, value) if table.rest is not None else value

    def decided(self, value: Value) -> Value:
        """Return *value* as it is given in this branch, which a result may have decided on.

        What a report says may hang on a result; the numbers in it are what they are.
        """
        is_text = isinstance(value, Text) or isinstance(getattr(value, "value", None), str)
        return value if is_text or Kind.COMPUTED not in self.call.under else computed(value)

    def truth(self, value: Value) -> bool | None:
        """Return whether *value* counts as true; none if that is not known."""
        if isinstance(value, Leaf) and value.is_known and value.kind is Kind.LITERAL:
            return bool(value.value)
        if isinstance(value, Items) and value.length is Kind.LITERAL:
            return bool(value.items)
        if isinstance(value, Function | Class | Thing | Library):
            return True
        return None

    def at(self, whole: Value, key: Value) -> Value:
        """Return what stands in *whole* under *key*."""
        if (isinstance(key, Leaf | Items) and kind_of(key) >= Kind.DRAWN) or isinstance(
            whole, Thing
        ):
            # What is looked up by chance or by a result is a choice that was made.
            return COMPUTED
        if isinstance(whole, Library) and whole.name in ("sys.argv", "os.environ"):
            return SETTING
        known = key.value if isinstance(key, Leaf) else UNKNOWN
        if isinstance(key, Text):
            known = "".join(part for part in key.parts if isinstance(part, str))
        if isinstance(whole, Table):
            return self._cell(whole, known)
        if isinstance(whole, Items):
            if isinstance(known, int) and -len(whole.items) <= known < len(whole.items):
                return whole.items[known]
            rows = [
                i.cells[known] for i in whole.items if isinstance(i, Table) and known in i.cells
            ]
            if isinstance(known, str) and rows:
                return Items(rows, whole.length, True)
            return any_of(whole.items)
        if isinstance(whole, Leaf):
            return Leaf(whole.kind, UNKNOWN, whole.draws, whole.depth, whole.place)
        return COMPUTED

    def _cell(self, table: Table, key: object) -> Value:
        if key is UNKNOWN:
            return any_of([*table.cells.values(), *([table.rest] if table.rest else [])])
        if key not in table.cells and table.default is not None:
            table.cells[key] = self.made_by(table.default)
        if key in table.cells:
            return table.cells[key]
        return table.rest if table.rest is not None else COMPUTED

    def turns(self, value: Value) -> tuple[list[Value], Kind]:
        """Return the values that a loop over *value* takes, and what their number depends on.

        A number that is larger than what is followed depends on a setting, as it were.
        """
        if isinstance(value, Items):
            most = value.items[:TURNS]
            cut = Kind.SETTING if len(value.items) > TURNS else Kind.LITERAL
            if not most and value.length > Kind.LITERAL:
                return [COMPUTED], value.length
            return most, max(value.length, cut)
        if isinstance(value, Table):
            keys: list[Value] = [literal(key) for key in list(value.cells)[:TURNS]]
            if value.rest is not None:
                return [*keys, Leaf(Kind.SETTING)], Kind.SETTING
            return keys, Kind.SETTING if len(value.cells) > TURNS else Kind.LITERAL
        kind = value.kind if isinstance(value, Leaf) else Kind.COMPUTED
        one = Leaf(kind) if kind < Kind.COMPUTED else COMPUTED
        return [one, one], max(kind, Kind.SETTING)

    @abstractmethod
    def made_by(self, maker: Value) -> Value:
        """Return what a factory without arguments makes."""


def any_of(values: Iterable[Value]) -> Value:
    """Return a value that is one of *values*."""
    found: Value | None = None
    for value in values:
        found = value if found is None else either(found, value)
    return COMPUTED if found is None else found
