"""Data files as plain values: JSON, JSON Lines, YAML, tables. Bounded, and nothing raises."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

#: Bytes of a data file that are parsed: a longer one, or its end, is read as lines of text. The
#: objects that JSON makes may take 25 times its bytes.
MOST_BYTES = 8_000_000
#: YAML is parsed at a megabyte a second.
_MOST_YAML = 500_000
#: Columns of a table; more are a line without an end.
_WIDEST = 20_000
_MOST_CELLS = 500_000
#: Endings of the files that are parsed.
SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".csv", ".tsv"})
_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DELIMITERS = ",;\t|"

#: A text that is a number as a whole. Bounded, as are all patterns here.
_NUMBER = re.compile(
    r"\s{0,20}([-+\u2212]?(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,20})?(?:\.\d{0,25})?"
    r"(?:[eE][-+]?\d{1,4})?)\s?%?\s{0,20}"
)


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV or TSV file.

    :param columns: names in the header, or ``1``, ``2``, … where the first row is one of numbers.
    :param rows: below the header.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def number_in(value: object) -> float | None:
    """Return *value* as a finite number; a text counts if it is a number as a whole."""
    if type(value) is float:  # most are, and there may be many
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value) if len(value) < 100 else None
        value = found[1].replace(",", "").replace("\u2212", "-") if found else ""
    try:
        converted = float(value)
    except (ValueError, OverflowError):
        return None
    return converted if math.isfinite(converted) else None


def read(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """Return the first *most* bytes of a regular file and one more; null if it cannot be read."""
    try:
        if not path.is_file():  # a pipe would block
            return None
        with path.open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError):
        return None


def decoded(data: bytes) -> str:
    """Return *data* as text, whatever it holds."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if wide else "utf-8-sig", "replace")


def parsed(text: str, suffix: str) -> Any:
    """Return what JSON, JSON Lines (under either name), YAML or a table says; null if nothing."""
    try:
        match suffix.lower():
            case ".jsonl" | ".ndjson":
                return _json_lines(text)
            case ".json" | ".ipynb":
                return _json(text)
            case ".yaml" | ".yml" if len(text) <= _MOST_YAML:
                return yaml.load(text, _YAML_LOADER)
            case ".csv" | ".tsv":
                return _table(text)
    # What deep, huge or odd content makes the libraries raise; YAML's dates and keys too.
    except (ValueError, TypeError, RecursionError, MemoryError, csv.Error, yaml.YAMLError):
        pass
    except (AttributeError, LookupError, OverflowError):
        pass
    return None


def _json(text: str) -> Any:
    try:
        return _loads(text)
    except ValueError:
        return _json_lines(text)


def _json_lines(text: str) -> list[Any] | None:
    lines = [line for line in text.split("\n") if line.strip()]
    found = [_loads(line) for line in lines[:-1]]
    with suppress(ValueError):  # the last one may be cut
        found += [_loads(line) for line in lines[-1:]]
    return found or None


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: None)


def _table(text: str) -> Table | None:
    first = text[:10_000].partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(StringIO(text), delimiter=delimiter)
    header = next(reader, [])
    if len(header) > _WIDEST:  # no table, whatever it is called
        return None
    most = _MOST_CELLS // max(1, len(header))
    rows = [row for row in islice(reader, most) if row]
    if header and all(number_in(cell) is not None for cell in header):
        return Table([str(place + 1) for place in range(len(header))], [header, *rows])
    return Table([name.strip() for name in header], rows) if rows else None
