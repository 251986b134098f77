"""What is to be fetched: which files stages need, where they go, and what they must hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.fetching.listing import Listing
from pytest_mlrbench.suites.source import Source, is_result
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite, Task

#: The suite whose tasks have published experiments: no others have ``results``.
WITH_RESULTS = "mlrbench-10"
#: The stages that start from the text of a task alone.
TEXT_STAGES = tuple(name for name, stage in STAGES.items() if stage.inputs == ("task.md",))


class Missed(Exception):
    """One file cannot be had, others may; the message is a sentence.

    :param tired: whether it was for want of an answer, rather than for what the answer was.
    """

    def __init__(self, sentence: str, *, tired: bool = False) -> None:
        super().__init__(sentence)
        self.tired = tired


class Stopped(Exception):
    """No file can be had any more; the message is a sentence."""


@dataclass(frozen=True)
class Wanted:
    """A file of the published repository.

    :param path: its path in the repository.
    :param target: where it belongs here.
    :param sha256: SHA-256 of its content; empty where that is not known.
    :param blob: git's id of its content; empty where that is not known.
    """

    path: str
    target: Path
    sha256: str
    blob: str

    @property
    def last(self) -> bool:
        """Whether it comes after all others: its being there says that the results are."""
        return self.path.endswith("/results/results.md")

    @property
    def checkable(self) -> bool:
        """Whether anything is known of its content."""
        return bool(self.sha256 or self.blob)

    def fault(self, data: bytes) -> str:
        """Return in what *data* differs from what is known of the file; empty if in nothing."""
        found = hashlib.sha256(data).hexdigest()
        if self.sha256 and found != self.sha256:
            return f"is not the published content (SHA-256 {found[:12]}…, not {self.sha256[:12]}…)"
        found = blob_id(data)
        if self.blob and found != self.blob:
            return f"is not the file of that commit (git blob {found[:12]}…, not {self.blob[:12]}…)"
        return ""

    def is_here(self) -> bool:
        """Whether the file is here and holds what it must."""
        try:
            return not self.fault(self.target.read_bytes())
        except OSError:
            return False


@dataclass(frozen=True)
class Plan:
    """The files of some tasks' stages.

    :param missing: paths in the repository that nothing is known of.
    :param exact: whether these are all; without the list of files, figures are not known.
    """

    files: tuple[Wanted, ...]
    missing: tuple[str, ...]
    exact: bool


def make_plan(
    suite: Suite, tasks: Sequence[Task], stages: Sequence[str], listing: Listing | None
) -> Plan:
    """Return the files that *stages* of *tasks* start from.

    :param listing: the repository's list of files; without it, only files whose content is known
        beforehand can be checked, and so fetched.
    """
    needs = needs_of(stages)
    ten = tasks_with_results() if "results" in needs else frozenset()
    files = [
        wanted
        for task in tasks
        for need in needs
        if need != "results" or task.id in ten
        for wanted in wanted_files(suite, task, need, listing)
    ]
    return Plan(
        files=tuple(wanted for wanted in files if wanted.checkable),
        missing=tuple(wanted.path for wanted in files if not wanted.checkable),
        exact=listing is not None or "results" not in needs,
    )


def needs_of(stages: Sequence[str]) -> tuple[str, ...]:
    """Return the inputs of some stages, by their names in a workspace."""
    return tuple(dict.fromkeys(need for stage in stages for need in STAGES[stage].inputs))


def wanted_files(suite: Suite, task: Task, need: str, listing: Listing | None) -> Iterator[Wanted]:
    """Yield the files that one input of a task is made of, as far as their names are known."""
    source = source_of(suite)
    place = source.path(task.id, need)
    here = source.local(place)
    names = [""] if need != "results" else _result_names(f"{place}/", source.digests, listing or {})
    for name in names:
        path = f"{place}/{name}" if name else place
        blob = (listing or {}).get(path)
        yield Wanted(
            path=path,
            # By the folder: the files of one run must not be spread over two spellings of it.
            target=here / name if name else here,
            sha256=task.sha256 if need == "task.md" else source.digests.get(path, ""),
            blob=blob or "",
        )


def _result_names(folder: str, *known: Mapping[str, str]) -> list[str]:
    names = {
        path.removeprefix(folder) for paths in known for path in paths if path.startswith(folder)
    }
    return sorted({name for name in names if is_result(name)} | {"results.md"})


def tasks_with_results() -> frozenset[str]:
    """Return the ids of the tasks that have published results."""
    from pytest_mlrbench.suites.loading import load_suite

    return frozenset(task.id for task in load_suite(WITH_RESULTS).tasks)


def without_results(tasks: Sequence[Task], stages: Sequence[str]) -> tuple[Task, ...]:
    """Return those of *tasks* for which a stage needs results, and none are published."""
    if "results" not in needs_of(stages):
        return ()
    ten = tasks_with_results()
    return tuple(task for task in tasks if task.id not in ten)


def source_of(suite: Suite) -> Source:
    """Return where the suite's texts are published.

    :raises InputError: it has them all itself.
    """
    if suite.source is None:
        raise InputError(
            f"suite {suite.name!r} has its own texts and inputs: only those of mlrbench and"
            " mlrbench-10 are fetched."
        )
    return suite.source


def blob_id(data: bytes) -> str:
    """Return the id that git gives to a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
