"""From a suite's name, or a user's folder, to the suite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import shipped, user_path
from pytest_mlrbench.suites.files import described, read_about, read_table
from pytest_mlrbench.suites.folder import read_folder
from pytest_mlrbench.suites.source import Source, cache_root
from pytest_mlrbench.suites.tasks import Category, Suite


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
        suite, faults = read_folder(
            user_path(base or Path(), spec.removeprefix("path:")), suite_names()
        )
        if faults or suite is None:
            more = f" (and {len(faults) - 1} more: `mlrbench tasks check`)" if faults[1:] else ""
            raise InputError(f"{faults[0]}{more}.")
        return replace(suite, spec=spec)
    if spec not in suite_names():
        raise InputError(
            f"there is no suite {spec!r}: shipped are {', '.join(suite_names())};"
            " a folder of your own is given as path:DIR."
        )
    return _shipped_suite(spec, tasks_dir)


def _shipped_suite(name: str, tasks_dir: Path | None) -> Suite:
    folder = shipped("benchmarks") / "suites" / name
    faults: list[str] = []
    about = read_about(folder / "suite.yaml", faults)
    if whole := about.get("of"):
        suite = _shipped_suite(whole, tasks_dir)
        chosen = set(about["tasks"])
        tasks = tuple(task for task in suite.tasks if task.id in chosen)
        return replace(
            described(about, suite.folder),
            tasks=tasks,
            categories=suite.categories,
            source=suite.source,
        )
    suite = replace(described(about, folder), tasks=read_table(folder / "tasks.csv", faults))
    if faults:
        raise InputError(f"{faults[0]}.")
    categories = {key: Category(**value) for key, value in about.get("categories", {}).items()}
    suite = replace(suite, categories=categories)
    if source := about.get("source"):
        root = tasks_dir or cache_root(source["commit"])
        suite = replace(suite, source=Source(**source, known=folder / "inputs.csv", root=root))
    elif tasks_dir:
        raise InputError(
            f"--mlr-tasks-dir is for the texts of MLR-Bench: suite {name!r} ships its own."
        )
    return suite
