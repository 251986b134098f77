"""Statements: branches, loops, and what they leave in names."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pytest_mlrbench.evidence.code.assigning import Assigning
from pytest_mlrbench.evidence.code.merging import either, kind_of
from pytest_mlrbench.evidence.code.values import COMPUTED, NONE, Kind, Leaf, Value


class Leaves(Exception):
    """The rest of a block is not reached."""


class _Returns(Leaves):
    pass


class _Ends(Leaves):
    """``break``."""


class _Skips(Leaves):
    """``continue``."""


class Statements(Assigning):
    """What statements do."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Follow statements one after the other."""
        for statement in body:
            self.spend()
            act = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            if act:
                act(statement)

    def _do_expr(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def _do_return(self, node: ast.Return) -> None:
        value = self.evaluate(node.value)
        self.call.returned.append(self.decided(value))
        raise _Returns

    def _do_raise(self, node: ast.Raise) -> None:
        raise _Returns

    def _do_break(self, node: ast.Break) -> None:
        raise _Ends

    def _do_continue(self, node: ast.Continue) -> None:
        raise _Skips

    def _do_if(self, node: ast.If) -> None:
        test = self.evaluate(node.test)
        known = self.truth(test)
        if known is None and isinstance(test, Leaf) and test.value is True:
            known = True  # A flag that a command was given.
        if known is not None:
            self.block(node.body if known else node.orelse)
            return
        kind = kind_of(test)
        before = dict(self.call.scope.names)
        ended = [self._branch(node.body, kind)]
        after, self.call.scope.names = self.call.scope.names, before
        ended.append(self._branch(node.orelse, kind))
        self._join(after, ended)

    def _branch(self, body: Sequence[ast.stmt], kind: Kind) -> type[Leaves] | None:
        call = self.call
        call.under.append(kind)
        try:
            self.block(body)
        except Leaves as end:
            return type(end)
        finally:
            call.under.pop()
        return None

    def _join(self, first: dict[str, Value], ended: Sequence[type[Leaves] | None]) -> None:
        second = self.call.scope.names
        if all(ended):
            raise _Skips if _Skips in ended else _Ends if _Ends in ended else _Returns
        if ended[0]:
            return
        if ended[1]:
            self.call.scope.names = first
            return
        for name, value in first.items():
            if second.get(name) is not value:
                second[name] = either(value, second.get(name))

    def _do_for(self, node: ast.For | ast.AsyncFor) -> None:
        values, kind = self.turns(self.evaluate(node.iter))
        self._loop(node.body, values, kind, node.target)
        self.block(node.orelse)

    _do_asyncfor = _do_for

    def _do_while(self, node: ast.While) -> None:
        test = self.evaluate(node.test)
        if self.truth(test) is not False:
            self._loop(node.body, [NONE, NONE], max(kind_of(test), Kind.SETTING), None)

    def _loop(
        self, body: Sequence[ast.stmt], values: Sequence[Value], kind: Kind, to: ast.AST | None
    ) -> None:
        call = self.call
        cut = kind is not Kind.LITERAL
        outer, call.cut = call.fresh, call.cut + cut
        call.turns.append(kind)
        try:
            for value in values:
                call.fresh = set()
                if to is not None:
                    self.assign(to, value)
                try:
                    self.block(body)
                except _Ends:
                    break
                except _Skips:
                    continue
        finally:
            call.turns.pop()
            call.cut -= cut
            call.fresh = outer

    def _do_try(self, node: ast.Try) -> None:
        before = dict(self.call.scope.names)
        ended: type[Leaves] | None = None
        try:
            self.block([*node.body, *node.orelse])
        except Leaves as end:
            ended = type(end)
        for handler in node.handlers[:8]:
            after, self.call.scope.names = self.call.scope.names, {**before}
            for name, value in after.items():
                self.call.scope.names.setdefault(name, value)
            if handler.name:
                self.call.scope.names[handler.name] = COMPUTED
            self.saved.fallbacks += 1
            try:
                other = self._branch(handler.body, Kind.SETTING)
            finally:
                self.saved.fallbacks -= 1
            if not other and ended is None:
                self._join(after, [None, None])
            elif not other:
                ended = None
            else:
                self.call.scope.names = after
        self.block(node.finalbody)
        if ended:
            raise ended

    _do_trystar = _do_try

    def _do_with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        self.block(node.body)

    _do_asyncwith = _do_with

    def _do_match(self, node: ast.Match) -> None:
        kind = kind_of(self.evaluate(node.subject))
        before = dict(self.call.scope.names)
        for case in node.cases[:12]:
            after, self.call.scope.names = self.call.scope.names, dict(before)
            ended = self._branch(case.body, max(kind, Kind.SETTING))
            self._join(after, [None, ended])
