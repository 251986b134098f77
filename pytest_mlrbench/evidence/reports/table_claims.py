"""Which cells of a table hold measured results, and which should and do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_mlrbench.evidence.reports.numbers import Number, numbers_in
from pytest_mlrbench.evidence.reports.outline import Line
from pytest_mlrbench.evidence.reports.prose import is_exact, measured_in
from pytest_mlrbench.evidence.reports.report_tables import Cell, Row, Table
from pytest_mlrbench.evidence.reports.settings import is_metric, is_setting

_EMPTY = re.compile(
    r"[(*_\s$]{0,4}(?:nan|n/?a|n\.a\.|none|null|tbd|±?\s?inf|-{1,3}|[–—])(?:\s?±\s?(?:nan"  # noqa: RUF001
    r"|-))?[)*_\s%$]{0,4}",
    re.I,
)
_NOT_A_NUMBER = re.compile(r"nan|inf", re.I)
#: A method is not compared with itself: its cell is rightly empty.
_COMPARED = re.compile(
    r"improve|gain|delta|Δ|reduc|change|relative|differ|\bvs\b|p-?value|signific|speed-?up", re.I
)
_PERCENT = re.compile(r"%|percent", re.I)
_BY_ROWS = re.compile(r"metric|measure|statistic|quantity", re.I)
_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"[A-Za-z]{3,}")
#: A cell of more words is a sentence.
_FEW_WORDS = 4


def measured_cells(table: Table) -> Iterator[tuple[Number, str, str, bool]]:
    """Yield the numbers of *table* that are results, and stand beside settings and labels.

    Each with the names of its row and column, and whether these or itself say percent.
    """
    first = _labels_of(table)
    grid = [[list(numbers_in(cell.text, cell.line)) for cell in row] for row in table.rows]
    decimal = _columns_of_decimals(grid)
    by_rows = bool(_BY_ROWS.search(table.column(0)))
    label = ""
    for row, numbers in zip(table.rows, grid, strict=True):
        label = _label(row, first) or label
        chosen = bool(first) and is_setting(label)
        whole = not by_rows or any(one.is_precise for cell in numbers[first:] for one in cell)
        for place in range(first, len(row)):
            column = table.column(place)
            percent = bool(_PERCENT.search(column) or _PERCENT.search(label))
            # A method may be called as a setting is: its row is no setting below a metric.
            if not is_setting(column) and not (chosen and not is_metric(column)):
                for number in _in_cell(
                    row[place], numbers[place], whole=whole and place in decimal
                ):
                    yield number, label, column, number.percent or percent


def empty_in(table: Table) -> list[tuple[int, str, str]]:
    """Return line, row and column of the cells of *table* that hold no value for a result."""
    first, label, found = _labels_of(table), "", []
    for row in table.rows:
        label = _label(row, first) or label
        for place in range(first, len(row)):
            if _DIGIT.search(row[place].text):
                continue
            text, column = row[place].plain, table.column(place)
            if not _EMPTY.fullmatch(text) or is_setting(column) or is_setting(label):
                continue
            if _NOT_A_NUMBER.search(text) or not _COMPARED.search(f"{label} {column}"):
                found.append((row[place].line, label, column))
    return found


def _labels_of(table: Table) -> int:
    """Return how many columns there are before the values; each but the first has no number."""
    width = max((len(row) for row in table.rows), default=0)
    if is_metric(table.column(0)) and all(
        row and not _WORD.search(row[0].text) and any(numbers_in(row[0].text)) for row in table.rows
    ):
        return 0
    first = 1
    while first < width - 1 and not any(
        any(numbers_in(row[first].text)) or _EMPTY.fullmatch(row[first].plain)
        for row in table.rows
        if first < len(row)
    ):
        first += 1
    return first


def _label(row: Row, first: int) -> str:
    return " / ".join(cell.plain for cell in row[:first] if cell.plain)


def _columns_of_decimals(grid: list[list[list[Number]]]) -> set[int]:
    """Return the columns in which at least half of the numbers look measured."""
    precise: dict[int, int] = {}
    for row in grid:
        for place, numbers in enumerate(row):
            if numbers:
                precise[place] = precise.get(place, 0) + (1 if numbers[0].is_precise else -1)
    return {place for place, balance in precise.items() if balance >= 0}


def _in_cell(cell: Cell, numbers: list[Number], *, whole: bool) -> list[Number]:
    words = len(_WORD.findall(cell.text))
    if words > _FEW_WORDS:
        return list(measured_in(Line(cell.line, cell.text, "open")))
    return [
        number
        for number in numbers
        if (number.is_precise or (whole and not words)) and is_exact(cell.text, number)
    ]
