"""From a suite's name or folder to the suite; all faults of a folder are found, not only one."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import shipped, user_path
from pytest_mlrbench.suites.markdown import read_task
from pytest_mlrbench.suites.source import Source, cache_root
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Category, Suite, Task

#: A task id names a folder and a test: no separators, brackets, spaces, no dot in front.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
#: ``-r2`` at the end of a test id means the second repeat.
_REPEAT = re.compile(r"-r\d+$")
_COLUMNS = ("id", "title", "conference", "year", "category", "link", "sha256", "near_duplicates")
_INPUTS = {need for stage in STAGES.values() for need in stage.inputs} - {"task.md"}


def suite_names() -> tuple[str, ...]:
    """Return the names of the shipped suites."""
    return tuple(sorted(p.parent.name for p in shipped("benchmarks").glob("suites/*/suite.yaml")))


def load_suite(spec: str, base: Path | None = None, tasks_dir: Path | None = None) -> Suite:
    """Load a shipped suite by name, or ``path:DIR`` from a folder.

    :param base: the folder a relative DIR is relative to.
    :param tasks_dir: a checkout with the texts a suite does not ship; null for the user's cache.
    :raises InputError: no such suite, or a fault in one of its files.
    """
    if spec.startswith("path:"):
        if tasks_dir:
            raise InputError(
                f"--mlr-tasks-dir is for the texts of MLR-Bench: suite {spec!r} has its own."
            )
        suite, faults = read_folder(user_path(base or Path(), spec.removeprefix("path:")))
        if faults or suite is None:
            more = f" (and {len(faults) - 1} more: `mlrbench tasks check`)" if faults[1:] else ""
            raise InputError(f"{faults[0]}{more}.")
        return suite
    if spec not in suite_names():
        raise InputError(
            f"there is no suite {spec!r}: shipped are {', '.join(suite_names())};"
            " a folder of your own is given as path:DIR."
        )
    return _shipped_suite(spec, tasks_dir)


def _shipped_suite(name: str, tasks_dir: Path | None) -> Suite:
    folder = shipped("benchmarks") / "suites" / name
    about = _read_about(folder / "suite.yaml")
    if whole := about.get("of"):
        suite = _shipped_suite(whole, tasks_dir)
        chosen = set(about["tasks"])
        described = _described(about, suite.folder)
        tasks = tuple(task for task in suite.tasks if task.id in chosen)
        return replace(described, tasks=tasks, categories=suite.categories, source=suite.source)
    faults: list[str] = []
    suite = replace(_described(about, folder), tasks=_read_table(folder / "tasks.csv", faults))
    if faults:
        raise InputError(f"{faults[0]}.")
    if source := about.get("source"):
        root = tasks_dir or cache_root(source["commit"])
        suite = replace(suite, source=Source(**source, known=folder / "inputs.csv", root=root))
    elif tasks_dir:
        raise InputError(
            f"--mlr-tasks-dir is for the texts of MLR-Bench: suite {name!r} ships its own."
        )
    return suite


# A user's folder


def read_folder(folder: Path) -> tuple[Suite | None, Sequence[str]]:
    """Read a folder as a suite; return it with all its faults, each a sentence without its stop.

    Tasks are Markdown files in ``tasks/``, or in the folder itself where there is no ``tasks/``;
    a ``tasks.csv`` may list them instead of front matter, a ``suite.yaml`` names the suite.
    """
    faults: list[str] = []
    if not folder.is_dir():
        return None, [f"there is no folder {folder}"]
    try:
        about = _about_folder(folder)
    except InputError as error:
        return None, [str(error).removesuffix(".")]
    suite = _described(about, folder)
    texts = _read_texts(folder, faults)
    if (folder / "tasks.csv").exists():
        tasks = _read_table(folder / "tasks.csv", faults)
        tasks = tuple(replace(t, text=texts[t.id].text) if t.id in texts else t for t in tasks)
        listed = {task.id for task in tasks}
        faults += [
            f"{folder / 'tasks.csv'} does not list the task in {name}.md"
            for name in sorted(texts.keys() - listed)
            if tasks
        ]
    else:
        tasks = tuple(texts.values())
        if not tasks and not faults:
            faults.append(
                f"there is no task in {folder}: a task is a Markdown file in {folder / 'tasks'}"
            )
    _check_inputs(folder / "inputs", {task.id for task in tasks}, faults)
    return replace(suite, tasks=tasks), faults


def _about_folder(folder: Path) -> Mapping[str, Any]:
    if (folder / "suite.yaml").exists():
        return _read_about(folder / "suite.yaml")
    name = folder.resolve().name
    if not _ID.fullmatch(name):
        raise InputError(
            f"the folder's name {name!r} cannot name a suite: add a suite.yaml with a 'name' to"
            f" {folder}."
        )
    return {"name": name}


def _read_texts(folder: Path, faults: list[str]) -> dict[str, Task]:
    """Read the Markdown files, by id, in the order of their names."""
    place = folder / "tasks"
    if not place.is_dir():
        place = folder
    texts: dict[str, Task] = {}
    taken: set[str] = set()
    for path in sorted(place.glob("*.md")):
        if place == folder and path.stem.lower() == "readme":
            continue
        try:
            task = read_task(path)
        except ValueError as error:
            faults.append(f"{path} {error}")
            continue
        if fault := _id_fault(task.id, taken):
            faults.append(f"{path}: {fault}")
        else:
            texts[task.id] = task
    return texts


def _check_inputs(folder: Path, ids: set[str], faults: list[str]) -> None:
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        if place.name.startswith("."):
            continue
        if place.name not in ids:
            faults.append(f"{place} holds inputs of a task that is not there")
            continue
        if not place.is_dir():
            faults.append(f"{place} must be a folder with the inputs of task {place.name}")
            continue
        faults += [
            f"{path} is no input of a stage: inputs are {', '.join(sorted(_INPUTS))}"
            for path in sorted(place.iterdir())
            if path.name not in _INPUTS and not path.name.startswith(".")
        ]


# The files of a suite


def _described(about: Mapping[str, Any], folder: Path) -> Suite:
    benchmark = about.get("benchmark")
    return Suite(
        name=str(about["name"]),
        title=str(about.get("title") or about["name"]),
        description=str(about.get("description") or ""),
        folder=folder,
        tasks=(),
        benchmark=(str(benchmark["name"]), int(benchmark["tasks"])) if benchmark else None,
        categories={
            str(key): Category(**value) for key, value in (about.get("categories") or {}).items()
        },
    )


def _read_about(path: Path) -> Mapping[str, Any]:
    try:
        about = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, ValueError, yaml.YAMLError) as error:  # PyYAML lets bad dates through
        raise InputError(
            f"suite file {path} cannot be read: {' '.join(str(error).split())}."
        ) from None
    if not isinstance(about, dict) or not _ID.fullmatch(str(about.get("name") or "")):
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


def _read_table(path: Path, faults: list[str]) -> tuple[Task, ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
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
        if fault := _id_fault(task.id, taken):
            faults.append(f"{path}:{number}: {fault}")
        else:
            tasks[task.id] = task
    return tuple(tasks.values())


def _id_fault(task_id: str, taken: set[str]) -> str:
    """What is wrong with an id; it is added to those *taken*, which are in small letters."""
    if not _ID.fullmatch(task_id) or _REPEAT.search(task_id):
        return (
            f"task id {task_id!r} must be letters, digits, '_', '.' and '-',"
            " must not start with '.' or '-' and must not end like a repeat ('-r2')"
        )
    # Folders of two tasks must not fall together on a file system that ignores case.
    if task_id.lower() in taken:
        return f"task id {task_id!r} is there twice"
    taken.add(task_id.lower())
    return ""
