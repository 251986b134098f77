"""Whether the texts and inputs that are here are the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_mlrbench.fetching.listing import Listing, load_listing
from pytest_mlrbench.fetching.wanted import (
    Wanted,
    needs_of,
    source_of,
    tasks_with_results,
    wanted_files,
)
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Input, Suite, Task


@dataclass
class Need:
    """One kind of input, over the tasks that have it as published."""

    name: str
    #: Number of tasks that have it in the published repository.
    tasks: int = 0
    #: Ids of the tasks that have nothing of it here.
    absent: list[str] = field(default_factory=list)
    #: Files that are here, and how many of them are known by their content.
    files: int = 0
    checked: int = 0
    #: A sentence's end for each file with other content.
    changed: list[str] = field(default_factory=list)
    #: Files that are not here though others of the same task are.
    lacking: list[str] = field(default_factory=list)

    @property
    def there(self) -> int:
        """Number of tasks that have it here."""
        return self.tasks - len(self.absent)


@dataclass(frozen=True)
class Verification:
    """What is here of a suite; *needs* begins with the texts."""

    needs: tuple[Need, ...]

    @property
    def good(self) -> bool:
        """Whether all texts are here, and nothing that is here has other content."""
        return not self.needs[0].absent and not any(need.changed for need in self.needs)


def verify(suite: Suite) -> Verification:
    """Look at every text and input of *suite* that is here.

    :raises InputError: the suite has them all itself.
    """
    listing = load_listing(source_of(suite))
    ten = tasks_with_results()
    needs = []
    for name in needs_of(tuple(STAGES)):
        need = Need(name)
        for task in suite.tasks:
            if name != "results" or task.id in ten:
                _look(need, suite, task, listing)
        needs.append(need)
    return Verification(tuple(needs))


def _look(need: Need, suite: Suite, task: Task, listing: Listing | None) -> None:
    need.tasks += 1
    source = source_of(suite)
    found = source.find(task.id, need.name)
    if not found:
        need.absent.append(task.id)
        return
    known = {wanted.target: wanted for wanted in wanted_files(suite, task, need.name, listing)}
    need.lacking += [wanted.path for place, wanted in known.items() if not place.exists()]
    for place in found.values():
        need.files += 1
        wanted = known.get(place)
        if wanted is None or not wanted.checkable:
            continue
        need.checked += 1
        if fault := _fault(wanted):
            need.changed.append(f"{place} {fault}")


def _fault(wanted: Wanted) -> str:
    try:
        return wanted.fault(wanted.target.read_bytes())
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def check_files(suite: Suite, tasks: Sequence[Task], stages: Sequence[str]) -> list[str]:
    """Return a sentence for each input that is here and is not what is known of it.

    Only the catalogue and the list of known inputs count. What is absent or unknown is no fault.

    :param stages: names of the stages whose inputs are looked at.
    """
    source = suite.source
    again = f": `mlrbench tasks fetch --tasks-dir {source.root}` puts it right" if source else ""
    return [
        f"{name} of task {task.id} {fault}{again}."
        for task in tasks
        for name, found in _inputs(suite, task, stages).items()
        if (fault := _contradiction(found, _known_digest(suite, task, name)))
    ]


def _inputs(suite: Suite, task: Task, stages: Sequence[str]) -> dict[str, Input]:
    found: dict[str, Input] = {}
    for stage in stages:
        found |= suite.inputs(task, STAGES[stage])
    return found


def _known_digest(suite: Suite, task: Task, name: str) -> str:
    if name == "task.md":
        return task.sha256
    need, _, rest = name.partition("/")
    if suite.source is None:
        return ""
    path = suite.source.path(task.id, need)
    return suite.source.digests.get(f"{path}/{rest}" if rest else path, "")


def _contradiction(found: Input, known: str) -> str:
    if not known:
        return ""
    if isinstance(found, str):
        return Wanted("", Path(), known, "").fault(found.encode())
    fault = _fault(Wanted("", found, known, ""))
    return f"in {found} {fault}" if fault else ""
