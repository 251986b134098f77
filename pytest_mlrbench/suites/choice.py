"""Which tasks of a suite are run: by id, by what is known of them, the first, or drawn."""

from __future__ import annotations

import difflib
import fnmatch
import random
from collections.abc import Callable, Sequence

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.suites.tasks import Suite, Task
from pytest_mlrbench.values import Record

#: Properties of a task it can be chosen by, and by which a part of the tasks can be stratified.
FIELDS = ("category", "conference", "year")
#: How similar two names are, from 0 to 1, if one may be a slip for the other; as in difflib.
_SIMILAR = 0.6


class Choice(Record):
    """How tasks are chosen from a suite; also how a run's record says it."""

    #: Task ids or globs; none means all.
    tasks: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    conference: tuple[str, ...] = ()
    year: tuple[str, ...] = ()
    #: Of tasks with nearly the same text, take only the first.
    distinct: bool = False
    #: Keep the first so many.
    limit: int | None = None
    #: Draw so many at random; the same seed draws the same tasks.
    sample: int | None = None
    seed: int = 0
    #: The property whose values keep their shares in *limit* or *sample*; empty for none.
    stratify: str = ""

    def describe(self) -> str:
        """Say how tasks are chosen other than by name and number; empty if in no other way."""
        parts = [
            f"{field} {'/'.join(getattr(self, field))}" for field in FIELDS if getattr(self, field)
        ]
        parts += ["no near-duplicates"] * self.distinct
        if self.sample:
            parts.append(f"drawn with seed {self.seed}")
        if self.stratify:
            parts.append(f"stratified by {self.stratify}")
        return ", ".join(parts)


def select_tasks(suite: Suite, choice: Choice) -> tuple[Task, ...]:
    """Return the chosen tasks in the order of the suite.

    :raises InputError: a name that matches nothing, or more asked for than there is.
    """
    tasks = suite.tasks
    if choice.tasks:
        wanted = {task_id for pattern in choice.tasks for task_id in _matches(suite, pattern)}
        tasks = tuple(task for task in tasks if task.id in wanted)
    for field in FIELDS:
        if values := getattr(choice, field):
            _check_values(suite, field, values)
            wanted = {value.casefold() for value in values}
            tasks = tuple(task for task in tasks if getattr(task, field).casefold() in wanted)
    if choice.distinct:
        tasks = _distinct(suite, tasks)
    if not tasks:
        raise InputError(
            f"no task of suite {suite.name!r} is left by --mlr-tasks, --mlr-category,"
            " --mlr-conference and --mlr-year together: leave one of them out."
        )
    return _part(suite, tasks, choice)


def _matches(suite: Suite, pattern: str) -> list[str]:
    ids = [task.id for task in suite.tasks]
    found = [task_id for task_id in ids if fnmatch.fnmatchcase(task_id, pattern)]
    if not found:
        close = _similar(pattern, ids)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise InputError(
            f"no task of suite {suite.name!r} matches {pattern!r}.{hint}"
            f" `mlrbench tasks list --suite {suite.spec or suite.name}` shows them."
        )
    return found


def _similar(pattern: str, ids: Sequence[str]) -> list[str]:
    """Return ids like *pattern* as a whole and behind the first word.

    A conference and a year alone make two ids like each other that have nothing else in common.
    """
    small = pattern.lower()
    by_small = {task_id.lower(): task_id for task_id in ids}
    close = difflib.get_close_matches(small, by_small, n=20)
    rest = small.partition("_")[2]
    like = [
        by_small[name]
        for name in close
        if not rest
        or difflib.SequenceMatcher(None, rest, name.partition("_")[2]).ratio() >= _SIMILAR
    ]
    return like[:3]


def _check_values(suite: Suite, field: str, values: Sequence[str]) -> None:
    known = list(dict.fromkeys(getattr(task, field) for task in suite.tasks))
    for value in values:
        if value.casefold() not in {name.casefold() for name in known}:
            named = ", ".join(sorted(filter(None, known))) or "none"
            raise InputError(
                f"no task of suite {suite.name!r} has the {field} {value!r}: there is {named}."
            )


def _distinct(suite: Suite, tasks: Sequence[Task]) -> tuple[Task, ...]:
    if not any(task.near_duplicates for task in suite.tasks):
        raise InputError(f"--mlr-distinct: suite {suite.name!r} knows of no near-duplicates.")
    first: dict[str, Task] = {}
    for task in tasks:
        first.setdefault(task.near_duplicates or task.id, task)
    return tuple(first.values())


# A part of the tasks


def _part(suite: Suite, tasks: tuple[Task, ...], choice: Choice) -> tuple[Task, ...]:
    for option, number in (("sample", choice.sample), ("limit", choice.limit)):
        if number is not None and number < 1:
            raise InputError(f"--mlr-{option} must be at least 1, not {number}.")
    if choice.stratify:
        _check_stratify(suite, choice)
    if choice.sample is not None:
        if choice.sample > len(tasks):
            raise InputError(
                f"--mlr-sample {choice.sample} is more than the {len(tasks)} tasks to draw from."
            )
        tasks = _taken(tasks, choice.sample, choice.stratify, random.Random(choice.seed).sample)
    if choice.limit is not None and choice.limit < len(tasks):
        tasks = _taken(tasks, choice.limit, choice.stratify, lambda some, number: some[:number])
    return tasks


def _check_stratify(suite: Suite, choice: Choice) -> None:
    if choice.stratify not in FIELDS:
        raise InputError(f"--mlr-stratify {choice.stratify!r} is none of {', '.join(FIELDS)}.")
    if choice.sample is None and choice.limit is None:
        raise InputError("--mlr-stratify needs --mlr-sample or --mlr-limit: all tasks are taken.")
    if not any(getattr(task, choice.stratify) for task in suite.tasks):
        raise InputError(f"--mlr-stratify: no task of {suite.name!r} has a {choice.stratify}.")


def _taken(
    tasks: Sequence[Task],
    number: int,
    stratify: str,
    pick: Callable[[Sequence[Task], int], Sequence[Task]],
) -> tuple[Task, ...]:
    """Take *number* of the tasks by *pick*, from each stratum its share."""
    strata: dict[str, list[Task]] = {}
    for task in tasks:
        strata.setdefault(getattr(task, stratify) if stratify else "", []).append(task)
    shares = apportion([len(some) for some in strata.values()], number)
    picked = {
        task.id
        for some, share in zip(strata.values(), shares, strict=True)
        for task in pick(some, share)
    }
    return tuple(task for task in tasks if task.id in picked)


def apportion(sizes: Sequence[int], number: int) -> list[int]:
    """Divide *number* among groups in proportion to their *sizes*, by the largest remainders.

    No group is given more than its size; among equal remainders the first group is preferred.
    """
    total = sum(sizes)
    shares = [size * number // total for size in sizes]
    by_remainder = sorted(range(len(sizes)), key=lambda i: -(sizes[i] * number % total))
    for i in by_remainder[: number - sum(shares)]:
        shares[i] += 1
    return shares
