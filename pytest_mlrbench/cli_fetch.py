"""The commands ``mlrbench tasks fetch`` and ``verify``: the published texts and inputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.fetching.wanted import TEXT_STAGES, WITH_RESULTS, source_of, without_results
from pytest_mlrbench.resources import no_folder
from pytest_mlrbench.suites.stages import STAGES

if TYPE_CHECKING:
    from pytest_mlrbench.fetching.fetch import Tally
    from pytest_mlrbench.fetching.verify import Need
    from pytest_mlrbench.suites.tasks import Suite, Task

#: How many sentences are printed of one kind, and how many ids of absent tasks.
_SHOWN = 20
_IDS = 3
_MOST_JOBS = 32


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``fetch`` and ``verify`` to the actions of ``mlrbench tasks``."""
    _add_fetch(actions)
    _add_verify(actions)


# fetch


def _add_fetch(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    fetch = actions.add_parser(
        "fetch",
        help="download the published texts and inputs, verified, into your cache",
        description=(
            "Download the task texts of MLR-Bench and the published inputs of its stages, file by"
            " file, from the published repository at one commit. Every file is verified; what is"
            " there already is not downloaded again. GITHUB_TOKEN, MLRBENCH_GITHUB_RAW_URL,"
            " MLRBENCH_GITHUB_API_URL and the usual proxy variables are respected."
        ),
    )
    fetch.add_argument(
        "--stage",
        metavar="STAGE[,STAGE]|all",
        help="the stages whose inputs are needed (default: all)",
    )
    fetch.add_argument("--suite", default="mlrbench", help="mlrbench (default) or mlrbench-10")
    fetch.add_argument(
        "--tasks", nargs="+", action="extend", metavar="GLOB", default=[], help="task ids or globs"
    )
    fetch.add_argument(
        "--from",
        dest="origin",
        choices=("github", "huggingface"),
        default="github",
        help="where from (default: github); huggingface has the texts only",
    )
    fetch.add_argument("--tasks-dir", metavar="DIR", help="where to (default: your cache)")
    fetch.add_argument(
        "--jobs", type=int, default=8, metavar="N", help="files at once (default: 8)"
    )
    fetch.set_defaults(run=_fetch)


def _fetch(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.choice import Choice, select_tasks

    if not 1 <= arguments.jobs <= _MOST_JOBS:
        raise InputError(f"--jobs must be 1 to {_MOST_JOBS}, not {arguments.jobs}.")
    stages = _stages(arguments.stage, arguments.origin)
    suite = _suite(arguments.suite, arguments.tasks_dir)
    tasks = select_tasks(suite, Choice(tasks=tuple(arguments.tasks)))
    if arguments.stage:  # by default, and for no stage in particular, all is wanted that there is
        _say_what_is_not_published(tasks, stages)
    try:
        from pytest_mlrbench.fetching.fetch import Tally
    except ImportError as error:
        raise InputError(
            f"`mlrbench tasks fetch` needs {error.name}, which is not installed:"
            " pip install 'pytest-mlrbench[fetch]'."
        ) from None
    tally = Tally(source_of(suite).root)
    try:
        _fetch_from(arguments.origin, tally, suite, tasks, stages, arguments.jobs)
    except KeyboardInterrupt:
        print(f"mlrbench: interrupted: {tally}; running it again goes on.", file=sys.stderr)
        return 130
    for sentence in tally.problems[:_SHOWN]:
        print(f"mlrbench: {sentence}", file=sys.stderr)
    if more := len(tally.problems[_SHOWN:]):
        print(f"mlrbench: the same or the like of {more} more files.", file=sys.stderr)
    print(tally)
    return 0 if tally.complete else 1


def _say_what_is_not_published(tasks: Sequence[Task], stages: Sequence[str]) -> None:
    """Say for how many tasks a stage will still lack its results.

    :raises InputError: no stage can be run of any task, whatever is fetched.
    """
    lacking = without_results(tasks, stages)
    only = (
        f"the results that the stage paper starts from are published for the ten tasks of"
        f" {WITH_RESULTS} only"
    )
    if len(lacking) == len(tasks) and all("results" in STAGES[stage].inputs for stage in stages):
        raise InputError(f"{only}, and none of these is one: --suite {WITH_RESULTS}.")
    if lacking:
        count = f"{len(lacking)} of these {len(tasks)}"
        print(f"mlrbench: {only}, and not for {count}.", file=sys.stderr)


def _fetch_from(
    origin: str,
    tally: Tally,
    suite: Suite,
    tasks: Sequence[Task],
    stages: Sequence[str],
    jobs: int,
) -> None:
    if origin == "huggingface":
        from pytest_mlrbench.fetching.huggingface import fetch_texts

        fetch_texts(tally, suite, tasks)
    else:
        from pytest_mlrbench.fetching.fetch import fetch

        fetch(tally, suite, tasks, stages, jobs=jobs)


def _stages(given: str | None, origin: str) -> Sequence[str]:
    from pytest_mlrbench.suites.select import parse_stages

    if given is None:
        return parse_stages("all") if origin == "github" else TEXT_STAGES
    if not given.strip(" ,"):
        raise InputError("--stage names no stage: `all` means all of them.")
    stages = parse_stages(given)
    if origin == "huggingface" and not set(stages) <= set(TEXT_STAGES):
        raise InputError(
            f"--from huggingface has the task texts only (stages {', '.join(TEXT_STAGES)}): the"
            " inputs of other stages come --from github."
        )
    return stages


def _suite(spec: str, folder: str | None) -> Suite:
    """Load a suite whose texts are published, with *folder* in place of the cache.

    :raises InputError: there is no such suite, or it has its own texts.
    """
    from pytest_mlrbench.resources import user_path
    from pytest_mlrbench.suites.loading import load_suite

    suite = load_suite(spec, Path.cwd())
    source = source_of(suite)
    root = user_path(Path.cwd(), folder) if folder else source.root
    return replace(suite, source=replace(source, root=root))


# verify


def _add_verify(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verify = actions.add_parser(
        "verify", help="compare the texts and inputs that are here with the published ones"
    )
    verify.add_argument(
        "folder",
        nargs="?",
        metavar="DIR",
        help="a checkout of the published repository, or a folder that was fetched (default: your"
        " cache)",
    )
    verify.add_argument("--suite", default="mlrbench", help="mlrbench (default) or mlrbench-10")
    verify.add_argument("--verbose", action="store_true", help="list all tasks with absent files")
    verify.set_defaults(run=_verify)


def _verify(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.fetching.verify import verify

    suite = _suite(arguments.suite, arguments.folder)
    source = source_of(suite)
    if arguments.folder and not source.root.is_dir():
        raise InputError(f"{no_folder(source.root)}.")
    found = verify(suite)
    print(f"{source.root}, compared with {source.repository} at {source.commit[:12]}\n")
    print(f"{'input':17}{'tasks':>12}{'files':>8}{'checked':>10}{'changed':>10}{'absent':>9}")
    for need in found.needs:
        print(
            f"{need.name:17}{f'{need.there} of {need.tasks}':>12}{need.files:8}{need.checked:10}"
            f"{len(need.changed):10}{len(need.absent):9}"
        )
    print()
    for need in found.needs:
        _print_faults(need, arguments.verbose)
    texts = found.needs[0]
    print(
        f"{texts.there - len(texts.changed)} of {texts.tasks} task texts are as published,"
        f" {len(texts.changed)} changed, {len(texts.absent)} absent"
    )
    if found.good:
        return 0
    where = f" --tasks-dir {arguments.folder}" if arguments.folder else ""
    print(f"`mlrbench tasks fetch{where}` downloads what is changed or absent")
    return 1


def _print_faults(need: Need, verbose: bool) -> None:
    for words in need.changed:
        print(f"changed: {words}")
    for label, names in (
        (f"no {need.name}", need.absent),
        (f"incomplete {need.name}", need.lacking),
    ):
        if names:
            shown = names if verbose else names[:_IDS]
            more = f" and {len(names) - len(shown)} more (--verbose)" if names[len(shown) :] else ""
            print(f"{label}: {', '.join(shown)}{more}")
