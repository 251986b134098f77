"""Saved values as keys and numbers, and written texts as lines and cells."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pytest_mlrbench.evidence.code.merging import parts
from pytest_mlrbench.evidence.code.metrics import is_telling
from pytest_mlrbench.evidence.code.values import (
    Document,
    Items,
    Leaf,
    Mark,
    Place,
    Table,
    Thing,
    Value,
)

#: Bounds of what is looked at in one saved value, and of a document.
WIDEST, DEEPEST_KEYS, MOST_LINES = 2000, 8, 3000


def is_made(leaf: Leaf) -> bool:
    """Tell whether a literal is a number that says something."""
    if leaf.is_known:
        return is_telling(leaf.value)
    return leaf.depth > 0


def saved_cells(value: Value) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield the numbers in *value* under their keys."""
    waiting: deque[tuple[tuple[str, ...], Value]] = deque([((), value)])
    for _ in range(4 * WIDEST):
        if not waiting:
            return
        path, here = waiting.popleft()
        if isinstance(here, Leaf):
            yield path, here
        elif len(path) > DEEPEST_KEYS:
            continue
        elif isinstance(here, Table | Thing):
            table = here if isinstance(here, Table) else here.attributes
            names = _names_of_rows(table)
            for key, cell in list(table.cells.items())[:400]:
                inside = (*path, str(key)[:60])
                if names and isinstance(cell, Items) and len(cell.items) == len(names):
                    pairs = zip(names, cell.items, strict=True)
                    waiting += [((*inside, f"[{name}]"), item) for name, item in pairs]
                else:
                    waiting.append((inside, cell))
            if table.rest is not None:
                waiting.append(((*path, "*"), table.rest))
        elif isinstance(here, Items):
            waiting += [((*path, *_named(item)), item) for item in here.items[:400]]


def _named(row: Value) -> tuple[str, ...]:
    """Return what a row of a list of rows calls itself, if that stands in the program."""
    table = row.attributes if isinstance(row, Thing) else row
    for cell in table.cells.values() if isinstance(table, Table) else ():
        if isinstance(cell, Leaf) and isinstance(cell.value, str) and cell.value[:1].isalpha():
            return (f"[{cell.value}]",) if len(cell.value) < 40 else ()
    return ()


def _names_of_rows(table: Table) -> list[str]:
    """Return the names of the rows of a table that is a dictionary of columns."""
    for column in table.cells.values():
        cells = column.items if isinstance(column, Items) else []
        names = [c.value for c in cells if isinstance(c, Leaf) and isinstance(c.value, str)]
        if len(names) == len(cells) == len(set(names)) > 1 and max(map(len, names)) < 40:
            return names
    return []


def spaced(values: Iterable[Value]) -> Iterator[str | Leaf]:
    """Yield *values* as they are printed beside each other."""
    for value in values:
        yield " "
        if isinstance(value, Table | Items):
            for path, leaf in islice(saved_cells(value), 100):
                yield f", {path[-1] if path else ''}: "
                yield leaf
        else:
            yield from parts(value)


def written_lines(document: Document) -> Iterator[tuple[list[str | Leaf], Mark]]:
    """Yield the lines of a text, and where and how each was written."""
    marks = iter(document.marks)
    mark = next(marks, (0, Place("", 0), True, False))
    line: list[str | Leaf] = []
    seen = 0
    for index, piece in enumerate(document.parts):
        while index >= mark[0] and (following := next(marks, None)) is not None:
            mark = following
        if isinstance(piece, Leaf):
            line.append(piece)
            continue
        first, *more = piece.split("\n")
        line.append(first)
        for other in more:
            yield line, mark
            line = [other]
            seen += 1
            if seen > MOST_LINES:
                return
    if line:
        yield line, mark


def row_of(line: Sequence[str | Leaf], is_file: bool) -> list[list[str | Leaf]]:
    """Return the cells of a line that is a row, of markdown, LaTeX or CSV."""
    start = next((p for p in line if not isinstance(p, str) or p.strip()), "")
    text = "".join(p for p in line if isinstance(p, str))
    if isinstance(start, str) and start.lstrip().startswith("|"):
        mark = "|"
    elif text.rstrip().endswith("\\\\") and "&" in text:
        mark = "&"
    elif (
        is_file and text.count(",") >= 1 and not re.search(r",\s", text.strip()) and ":" not in text
    ):
        mark = ","
    else:
        return []
    cells: list[list[str | Leaf]] = [[]]
    for piece in line[:400]:
        if isinstance(piece, Leaf):
            cells[-1].append(piece)
            continue
        first, *more = piece.split(mark)
        cells[-1].append(first)
        cells += [[other] for other in more]
    return cells[1:] if mark == "|" else cells


def words_in(cell: Sequence[str | Leaf]) -> str:
    """Return what stands in a cell apart from values."""
    return "".join(piece for piece in cell if isinstance(piece, str)).strip(" *`")
