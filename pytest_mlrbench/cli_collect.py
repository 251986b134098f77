"""``mlrbench collect FILES``: one table of scores, from JUnit, JSON reports and run folders."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from pytest_mlrbench.errors import InputError


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "collect",
        help="bring scores together from JUnit files, JSON reports and run folders",
        description="Prints one row for each case, or writes them with all columns. Exits with 1"
        " where a case was measured twice, with different results, and it cannot be known which"
        " counts; all of its rows are in the table then.",
    )
    parser.add_argument("sources", nargs="+", type=Path, metavar="FILE|RUN_DIR")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table as CSV")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON")
    parser.set_defaults(run=_collect)


def _collect(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.report.collected.collecting import Collection, write_csv, write_json
    from pytest_mlrbench.report.collected.words import summary_lines, table_lines

    collection = Collection.of(arguments.sources)
    rows = collection.merged.rows
    if not (arguments.csv or arguments.json):
        print("\n".join([*table_lines(rows), ""]))
    print("\n".join(summary_lines(collection)))
    if arguments.csv:
        _write(arguments.csv, lambda file: write_csv(rows, file))
    if arguments.json:
        _write(arguments.json, lambda file: write_json(collection, file))
    return 1 if collection.merged.conflicts else 0


def _write(path: Path, write: Callable[[TextIO], None]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What a file name or a judge of somebody's holds may be no character.
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            write(file)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    print(f"{path.suffix.removeprefix('.').upper() or 'table'}: {path}")
