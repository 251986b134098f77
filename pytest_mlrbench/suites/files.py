"""The files ``suite.yaml`` and ``tasks.csv``, of shipped suites and of a user's."""

from __future__ import annotations

import csv
import difflib
import re
from collections import Counter
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
_ABOUT_TEXTS = ("name", "title", "description")
#: What no line of a report or terminal may hold; beside controls, what turns the direction.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
#: As a text file is read, line by line.
_LINE_END = re.compile(r"\r\n|\r|\n")


class _Odd:
    """A number that is not written as it is printed: ``010`` is 8, ``1.10`` is 1.1, ``1:30`` is 90.

    Taken for a text it would be another than what stands there.
    """


def _number(loader: Any, node: yaml.ScalarNode) -> object:
    kind = node.tag.rpartition(":")[2]
    value = getattr(loader, f"construct_yaml_{kind}")(node)
    return value if str(value) == node.value else _Odd()


#: The fast one, where PyYAML was built with it.
_LOADER: Any = type("_LOADER", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
for _kind in ("int", "float"):
    _LOADER.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)


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
        for event in yaml.parse(text, _LOADER):
            if isinstance(event, yaml.AliasEvent):  # a few lines of them grow to gigabytes
                raise ValueError(f"the alias *{event.anchor} has no place here: write it out")
        return yaml.load(text, _LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" in line {mark.line + first_line}" if mark else ""
        problem = " ".join(str(error.problem).split())
        hint = " (a value with a colon in it needs quotes)" * ("mapping values" in problem)
        raise ValueError(f"{problem}{line}{hint}") from None
    except Exception as error:  # a tag or a date of a wrong form raises whatever it meets
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def repeated_keys(text: str) -> list[str]:
    """Return the keys that well-formed YAML gives twice, of which the first value is lost.

    One within another is told with it, as ``benchmark.name``.
    """
    found: set[str] = set()
    waiting = [("", yaml.compose(text, _LOADER))]
    while waiting:
        before, node = waiting.pop()
        if isinstance(node, yaml.SequenceNode):
            waiting += [(before, item) for item in node.value]
        elif isinstance(node, yaml.MappingNode):
            pairs = [(f"{before}{key.value}", value) for key, value in node.value]
            counted = Counter(name for name, _ in pairs)
            found |= {name for name, number in counted.items() if number > 1}
            waiting += [(f"{name}.", value) for name, value in pairs]
    return sorted(found)


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
    return faults + [
        f"in which {key!r} has {NOT_ONE_LINE}"
        for key in ("title", "conference", "category", "link")
        if not is_one_line(task.get(key))
    ]


#: What is wrong with a text that is not :func:`is_one_line`.
NOT_ONE_LINE = "a line break or a control character"


def is_one_line(value: object) -> bool:
    """Whether a text can stand in a line of a report, and does no more to a terminal than stand."""
    return not _CONTROL.search(str(value))


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
    faults += [
        f"suite file {path}: {key!r} is no text: put it in quotes"
        for key in _ABOUT_TEXTS
        if not is_text(about.get(key))
    ]
    if not NAME.fullmatch(str(about.get("name") or "")):
        faults += [f"suite file {path} needs a 'name' made of {NAME_WORDS}"] * is_text(
            about.get("name")
        )
        about["name"] = path.parent.name
    if not is_one_line(about.get("title")):
        faults.append(f"suite file {path}: 'title' has {NOT_ONE_LINE}")
    if not _is_benchmark(about.get("benchmark")):
        faults.append(f"suite file {path}: 'benchmark' needs a 'name' and a number of 'tasks'")
        about["benchmark"] = None
    return about


def _is_benchmark(value: object) -> bool:
    if not isinstance(value, dict):
        return value is None
    name, tasks = value.get("name"), value.get("tasks")
    named = name and is_text(name) and is_one_line(name)
    return bool(named and type(tasks) is int and tasks > 0)


def is_text(value: object) -> bool:
    """Whether what YAML has read is a text, or stands for one as a number does, or for none."""
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))


def read_table(path: Path, faults: list[str]) -> tuple[Task, ...]:
    """Read the tasks of a ``tasks.csv``; what is wrong with it is added to *faults*."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            head = list(reader.fieldnames or ())
            rows = list(_numbered(reader))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        faults.append(f"task list {path} cannot be read: {error}")
        return ()
    if not rows or not {"id", "title"} <= set(head):
        is_lacking = f"it begins with {','.join(head)[:100]!r}" if head else "it is empty"
        found = "it has no task" if {"id", "title"} <= set(head) else is_lacking
        faults.append(
            f"task list {path} needs a header with id,title and at least one task: {found}"
        )
        return ()
    faults += _column_faults(path, head)
    tasks: dict[str, Task] = {}
    taken: set[str] = set()
    for number, row in rows:
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


def _numbered(reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str | Any, Any]]]:
    """Yield the rows with the number of the line each begins in: a cell may be of several."""
    for row in reader:
        cells = [
            cell for value in row.values() for cell in (value if type(value) is list else [value])
        ]
        inside = sum(len(_LINE_END.findall(cell or "")) for cell in cells)
        yield reader.line_num - inside, row


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
