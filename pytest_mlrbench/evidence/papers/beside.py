"""A paper beside its run: values, works and repeats that it has and the run has not."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from pytest_mlrbench.evidence.base import Finding, Source
from pytest_mlrbench.evidence.papers.repeats import unrepeated
from pytest_mlrbench.evidence.papers.unseen import unseen
from pytest_mlrbench.evidence.reports.outline import outline
from pytest_mlrbench.evidence.reports.report_tables import Cell, Table, blocks
from pytest_mlrbench.evidence.reports.settings import is_setting

PAPER, RESULTS = "results/paper.md", "results/results.md"
#: Most findings of one kind; characters of a document, cells of it, and numbers of a run.
_MOST, _LONGEST, _CELLS, _NUMBERS = 30, 500_000, 20_000, 2_000_000
#: Columns of a table, and those of them that name a row.
_COLUMNS, _LABELS = 500, 4

#: A value that was to be there and is not. A dash alone says that there is none to be had.
_FAILED = re.compile(
    r"\W{0,4}(?:nan|n/?a|n\.a\.|none|null|failed|error|[-+]?inf|crash\w*|did not (?:run|finish)"
    r"|time(?:d )?out|oom|not (?:available|measured|computed|run))\W{0,4}(?:±\W{0,3}nan\W{0,3})?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d{1,12}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?(?![\w.]*\w)")  # noqa: RUF001
#: Worked out from other cells, so that a paper may have it where the run has not.
_DERIVED = re.compile(
    r"improve|gain|delta|Δ|reduc|change|relative|differ|\bvs\b|p-?value|signific|speed-?up|average"
    r"|overall|rank|note|comment",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\([^()]{0,60}\)|[↑↓]")

_Address = frozenset[str]


def findings(
    paper: str, results: str, run_texts: Sequence[str], sources: Sequence[Source]
) -> list[Finding]:
    """Hold a paper against what its run left.

    :param run_texts: logs, what was printed, and result files.
    """
    paper, results = paper[:_LONGEST], results[:_LONGEST]
    found = [
        *islice(_nan_filled(paper, results, run_texts), _MOST),
        *islice(_single_seed(paper, results, run_texts, sources), _MOST),
    ]
    # Without any program or log, whatever was used is mentioned nowhere.
    if sources or any(run_texts):
        texts = (results, *(source.text for source in sources), *run_texts)
        found += (
            Finding(
                kind="unseen_entity",
                severity="hint",
                sentence=f"The paper says that {name} was used, and neither the results nor any log"
                " or program names it.",
                place=f"{PAPER}:{line}",
                quote=sentence[:300],
            )
            for name, line, sentence in islice(unseen(paper, texts), _MOST)
        )
    return found


def _nan_filled(paper: str, results: str, run_texts: Sequence[str]) -> Iterator[Finding]:
    cells = _cells(results)
    # A name that stands for a value in one table and for none in another is not the paper's fault.
    empty = {
        address: held[0]
        for address, held in cells.items()
        if all(_FAILED.fullmatch(cell.plain) for cell in held)
    }
    if not empty:
        return
    known: list[float] | None = None
    for address, held in _cells(paper).items():
        if address not in empty:
            continue
        for cell in held:
            if not (number := _NUMBER.search(cell.plain)) or not _value(number[0]):
                continue
            if known is None:
                known = sorted(_numbers((results, *run_texts)))
            in_run = _occurs(number[0], known)
            yield Finding(
                kind="nan_filled",
                severity="hint" if in_run else "strong",
                means=None if in_run else "paper_untraced",
                sentence=f"{' / '.join(sorted(address))}: the paper has {number[0]} where"
                f" {RESULTS}:{empty[address].line} has {empty[address].plain}"
                f"{', though the number is in the run' if in_run else ''}.",
                place=f"{PAPER}:{cell.line}",
                quote=cell.plain,
            )


def _cells(document: str) -> dict[_Address, list[Cell]]:
    """The cells of results in the tables of *document*, by the names of row and column.

    A table may stand on its side in one of two documents, so the names have no order.
    """
    found: dict[_Address, list[Cell]] = defaultdict(list)
    left = _CELLS
    for table in blocks(outline(document)):
        if not isinstance(table, Table) or table.kind == "others":
            continue
        columns = [_name(column) for column in table.header[:_COLUMNS]]
        for row in table.rows:
            first = next((n for n, cell in enumerate(row) if n and _is_value(cell)), len(row))
            label = " ".join(cell.plain for cell in row[: min(first, _LABELS)])
            name = "" if _is_beside(label) else _name(label)
            for place in range(first, min(len(row), len(columns))) if name else ():
                names = _Address((name, columns[place]))
                if all(names) and len(names) == 2 and not _is_beside(table.column(place)):
                    found[names].append(row[place])
                    left -= 1
                if left <= 0:
                    return found
    return found


def _is_value(cell: Cell) -> bool:
    return bool(_FAILED.fullmatch(cell.plain) or _NUMBER.search(cell.plain))


def _is_beside(name: str) -> bool:
    """Whether what has this name is no result of its own: set, or worked out from others."""
    return is_setting(name) or bool(_DERIVED.search(name))


def _name(text: str) -> str:
    return " ".join(re.findall(r"\w+", _ASIDE.sub(" ", text).casefold()))


def _numbers(texts: Sequence[str]) -> set[float]:
    every = (found[0] for text in texts for found in _NUMBER.finditer(text[:_LONGEST]))
    return {abs(_value(number)) for number in islice(every, _NUMBERS)}


def _value(number: str) -> float:
    return float(number.replace("−", "-"))  # noqa: RUF001


def _occurs(number: str, known: Sequence[float]) -> bool:
    """Whether a number of the run rounds to *number*, as it is or as a share of a hundred."""
    value = abs(_value(number))
    slack = 0.5 * 10.0 ** -len(number.partition(".")[2].split("e")[0])
    for scale in (1.0, 100.0, 0.01):
        lowest, highest = (value - slack) * scale, (value + slack) * scale
        at = bisect_left(known, lowest * (1 - 1e-9))
        if at < len(known) and known[at] <= highest * (1 + 1e-9):
            return True
    return False


def _single_seed(
    paper: str, results: str, run_texts: Sequence[str], sources: Sequence[Source]
) -> Iterator[Finding]:
    documents = ((PAPER, paper), (RESULTS, results))
    for name, line, quote in unrepeated(documents, run_texts, sources):
        yield Finding(
            kind="single_seed_spread",
            severity="hint",
            sentence=f"“{quote}” is reported, and no program repeats anything with other seeds or"
            " computes a spread or a test.",
            place=f"{name}:{line}",
            quote=quote,
        )
