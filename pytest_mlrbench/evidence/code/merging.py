"""What is known of a value that is made of others, or is one of two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pytest_mlrbench.evidence.code.values import (
    ANSWER,
    COMPUTED,
    DEEPEST,
    MOST_DRAWS,
    MOST_PARTS,
    MOST_TYPED,
    UNKNOWN,
    Class,
    Document,
    File,
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


def leaves(value: Value | None, deepest: int = 6, most: int = 400) -> list[Leaf]:
    """Return the values inside, *most* at most."""
    found: list[Leaf] = []
    waiting: list[tuple[Value | None, int]] = [(value, 0)]
    while waiting and len(found) < most:
        here, depth = waiting.pop()
        if isinstance(here, Leaf):
            found.append(here)
        elif isinstance(here, Text):
            found += [part for part in here.parts if isinstance(part, Leaf)]
        elif depth < deepest:
            waiting += [(inside, depth + 1) for inside in _inside(here)]
    return found


def _inside(value: Value | None) -> Iterator[Value | None]:
    if isinstance(value, Items):
        yield from value.items[:400]
    elif isinstance(value, Table):
        yield from list(value.cells.values())[:400]
        yield value.rest
    elif isinstance(value, Thing):
        yield from _inside(value.attributes)


def kind_of(value: Value | None) -> Kind:
    """Return where a value, or what is inside of it, is from."""
    if isinstance(value, Leaf):
        return value.kind
    if isinstance(value, Items):
        return max([value.length, *(leaf.kind for leaf in leaves(value))])
    if isinstance(value, Text | Table):
        return max([leaf.kind for leaf in leaves(value)], default=Kind.LITERAL)
    return Kind.COMPUTED


def made_of(values: Iterable[Value], place: Place | None, known: object = UNKNOWN) -> Leaf:
    """Return what arithmetic makes of *values*: of nothing that is known, nothing that is."""
    kind, depth, draws = Kind.LITERAL, 0, frozenset[int]()
    is_empty = None
    is_spread = True
    for value in values:
        inside = [leaf for leaf in leaves(value) if not _is_none(leaf)]
        is_empty = not inside and is_empty is not False
        kind = max([kind, *(leaf.kind for leaf in inside)])
        is_spread &= all(leaf.is_spread for leaf in inside if leaf.kind is Kind.DRAWN)
        # Counted answers were not typed, whatever they are answers about.
        is_counted = not isinstance(value, Leaf) and any(leaf.is_answer for leaf in inside)
        # So many typed numbers are data, and what sums them up is a statistic.
        is_counted |= isinstance(value, Items) and _typed(inside) >= MOST_TYPED
        if is_counted or (isinstance(value, Leaf) and value.value is ANSWER):
            kind = Kind.COMPUTED
        if isinstance(value, Scope | Function | Class | Thing | Library | Document | File):
            kind = Kind.COMPUTED
        depth = max([depth, *(leaf.depth for leaf in inside)])
        if len(draws) < MOST_DRAWS:
            draws = draws.union(*(leaf.draws for leaf in inside))
    if kind is Kind.COMPUTED or depth >= DEEPEST or is_empty:
        return COMPUTED
    is_spread &= kind is Kind.DRAWN
    return Leaf(kind, known, draws, depth + 1, place, is_spread=is_spread)


def _typed(inside: Iterable[Leaf]) -> int:
    return sum(isinstance(leaf.value, int | float) for leaf in inside)


def each(value: Value, change: Callable[[Leaf], Leaf], deepest: int = 4) -> Value:
    """Return *value* with every number in it changed, item by item if it is a list."""
    if isinstance(value, Leaf):
        return change(value)
    if isinstance(value, Items) and deepest:
        items = [each(item, change, deepest - 1) for item in value.items[:400]]
        return Items(items, value.length, value.is_array)
    return change(made_of([value], None))


def either(first: Value | None, second: Value | None, deepest: int = 6) -> Value:
    """Return what a value is that is one of two, depending on what is not known."""
    if first is None or first is second:
        return second or COMPUTED
    if second is None or _is_none(second) or deepest <= 0:
        return first if deepest > 0 else COMPUTED
    if _is_none(first):
        return second
    if isinstance(first, Table) and isinstance(second, Table):
        cells = dict(first.cells)
        for key, value in second.cells.items():
            cells[key] = either(cells.get(key), value, deepest - 1)
        rest = either(first.rest, second.rest, deepest - 1) if first.rest or second.rest else None
        return Table(cells, rest, first.default)
    if isinstance(first, Items) and isinstance(second, Items):
        longer, shorter = sorted((first, second), key=lambda one: -len(one.items))
        pairs = zip(longer.items, shorter.items, strict=False)
        items = [either(a, b, deepest - 1) for a, b in pairs]
        length = max(first.length, second.length, Kind.SETTING)
        return Items([*items, *longer.items[len(items) :]], length, longer.is_array)
    if isinstance(first, Text) or isinstance(second, Text):
        return max((first, second), key=lambda one: len(one.parts) if isinstance(one, Text) else 0)
    if isinstance(first, Leaf) and isinstance(second, Leaf):
        draws = first.draws | second.draws if len(first.draws) < MOST_DRAWS else first.draws
        place = second.place or first.place
        is_answer = first.is_answer and second.is_answer
        return Leaf(
            max(first.kind, second.kind),
            ANSWER if is_answer else UNKNOWN,
            draws=draws,
            depth=max(first.depth, second.depth),
            place=place,
            is_spread=first.is_spread and second.is_spread,
        )
    return first if type(first) is type(second) else COMPUTED


def _is_none(value: Value) -> bool:
    return isinstance(value, Leaf) and value.kind is Kind.LITERAL and value.value is None


def computed(value: Value, deepest: int = 4) -> Value:
    """Return *value* as one that something computed has decided on."""
    if deepest <= 0 or isinstance(value, Leaf):
        return COMPUTED
    if isinstance(value, Text):
        return Text(tuple(COMPUTED if isinstance(p, Leaf) else p for p in value.parts))
    if isinstance(value, Items):
        items = [computed(item, deepest - 1) for item in value.items]
        return Items(items, Kind.COMPUTED, value.is_array)
    if isinstance(value, Table):
        cells = {key: computed(cell, deepest - 1) for key, cell in value.cells.items()}
        return Table(cells, value.rest and computed(value.rest, deepest - 1))
    return value


def parts(value: Value) -> tuple[str | Leaf, ...]:
    """Return *value* as it stands in a text."""
    if isinstance(value, Text):
        return value.parts
    if isinstance(value, Leaf):
        return (value.value,) if isinstance(value.value, str) else (value,)
    return (made_of([value], None),)


def text(pieces: Iterable[str | Leaf], place: Place | None = None) -> Leaf | Text:
    """Return a text of *pieces*, as one known string where there is nothing else in it."""
    found = tuple(pieces)[:MOST_PARTS]
    if all(isinstance(piece, str) for piece in found):
        return literal("".join(piece for piece in found if isinstance(piece, str)), place)
    return Text(found)
