"""The number at an address that an agent gives: a file, ``#``, and a place in it.

In JSON, JSON Lines and YAML the place is a JSON pointer, ``metrics.json#/ours/accuracy``; lines are
the elements of a list. In a table it is a row and a column: ``results.csv#ours/accuracy``, the row
whose first cell is *ours*; ``#3/accuracy``, the third row below the header; the same as
``#row=3,column=accuracy``, and as a pointer, from 0, ``#/2/accuracy``. An address with two meanings
has both.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pytest_mlrbench.evidence.records.data import (
    MOST_BYTES,
    SUFFIXES,
    Table,
    decoded,
    number_in,
    parsed,
    read,
)

#: Where the addresses stand; a claim cannot prove itself.
CLAIMS = "results/claims.json"
_LONGEST = 1_000
#: Meanings of an address that are looked at, slashes that may part a row from a column.
_MOST_MEANINGS, _MOST_SLASHES = 50, 10
_KEPT_FILES = 8
_CELL = re.compile(r"row=([1-9]\d{0,7}),\s?column=(.{1,200})")
_INDEX = re.compile(r"0|[1-9]\d{0,8}")


@dataclass(frozen=True, slots=True)
class Looked:
    """What an address leads to.

    :param file: the file that it names, as the submission has it; null if there is none.
    :param values: the numbers there, one for each of its meanings.
    :param fault: why there are none, as the end of a sentence that begins with the address.
    :param is_known: whether the fault is the address's; else it cannot be told what it leads to.
    """

    file: str | None = None
    values: tuple[float, ...] = ()
    fault: str | None = None
    is_known: bool = True


@dataclass
class Cells:
    """The files of a submission, in which addresses are looked up.

    :param files: path below the submission → file.
    """

    files: Mapping[str, Path]
    _parsed: dict[str, Any] = field(default_factory=dict)

    def look(self, address: str) -> Looked:
        """Return what *address* leads to."""
        name, sign, place = address[:_LONGEST].partition("#")
        file = self._find(name)
        if file is None:
            return Looked(fault="names a file that is not there")
        if file == CLAIMS:
            return Looked(file, fault="is the list of claims itself, which proves nothing")
        if not sign:
            return Looked(file, fault="names no place in the file")
        if Path(file).suffix.lower() not in SUFFIXES:
            return Looked(file, fault="leads into a file without addresses, unlike JSON or CSV")
        content = self._content(file)
        if content is None:
            return self._unreadable(file)
        found = list(islice(_meanings(content, place), _MOST_MEANINGS))
        if not found:
            return Looked(file, fault="names a place that the file does not have")
        numbers = tuple(n for value in found if (n := number_in(value)) is not None)
        return Looked(file, numbers, None if numbers else f"holds {_shown(found[0])}, no number")

    def _find(self, name: str) -> str | None:
        """Return the path of a file, given from the submission or from the folder of the claims."""
        for said in (name.strip(), unquote(name.strip())):
            for path in (said, posixpath.join(posixpath.dirname(CLAIMS), said)):
                normal = posixpath.normpath(path)
                if normal in self.files:
                    return normal
        return None

    def _content(self, file: str) -> Any:
        if file not in self._parsed:
            data = read(self.files[file])
            whole = data is not None and len(data) <= MOST_BYTES
            if len(self._parsed) >= _KEPT_FILES:  # each may be large
                self._parsed.clear()
            suffix = Path(file).suffix
            self._parsed[file] = parsed(decoded(data), suffix) if data and whole else None
        return self._parsed[file]

    def _unreadable(self, file: str) -> Looked:
        data = read(self.files[file])
        if data is None or len(data) > MOST_BYTES:
            fault = f"leads into a file of more than {MOST_BYTES // 10**6} MB, which is not read"
            return Looked(file, fault=fault, is_known=False)
        return Looked(file, fault=f"leads into a file that is no {Path(file).suffix[1:].upper()}")


def _meanings(content: Any, place: str) -> Iterator[Any]:
    """Yield what stands at *place*, which may be written as in a URL."""
    for said in dict.fromkeys((place, unquote(place))):
        if isinstance(content, Table):
            yield from _in_table(content, said)
        elif cell := _CELL.fullmatch(said):
            yield from _walked(content, [str(int(cell[1]) - 1), cell[2]])
        else:
            yield from _walked(content, said.removeprefix("/").split("/"))


def _walked(value: Any, tokens: list[str]) -> Iterator[Any]:
    for token in tokens:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        elif isinstance(value, dict):
            # YAML has keys that are numbers.
            keys = [token] if token in value else [key for key in value if str(key) == token]
            if not keys:
                return
            value = value[keys[0]]
        else:
            return
    yield value


def _in_table(table: Table, place: str) -> Iterator[str]:
    if cell := _CELL.fullmatch(place):
        yield from _cells(table, [int(cell[1]) - 1], cell[2])
        return
    first = 0 if place.startswith("/") else 1
    steps = place.removeprefix("/").split("/")[: _MOST_SLASHES + 1]
    for end in range(1, len(steps)):
        row, column = "/".join(steps[:end]), "/".join(steps[end:])
        named = [at for at, cells in enumerate(table.rows) if cells[0].strip() == row]
        numbered = [int(row) - first] if _INDEX.fullmatch(row) else []
        yield from _cells(table, [*named, *numbered], column.replace("~1", "/").replace("~0", "~"))


def _cells(table: Table, rows: list[int], column: str) -> Iterator[str]:
    for at, name in enumerate(table.columns):
        if name == column.strip():
            for row in rows:
                if 0 <= row < len(table.rows) and at < len(table.rows[row]):
                    yield table.rows[row][at]


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return "nothing" if value in (None, "") else repr(value)[:60]
