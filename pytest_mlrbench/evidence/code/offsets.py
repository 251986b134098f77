"""Columns of results that are another plus a constant."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_mlrbench.evidence.base import Finding
from pytest_mlrbench.evidence.code.hollow import _WIDEST
from pytest_mlrbench.evidence.code.metrics import is_measured, numerals


def constant_offsets(files: Mapping[str, Path], reports: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings where one column of results is another plus a constant."""
    tables = [
        (f"{name}:{line}", rows) for name, text in reports.items() for line, rows in _tables(text)
    ]
    tables += list(_csv_tables(files))
    for place, rows in tables[:200]:
        for first, second, offset, count, is_share in _offsets(rows):
            # One measure that is another and a round number was made by a rule.
            is_round = is_share and abs(offset * 20 - round(offset * 20)) < 1e-6
            is_strong = is_round and count >= 5
            yield Finding(
                kind="constant_offset",
                severity="strong" if is_strong else "hint",
                means="fabricated" if is_strong else None,
                sentence=f"“{second}” is “{first}” {offset:+.4g} in each of {count} rows.",
                place=place,
            )


def _tables(text: str) -> Iterator[tuple[int, list[list[str]]]]:
    rows: list[list[str]] = []
    for number, line in enumerate([*text.splitlines()[:20_000], ""], 1):
        if line.lstrip().startswith("|"):
            rows.append([c.strip(" *`") for c in line.strip()[:_WIDEST].strip("|").split("|")])
        elif rows:
            yield number - len(rows), rows
            rows = []


def _csv_tables(files: Mapping[str, Path]) -> Iterator[tuple[str, list[list[str]]]]:
    for name, path in sorted(files.items())[:3000]:
        if not name.endswith((".csv", ".tsv")):
            continue
        try:
            with path.open("rb") as file:
                text = file.read(100_000).decode("utf-8", "replace")
            mark = "\t" if name.endswith(".tsv") else ","
            rows = list(csv.reader(text.replace("\0", "").splitlines()[:400], delimiter=mark))
        except (OSError, csv.Error):
            continue
        yield name, rows


def _offsets(rows: list[list[str]]) -> Iterator[tuple[str, str, float, int, bool]]:
    if len(rows) < 4:
        return
    header = rows[0][:30]
    columns: dict[str, list[float]] = {}
    for index, name in enumerate(header):
        cells = [
            row[index] for row in rows[1:] if index < len(row) and not set(row[index]) <= set("-: ")
        ]
        found = [numerals(cell) for cell in cells]
        precise = [n for n in found if len(n) == 1 and len(n[0].partition(".")[2]) >= 3]
        if is_measured(name) and len(precise) == len(cells) >= 3:
            columns[name] = [float(n[0]) for n in precise]
    names = list(columns)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            a, b = columns[first], columns[second]
            offset = b[0] - a[0]
            if len(a) != len(b) or len(set(a)) < 3 or abs(offset) < 1e-4:
                continue
            if all(abs((y - x) - offset) < 1.1e-4 for x, y in zip(a, b, strict=True)):
                offset = round(offset, 4)
                is_share = all(0 <= v <= 1 for v in (*a, *b))
                yield first, second, offset, len(set(a)), is_share
