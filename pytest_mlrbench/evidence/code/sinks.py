"""What a program saves or prints, and which numbers of that are results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pytest_mlrbench.evidence.code.documents import (
    WIDEST,
    is_made,
    row_of,
    saved_cells,
    spaced,
    words_in,
    written_lines,
)
from pytest_mlrbench.evidence.code.merging import parts
from pytest_mlrbench.evidence.code.metrics import (
    Reported,
    is_chosen,
    is_measured,
    is_summary,
    is_telling,
    is_worked_out,
    numerals,
)
from pytest_mlrbench.evidence.code.values import Document, Items, Kind, Leaf, Place, Value

#: Operations from which on a number was worked out, and not only scaled.
WORKED_OUT = 3
_LOGGED = re.compile(r"([A-Za-z][\w @/-]{1,40}?)\s{0,3}[:=]\s{0,3}(-?\d{1,9}\.\d{2,15})(?![\d.])")


@dataclass(frozen=True, slots=True)
class Hit:
    """A result that nothing was computed for.

    :param label: what it is called where it is saved.
    :param value: what it is, where it is typed.
    :param in_table: whether it is typed into a row of a table.
    :param sure: whether the program always gets there.
    :param fallback: whether it gets there after an exception only.
    :param spread: the draws that it says the spread of.
    """

    label: str
    kind: Kind
    place: Place
    value: object = None
    in_table: bool = False
    sure: bool = True
    fallback: bool = False
    spread: frozenset[int] = frozenset()


@dataclass(slots=True)
class Saved:
    """What one program saved, as far as it is results.

    :param computed: results that something was computed for.
    """

    report: Reported = field(default_factory=Reported)
    hits: dict[int, Hit] = field(default_factory=dict)
    computed: int = 0
    fallbacks: int = 0
    _names: set[str] = field(default_factory=set)
    #: The draws that are saved themselves, or the means of.
    _levels: frozenset[int] = frozenset()
    _place: Place = field(default_factory=lambda: Place("", 0))
    _sure: bool = True
    _documents: list[Document] = field(default_factory=list)
    _printed: Document = field(default_factory=Document)
    _rows: Document = field(default_factory=Document)

    def here(self, place: Place, calls: Sequence[Any]) -> None:
        """Note where the program is."""
        self._place = place
        self._sure = not any(kind >= Kind.SETTING for call in calls for kind in call.under)

    # What is saved as a whole

    def structure(self, value: Value) -> None:
        """Note that *value* is saved."""
        for path, leaf in islice(saved_cells(value), WIDEST):
            if self._is_result(path, leaf):
                self._count("/".join(path), leaf)

    def _is_result(self, path: Sequence[str], leaf: Leaf) -> bool:
        if any(is_chosen(key) for key in path):
            return False
        names = path[-4:]
        if leaf.kind is Kind.LITERAL and leaf.depth >= WORKED_OUT and is_worked_out(path[-1:]):
            return False
        if any(is_measured(name) or self.report.has_name(name) for name in names):
            return True
        if leaf.kind is Kind.DRAWN and any(is_summary(name) for name in names[-1:]):
            return True
        return leaf.kind is Kind.LITERAL and self.report.has_number(leaf.value)

    def _count(self, label: str, leaf: Leaf, in_table: bool = False) -> None:
        if leaf.kind is Kind.COMPUTED:
            self.computed += 1
            return
        made = leaf.kind is Kind.DRAWN or (leaf.kind is Kind.LITERAL and is_made(leaf))
        if not made or leaf.number in self.hits:
            return
        # A curve is one result, not fifty, and so are the epochs of a log.
        name = re.sub(r"\d+(?:\.\d+)?", "#", label)
        if name in self._names:
            return
        self._names.add(name)
        place = leaf.place or self._place
        value = leaf.value if leaf.is_known else None
        spread = leaf.draws if leaf.is_spread else frozenset[int]()
        self._levels |= frozenset() if leaf.is_spread else leaf.draws
        self.hits[leaf.number] = Hit(
            label, leaf.kind, place, value, in_table, self._sure, self.fallbacks > 0, spread
        )

    # What is written as text

    def document(self) -> Document:
        """Return a new text."""
        found = Document()
        if len(self._documents) < 500:
            self._documents.append(found)
        return found

    def line(self, values: Iterable[Value]) -> None:
        """Note that a line is printed or logged."""
        self._write(self._printed, [*spaced(values), "\n"])

    def row(self, value: Value) -> None:
        """Note that a row of a table is written."""
        cells = value.items if isinstance(value, Items) else []
        pieces: list[str | Leaf] = ["| "]
        for cell in cells[:100]:
            pieces += [*parts(cell), " | "]
        self._write(self._rows, [*pieces, "\n"])

    def write(self, document: Document, values: Iterable[Value]) -> None:
        """Note that text is written to a file."""
        for value in values:
            if isinstance(value, Items):
                for item in value.items[:500]:
                    self._write(document, parts(item))
            else:
                self._write(document, parts(value))

    def _write(self, document: Document, pieces: Iterable[str | Leaf]) -> None:
        if len(document.parts) > 20_000:
            return
        for piece in pieces:
            document.parts.append(piece)
        document.marks.append((len(document.parts), self._place, self._sure, self.fallbacks > 0))

    def finish(self) -> None:
        """Look at what was written, once it is all there; leave out spreads without a level."""
        for document in (*self._documents, self._rows, self._printed):
            self._read(document)
        self.hits = {
            number: hit
            for number, hit in self.hits.items()
            if not hit.spread or hit.spread & self._levels
        }

    def _read(self, document: Document) -> None:
        header: list[str] = []
        before = False
        for line, mark in written_lines(document):
            _, self._place, self._sure, fallback = mark
            outer, self.fallbacks = self.fallbacks, int(fallback)
            cells = row_of(line, document is not self._printed)
            if cells:
                plain = all(isinstance(p, str) and not numerals(p) for c in cells for p in c)
                if plain and any(words_in(c).strip("-: |") for c in cells):
                    header = [words_in(cell) for cell in cells]
                elif not plain:
                    self._row(header, cells)
            else:
                self._logged(line)
                header = [] if before else header
            before = bool(cells)
            self.fallbacks = outer

    def _row(self, header: Sequence[str], cells: Sequence[Sequence[str | Leaf]]) -> None:
        name = words_in(cells[0])
        for index, cell in enumerate(cells[1:], 1):
            column = header[index] if index < len(header) else ""
            if not self._is_result((name, column), Leaf(Kind.DRAWN)):
                continue
            label = f"{name}/{column}"
            for piece in cell:
                if isinstance(piece, Leaf):
                    self._count(label, piece)
                elif any(is_telling(float(n)) for n in numerals(piece)) and column:
                    self._count(label, Leaf(Kind.LITERAL, float(numerals(piece)[0])), in_table=True)

    def _logged(self, line: Sequence[str | Leaf]) -> None:
        before = ""
        for piece in line[:200]:
            if isinstance(piece, str):
                for name, number in _LOGGED.findall(piece[:4000])[:40]:
                    if is_measured(name):
                        self._count(name, Leaf(Kind.LITERAL, float(number)))
                before += piece
            elif is_measured(re.split(r"[,;|()]", before[-60:])[-1]):
                self._count(before.strip()[-80:], piece)
