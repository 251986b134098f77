"""What a suite is: tasks, and the files each stage of a task starts from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from pytest_mlrbench.suites.source import Source
from pytest_mlrbench.suites.stages import Stage

#: An input of a case: a file, or the text itself.
Input = Path | str


@dataclass(frozen=True, slots=True)
class Task:
    """One research problem. What a task does not have is empty."""

    id: str
    title: str
    conference: str = ""
    year: str = ""
    #: Key of one of the suite's categories.
    category: str = ""
    #: Address of the workshop's page.
    link: str = ""
    #: SHA-256 of the text as published, for a task whose text is not shipped.
    sha256: str = ""
    #: Id of the first of several tasks whose texts are nearly the same.
    near_duplicates: str = ""
    #: The text, where it is not a file of its own.
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Category:
    """A topic: *published* is how many tasks of the benchmark its authors say it has."""

    title: str
    published: int | None = None


@dataclass(frozen=True, eq=False)
class Suite:
    """A named set of tasks.

    *benchmark* is the name and size of the benchmark the suite is a share of, if it is one;
    *source* is where inputs are that the suite's folder does not hold.
    """

    name: str
    title: str
    description: str
    folder: Path
    tasks: tuple[Task, ...]
    benchmark: tuple[str, int] | None = None
    categories: Mapping[str, Category] = field(default_factory=dict)
    #: What the user writes to get the suite.
    spec: str = ""
    source: Source | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the tasks and, where they are known, their texts."""
        sha = hashlib.sha256()
        for task in self.tasks:
            text = task.sha256 or _text_digest(self, task)
            sha.update(f"{task.id}\0{task.title}\0{task.conference}\0{task.year}\0{text}".encode())
        return sha.hexdigest()

    def inputs(self, task: Task, stage: Stage) -> dict[str, Input]:
        """Return path in the workspace → file or text, for every input that is there."""
        return {name: found for need in stage.inputs for name, found in _find(self, task, need)}

    def inputs_digest(self, task: Task, stage: Stage) -> str:
        """SHA-256 over the inputs of *stage*; a file is read once though several stages use it."""
        parts = "".join(_digest(self, task, need) for need in stage.inputs)
        return hashlib.sha256(parts.encode()).hexdigest()

    def missing_inputs(self, task: Task, stage: Stage) -> tuple[str, ...]:
        """Return the inputs of *stage* that are not there for *task*."""
        return tuple(need for need in stage.inputs if not _find(self, task, need))


def share(selected: int, tasks: int, benchmark: tuple[str, int] | None) -> str:
    """What part of a suite of *tasks* tasks, and of its benchmark, *selected* are, in words."""
    if benchmark is None:
        # A resumed run may hold tasks that the suite has no more.
        part = f"{selected} of {tasks}" if selected < tasks else f"{selected}"
        return f"{part} task{'s' * (part != '1')}, not part of MLR-Bench"
    name, size = benchmark
    return (
        f"all {size} tasks of {name}"
        if selected == size
        else f"{selected} of the {size} tasks of {name}"
    )


def _text_digest(suite: Suite, task: Task) -> str:
    found = _find(suite, task, "task.md")
    return hashlib.sha256(_read(found[0][1])).hexdigest() if found else ""


def _read(found: Input) -> bytes:
    return found.encode() if isinstance(found, str) else found.read_bytes()


@cache
def _find(suite: Suite, task: Task, need: str) -> tuple[tuple[str, Input], ...]:
    """The files that one input of a stage is made of; looked for once a session."""
    if need == "task.md" and task.text is not None:
        return ((need, task.text),)
    place = suite.folder / (
        f"tasks/{task.id}.md" if need == "task.md" else f"inputs/{task.id}/{need}"
    )
    if suite.source and not place.exists():
        return tuple(suite.source.find(task.id, need).items())
    if place.is_file():
        return ((need, place),)
    if not place.is_dir():
        return ()
    files = sorted(path for path in place.rglob("*") if path.is_file())
    return tuple((f"{need}/{path.relative_to(place).as_posix()}", path) for path in files)


@cache
def _digest(suite: Suite, task: Task, need: str) -> str:
    sha = hashlib.sha256()
    for name, found in _find(suite, task, need):
        sha.update(f"{name}\0".encode("utf-8", "surrogateescape"))
        sha.update(hashlib.sha256(_read(found)).digest())
    return sha.hexdigest()
