"""The files ``suite.yaml`` and ``tasks.csv``, of shipped suites and of a user's."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pytest_mlrbench.suites.tasks import Suite, Task

#: A task id names a folder and a test: no separators, brackets, spaces, no dot in front.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
#: What the name of a suite is made of, in words.
NAME_WORDS = "letters, digits, '_', '.' or '-'"
#: ``-r2`` at the end of a test id means the second repeat.
_REPEAT = re.compile(r"-r\d+$")
_COLUMNS = ("id", "title", "conference", "year", "category", "link", "sha256", "near_duplicates")
_ABOUT_TEXTS = ("title", "description")
#: The fast one, where PyYAML was built with it.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
        for event in yaml.parse(text, LOADER):
            if isinstance(event, yaml.AliasEvent):  # a few lines of them grow to gigabytes
                raise ValueError(f"the alias *{event.anchor} has no place here: write it out")
        return yaml.load(text, LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" in line {mark.line + first_line}" if mark else ""
        problem = " ".join(str(error.problem).split())
        hint = " (a value with a colon in it needs quotes)" * ("mapping values" in problem)
        raise ValueError(f"{problem}{line}{hint}") from None
    except Exception as error:  # a tag or a date of a wrong form raises whatever it meets
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def repeated_keys(text: str) -> list[str]:
    """Return the keys that well-formed YAML gives twice, of which the first value is lost."""
    node = yaml.compose(text, LOADER)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    keys = [key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode)]
    return sorted({key for key in keys if keys.count(key) > 1})


def field_faults(task: Mapping[str, object]) -> list[str]:
    """Return what is wrong with what a list or front matter says of a task: ends of sentences."""
    faults = []
    year = task.get("year")
    if year not in (None, "") and not re.fullmatch(r"[0-9]{4}", str(year)):
        faults.append(f"in which 'year' is {year!r}, not a year")
    faults += [
        f"in which {key!r} has a comma, which separates two"
        for key in ("conference", "category")
        if "," in str(task.get(key) or "")
    ]
    return faults


def read_about(path: Path, faults: list[str]) -> Mapping[str, Any]:
    """Read a ``suite.yaml``; what is wrong with it is added to *faults*, and counts no more."""
    try:
        text = path.read_text("utf-8")
        about = parse_yaml(text)
    except (OSError, ValueError) as error:
        faults.append(f"suite file {path} cannot be read: {' '.join(str(error).split())}")
        return {"name": path.parent.name}
    if not isinstance(about, dict):
        about = {}
    faults += [f"suite file {path} has the key {key!r} twice" for key in repeated_keys(text)]
    if not NAME.fullmatch(str(about.get("name") or "")):
        faults.append(f"suite file {path} needs a 'name' made of {NAME_WORDS}")
        about["name"] = path.parent.name
    faults += [
        f"suite file {path}: {key!r} is no text: put it in quotes"
        for key in _ABOUT_TEXTS
        if not is_text(about.get(key))
    ]
    benchmark = about.get("benchmark")
    if benchmark is not None and not (
        isinstance(benchmark, dict)
        and type(benchmark.get("tasks")) is int
        and benchmark["tasks"] > 0
        and benchmark.get("name")
    ):
        faults.append(f"suite file {path}: 'benchmark' needs a 'name' and a number of 'tasks'")
        about["benchmark"] = None
    return about


def is_text(value: object) -> bool:
    """Whether what YAML has read is a text, or stands for one as a number does, or for none."""
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))


def read_table(path: Path, faults: list[str]) -> tuple[Task, ...]:
    """Read the tasks of a ``tasks.csv``; what is wrong with it is added to *faults*."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        faults.append(f"task list {path} cannot be read: {error}")
        return ()
    if not rows or not {"id", "title"} <= rows[0].keys():
        faults.append(f"task list {path} needs a header with id,title and at least one task")
        return ()
    faults += _column_faults(path, list(reader.fieldnames or ()))
    tasks: dict[str, Task] = {}
    taken: set[str] = set()
    for number, row in enumerate(rows, start=2):
        task = Task(*(row.get(key) or "" for key in _COLUMNS))
        if fault := id_fault(task.id, taken):
            faults.append(f"{path}:{number}: {fault}")
        else:
            # Whatever else is wrong with it, the task is listed.
            tasks[task.id] = task
        if None in row:  # which says nothing certain of the cells behind it
            faults.append(f"{path}:{number} has too many cells: quote a title with a comma")
            continue
        faults += [f"{path}:{number}: {task.id} has no title"] * (not task.title.strip())
        faults += [f"{path}:{number} has a task {fault}" for fault in field_faults(row)]
    return tuple(tasks.values())


def _column_faults(path: Path, names: Sequence[str]) -> Iterator[str]:
    """What would be lost without a word; columns of the user's own may stand beside ours."""
    absent = [name for name in _COLUMNS if name not in names]
    for name in dict.fromkeys(names):
        if name in _COLUMNS and names.count(name) > 1:
            yield f"task list {path} has the column {name!r} twice"
        meant = difflib.get_close_matches(name.lower(), absent, n=1, cutoff=0.75)
        if name not in _COLUMNS and meant:
            yield f"task list {path} has the column {name!r}: call it {meant[0]!r}"


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
