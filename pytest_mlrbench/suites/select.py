"""From what the user asked for to the list of cases."""

from __future__ import annotations

import difflib
import fnmatch
import random
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite, Task


@dataclass(frozen=True, slots=True)
class Case:
    """One (task, stage, repeat): exactly one pytest item. Repeats count from 1."""

    suite: str
    stage: str
    task: Task
    repeat: int = 1

    @property
    def name(self) -> str:
        """``suite/stage/task/rN``: the identity of the case in every record and report."""
        return f"{self.suite}/{self.stage}/{self.task.id}/r{self.repeat}"

    @property
    def test_id(self) -> str:
        """What stands in the brackets of the test's id."""
        return self.task.id if self.repeat == 1 else f"{self.task.id}-r{self.repeat}"


def parse_stages(text: str) -> tuple[str, ...]:
    """Parse ``one``, ``several,by,comma`` or ``all`` into stages in the order of research.

    :raises InputError: for a name that is no stage.
    """
    names = {part.strip() for part in text.split(",") if part.strip()}
    if "all" in names:
        names = set(STAGES) | (names - {"all"})
    for name in sorted(names - set(STAGES)):
        close = difflib.get_close_matches(name, STAGES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(
            f"there is no stage {name!r}: stages are {', '.join(STAGES)}, or all.{hint}"
        )
    if not names:
        raise InputError(f"--mlr-stage names no stage: stages are {', '.join(STAGES)}, or all.")
    return tuple(stage for stage in STAGES if stage in names)


def select_tasks(
    suite: Suite,
    patterns: Sequence[str] = (),
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> tuple[Task, ...]:
    """Return the chosen tasks in the order of the suite.

    :param patterns: task ids or globs; none means all.
    :param limit: keep the first *limit*.
    :param sample: draw that many at random; the same *seed* draws the same tasks.
    :raises InputError: a pattern that matches nothing, or more asked for than there is.
    """
    tasks = suite.tasks
    if patterns:
        wanted: set[str] = set()
        for pattern in patterns:
            wanted.update(_matches(suite, pattern))
        tasks = tuple(task for task in tasks if task.id in wanted)
    for option, number in (("--mlr-sample", sample), ("--mlr-limit", limit)):
        if number is not None and number < 1:
            raise InputError(f"{option} must be at least 1, not {number}.")
    if sample is not None:
        if sample > len(tasks):
            raise InputError(
                f"--mlr-sample {sample} is more than the {len(tasks)} tasks to draw from."
            )
        drawn = {task.id for task in random.Random(seed).sample(tasks, sample)}
        tasks = tuple(task for task in tasks if task.id in drawn)
    return tasks[:limit]


def _matches(suite: Suite, pattern: str) -> list[str]:
    ids = [task.id for task in suite.tasks]
    found = [task_id for task_id in ids if fnmatch.fnmatchcase(task_id, pattern)]
    if not found:
        close = difflib.get_close_matches(pattern, ids, n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise InputError(
            f"no task of suite {suite.name!r} matches {pattern!r}.{hint}"
            f" `mlrbench tasks list --suite {suite.name}` shows them."
        )
    return found


def make_cases(
    suite: Suite, stages: Sequence[str], tasks: Sequence[Task], repeats: int = 1
) -> tuple[Case, ...]:
    """Return the cases, stage by stage, the repeats of a task beside each other."""
    if repeats < 1:
        raise InputError(f"--mlr-repeats must be at least 1, not {repeats}.")
    return tuple(
        Case(suite.name, stage, task, repeat)
        for stage in stages
        for task in tasks
        for repeat in range(1, repeats + 1)
    )
