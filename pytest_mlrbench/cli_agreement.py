"""``mlrbench agreement``: whether judges agree, with each other or with people."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_mlrbench.errors import InputError


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "agreement",
        help="say how far judges agree with each other, or with ratings by people",
        description="Every number is printed with what it stands on; what cannot be computed is"
        " told with the reason. It is a description and no gate: it exits with 0.",
    )
    parser.add_argument(
        "--judges",
        nargs="+",
        required=True,
        metavar="SOURCE",
        help="JUnit files, JSON reports and run folders, or: published",
    )
    parser.add_argument(
        "--human",
        type=Path,
        metavar="CSV",
        help="ratings with the columns reviewer_id, model_name, workshop_name and dimensions",
    )
    parser.add_argument("--stage", help="only what was judged in this stage")
    parser.add_argument(
        "--threshold",
        type=float,
        default=6.0,
        metavar="SCORE",
        help="with --human: from which score on a case is good enough (6.0)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number as JSON")
    parser.set_defaults(run=_agreement)


def _agreement(arguments: argparse.Namespace) -> int:
    try:
        from pytest_mlrbench.report.agreement import (
            judges,
            judges_words,
            people,
            people_words,
            ratings,
        )
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("pytest_mlrbench"):
            raise
        raise InputError(
            f"mlrbench agreement needs {error.name}, which is not installed:"
            " `pip install 'pytest-mlrbench[stats]'`."
        ) from None
    from pytest_mlrbench.report.collected.words import safe

    if not 1 <= arguments.threshold <= 10:
        raise InputError(f"--threshold {arguments.threshold:g} is no score from 1 to 10.")
    works = ratings.read_judges(arguments.judges, arguments.stage)
    found: dict[str, Any] = {"schema_version": 1, "judges": arguments.judges}
    if arguments.human:
        rated = ratings.read_ratings(arguments.human)
        compared = people.with_people(works, rated, arguments.threshold)
        found["people"] = asdict(compared)
        lines = people_words.people_lines(compared)
    else:
        among = judges.among(works)
        found["among"] = [asdict(dimension) for dimension in among]
        lines = judges_words.judges_lines(among)
    print("\n".join(safe(line) for line in lines).rstrip())
    if arguments.json:
        _write(arguments.json, found)
    return 0


def _write(path: Path, found: dict[str, Any]) -> None:
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", "utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    print(f"JSON: {path}")
