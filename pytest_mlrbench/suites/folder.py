"""A user's folder as a suite: Markdown files, and all that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_mlrbench.resources import no_folder
from pytest_mlrbench.suites.files import NAME, described, id_fault, read_about, read_table
from pytest_mlrbench.suites.markdown import read_task, read_text
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite, Task

#: Markdown files that are no tasks, in small letters.
_NO_TASKS = ("readme", "changelog", "contributing", "license")
_ABOUT = ("name", "title", "description", "benchmark")
_INPUTS = {need for stage in STAGES.values() for need in stage.inputs} - {"task.md"}


def read_folder(folder: Path, reserved: Collection[str] = ()) -> tuple[Suite | None, Sequence[str]]:
    """Read a folder as a suite; return it with all its faults, each a sentence without its stop.

    Tasks are Markdown files in ``tasks/``, or in the folder itself where there is no ``tasks/``;
    a ``tasks.csv`` may list them instead of front matter, a ``suite.yaml`` names the suite.

    :param reserved: names that the suite must not have.
    """
    faults: list[str] = []
    try:
        if not folder.is_dir():
            return None, [no_folder(folder)]
        return _read(folder, reserved, faults), faults
    except OSError as error:
        return None, [*faults, f"{error.filename} cannot be read: {error.strerror}"]


def _read(folder: Path, reserved: Collection[str], faults: list[str]) -> Suite:
    about = _about_folder(folder, faults)
    faults += [
        f"suite file {folder / 'suite.yaml'} has the unknown key {key!r}: known are"
        f" {', '.join(_ABOUT)}"
        for key in about
        if key not in _ABOUT
    ]
    if about["name"] in reserved:
        faults.append(f"suite {folder} has the name {about['name']!r}, which is a shipped suite's")
    before = len(faults)
    texts, ids = _read_texts(folder, faults)
    tasks = tuple(texts.values())
    if (folder / "tasks.csv").exists():
        tasks = _listed(folder / "tasks.csv", texts, ids, faults)
        ids |= {task.id for task in tasks}
    elif not tasks and len(faults) == before:
        faults.append(
            f"there is no task in {folder}: a task is a Markdown file there, or in its folder tasks"
        )
    _check_inputs(folder / "inputs", ids, faults)
    return replace(described(about, folder), tasks=tasks)


def _listed(
    path: Path, texts: Mapping[str, Task], ids: Collection[str], faults: list[str]
) -> tuple[Task, ...]:
    """Read the task list *path*; what the texts say of themselves counts no more.

    :param ids: the names of all texts, also of those with a fault, which is told already.
    """
    tasks = read_table(path, faults)
    if not tasks:
        return ()  # what the list is to say of each text is not known
    listed = {task.id for task in tasks}
    unlisted = sorted(name for name in ids if name not in listed and not id_fault(name, set()))
    faults += [f"{path} does not list the task in {name}.md" for name in unlisted]
    # A list alone is a suite too, for published and replayed results.
    lacking = [task.id for task in tasks if ids and task.id not in ids]
    faults += [f"{path} lists the task {name}, and there is no {name}.md" for name in lacking]
    return tuple(replace(t, text=texts[t.id].text) if t.id in texts else t for t in tasks)


def _about_folder(folder: Path, faults: list[str]) -> Mapping[str, Any]:
    name = folder.resolve().name
    if (folder / "suite.yml").exists():
        faults.append(f"{folder / 'suite.yml'} must be called suite.yaml")
    elif not (folder / "suite.yaml").exists() and not NAME.fullmatch(name):
        faults.append(
            f"the folder's name {name!r} cannot name a suite: add a suite.yaml with a 'name' to"
            f" {folder}"
        )
    if (folder / "suite.yaml").exists():
        return read_about(folder / "suite.yaml", faults)
    return {"name": name}


def _read_texts(folder: Path, faults: list[str]) -> tuple[dict[str, Task], set[str]]:
    """Read the Markdown files, by id, in the order of their names; also all ids, faulty or not."""
    beside = _markdown(folder, faults)
    files = beside
    if (folder / "tasks").is_dir():
        files = _markdown(folder / "tasks", faults)
        faults += [
            f"{path} is a folder: tasks lie in {folder / 'tasks'} itself"
            for path in _seen(folder / "tasks", faults)
            if path.is_dir()
        ]
        faults += [f"{path} lies beside the folder tasks: move it into it" for path in beside]
    texts: dict[str, Task] = {}
    taken: set[str] = set()
    for path in files:
        if fault := id_fault(path.stem, taken):
            faults.append(f"{path}: {fault}")
        try:
            task = read_task(path)
        except ValueError as error:
            faults += [f"{path} {said}" for said in error.args]
            continue
        if not fault:
            texts[task.id] = task
    return texts, {path.stem for path in files}


def _seen(folder: Path, faults: list[str]) -> list[Path]:
    """What lies in a folder, but what editors and systems hide there.

    One that cannot be read is a fault, told once; a glob would take it for an empty one.
    """
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        fault = f"{folder} cannot be read: {error.strerror}"
        faults += [fault] * (fault not in faults)
        return []


def _markdown(folder: Path, faults: list[str]) -> list[Path]:
    files = []
    for path in _seen(folder, faults):
        if path.suffix.lower() not in (".md", ".markdown") or path.is_dir():
            continue
        if path.suffix != ".md":
            faults.append(f"{path} must end with .md to be a task")
        elif path.stem.lower() not in _NO_TASKS:
            files.append(path)
    return files


def _check_inputs(folder: Path, ids: set[str], faults: list[str]) -> None:
    for place in _seen(folder, faults) if folder.is_dir() else ():
        if place.name not in ids:
            faults.append(f"{place} holds inputs of a task that is not there")
            continue
        if not place.is_dir():
            faults.append(f"{place} must be a folder with the inputs of task {place.name}")
            continue
        for path in _seen(place, faults):
            faults += [f"{path} {fault}" for fault in _input_faults(path)]
            for inside in (path, *path.rglob("*")) if path.name == "results" else ():
                if inside.is_dir():
                    _seen(inside, faults)  # that it can be read


def _input_faults(path: Path) -> Iterator[str]:
    if path.name not in _INPUTS:
        yield f"is no input of a stage: inputs are {', '.join(sorted(_INPUTS))}"
    elif path.name == "results":
        yield from _results_faults(path)
    elif path.is_symlink():
        yield "is a link: put the file itself there"
    else:
        yield from _text_fault(path)


def _results_faults(path: Path) -> Iterator[str]:
    results = path / "results.md"
    if not results.is_file():
        yield "must be a folder with a results.md"
    if (path / "paper.md").exists():
        yield "holds a paper.md, which is what the stage paper is to write"
    for inside in sorted(path.rglob("*")):
        if inside.is_symlink():
            yield f"holds the link {inside.relative_to(path)}: put the file itself there"
    if results.is_file() and not results.is_symlink():
        yield from (f"has a results.md that {fault}" for fault in _text_fault(results))


def _text_fault(path: Path) -> Iterator[str]:
    try:
        read_text(path)
    except ValueError as error:
        yield str(error)
