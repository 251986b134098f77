"""Where numbers stand in plain values, tables, notebooks and lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_mlrbench.evidence.records.data import Table, number_in

#: A number, what follows the file's name in its address, and the texts beside it.
Found = tuple[float, str, str]

_DEEPEST = 40
#: Values of a file that are visited: those of YAML may be each other's parts, again and again.
_MOST_STEPS = 100_000
#: Letters of what stands beside a number that are kept.
_LABEL = 60
_LONGEST_KEY = 400

#: Times and dates are no results; a number may carry a unit, but is no part of a word or version.
_TOKEN = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d)?(?:[.,]\d{1,9})?|\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?"
    r"|(?<![\w.])(?P<number>(?:[-+\u2212])?(?:\d{1,3}(?:,\d{3}){1,4}(?!\d)|\d{1,18})?"
    r"(?:(?<=\d)\.?|\.(?=\d))\d{0,25}(?:[eE][-+]?\d{1,3})?)(?=[^\W\d_]{0,3}(?![\w])(?!\.\d))"
)


#: Most text is none of it: to try the pattern at every letter takes a hundred times as long.
_DIGIT = re.compile(r"[0-9]")
_REST = re.compile(r"[\w.]{0,10000}")


def in_lines(lines: Iterable[tuple[str, str]]) -> Iterator[Found]:
    """Yield the numbers of lines, given with their keys; the words before one are its label."""
    for line, key in lines:
        # What a carriage return goes back over is no longer seen: states of a progress bar.
        seen = line.rstrip("\r").rpartition("\r")[2]
        for token in _tokens(seen):
            if (value := number_in(token["number"])) is not None:
                start = token.start()
                yield value, key, seen[max(0, start - _LABEL) : start].strip()


def _tokens(line: str) -> Iterator[re.Match[str]]:
    digit = _DIGIT.search(line)
    while digit:
        start = digit.start()
        while start and line[start - 1] in ".-+\u2212" and digit.start() - start < 2:
            start -= 1
        places = range(start, digit.start() + 1)  # "1-2" has no minus, nor has "a.5" a point
        token = next((one for at in places if (one := _TOKEN.match(line, at))), None)
        if token:
            yield token
        rest = token or _REST.match(line, digit.start())
        digit = _DIGIT.search(line, rest.end()) if rest else None


def in_values(value: Any) -> Iterator[Found]:
    """Yield the numbers of plain values; texts beside a number in an object are its label."""
    return _inside(value, "#", "", iter(range(_MOST_STEPS)))


def _inside(
    value: Any, key: str, label: str, steps: Iterator[int], depth: int = 0
) -> Iterator[Found]:
    if next(steps, None) is None or depth > _DEEPEST or len(key) > _LONGEST_KEY:
        return
    if isinstance(value, dict):
        texts = [text[:_LABEL] for text in value.values() if _is_name(text)]
        label = " ".join(texts[:4]) or label
        tokens = (str(name)[:100].replace("~", "~0").replace("/", "~1") for name in value)
        inner: Iterable[tuple[Any, Any]] = zip(tokens, value.values(), strict=True)
    else:
        inner = enumerate(value) if isinstance(value, list) else ()
    for token, content in inner:
        if isinstance(content, list | dict):
            if content:
                yield from _inside(content, f"{key}/{token}", label, steps, depth + 1)
        elif (number := number_in(content)) is not None:
            yield number, f"{key}/{token}", label


def _is_name(value: object) -> bool:
    return isinstance(value, str) and number_in(value) is None


def in_table(table: Table) -> Iterator[Found]:
    """Yield the numbers of a table; the texts of a row are their label."""
    for place, row in enumerate(table.rows, 1):
        numbers = [number_in(cell) for cell in row]
        pairs = zip(row, numbers, strict=True)
        texts = [cell[:_LABEL] for cell, number in pairs if number is None and cell.strip()]
        label = " ".join(texts[:4])
        for column, number in zip(table.columns, numbers, strict=False):
            if number is not None:
                yield number, f"#{place}/{column[:100]}", label


def in_notebook(notebook: dict[str, Any]) -> Iterator[Found]:
    """Yield the numbers in the outputs of a notebook's cells; what the cells say is no output."""
    cells = notebook.get("cells")
    for place, cell in enumerate(cells if isinstance(cells, list) else ()):
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for number, output in enumerate(outputs if isinstance(outputs, list) else ()):
            for text in _texts_of(output):
                key = f"#/cells/{place}/outputs/{number}"
                yield from in_lines((line, key) for line in text.split("\n"))


def _texts_of(output: object) -> Iterator[str]:
    if isinstance(output, dict):
        data = output.get("data")
        plain = data.get("text/plain") if isinstance(data, dict) else None
        for text in (output.get("text"), plain):
            lines = text if isinstance(text, list) else [text]
            yield "".join(line for line in lines if isinstance(line, str))
