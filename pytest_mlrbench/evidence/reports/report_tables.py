"""Finds the tables of a document: Markdown, HTML and LaTeX, with what stands around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_mlrbench.evidence.reports.outline import Kind, Line

_TABLE_TAG = re.compile(r"<table\b", re.I)
_TABLE_END = re.compile(r"</table\s{0,5}>", re.I)
_TABULAR = re.compile(r"\\begin\{(?:tabular|longtable|array|tabu)[a-z]{0,2}\*?\}")
_TABULAR_END = re.compile(r"\\end\{(?:tabular|longtable|array|tabu)[a-z]{0,2}\*?\}")
_ROW_TAG = re.compile(r"<tr\b[^<>]{0,300}>", re.I)
_ROW_END = re.compile(r"\\\\|\\tabularnewline")
_AMPERSAND = re.compile(r"(?<!\\)&")
_CELL_TAG = re.compile(r"<t[dh]\b[^<>]{0,300}>", re.I)
_TEX_RULES = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|cline\{[^{}]{0,20}\}|cmidrule(?:\([a-z]{0,3}\))?\{[^{}]{0,20}\})"
)
_MARKUP = re.compile(
    r"\\text(?:bf|it|rm|tt|sc)|\\underline|\\mathbf|</?[a-zA-Z][^<>]{0,200}>|[*`{}$]"
)
#: A table of more lines is read as several.
_LONGEST = 20_000
#: Letters of the lines around a table that are kept with it.
_CONTEXT = 500


class Cell(NamedTuple):
    """One cell as it stands in the document; a tuple, since there may be a million.

    :param line: where it begins, from 1.
    """

    text: str
    line: int

    @property
    def plain(self) -> str:
        """What a reader sees of it, cut short."""
        return " ".join(_MARKUP.sub(" ", self.text[:500]).split())[:100]


Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    :param header: the names of its columns, where it has them.
    :param rows: all others.
    :param kind: of the section that it stands in.
    :param around: heading, caption, and the lines next to it.
    """

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    kind: Kind
    around: str

    def column(self, place: int) -> str:
        """Return the name of the column at *place*, empty if it has none."""
        return self.header[place] if place < len(self.header) else ""


class _Lines:
    """Lines that are read no further than they are asked for."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._coming = iter(lines)
        self._read: list[Line] = []

    def get(self, place: int) -> Line | None:
        """Return the line at *place*, from 0; null after the last one."""
        while len(self._read) <= place:
            line = next(self._coming, None)
            if line is None:
                return None
            self._read.append(line)
        return self._read[place]

    def between(self, start: int, end: int) -> list[Line]:
        """Return the lines from *start* on, as many as there are before *end*."""
        self.get(end - 1)
        return self._read[start:end]


def blocks(lines: Iterable[Line]) -> Iterator[Line | Table]:
    """Yield the tables among *lines*, and the lines that belong to none."""
    held = _Lines(lines)
    at, before = 0, ""
    while (line := held.get(at)) is not None:
        end, rows = _table_at(held, at, line.text)
        if end == at:
            yield line
            before = line.text if line.text.strip() else before
            at += 1
            continue
        after = next((one.text for one in held.between(end, end + 3) if one.text.strip()), "")
        around = "\n".join(part.strip()[:_CONTEXT] for part in (line.heading, before, after))
        if rows:
            yield _table(rows, line.kind, around)
        before, at = "", end


def _table_at(lines: _Lines, at: int, text: str) -> tuple[int, list[Row]]:
    """Return the end of the table that begins at *at*, *at* if none does, and its rows."""
    if "|" in text:
        return _pipes(lines, at)
    if "<" in text and _TABLE_TAG.search(text):
        end = _end(lines, at, _TABLE_END)
        return end, _split(lines.between(at, end), _ROW_TAG, _CELL_TAG)
    if "\\" in text and _TABULAR.search(text):
        end = _end(lines, at, _TABULAR_END)
        return end, _split(lines.between(at, end), _ROW_END, _AMPERSAND)
    return at, []


def _pipes(lines: _Lines, at: int) -> tuple[int, list[Row]]:
    """A table has a rule below its first row, or pipes around each."""
    following = lines.get(at + 1)
    ruled = following is not None and _is_rule(following.text)
    end, rows = at, []
    while (line := lines.get(end)) is not None and "|" in (text := line.text):
        if end - at == _LONGEST:
            break
        if not ruled and not (text.strip().startswith("|") and text.count("|") > 2):
            break
        if not _is_rule(text):
            inner = text.strip().removeprefix("|").removesuffix("|").replace("\\|", "¦")
            rows.append(tuple(Cell(cell, line.number) for cell in inner.split("|")))
        end += 1
    return end, rows


def _is_rule(line: str) -> bool:
    return "-" in line and "|" in line and not line.strip(" |-:+\t\r")


def _end(lines: _Lines, at: int, closing: re.Pattern[str]) -> int:
    """Return the place after the line that closes a table; one that is never closed is cut."""
    place = at
    while (line := lines.get(place)) is not None and place < at + _LONGEST:
        place += 1
        if closing.search(line.text):
            break
    return place


def _split(lines: Sequence[Line], row: re.Pattern[str], cell: re.Pattern[str]) -> list[Row]:
    """Cut a table that is no Markdown at its marks of rows and cells."""
    rows: list[list[Cell]] = [[]]
    pending = ""
    is_html = row is _ROW_TAG
    start = lines[0].number if lines else 0
    for line in lines:
        text = line.text if is_html else _TEX_RULES.sub("", line.text)
        for number, part in enumerate(row.split(text)):
            if number:
                rows[-1].append(Cell(pending, start))
                rows.append([])
                pending = ""
            for place, piece in enumerate(cell.split(part)):
                if place:
                    rows[-1].append(Cell(pending, start))
                    pending = ""
                start = line.number if not pending.strip() else start
                pending += piece + " "
    rows[-1].append(Cell(pending, start))
    kept = [
        tuple(one[1:] if is_html else one) for one in rows
    ]  # HTML: nothing before a row's first cell
    return [one for one in kept if any(part.text.strip() for part in one) and len(one) > 1]


def _table(rows: list[Row], kind: Kind, around: str) -> Table:
    """The first row is the header, and of several above the first numbers the last one."""
    head = 1
    while head < min(len(rows), 3) and not any(
        re.search(r"[0-9]", cell.text) for cell in rows[head]
    ):
        head += 1
    if head >= len(rows):
        head = 1
    header = tuple(cell.plain for cell in rows[head - 1]) if rows else ()
    return Table(header, tuple(rows[head:]), kind, around)
