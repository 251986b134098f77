"""The files ``suite.yaml`` and ``tasks.csv``, of shipped suites and of a user's."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.suites.tasks import Suite, Task

#: A task id names a folder and a test: no separators, brackets, spaces, no dot in front.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
#: ``-r2`` at the end of a test id means the second repeat.
_REPEAT = re.compile(r"-r\d+$")
_COLUMNS = ("id", "title", "conference", "year", "category", "link", "sha256", "near_duplicates")


def described(about: Mapping[str, Any], folder: Path) -> Suite:
    """Return the suite *about* describes, without tasks."""
    benchmark = about.get("benchmark")
    return Suite(
        name=str(about["name"]),
        title=str(about.get("title") or about["name"]),
        description=str(about.get("description") or ""),
        folder=folder,
        tasks=(),
        benchmark=(str(benchmark["name"]), int(benchmark["tasks"])) if benchmark else None,
    )


def parse_yaml(text: str, first_line: int = 1) -> object:
    """Parse YAML.

    :param first_line: number of the text's first line in its file.
    :raises ValueError: what is wrong, and where, without a stop.
    """
    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" in line {mark.line + first_line}" if mark else ""
        problem = " ".join(str(error.problem).split())
        hint = " (a value with a colon in it needs quotes)" * ("mapping values" in problem)
        raise ValueError(f"{problem}{line}{hint}") from None
    except Exception as error:  # a tag or a date of a wrong form raises whatever it meets
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def read_about(path: Path) -> Mapping[str, Any]:
    """Read a ``suite.yaml``.

    :raises InputError: it cannot be read, or lacks what it needs.
    """
    try:
        about = parse_yaml(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"suite file {path} cannot be read: {' '.join(str(error).split())}."
        ) from None
    if not isinstance(about, dict) or not NAME.fullmatch(str(about.get("name") or "")):
        raise InputError(
            f"suite file {path} needs a 'name' made of letters, digits, '_', '.' or '-'."
        )
    benchmark = about.get("benchmark")
    if benchmark is not None and not (
        isinstance(benchmark, dict)
        and type(benchmark.get("tasks")) is int
        and benchmark["tasks"] > 0
        and benchmark.get("name")
    ):
        raise InputError(f"suite file {path}: 'benchmark' needs a 'name' and a number of 'tasks'.")
    return about


def read_table(path: Path, faults: list[str]) -> tuple[Task, ...]:
    """Read the tasks of a ``tasks.csv``; what is wrong with it is added to *faults*."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        faults.append(f"task list {path} cannot be read: {error}")
        return ()
    if not rows or not {"id", "title"} <= rows[0].keys():
        faults.append(f"task list {path} needs a header with id,title and at least one task")
        return ()
    tasks: dict[str, Task] = {}
    taken: set[str] = set()
    for number, row in enumerate(rows, start=2):
        if None in row:
            faults.append(f"{path}:{number} has too many cells: quote a title with a comma")
            continue
        task = Task(*(row.get(key) or "" for key in _COLUMNS))
        fault = id_fault(task.id, taken) or ("" if task.title else f"{task.id} has no title")
        if fault:
            faults.append(f"{path}:{number}: {fault}")
        else:
            tasks[task.id] = task
    return tuple(tasks.values())


def id_fault(task_id: str, taken: set[str]) -> str:
    """What is wrong with an id; it is added to those *taken*, which are in small letters."""
    if not NAME.fullmatch(task_id) or _REPEAT.search(task_id):
        return (
            f"task id {task_id!r} must be letters, digits, '_', '.' and '-',"
            " must not start with '.' or '-' and must not end like a repeat ('-r2')"
        )
    # Folders of two tasks must not fall together on a file system that ignores case.
    if task_id.lower() in taken:
        return f"task id {task_id!r} is there twice"
    taken.add(task_id.lower())
    return ""
