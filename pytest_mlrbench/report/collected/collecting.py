"""Scores of several sources, brought together: for programs, and for the command."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.report.collected.merging import Merged, merge
from pytest_mlrbench.report.collected.rows import CaseRow, Scalar, type_of
from pytest_mlrbench.report.collected.sources import Source, read_source

if TYPE_CHECKING:
    import pandas

#: The columns that every table has, and their order; those of groups follow where they belong.
_FIRST = (
    *("case", "suite", "stage", "task", "repeat", "agent", "agent_digest", "author"),
    *("suite_digest", "rubric", "verdict", "blame", "cause", "overall"),
)
_GROUPS = (
    *("score.", "judges.spread", "judge.", "hallucination.", "evidence.", "checkpoint."),
    *("reached", "stopped_by", "threshold", "tokens.", "cost_usd.", "seconds."),
    *("sandbox", "gpu", "replayed", "resumed", "artifacts"),
)
#: Columns that are no cells: what is known of a row's origin.
_ORIGIN = ("run", "source", "conflict")
#: Types of pandas that know a value that is not there.
_DTYPES = {int: "Int64", float: "Float64", bool: "boolean", str: "string"}


class ConflictError(InputError):
    """A case stands in two sources with different content, and which of them counts is unknown."""


@dataclass(frozen=True)
class Collection:
    """What stands in some sources, and how it was brought together."""

    sources: tuple[Source, ...]
    merged: Merged

    @classmethod
    def of(cls, paths: Iterable[str | PathLike[str]]) -> Collection:
        """Read the sources.

        :raises InputError: there is none, or one of them cannot be used.
        """
        sources = tuple(read_source(Path(path)) for path in paths)
        if not sources:
            raise InputError("name at least one JUnit file, JSON report or run folder.")
        return cls(sources, merge(row for source in sources for row in source.rows))


def collect(
    paths: Iterable[str | PathLike[str]], *, conflicts: Literal["raise", "keep"] = "raise"
) -> list[CaseRow]:
    """Return the cases that stand in JUnit files, JSON reports and run folders.

    :param conflicts: what to do about a case of which two measurements of one thing differ:
        ``keep`` returns all of its rows, marked.
    :raises InputError: a source cannot be used.
    :raises ConflictError: there is such a case, and it was not asked to be kept.
    """
    if isinstance(paths, str | PathLike):
        paths = [paths]
    merged = Collection.of(paths).merged
    if merged.conflicts and conflicts == "raise":
        first = merged.conflicts[0]
        raise ConflictError(
            f"{len(merged.conflicts)} cases have different results in different sources, as"
            f" {first.case} in {' and '.join(first.sources)}: leave out one of the sources."
        )
    return list(merged.rows)


def columns(rows: Iterable[CaseRow]) -> list[str]:
    """Return the columns of a table of *rows*, each where a reader looks for it."""
    found = dict.fromkeys(name for row in rows for name in row.cells)
    grouped = [[n for n in found if _is_of(n, group)] for group in _GROUPS]
    known = (*_FIRST, *(name for group in grouped for name in group))
    others = [name for name in found if name not in known]
    return [*dict.fromkeys((*known, *others)), *_ORIGIN]


def _is_of(column: str, group: str) -> bool:
    return column.startswith(group) if group.endswith(".") else column == group


def record(row: CaseRow, names: Sequence[str]) -> dict[str, Scalar | None]:
    """Return the cells of *row* in the columns *names*; null where it has none."""
    origin = {"run": row.run, "source": "; ".join(row.sources), "conflict": row.conflict}
    return {name: origin[name] if name in origin else row.cells.get(name) for name in names}


def write_csv(rows: Sequence[CaseRow], file: TextIO) -> None:
    """Write the table as CSV; what was not measured is an empty cell."""
    names = columns(rows)
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record(row, names) for row in rows)


def write_json(collection: Collection, file: TextIO) -> None:
    """Write the table as JSON, with its sources and conflicts; not measured is null."""
    rows = collection.merged.rows
    names = columns(rows)
    document: dict[str, Any] = {
        "schema_version": 1,
        "sources": [
            {
                "source": source.name,
                "kind": source.kind,
                "cases": len(source.rows),
                "foreign": source.foreign,
                "silent": source.silent,
            }
            for source in collection.sources
        ],
        "conflicts": [asdict(conflict) for conflict in collection.merged.conflicts],
        "columns": names,
        "rows": [record(row, names) for row in rows],
    }
    json.dump(document, file, indent=1, ensure_ascii=False, allow_nan=False)
    file.write("\n")


def to_frame(rows: Iterable[CaseRow]) -> pandas.DataFrame:
    """Return *rows* as a pandas frame, in types that tell what is not there from 0 and False.

    :raises InputError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise InputError(
            "a data frame needs pandas, which is not installed: `pip install pandas`."
        ) from None
    table = list(rows)
    names = columns(table)
    records = [record(row, names) for row in table]
    types = {name: bool if name == "conflict" else type_of(name) for name in names}
    return pandas.DataFrame(
        {
            name: pandas.array([cells[name] for cells in records], dtype=_DTYPES[types[name]])
            for name in names
        }
    )
