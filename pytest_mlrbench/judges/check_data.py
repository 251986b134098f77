"""Data files as plain values, and the numbers that claims point to in them."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from typing import Any
from urllib.parse import unquote

from pytest_mlrbench.judges import check_texts as texts
from pytest_mlrbench.judges.check_records import as_number

#: Cells of a table: with one letter in each, a file of the size that is read has no more.
_MAX_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry of the claims file beside what its source holds."""

    text: str
    printed: texts.Printed
    source: str
    recorded: float | None

    @property
    def holds(self) -> bool:
        """Whether the source, rounded likewise, gives the claim; a share may be in percent."""
        scales = (1, 100) if "%" in self.text else (1,)
        return self.recorded is not None and any(
            self.printed.within(scale * self.recorded) for scale in scales
        )


def parse(data: bytes, suffix: str) -> Any:
    """Return the content of a data file as plain values, or None; CSV rows are dictionaries."""
    try:
        text = data.decode("utf-8-sig")
        match suffix:
            case ".json":
                return _json(text)
            case ".jsonl":
                return [_json(line) for line in text.splitlines() if line.strip()]
            case ".csv" | ".tsv":
                comma = "," if suffix == ".csv" else "\t"
                return _rows(csv.DictReader(StringIO(text), delimiter=comma))
    except (ValueError, RecursionError, csv.Error):
        pass
    return None


def number_at(document: Any, place: str) -> float | None:
    """Return the number at ``/json/pointer`` or ``row=3,column=acc`` of *document*.

    Rows are counted from 1, below the header.
    """
    if cell := re.fullmatch(r"row=([1-9]\d{0,7}),column=(.{1,200})", place):
        return as_number(_step(_step(document, str(int(cell[1]) - 1)), unquote(cell[2])))
    if not place.startswith("/"):
        return None
    for token in unquote(place).split("/")[1:]:
        document = _step(document, token.replace("~1", "/").replace("~0", "~"))
    return as_number(document)


def _rows(reader: csv.DictReader[str]) -> list[Any] | None:
    """Return the rows of a table; null if most of its cells are missing, which no file holds."""
    most = _MAX_CELLS // max(1, len(reader.fieldnames or ()))
    found = list(islice(reader, most + 1))
    return found if len(found) <= most else None


def _json(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: None)


def _step(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token)
    if isinstance(value, list) and re.fullmatch(r"0|[1-9][0-9]{0,8}", token):
        return value[int(token)] if int(token) < len(value) else None
    return None
