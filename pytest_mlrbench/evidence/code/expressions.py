"""Expressions of the agent's program, worked out as far as their origin goes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence

from pytest_mlrbench.evidence.code.arithmetic import curved, operate
from pytest_mlrbench.evidence.code.comparing import compared, decision
from pytest_mlrbench.evidence.code.lookups import Lookups
from pytest_mlrbench.evidence.code.merging import computed, either, kind_of, made_of, parts, text
from pytest_mlrbench.evidence.code.strings import filled, percent
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    NONE,
    UNKNOWN,
    Function,
    Items,
    Kind,
    Leaf,
    Library,
    Scope,
    Table,
    Value,
    literal,
)

_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**",
}  # fmt: skip


class Expressions(Lookups):
    """What an expression comes to."""

    def evaluate(self, node: ast.AST | None) -> Value:
        """Return what *node* comes to."""
        if node is None:
            return NONE
        self.spend()
        found = getattr(self, f"_{type(node).__name__.lower()}", None)
        return found(node) if found else COMPUTED

    def _constant(self, node: ast.Constant) -> Value:
        value = node.value
        known = isinstance(value, bool | int | float | str) or value is None
        if isinstance(value, int) and abs(value) > 10**18:
            return literal(UNKNOWN, self.place(node))
        return literal(value if known else UNKNOWN, self.place(node))

    def _name(self, node: ast.Name) -> Value:
        scope: Scope | None = self.call.scope
        while scope is not None:
            if node.id in scope.names:
                return scope.names[node.id]
            scope = scope.outer
        return Library(node.id)

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        pieces: list[str | Leaf] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                pieces += self._form(self.evaluate(part.value), part.format_spec)
            elif isinstance(part, ast.Constant):
                pieces.append(str(part.value))
        return text(pieces, self.place(node))

    def _form(self, value: Value, form: ast.expr | None) -> Sequence[str | Leaf]:
        # Numbers stay values, so that a table of typed ones is told from one of words.
        return parts(value)

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        items: list[Value] = []
        length = Kind.LITERAL
        for element in node.elts[:2000]:
            if isinstance(element, ast.Starred):
                inside, more = self.turns(self.evaluate(element.value))
                items += inside
                length = max(length, more)
            else:
                items.append(self.evaluate(element))
        return Items(items, length)

    _tuple = _set = _list

    def _dict(self, node: ast.Dict) -> Value:
        table = Table()
        for key, value in zip(node.keys[:2000], node.values, strict=False):
            found = self.evaluate(value)
            if key is None and isinstance(found, Table):
                table.cells.update(found.cells)
            else:
                self.put(table, self.evaluate(key), found)
        return table

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            known = isinstance(value, Leaf) and value.is_known and value.kind is Kind.LITERAL
            if known and isinstance(value, Leaf):
                return literal(not value.value, value.place)
            return decision([value])
        if isinstance(node.op, ast.USub) and isinstance(value, Leaf):
            return operate("-", literal(0), value, self.place(node))
        return value

    def _binop(self, node: ast.BinOp) -> Value:
        place = self.place(node)
        if (items := _averaged(node)) is not None:
            return made_of([self.evaluate(items)], place)
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        sign = _SIGNS.get(type(node.op))
        if sign == "%" and isinstance(left, Leaf) and isinstance(left.value, str):
            values = right.items if isinstance(right, Items) else [right]
            return filled(percent(left.value), values, place)
        if sign == "/" and isinstance(left, Library):
            return COMPUTED
        if sign == "**" and kind_of(left) is Kind.DRAWN and isinstance(left, Leaf):
            return curved(left, place, "pow")
        return operate(sign, left, right, place) if sign else COMPUTED

    def _boolop(self, node: ast.BoolOp) -> Value:
        found: Value | None = None
        for part in node.values:
            value = self.evaluate(part)
            known = self.truth(value)
            if known is not None and known is isinstance(node.op, ast.Or):
                return value if found is None else either(found, value)
            if known is None:
                found = value if found is None else either(found, value)
        return found if found is not None else value

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.evaluate(part) for part in (node.left, *node.comparators)]
        if len(values) == 2:
            known = compared(node.ops[0], values[0], values[1])
            if known is not None:
                return literal(known)
        return decision(values)

    def _ifexp(self, node: ast.IfExp) -> Value:
        test = self.evaluate(node.test)
        known = self.truth(test)
        if known is not None:
            return self.evaluate(node.body if known else node.orelse)
        found = either(self.evaluate(node.body), self.evaluate(node.orelse))
        return computed(found) if kind_of(test) >= Kind.DRAWN else found

    def _lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.call.scope)

    def _await(self, node: ast.Await | ast.Starred | ast.NamedExpr) -> Value:
        return self.evaluate(node.value)

    _starred = _await

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.call.scope.names[node.target.id] = value
        return value

    def _subscript(self, node: ast.Subscript) -> Value:
        whole = self.evaluate(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._sliced(whole, node.slice)
        return self.at(whole, self.evaluate(node.slice))

    def _sliced(self, whole: Value, cut: ast.Slice) -> Value:
        ends = [self.evaluate(end) for end in (cut.lower, cut.upper, cut.step)]
        if isinstance(whole, Items):
            known = [end.value if isinstance(end, Leaf) else UNKNOWN for end in ends]
            places = [number for number in known if number is None or isinstance(number, int)]
            if len(places) == 3 and places[2] != 0:
                return Items(whole.items[slice(*places)], whole.length, whole.is_array)
            return Items(list(whole.items), max(whole.length, Kind.SETTING), whole.is_array)
        if isinstance(whole, Leaf) and kind_of(Items([*ends])) < Kind.DRAWN:
            return Leaf(whole.kind, UNKNOWN, whole.draws, whole.depth, whole.place)
        return COMPUTED

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        items: list[Value] = []
        length = self._comprehend(node.generators, lambda: items.append(self.evaluate(node.elt)))
        return Items(items, length)

    _setcomp = _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp) -> Value:
        table = Table()
        self._comprehend(
            node.generators,
            lambda: self.put(table, self.evaluate(node.key), self.evaluate(node.value)),
        )
        return table

    def _comprehend(self, generators: Sequence[ast.comprehension], act: Callable[[], None]) -> Kind:
        inner = Scope(self.call.scope.path, {}, self.call.scope)
        outer, self.call.scope = self.call.scope, inner
        try:
            return self._generate(list(generators), act)
        finally:
            self.call.scope = outer

    def _generate(self, generators: list[ast.comprehension], act: Callable[[], None]) -> Kind:
        if not generators:
            act()
            return Kind.LITERAL
        first, *rest = generators
        values, length = self.turns(self.evaluate(first.iter))
        for value in values:
            self.assign(first.target, value)
            tests = [self.evaluate(test) for test in first.ifs]
            known = [self.truth(test) for test in tests]
            if False in known:
                continue
            unsure = [kind_of(t) for t, k in zip(tests, known, strict=True) if k is None]
            length = max([length, self._generate(rest, act), *unsure])
        return length

    # Given by those who know statements and calls

    @abstractmethod
    def assign(self, target: ast.AST, value: Value) -> None:
        """Give *value* to a target."""


def _averaged(node: ast.BinOp) -> ast.expr | None:
    """Return x of ``sum(x) / len(x)``: however many there are, it is one of their kind."""
    match node:
        case ast.BinOp(
            left=ast.Call(func=ast.Name(id="sum"), args=[ast.Name(id=first) as items]),
            op=ast.Div(),
            right=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=second)]),
        ) if first == second:
            return items
    return None
