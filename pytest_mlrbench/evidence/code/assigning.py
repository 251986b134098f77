"""Assignments: who is given a value, and what the way to it says of the value."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pytest_mlrbench.evidence.code.arithmetic import operate
from pytest_mlrbench.evidence.code.merging import kind_of, made_of
from pytest_mlrbench.evidence.code.methods import Methods
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    SETTING,
    Items,
    Kind,
    Leaf,
    Table,
    Thing,
    Value,
    literal,
)

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Assigning(Methods):
    """What assignments do."""

    def _do_assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))

    def assign(self, target: ast.AST, value: Value) -> None:
        """Give *value* to a target, as a branch that a result decided on gives it."""
        value = self.decided(value)
        match target:
            case ast.Name():
                self.call.scope.names[target.id] = value
                self.call.fresh.add(target.id)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value)
            case ast.Starred():
                self.assign(target.value, value)
            case ast.Attribute():
                owner = self.evaluate(target.value)
                if isinstance(owner, Thing):
                    self.put(owner.attributes, literal(target.attr), value, not self.call.under)
            case ast.Subscript():
                self._store(target, value)

    def _unpack(self, targets: Sequence[ast.expr], value: Value) -> None:
        known = isinstance(value, Items) and len(value.items) == len(targets)
        for index, target in enumerate(targets):
            if known and isinstance(value, Items):
                self.assign(target, value.items[index])
            else:
                self.assign(target, self.at(value, literal(index)))

    def _store(self, target: ast.Subscript, value: Value) -> None:
        owner = self.evaluate(target.value)
        key = self.evaluate(target.slice) if not isinstance(target.slice, ast.Slice) else SETTING
        if isinstance(owner, Table):
            self.put(owner, key, value, not self.call.under)
        elif isinstance(owner, Items):
            index = key.value if isinstance(key, Leaf) else None
            if isinstance(index, int) and -len(owner.items) <= index < len(owner.items):
                owner.items[index] = value
            elif isinstance(index, str):
                for row in owner.items[:100]:
                    if isinstance(row, Table):
                        row.cells[index] = self.at(value, SETTING)
            elif len(owner.items) < 2000:
                owner.items.append(value)
        elif isinstance(owner, Leaf) and isinstance(target.value, ast.Name):
            self.call.scope.names[target.value.id] = made_of([owner, value], self.place(target))

    def _do_augassign(self, node: ast.AugAssign) -> None:
        old, more = self.evaluate(node.target), self.evaluate(node.value)
        sign = _SIGNS.get(type(node.op))
        value = operate(sign, old, more, self.place(node)) if sign else COMPUTED
        number = isinstance(value, Leaf) and not isinstance(value.value, str)
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        if number and name not in self.call.fresh:
            counts = kind_of(more) is Kind.LITERAL and Kind.COMPUTED in self.call.turns
            if self.call.cut or counts or Kind.COMPUTED in self.call.under:
                value = COMPUTED
        if isinstance(old, Items) and isinstance(value, Items) and not old.is_array:
            old.items[:], value = value.items, old
        self.assign(node.target, value)
