"""What functions return that are there without the agent, and those that save something."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pytest_mlrbench.evidence.code.arithmetic import as_number
from pytest_mlrbench.evidence.code.calls import library, measured
from pytest_mlrbench.evidence.code.loading import loaded
from pytest_mlrbench.evidence.code.members import Members
from pytest_mlrbench.evidence.code.merging import each, kind_of, made_of
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    NONE,
    UNKNOWN,
    File,
    Items,
    Kind,
    Leaf,
    Library,
    Place,
    Table,
    Text,
    Value,
    listed,
    literal,
)

_LOGS = listed("debug info warning error critical exception log")
#: Methods and functions that save a value, by the place of that value among the arguments.
_SAVERS = {
    "json.dump": 0, "json.dumps": 0, "yaml.dump": 0, "yaml.safe_dump": 0, "pickle.dump": 0,
    "numpy.save": 1, "numpy.savetxt": 1, "numpy.savez": 1, "torch.save": 0, "joblib.dump": 0,
    "ujson.dump": 0, "simplejson.dump": 0, "orjson.dumps": 0, "wandb.log": 0,
    "mlflow.log_metrics": 0,
}  # fmt: skip


class Builtins(Members):
    """What calls and attributes come to."""

    # Functions that are there without the agent

    def _library(
        self, name: str, values: list[Value], named: Mapping[str, Value], place: Place
    ) -> Value:
        last = name.rpartition(".")[2]
        if name in _SAVERS:
            where = _SAVERS[name]
            self.saved.structure(values[where] if len(values) > where else COMPUTED)
            return COMPUTED
        if name.startswith("logging.") and last in _LOGS:
            self.saved.line(values)
            return NONE
        if values and isinstance(values[0], File):
            found = loaded(name, values[0].path, self.documents)
            return COMPUTED if found is None else found
        found = self._builtin(name, values, named, place) if "." not in name else None
        if found is None:
            found = library(name, values, named, place)
        return COMPUTED if found is None else found

    def _builtin(
        self, name: str, values: list[Value], named: Mapping[str, Value], place: Place
    ) -> Value | None:
        first: Value = values[0] if values else NONE
        match name:
            case "print":
                self.saved.line(values)
                return NONE
            case "open":
                mode = values[1] if len(values) > 1 else named.get("mode")
                return self._opened(mode, first)
            case "len":
                exact = isinstance(first, Items) and first.length is Kind.LITERAL
                if exact and isinstance(first, Items):
                    return literal(len(first.items), place)
                if isinstance(first, Table) and first.rest is None:
                    return literal(len(first.cells), place)
                return Leaf(max(kind_of(first), Kind.SETTING))
            case "range" | "enumerate" | "zip" | "reversed" | "sorted" | "map" | "filter":
                return self._sequence(name, values, named)
            case "list" | "tuple" | "set" | "iter" | "frozenset":
                if not values:
                    return Items([])
                items, length = self.turns(first)
                return Items(list(items), length) if not isinstance(first, Leaf) else first
            case "dict":
                return self._dictionary(first, named)
            case "str" | "repr" | "format":
                return first if isinstance(first, Leaf | Text) else made_of([first], place)
            case "float" | "int":
                return as_number(values, place, name) if values else literal(0, place)
            case "min" | "max" | "sum" | "round" | "abs":
                return self._summed(name, values, named, place)
            case "isinstance":
                return Leaf(Kind.LITERAL, _is_of(first, values[1] if len(values) > 1 else NONE))
            case "hasattr" | "callable" | "issubclass":
                return Leaf(Kind.LITERAL)
            case "getattr" if len(values) > 1 and isinstance(values[1], Leaf):
                return self.member(first, str(values[1].value)) or COMPUTED
            case "__import__" if isinstance(first, Leaf):
                return Library(str(first.value)[:100])
        return None

    def _opened(self, mode: Value | None, path: Value = NONE) -> Value:
        written = isinstance(mode, Leaf) and isinstance(mode.value, str)
        if written and isinstance(mode, Leaf) and set(str(mode.value)) & set("wax"):
            return self.saved.document()
        # Of an open file no more is known than which one it is.
        is_one = isinstance(path, Leaf) and path.kind <= Kind.SETTING and self.documents
        return File(path) if is_one and isinstance(path, Leaf) else COMPUTED

    def _sequence(self, name: str, values: list[Value], named: Mapping[str, Value]) -> Value:
        first: Value = values[0] if values else COMPUTED
        if name == "range":
            known = [v.value for v in values if isinstance(v, Leaf) and type(v.value) is int]
            if len(known) < len(values) or not known or (len(known) > 2 and known[2] == 0):
                kind = max((kind_of(value) for value in values), default=Kind.COMPUTED)
                # A counter is no setting, even if a setting says how far it counts.
                return Items([Leaf(Kind.LITERAL), Leaf(Kind.LITERAL)], max(kind, Kind.SETTING))
            numbers = range(*known[:3])
            items: list[Value] = [literal(number) for number in numbers[:200]]
            return Items(items, Kind.LITERAL if len(numbers) <= 200 else Kind.SETTING)
        if name in ("map", "filter") and len(values) > 1:
            items, length = self.turns(values[1])
            if name == "filter":
                return Items(items, max(length, Kind.SETTING))
            one = ast.Constant(0, lineno=1)
            return Items([self.apply(first, [item], {}, one) for item in items], length)
        columns = [self.turns(value) for value in values[: 1 if name == "enumerate" else None]]
        length = max((more for _, more in columns), default=Kind.LITERAL)
        if name == "zip":
            rows = zip(*(items for items, _ in columns), strict=False)
            return Items([Items(list(row)) for row in rows], length)
        items = list(columns[0][0]) if columns else []
        if name == "enumerate":
            return Items([Items([literal(i), item]) for i, item in enumerate(items)], length)
        return Items(items[::-1] if name == "reversed" else items, length)

    def _dictionary(self, first: Value, named: Mapping[str, Value]) -> Value:
        table = Table()
        if isinstance(first, Table):
            table = Table(dict(first.cells), first.rest, first.default)
        elif isinstance(first, Items):
            for pair in first.items:
                self.put(table, self.at(pair, literal(0)), self.at(pair, literal(1)))
        elif first is not NONE:
            return COMPUTED
        table.cells.update(named)
        return table

    def _summed(
        self, name: str, values: list[Value], named: Mapping[str, Value], place: Place
    ) -> Value:
        first: Value = values[0] if values else COMPUTED
        if "key" in named:
            return COMPUTED
        if name == "round" and isinstance(first, Leaf):
            value = round(first.value, 12) if isinstance(first.value, float) else first.value
            return Leaf(first.kind, value, first.draws, first.depth, first.place, first.number)
        if name in ("round", "abs"):
            return each(first, lambda leaf: measured(name, made_of([leaf], place)))
        if isinstance(first, Items) and first.length is Kind.COMPUTED and name == "sum":
            return COMPUTED
        numbers = [v.value for v in values if isinstance(v, Leaf)]
        if len(numbers) > 1 and all(isinstance(n, int | float) for n in numbers):
            chosen = (min if name == "min" else max)(numbers)  # type: ignore[type-var]
            return made_of(values, place, chosen if kind_of(Items(values)) < 1 else UNKNOWN)
        return made_of(values, place)

    # Methods of values


def _is_of(value: Value, types: Value) -> object:
    """Return whether *value* is of one of *types*, as far as its kind tells."""
    options = types.items if isinstance(types, Items) else [types]
    names = {option.name.rpartition(".")[2] for option in options if isinstance(option, Library)}
    if not names or len(names) < len(options):
        return UNKNOWN
    match value:
        case Table():
            return bool(names & {"dict", "Mapping", "defaultdict", "OrderedDict"})
        case Items():
            return UNKNOWN if "ndarray" in names else bool(names & {"list", "tuple", "Sequence"})
        case Text():
            return "str" in names
        case Leaf() if value.is_known:
            return type(value.value).__name__ in names
        case Leaf() if not names & {"dict", "list", "tuple", "str"}:
            return UNKNOWN
    return False if isinstance(value, Leaf) and value.kind < Kind.COMPUTED else UNKNOWN
