"""The command ``mlrbench tasks``: look at tasks; fetching them is in :mod:`cli_fetch`."""

from __future__ import annotations

import argparse
import difflib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench import cli_fetch
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import no_folder, user_path

if TYPE_CHECKING:
    from pytest_mlrbench.suites.tasks import Suite, Task


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``tasks`` to the commands of ``mlrbench``."""
    about = "list, show, check, fetch and verify tasks"
    tasks = commands.add_parser("tasks", help=about, description=f"{about.capitalize()}.")
    actions = tasks.add_subparsers(required=True, metavar="list|show|check|fetch|verify")
    _add_list(actions)
    _add_show(actions)
    _add_check(actions)
    cli_fetch.add_parsers(actions)


# list


def _add_list(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listing = actions.add_parser("list", help="list the tasks of a suite")
    listing.add_argument(
        "--suite",
        help="one suite, or path:DIR; without it the suites are listed, with --by mlrbench",
    )
    listing.add_argument(
        "--by", choices=("category", "conference", "year"), help="count them by a property"
    )
    listing.set_defaults(run=_list)


def _list(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.loading import load_suite, suite_names
    from pytest_mlrbench.suites.tasks import share

    if not arguments.suite and not arguments.by:
        for name in suite_names():
            suite = load_suite(name)
            part = share(len(suite.tasks), len(suite.tasks), suite.benchmark)
            print(f"{name:14}{part:34}{suite.title}")
        return 0
    suite = load_suite(arguments.suite or "mlrbench", Path.cwd())
    if arguments.by:
        _count(suite, arguments.by)
        return 0
    width = max(len(task.id) for task in suite.tasks)
    where = {task.id: f"{task.conference} {task.year}".strip() for task in suite.tasks}
    place = max(map(len, where.values()))
    for task in suite.tasks:
        print(f"{task.id:{width}}  {where[task.id]:{place}}  {task.title}".rstrip())
    number = len(suite.tasks)
    print(f"{number} task{'s' * (number != 1)} in suite {suite.name}")
    return 0


def _count(suite: Suite, by: str) -> None:
    """Print how many tasks have each value, beside the published number where there is one."""
    ours = Counter(getattr(task, by) or "(none)" for task in suite.tasks)
    published = {}
    # A part of the benchmark has no published counts.
    if by == "category" and suite.benchmark and suite.benchmark[1] == len(suite.tasks):
        published = {key: category.published for key, category in suite.categories.items()}
    width = max(len(by), *map(len, ours))
    print(f"{by:{width}}  tasks" + "  published" * bool(published))
    for value, number in ours.most_common():
        beside = f"{published.get(value) or '-':>11}" if published else ""
        print(f"{value:{width}}{number:7}{beside}")
    print(f"{'all':{width}}{len(suite.tasks):7}" + f"{sum(ours.values()):11}" * bool(published))
    if by == "category" and suite.categories:
        print("Categories are our labels: only the counts and those of ten tasks are published.")


# show


def _add_show(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    show = actions.add_parser("show", help="show a task: what is known of it, and its text")
    show.add_argument("task", help="task id")
    show.add_argument("--suite", help="suite of the task (default: the shipped one that has it)")
    show.add_argument(
        "--tasks-dir", type=Path, metavar="DIR", help="a checkout of the published repository"
    )
    show.set_defaults(run=_show)


def _show(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.choice import Choice, select_tasks
    from pytest_mlrbench.suites.loading import load_suite
    from pytest_mlrbench.suites.stages import STAGES

    name = arguments.suite or _home(arguments.task)
    if arguments.tasks_dir and not arguments.tasks_dir.is_dir():
        raise InputError(f"--tasks-dir: {no_folder(arguments.tasks_dir)}.")
    suite = load_suite(name, Path.cwd(), arguments.tasks_dir)
    for task in select_tasks(suite, Choice(tasks=(arguments.task,))):
        print(f"{task.id}: {task.title}")
        if where := f"{task.conference} {task.year}".strip():
            print(where)
        for about, value in (("category", task.category), ("page", task.link)):
            if value:
                print(f"{about}: {value}")
        if twins := [t.id for t in suite.tasks if t != task and _near(t, task)]:
            print(f"nearly the same text: {', '.join(twins)}")
        for stage in STAGES.values():
            missing = suite.missing_inputs(task, stage)
            print(
                f"  {stage.name:11}"
                + (f"missing {', '.join(missing)}" if missing else "inputs there")
            )
        text = suite.inputs(task, STAGES["idea"]).get("task.md")
        if isinstance(text, Path):
            text = text.read_text("utf-8", "replace")
        fetch = "The text is not here: `mlrbench tasks fetch --stage idea` downloads it."
        print(f"\n{(text or (fetch if suite.source else 'There is no text.')).strip()}")
    return 0


def _home(task_id: str) -> str:
    """The shipped suite that has a task of this id, or else of the most similar one."""
    from pytest_mlrbench.suites.loading import load_suite, suite_names

    homes = {task.id: name for name in reversed(suite_names()) for task in load_suite(name).tasks}
    return homes[difflib.get_close_matches(task_id, homes, n=1, cutoff=0)[0]]


def _near(one: Task, other: Task) -> bool:
    return bool(one.near_duplicates) and one.near_duplicates == other.near_duplicates


# check


def _add_check(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = actions.add_parser(
        "check", help="check a folder of your own: every fault, and which stages can be run"
    )
    check.add_argument("folder", type=Path, metavar="DIR")
    check.set_defaults(run=_check)


def _check(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.folder import read_folder
    from pytest_mlrbench.suites.loading import suite_names
    from pytest_mlrbench.suites.stages import STAGES

    folder = user_path(Path(), str(arguments.folder).removeprefix("path:"))
    suite, faults = read_folder(folder, suite_names())
    for fault in faults:
        print(f"{fault}.")
    if faults or suite is None:
        print(f"{len(faults)} fault{'s' * (len(faults) != 1)} in {folder}")
        return 1
    number = len(suite.tasks)
    print(f"suite {suite.name}: {number} task{'s' * (number != 1)}, no faults")
    for stage in STAGES.values():
        lacking = [t.id for t in suite.tasks if suite.missing_inputs(t, stage)]
        there = [task.id for task in suite.tasks if task.id not in lacking]
        names = f", not {', '.join(lacking)}" if lacking else ""
        if there and len(there) < len(lacking):
            names = f": {', '.join(there)}"
        print(f"  {stage.name:11} {len(there)} of {number} have all inputs{names if there else ''}")
    return 0
