"""The numbers of a data file, and which of them stand together in one record."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from pytest_mlrbench.judges.check_texts import SCALES, Known, Pair, Printed

#: A file with more numbers is raw data: by chance it would contain any number one looks for.
MAX_NUMBERS = 20_000
#: A record of more numbers would hold, by chance, most pairs one looks for.
_LARGEST = 100
#: A short list is a record too: ``[mean, std]``.
_SHORT = 4
_MAX_RECORDS = 50_000
#: Records with a fitting mean that are searched for its spread.
_TRIES = 100


def as_number(value: Any) -> float | None:
    """Return *value* as a finite number; the cells of a CSV file are text, so text counts."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        converted = float(value)
    except (ValueError, OverflowError):
        return None
    return converted if math.isfinite(converted) else None


def all_numbers(document: Any) -> list[float]:
    """Return the numbers anywhere in *document*, or none where there are too many."""
    found: list[float] = []
    pending = [document]
    while pending and len(found) <= MAX_NUMBERS:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif (converted := as_number(value)) is not None:
            found.append(converted)
    return found if len(found) <= MAX_NUMBERS else []


def records(document: Any) -> Iterator[Sequence[float]]:
    """Yield the numbers that stand together anywhere in *document*.

    These are the values of one object or row, values under the same key of sibling objects
    (``{"mean": {"a": 1}, "std": {"a": 2}}``), short lists, and what the runs in a list, an object
    or a column come to.
    """
    pending = [document]
    while pending:
        value = pending.pop()
        if not isinstance(value, dict | list):
            continue
        inner = list(value.values()) if isinstance(value, dict) else value
        numbers, rows = _numbers(inner), [row for row in inner if isinstance(row, dict)]
        yield numbers if isinstance(value, dict) or len(numbers) <= _SHORT else ()
        yield _summary(numbers) if len(numbers) == len(inner) else ()
        yield from _transposed(rows) if isinstance(value, dict) else _columns(rows)
        pending += inner


def _numbers(values: Iterable[Any]) -> list[float]:
    return [number for value in values if (number := as_number(value)) is not None]


def _transposed(rows: Sequence[dict[Any, Any]]) -> Iterator[Sequence[float]]:
    for key in rows[0] if len(rows) > 1 else ():
        yield _numbers(row.get(key) for row in rows[:_LARGEST])


def _columns(rows: Sequence[dict[Any, Any]]) -> Iterator[Sequence[float]]:
    """Summarise every column over the rows whose other cells, the names in them, are the same."""
    groups: dict[tuple[str, ...], dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        numbers = {key: as_number(cell) for key, cell in row.items()}
        texts = (row[key] for key, number in numbers.items() if number is None)
        columns = groups[tuple(text for text in texts if isinstance(text, str))]
        for key, number in numbers.items():
            if number is not None:
                columns[key].append(number)
    for columns in groups.values():
        yield from map(_summary, columns.values())


def _summary(runs: Sequence[float]) -> Sequence[float]:
    """Return mean, deviation (of a sample, of a population) and standard error of *runs*."""
    if len(runs) < 2:
        return ()
    mean = sum(runs) / len(runs)
    squares = sum((run - mean) * (run - mean) for run in runs)
    deviation = math.sqrt(squares / (len(runs) - 1))
    found = (mean, deviation, math.sqrt(squares / len(runs)), deviation / math.sqrt(len(runs)))
    return found if all(map(math.isfinite, found)) else ()


class Together:
    """Records that a mean may be looked up in with its spread."""

    def __init__(self, found: Iterable[Sequence[float]]) -> None:
        few = (record for record in found if 2 <= len(record) <= _LARGEST)
        self._records = [Known(record) for record in islice(few, _MAX_RECORDS)]
        self._places = sorted(
            (number, place) for place, record in enumerate(self._records) for number in record
        )
        self._all = Known(number for number, _ in self._places)

    def __contains__(self, pair: Pair) -> bool:
        """Whether one record holds both numbers, rounded; shares may be printed in percent."""
        return any(self._holds(*pair, scale) for scale in SCALES)

    def _holds(self, mean: Printed, spread: Printed, scale: int) -> bool:
        around = spread.value / scale, spread.slack / scale
        if not self._all.around(*around):  # most that are not recorded beside a mean are nowhere
            return False
        low, high = ((mean.value + sign * mean.slack) / scale for sign in (-1, 1))
        first = bisect_left(self._places, (low, 0))
        return any(
            number <= high and self._records[place].around(*around)
            for number, place in self._places[first : first + _TRIES]
        )
