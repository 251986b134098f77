"""Attributes and calls: whose they are."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from pytest_mlrbench.evidence.code.expressions import Expressions
from pytest_mlrbench.evidence.code.sinks import Saved
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    UNKNOWN,
    Class,
    Function,
    Kind,
    Leaf,
    Library,
    Place,
    Scope,
    Table,
    Thing,
    Value,
)


class Members(Expressions):
    """What attributes and calls come to."""

    saved: Saved

    #: Options that commands were given: ``--use-cache`` as ``use_cache``.
    options: frozenset[str] = frozenset()
    #: Path → text of files of data that the agent typed.
    documents: Mapping[str, str]

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = self.evaluate(node.value)
        found = self.member(owner, node.attr)
        if isinstance(found, Function) and found.bound is owner and _is_property(found):
            return self.invoke(found, [], {})
        return found if found is not None else COMPUTED

    def member(self, owner: Value, name: str) -> Value | None:
        """Return what *name* is in *owner*; none if that is not known."""
        match owner:
            case Library():
                return Library(f"{owner.name}.{name}")
            case Scope():
                return owner.names.get(name)
            case Thing():
                if name in owner.attributes.cells:
                    return owner.attributes.cells[name]
                return _bound(_inherited(owner.kind, name), owner)
            case Class():
                return _inherited(owner, name)
            case Table() if name in owner.cells:
                return owner.cells[name]
            case Leaf() if owner.kind is Kind.SETTING and name in self.options:
                return Leaf(Kind.SETTING, True)
            case Leaf() if owner.kind is Kind.SETTING or name in ("T", "values"):
                return Leaf(owner.kind, UNKNOWN, owner.draws, owner.depth, owner.place)
        return None

    def _call(self, node: ast.Call) -> Value:
        owner = self.evaluate(node.func.value) if isinstance(node.func, ast.Attribute) else None
        values, named = self._arguments(node)
        self.saved.here(self.place(node), self.calls)
        if owner is None:
            return self.apply(self.evaluate(node.func), values, named, node)
        assert isinstance(node.func, ast.Attribute)
        function = self.member(owner, node.func.attr)
        if isinstance(function, Function | Class | Library):
            return self.apply(function, values, named, node)
        return self._method(owner, node.func.attr, values, named, node)

    def _arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        values: list[Value] = []
        for argument in node.args[:200]:
            value = self.evaluate(argument)
            values += self.turns(value)[0] if isinstance(argument, ast.Starred) else [value]
        named: dict[str, Value] = {}
        for keyword in node.keywords[:200]:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, Table):
                named.update({k: v for k, v in value.cells.items() if isinstance(k, str)})
        return values, named

    def apply(
        self, function: Value, values: Sequence[Value], named: Mapping[str, Value], node: ast.AST
    ) -> Value:
        """Return what calling *function* returns."""
        if isinstance(function, Function):
            return self.invoke(function, values, named)
        if isinstance(function, Class):
            return self._made(function, values, named)
        if isinstance(function, Library):
            return self._library(function.name, list(values), named, self.place(node))
        return COMPUTED

    @abstractmethod
    def _library(
        self, name: str, values: list[Value], named: Mapping[str, Value], place: Place
    ) -> Value: ...

    @abstractmethod
    def _method(
        self,
        owner: Value,
        name: str,
        values: list[Value],
        named: Mapping[str, Value],
        node: ast.Call,
    ) -> Value: ...

    def made_by(self, maker: Value) -> Value:
        """Return what a factory without arguments makes."""
        return self.apply(maker, [], {}, ast.Constant(0, lineno=1))

    @abstractmethod
    def invoke(
        self, function: Function, values: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        """Return what a function of the agent's returns."""

    def _made(self, kind: Class, values: Sequence[Value], named: Mapping[str, Value]) -> Value:
        thing = Thing(kind)
        start = _bound(_inherited(kind, "__init__"), thing)
        if isinstance(start, Function):
            self.invoke(start, values, named)
        else:
            thing.attributes.cells.update(zip(kind.fields, values, strict=False))
            thing.attributes.cells.update(named)
        return thing


def _inherited(kind: Class, name: str, deepest: int = 6) -> Value | None:
    if name in kind.scope.names:
        return kind.scope.names[name]
    for base in kind.bases if deepest else ():
        if isinstance(base, Class) and (found := _inherited(base, name, deepest - 1)) is not None:
            return found
    return None


def _bound(found: Value | None, owner: Thing) -> Value | None:
    if not isinstance(found, Function):
        return found
    if "staticmethod" in _decorators(found):
        return found
    return Function(found.node, found.scope, owner)


def _is_property(function: Function) -> bool:
    return bool({"property", "cached_property"} & _decorators(function))


def _decorators(function: Function) -> set[str]:
    marks = [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list
    return {mark.id for mark in marks if isinstance(mark, ast.Name)}
