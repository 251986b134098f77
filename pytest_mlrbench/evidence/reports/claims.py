"""Which of the numbers in a report a reader takes for measured results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_mlrbench.evidence.base import Claim
from pytest_mlrbench.evidence.reports.outline import outline
from pytest_mlrbench.evidence.reports.prose import PRECISE, measured_in
from pytest_mlrbench.evidence.reports.report_tables import Table, blocks
from pytest_mlrbench.evidence.reports.settings import is_settings_table
from pytest_mlrbench.evidence.reports.table_claims import empty_in, measured_cells

#: A document that claims more than this is read no further.
MOST_CLAIMS = 20_000
#: Letters and lines of a document that are read.
_LONGEST, _MOST_LINES = 8_000_000, 200_000


@dataclass
class Report:
    """What a document claims.

    :param claims: at most ``MOST_CLAIMS``.
    :param left_out: about how many numbers there are besides, in what was not read.
    :param empty: the cells of its tables of results without a value: line, row, column.
    """

    claims: list[Claim] = field(default_factory=list)
    left_out: int = 0
    empty: list[tuple[int, str, str]] = field(default_factory=list)


def claims_of(document_name: str, text: str) -> list[Claim]:
    """Return the numbers that a reader of *text* takes for measured results."""
    return read_report(document_name, text).claims


def empty_cells(text: str) -> list[tuple[int, str, str]]:
    """Return line, row and column of the cells with ``nan``, ``N/A`` or a dash for a result."""
    return read_report("", text).empty


def read_report(document_name: str, text: str) -> Report:
    """Read the Markdown, HTML or LaTeX *text* of the document of that name."""
    report = Report()
    lines = text[:_LONGEST].split("\n", _MOST_LINES)[:_MOST_LINES]
    read = "\n".join(lines)
    for claim in _claims(document_name, read, report):
        report.claims.append(claim)
        if len(report.claims) == MOST_CLAIMS:
            line, *rest = text.split("\n", claim.line)[claim.line - 1 :]
            told = sum(one.line == claim.line for one in report.claims)
            report.left_out = max(0, _count(line) - told) + sum(map(_count, rest))
            break
    else:
        report.left_out = _count(text[len(read) :])
    return report


def _claims(document: str, text: str, report: Report) -> Iterator[Claim]:
    """Yield the claims of *text*; empty cells are noted in *report* on the way."""
    for block in blocks(outline(text)):
        if not isinstance(block, Table):
            for number in measured_in(block):
                yield Claim(
                    document, number.line, number.text, number.value, number.slack, number.percent
                )
        elif block.kind != "others" and not is_settings_table(block):
            report.empty += empty_in(block)[: MOST_CLAIMS - len(report.empty)]
            for number, row, column, percent in measured_cells(block):
                yield Claim(
                    document,
                    number.line,
                    number.text,
                    number.value,
                    number.slack,
                    percent,
                    in_table=True,
                    row=row,
                    column=column,
                )


def _count(text: str) -> int:
    return sum(1 for _ in PRECISE.finditer(text))
