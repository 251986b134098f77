"""Inputs that are made wrong and stay well-formed: whoever only opens them does not notice.

Labels are shuffled: then they have nothing to do with their examples any more. Or each column is
drawn anew from its own values, which also changes what no label is needed for, as a mean. What can
be neither is for the caller to withhold. The same file always becomes the same other one.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from random import Random
from typing import Any

from pytest_mlrbench.evidence.replays.corrupting_arrays import ARRAYS, changed_arrays

#: Bytes of a file, unpacked, that is changed: its values take twenty times as much.
MOST_BYTES = 32_000_000
_TRIES = 20
_DELIMITERS = ",;\t|"
_TABLES = (".csv", ".tsv")
_JSON = (".json", ".jsonl", ".ndjson")
#: Read line by line, one example in each.
_LINES = (".txt", ".text", ".data", ".libsvm", ".svm")
#: A name, and where its values stand: in what, and at which key or place.
_Column = tuple[str, list[tuple[Any, Any]]]
#: A column, key or array that is called so, by itself or with the part of the data that it is of.
_LABEL = re.compile(
    r"(?:(?:train|test|val|valid|dev)[_-])?(?:y|labels?|targets?|class|answers?)"
    r"(?:[_-](?:train|test|val|valid|dev))?",
    re.IGNORECASE,
)


def shuffled(name: str, data: bytes, label: str | None = None) -> bytes | None:
    """Return *data* with its labels in another order; null if it is not known where they are.

    :param name: of the file, which tells what is in it.
    :param label: the column or key that holds them; null for the one whose name says so, and in a
        table without such a name the last one.
    """
    return _changed(name, data, Way(label))


def resampled(name: str, data: bytes) -> bytes | None:
    """Return *data* with each column drawn anew from its values; null if it has no columns."""
    return _changed(name, data, Way(is_all=True))


def is_data(name: str) -> bool:
    """Whether a file is one that can be changed, by its name, and hardly anything else."""
    return name.lower().removesuffix(".gz").endswith((*_TABLES, *ARRAYS))


@dataclass(frozen=True)
class Way:
    """What is changed, and how.

    :param is_all: whether every column is drawn anew; otherwise labels are shuffled.
    """

    label: str | None = None
    is_all: bool = False
    _random: Random = field(default_factory=lambda: Random(0), repr=False)

    def chosen(self, names: Sequence[str], *, has_last: bool = False) -> list[int]:
        """Return the places of the columns that are changed.

        :param has_last: whether the last one has the labels if nothing else says where they are.
        """
        if self.is_all:
            return list(range(len(names)))
        found = [place for place, name in enumerate(names) if name == self.label]
        found = found or [place for place, name in enumerate(names) if _LABEL.fullmatch(name)]
        return found or ([len(names) - 1] if has_last and names else [])

    def places(self, count: int) -> list[int]:
        """Return for each of *count* places that from which it gets its value."""
        everywhere = range(count)
        draw = self._random.choices if self.is_all else self._random.sample
        return draw(everywhere, k=count)

    def changed(self, values: list[Any]) -> list[Any] | None:
        """Return *values* in other places; null if nothing makes a difference."""
        for _ in range(_TRIES):
            new = [values[place] for place in self.places(len(values))]
            if new != values:
                return new
        return None


def _changed(name: str, data: bytes, way: Way) -> bytes | None:
    is_packed = name.lower().endswith(".gz")
    inner = name[: -len(".gz")].lower() if is_packed else name.lower()
    try:
        plain = _unpacked(data) if is_packed else data
        if plain is None or len(plain) > MOST_BYTES:
            return None
        new = _of_kind(inner, plain, way)
    # What deep, huge or odd content makes the libraries raise.
    except (ValueError, TypeError, LookupError, RecursionError, MemoryError, csv.Error, zlib.error):
        return None
    return gzip.compress(new, mtime=0) if new is not None and is_packed else new


def _unpacked(data: bytes) -> bytes | None:
    unpacking = zlib.decompressobj(wbits=31)
    plain = unpacking.decompress(data, MOST_BYTES + 1)
    return plain if unpacking.eof else None


def _of_kind(name: str, data: bytes, way: Way) -> bytes | None:
    if name.endswith(ARRAYS):
        return changed_arrays(name, data, way)
    # Not all tables are UTF-8, and every byte is to be the same again.
    text = data.decode("latin-1" if name.endswith((*_TABLES, *_LINES)) else "utf-8")
    new = None
    if name.endswith(_TABLES):
        new = _table(text, way)
    elif name.endswith(_JSON):
        new = _json(text, way)
        return None if new is None else new.encode("utf-8", "surrogatepass")
    elif name.endswith(_LINES) and way.is_all and "\0" not in text[:4_000]:
        lines = way.changed(text.splitlines(keepends=True))
        new = None if lines is None else "".join(lines)
    return None if new is None else new.encode("latin-1")


def _table(text: str, way: Way) -> str | None:
    first = text[:10_000].partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    rows = list(csv.reader(StringIO(text, newline=""), delimiter=delimiter))
    has_header = bool(rows) and not all(map(_is_number, rows[0]))
    body = rows[1:] if has_header else rows
    width = max(map(len, body), default=0)
    # What stands above fewer columns than there are is no header of theirs, as a count of rows.
    fits = has_header and len(rows[0]) == width
    names = [name.strip() for name in rows[0]] if fits else [""] * width
    is_other = False
    for place in way.chosen(names, has_last=True):
        is_other |= _moved([(row, place) for row in body if len(row) > place], way)
    if not is_other:
        return None
    written = StringIO(newline="")
    end = "\r\n" if first.endswith("\r") else "\n"
    csv.writer(written, delimiter=delimiter, lineterminator=end).writerows(rows)
    return written.getvalue()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _json(text: str, way: Way) -> str | None:
    try:
        value, is_lines = json.loads(text), False
    except ValueError:
        value, is_lines = [json.loads(line) for line in text.split("\n") if line.strip()], True
    is_other = False
    for columns in _groups(value):
        for place in way.chosen([name for name, _ in columns]):
            is_other |= _moved(columns[place][1], way)
    if not is_other:
        return None
    return "\n".join(map(json.dumps, value)) + "\n" if is_lines else json.dumps(value)


def _groups(value: Any) -> Iterator[list[_Column]]:
    """Yield columns that belong together: of a list of records, or an object of equal lists."""
    for part in [value, *value.values()] if isinstance(value, dict) else [value]:
        if isinstance(part, list) and part and all(isinstance(it, dict) for it in part):
            names = dict.fromkeys(key for record in part for key in record)
            yield [(name, [(it, name) for it in part if name in it]) for name in names]
        elif isinstance(part, dict):
            lists = {key: it for key, it in part.items() if isinstance(it, list) and len(it) > 1}
            if len(lists) > 1 and len(set(map(len, lists.values()))) == 1:
                yield [(key, [(it, at) for at in range(len(it))]) for key, it in lists.items()]


def _moved(cells: Sequence[tuple[Any, Any]], way: Way) -> bool:
    new = way.changed([owner[key] for owner, key in cells])
    for (owner, key), value in zip(cells, new or (), strict=False):
        owner[key] = value
    return new is not None
