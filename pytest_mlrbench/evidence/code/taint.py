"""A program followed without being run: statements, calls and modules.

Branches whose condition is known are taken; of the others, both are, and what they assign is one of
the two. Loops and calls are followed a bounded number of times, and a program a bounded number of
steps: the same every time, however fast the machine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from pytest_mlrbench.evidence.code.lookups import Call, Spent
from pytest_mlrbench.evidence.code.merging import either
from pytest_mlrbench.evidence.code.metrics import Reported
from pytest_mlrbench.evidence.code.sinks import Saved
from pytest_mlrbench.evidence.code.statements import Leaves, Statements
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    NONE,
    Class,
    Function,
    Items,
    Library,
    Scope,
    Table,
    Value,
    literal,
)

#: Calls inside calls that are followed, and how often one function among them.
_DEEPEST, _RECURSION = 20, 6


class Program(Statements):
    """One entry point and what it imports of the agent's own."""

    def __init__(
        self,
        modules: Mapping[str, ast.Module],
        steps: int,
        report: Reported,
        options: frozenset[str] = frozenset(),
        documents: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(steps)
        self.saved = Saved(report)
        self.modules = modules
        self.options = options
        self.documents = documents or {}
        self._scopes: dict[str, Scope] = {}

    def run(self, path: str) -> None:
        """Follow the program that begins in *path*, as far as its steps lead."""
        with suppress(Spent, RecursionError):
            self._module(path, "__main__")
        self.saved.finish()

    def _module(self, path: str, name: str) -> Scope:
        if path in self._scopes:
            return self._scopes[path]
        scope = self._scopes[path] = Scope(path, {"__name__": literal(name)})
        scope.names["__file__"] = COMPUTED
        self.calls.append(Call(scope))
        try:
            self.block(self.modules[path].body)
        except Leaves:
            pass
        finally:
            self.calls.pop()
        return scope

    # Statements

    # Definitions

    def _do_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.call.scope.names[node.name] = Function(node, self.call.scope)

    _do_asyncfunctiondef = _do_functiondef

    def _do_classdef(self, node: ast.ClassDef) -> None:
        scope = Scope(self.call.scope.path, {}, self.call.scope)
        bases = tuple(self.evaluate(base) for base in node.bases)
        fields = tuple(
            part.target.id
            for part in node.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        )
        self.calls.append(Call(scope))
        try:
            self.block(node.body)
        except Leaves:
            pass
        finally:
            self.calls.pop()
        self.call.scope.names[node.name] = Class(scope, bases, fields)

    def _do_global(self, node: ast.Global) -> None:
        top = self.call.scope
        while top.outer is not None:
            top = top.outer
        for name in node.names:
            if name in top.names:
                self.call.scope.names[name] = top.names[name]

    # Imports

    def _do_import(self, node: ast.Import) -> None:
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.split(".")[0]
            self.call.scope.names[alias.asname or whole] = self._imported(whole)

    def _do_importfrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            name = alias.asname or alias.name
            inside = self._imported(f"{module}.{alias.name}".lstrip("."))
            whole = self._imported(module) if module else inside
            if alias.name == "*" and isinstance(whole, Scope):
                self.call.scope.names.update(
                    {k: v for k, v in whole.names.items() if not k.startswith("__")}
                )
            elif isinstance(whole, Scope) and alias.name in whole.names:
                self.call.scope.names[name] = whole.names[alias.name]
            else:
                self.call.scope.names[name] = inside

    def _imported(self, name: str) -> Value:
        found = module_of(name, self.modules)
        return self._module(found, name) if found else Library(name)

    # Calls of the agent's own functions

    def invoke(
        self, function: Function, values: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        """Return what a function of the agent's returns."""
        same = sum(call.function is function.node for call in self.calls)
        if len(self.calls) > _DEEPEST or same > _RECURSION:
            return COMPUTED
        scope = Scope(function.scope.path, {}, function.scope)
        call = Call(scope, function.node)
        self._bind(function, scope, values, named)
        self.calls.append(call)
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body)
            self.block(function.node.body)
        except Leaves:
            pass
        finally:
            self.calls.pop()
        found: Value | None = None
        for value in call.returned:
            found = value if found is None else either(found, value)
        return NONE if found is None else found

    def _bind(
        self,
        function: Function,
        scope: Scope,
        values: Sequence[Value],
        named: Mapping[str, Value],
    ) -> None:
        arguments = function.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        given = [*([function.bound] if function.bound else []), *values]
        scope.names.update(zip(names, given, strict=False))
        if arguments.vararg:
            scope.names[arguments.vararg.arg] = Items(list(given[len(names) :]))
        names += [a.arg for a in arguments.kwonlyargs]
        scope.names.update({name: value for name, value in named.items() if name in names})
        if arguments.kwarg:
            rest = {name: value for name, value in named.items() if name not in names}
            scope.names[arguments.kwarg.arg] = Table(dict[object, Value](rest.items()))
        defaults = [*arguments.defaults, *(d for d in arguments.kw_defaults)]
        for name, default in zip(reversed(names), reversed(defaults), strict=False):
            if name not in scope.names and default is not None:
                self.calls.append(Call(function.scope))
                try:
                    scope.names[name] = self.evaluate(default)
                finally:
                    self.calls.pop()
        for name in names:
            scope.names.setdefault(name, COMPUTED)


def module_of(name: str, paths: Iterable[str]) -> str | None:
    """Return which of the programs a module is, as it is imported."""
    path = name.replace(".", "/")
    ends = (f"/{path}.py", f"/{path}/__init__.py")
    return next((known for known in paths if f"/{known}".endswith(ends)), None)
