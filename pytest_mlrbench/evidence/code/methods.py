"""Methods of values that are there without the agent."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pytest_mlrbench.evidence.code.builtins import _LOGS, Builtins
from pytest_mlrbench.evidence.code.calls import SAME, measured
from pytest_mlrbench.evidence.code.merging import made_of
from pytest_mlrbench.evidence.code.strings import of_text
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    NONE,
    SETTING,
    Document,
    File,
    Items,
    Kind,
    Leaf,
    Table,
    Text,
    Value,
    listed,
    literal,
)

_WRITES = listed("write write_text writelines writestr")


_OWN_SAVERS = listed(
    """
    to_csv to_json to_markdown to_latex to_excel to_html to_string to_parquet to_pickle
    """
)


#: What makes a smaller table of one, of the same origin.
_SUMMARIES = listed("groupby agg aggregate pivot pivot_table melt describe unstack stack transpose")
_SUMS = listed("mean std var sum min max median cumsum clip round prod quantile")


class Methods(Builtins):
    """What methods do and return."""

    def _row(self, name: str, values: list[Value]) -> None:
        first: Value = values[0] if values else NONE
        if name in ("add_scalar", "log_metric"):
            key = first if isinstance(first, Leaf | Text) else NONE
            self.saved.line([key, literal(": "), *values[1:2]])
        elif isinstance(first, Table):
            self.saved.structure(Items([first]))
        elif isinstance(first, Items):
            for row in first.items if name == "writerows" else [first]:
                self.saved.structure(row) if isinstance(row, Table) else self.saved.row(row)

    def _method(
        self,
        owner: Value,
        name: str,
        values: list[Value],
        named: Mapping[str, Value],
        node: ast.Call,
    ) -> Value:
        place = self.place(node)
        first: Value = values[0] if values else NONE
        if name in _WRITES:
            into = owner if isinstance(owner, Document) else self.saved.document()
            self.saved.write(into, values)
            return NONE
        if name in ("writerow", "writerows", "add_row", "add_scalar", "log_metric"):
            self._row(name, values)
            return NONE
        if name in _OWN_SAVERS:
            self.saved.structure(owner)
            return COMPUTED
        if name in _LOGS and not isinstance(owner, Items | Table):
            self.saved.line(values)
            return NONE
        if name == "open" and not isinstance(owner, Table | Items):
            return self._opened(first)
        if isinstance(owner, File):
            return owner if name == "read" else COMPUTED
        if isinstance(owner, Leaf) and isinstance(owner.value, str):
            found = of_text(name, owner, values, named, place)
            return Leaf(owner.kind) if found is None else found
        if isinstance(owner, Table):
            return self._of_table(owner, name, values, named)
        if isinstance(owner, Items) and (found := self._of_items(owner, name, values)) is not None:
            return found
        if name in SAME or isinstance(owner, Text):
            return owner
        if isinstance(owner, Leaf) and owner.kind is Kind.SETTING:
            return SETTING
        if name in _SUMS and isinstance(owner, Leaf | Items):
            made = made_of([owner, *values[:1]], place)
            return measured(name, made, is_along=bool(values) or "axis" in named or "dim" in named)
        return COMPUTED

    def _of_table(
        self, owner: Table, name: str, values: list[Value], named: Mapping[str, Value]
    ) -> Value:
        keys, length = self.turns(owner)
        match name:
            case "keys":
                return Items(keys, length)
            case "values":
                return Items([self.at(owner, key) for key in keys], length)
            case "items":
                return Items([Items([key, self.at(owner, key)]) for key in keys], length)
            case "get" | "pop" | "setdefault" if values:
                key = values[0]
                known = isinstance(key, Leaf) and key.is_known and key.value in owner.cells
                missing = values[1] if len(values) > 1 else NONE
                if name == "setdefault" and not known:
                    self.put(owner, key, missing)
                return self.at(owner, key) if known or owner.rest is not None else missing
            case "update":
                for more in values[:1]:
                    if isinstance(more, Table):
                        owner.cells.update(more.cells)
                owner.cells.update(named)
                return NONE
            case "copy" | "reset_index" | "round" | "sort_values" | "set_index" | "to_dict":
                return Table(dict(owner.cells), owner.rest, owner.default)
        return owner if name in _SUMMARIES else COMPUTED

    def _of_items(self, owner: Items, name: str, values: list[Value]) -> Value | None:
        if name in ("append", "add", "insert", "extend") and values:
            more = self.turns(values[-1]) if name == "extend" else ([values[-1]], Kind.LITERAL)
            if len(owner.items) < 2000:
                owner.items += [self.decided(value) for value in more[0]]
            unsure = [*self.call.under, *self.call.turns, more[1]]
            owner.length = max([owner.length, *unsure])
            return NONE
        if name in _SUMMARIES:
            return owner
        if name == "pop" and owner.items:
            return owner.items.pop()
        if name in ("sort", "reverse", "clear"):
            return NONE
        if name in ("index", "count", "copy", "round", "reset_index", "sort_values", "to_dict"):
            return owner if name not in ("index", "count") else COMPUTED
        return None
