"""Suites: folders with a ``suite.yaml`` and a ``tasks.csv``; a new one needs no code."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import shipped, user_path
from pytest_mlrbench.suites.stages import Stage

#: A task id names a folder and a test: no separators, brackets, spaces, no dot in front.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
#: ``-r2`` at the end of a test id means the second repeat.
_REPEAT = re.compile(r"-r\d+$")


@dataclass(frozen=True, slots=True)
class Task:
    """One research problem. *conference* and *year* are empty where a task has none."""

    id: str
    title: str
    conference: str = ""
    year: str = ""


@dataclass(frozen=True, eq=False)
class Suite:
    """A named set of tasks.

    *benchmark* is the name and size of the benchmark the suite is a share of, if it is one.
    """

    name: str
    title: str
    description: str
    folder: Path
    tasks: tuple[Task, ...]
    benchmark: tuple[str, int] | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the tasks and, where they are there, their texts."""
        sha = hashlib.sha256()
        for task in self.tasks:
            sha.update(f"{task.id}\0{task.title}\0{task.conference}\0{task.year}\0".encode())
            if (text := self._text(task)).exists():
                sha.update(text.read_bytes())
        return sha.hexdigest()

    def _text(self, task: Task) -> Path:
        return self.folder / "tasks" / f"{task.id}.md"

    def inputs(self, task: Task, stage: Stage) -> dict[str, Path]:
        """Return path in the workspace → file of the suite, for every input that is there."""
        return {name: path for need in stage.inputs for name, path in _files(self, task, need)}

    def inputs_digest(self, task: Task, stage: Stage) -> str:
        """SHA-256 over the inputs of *stage*; a file is read once though several stages use it."""
        parts = "".join(_digest(self, task, need) for need in stage.inputs)
        return hashlib.sha256(parts.encode()).hexdigest()

    def missing_inputs(self, task: Task, stage: Stage) -> tuple[str, ...]:
        """Return the inputs of *stage* the suite does not have for *task*."""
        found = self.inputs(task, stage)
        return tuple(
            name
            for name in stage.inputs
            if not any(path == name or path.startswith(f"{name}/") for path in found)
        )


def share(selected: int, tasks: int, benchmark: tuple[str, int] | None) -> str:
    """What part of a suite of *tasks* tasks, and of its benchmark, *selected* are, in words."""
    if benchmark is None:
        return (
            f"{'' if selected == tasks else f'{selected} of '}{tasks} tasks, not part of MLR-Bench"
        )
    name, size = benchmark
    return (
        f"all {size} tasks of {name}"
        if selected == size
        else f"{selected} of the {size} tasks of {name}"
    )


@cache
def _files(suite: Suite, task: Task, need: str) -> tuple[tuple[str, Path], ...]:
    """The files that one input of a stage is made of; looked for once a session."""
    source = suite.folder / "inputs" / task.id / need
    if need == "task.md":
        source = suite.folder / "tasks" / f"{task.id}.md"
    if source.is_file():
        return ((need, source),)
    if not source.is_dir():
        return ()
    files = sorted(path for path in source.rglob("*") if path.is_file())
    return tuple((f"{need}/{path.relative_to(source).as_posix()}", path) for path in files)


@cache
def _digest(suite: Suite, task: Task, need: str) -> str:
    sha = hashlib.sha256()
    for name, path in _files(suite, task, need):
        sha.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return sha.hexdigest()


def suite_names() -> tuple[str, ...]:
    """Return the names of the shipped suites."""
    return tuple(sorted(p.parent.name for p in shipped("benchmarks").glob("suites/*/suite.yaml")))


def load_suite(spec: str, base: Path | None = None) -> Suite:
    """Load a shipped suite by name, or ``path:DIR`` from a folder of the same form.

    :param base: the folder a relative DIR is relative to.
    :raises InputError: no such suite, or a fault in one of its files.
    """
    if spec.startswith("path:"):
        folder = user_path(base or Path(), spec.removeprefix("path:"))
        if not (folder / "suite.yaml").is_file():
            raise InputError(f"suite {spec!r}: there is no suite.yaml in {folder}.")
        return _read_suite(folder)
    if spec not in suite_names():
        raise InputError(
            f"there is no suite {spec!r}: shipped are {', '.join(suite_names())};"
            " a folder of your own is given as path:DIR."
        )
    return _read_suite(shipped("benchmarks") / "suites" / spec)


def _read_suite(folder: Path) -> Suite:
    about = _read_about(folder / "suite.yaml")
    benchmark = about.get("benchmark")
    return Suite(
        name=str(about["name"]),
        title=str(about.get("title") or about["name"]),
        description=str(about.get("description") or ""),
        folder=folder,
        tasks=_read_tasks(folder / "tasks.csv"),
        benchmark=(str(benchmark["name"]), int(benchmark["tasks"])) if benchmark else None,
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


def _read_tasks(path: Path) -> tuple[Task, ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"task list {path} cannot be read: {error}.") from None
    if not rows or not {"id", "title"} <= rows[0].keys():
        raise InputError(f"task list {path} needs a header with id,title and at least one task.")
    tasks: dict[str, Task] = {}
    for number, row in enumerate(rows, start=2):
        if None in row:
            raise InputError(f"{path}:{number} has too many cells: quote a title with a comma.")
        task = Task(*(row.get(key) or "" for key in ("id", "title", "conference", "year")))
        if not _ID.fullmatch(task.id) or _REPEAT.search(task.id):
            raise InputError(
                f"{path}:{number}: task id {task.id!r} must be letters, digits, '_', '.' and '-',"
                " must not start with '.' or '-' and must not end like a repeat ('-r2')."
            )
        # Folders of two tasks must not fall together on a file system that ignores case.
        if task.id.lower() in tasks:
            raise InputError(f"{path}:{number}: task id {task.id!r} is there twice.")
        tasks[task.id.lower()] = task
    return tuple(tasks.values())
