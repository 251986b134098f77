"""Fetching the published texts and inputs: file by file, each verified before it is there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm

from pytest_mlrbench.fetching.github import GitHub, Patience
from pytest_mlrbench.fetching.listing import (
    Listing,
    dump_listing,
    listing_path,
    load_listing,
)
from pytest_mlrbench.fetching.store import remove_strays, write_whole
from pytest_mlrbench.fetching.wanted import (
    Missed,
    Plan,
    Stopped,
    Wanted,
    make_plan,
    needs_of,
    source_of,
)
from pytest_mlrbench.suites.source import Source
from pytest_mlrbench.suites.tasks import Suite, Task

#: How long faults are borne, if nothing else is said.
PATIENCE = Patience()
#: When so many files in a row have found no answer, the others are not tried.
_UNANSWERED = 3


@dataclass
class Tally:
    """How far a fetch is; it is true at any moment, also after an interrupt."""

    root: Path
    #: Number of files that are needed; null while that is not known.
    total: int | None = None
    #: Whether *total* is all, or the names of some files could not be had.
    exact: bool = True
    #: Files that were there and good before.
    here: int = 0
    fetched: int = 0
    #: Those of the fetched that took the place of a file with other content.
    replaced: int = 0
    #: A sentence for each thing that went wrong.
    problems: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether everything is there and good."""
        return not self.problems and self.here + self.fetched == self.total

    def __str__(self) -> str:
        if self.total is None:
            return f"nothing was fetched to {self.root}"
        replaced = f", {self.replaced} of them instead of changed ones" if self.replaced else ""
        return (
            f"{self.here + self.fetched} of {'' if self.exact else 'at least '}{self.total} files"
            f" are in {self.root} ({self.fetched} fetched now{replaced}, {self.here} were there)"
        )


def fetch(
    tally: Tally,
    suite: Suite,
    tasks: Sequence[Task],
    stages: Sequence[str],
    *,
    jobs: int = 8,
    patience: Patience | None = None,
) -> None:
    """Fetch from GitHub what *stages* of *tasks* start from; what is there and good is left alone.

    :param tally: is kept up to date; its problems say what could not be had.
    :param jobs: how many files are fetched at once.
    :param patience: how long faults are borne.
    :raises InputError: the suite is not fetched, or the environment names an unusable address.
    :raises KeyboardInterrupt: what is there by then is whole.
    """
    source = source_of(suite)
    try:
        asyncio.run(_fetch(tally, suite, tasks, stages, source, jobs, patience or PATIENCE))
    except Stopped as error:
        tally.problems.insert(0, str(error))


async def _fetch(
    tally: Tally,
    suite: Suite,
    tasks: Sequence[Task],
    stages: Sequence[str],
    source: Source,
    jobs: int,
    patience: Patience,
) -> None:
    async with GitHub(source, jobs, patience) as github:
        # Texts are known by the catalogue, whoever sends them.
        only_texts = needs_of(stages) == ("task.md",)
        kept = load_listing(source)
        listing = kept if only_texts or kept is not None else await _listing(tally, github)
        plan = make_plan(suite, tasks, stages, listing)
        if listing is not kept and listing is not None and not plan.missing:
            write_whole(listing_path(source), dump_listing(source, listing))
        remove_strays([listing_path(source)])
        todo = take_stock(tally, plan)
        if listing is not None:
            tally.problems += [
                f"{path} is not in the repository at commit {source.commit[:12]}."
                for path in plan.missing
            ]
        with progress(tally, todo, source.repository) as bar:
            work = _Work(tally, github, bar)
            await work.do([wanted for wanted in todo if not wanted.last], jobs)
            await work.do([wanted for wanted in todo if wanted.last], jobs)


async def _listing(tally: Tally, github: GitHub) -> Listing | None:
    """Return the repository's list of files; without it, much can be fetched all the same."""
    try:
        return await github.listing()
    except (Missed, Stopped) as error:
        tally.problems.append(str(error))
        return None


class _Work:
    """Several files at once, until one fault ends it all."""

    def __init__(self, tally: Tally, github: GitHub, bar: tqdm[NoReturn]) -> None:
        self._tally = tally
        self._github = github
        self._bar = bar
        self._unanswered = 0

    async def do(self, todo: Sequence[Wanted], jobs: int) -> None:
        queue = iter(todo)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(jobs):
                    group.create_task(self._share(queue))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _share(self, queue: Iterator[Wanted]) -> None:
        for wanted in queue:
            try:
                data = await self._verified(wanted)
            except Missed as error:
                self._missed(error)
            else:
                self._unanswered = 0
                keep(self._tally, wanted, data)
            self._bar.update()

    async def _verified(self, wanted: Wanted) -> bytes:
        fault = ""
        # Once more past all caches, for the fault may be one of theirs.
        for fresh in (False, True):
            data = await self._github.file(wanted.path, fresh=fresh)
            fault = wanted.fault(data)
            if not fault:
                return data
        raise Missed(
            f"{wanted.path}: what was sent {fault}, twice; it was not kept, for a proxy or mirror"
            " on the way may change files."
        )

    def _missed(self, error: Missed) -> None:
        self._tally.problems.append(str(error))
        self._unanswered = self._unanswered + 1 if error.tired else 0
        if self._unanswered == _UNANSWERED:
            raise Stopped(
                f"{_UNANSWERED} files in a row could not be had, the others were not tried: run it"
                " again later."
            )


# What every source does


def take_stock(tally: Tally, plan: Plan) -> list[Wanted]:
    """Count what is there and good; return the other files, without what a killed fetch left."""
    tally.total = len(plan.files) + len(plan.missing)
    tally.exact = plan.exact
    remove_strays(wanted.target for wanted in plan.files)
    todo = [wanted for wanted in plan.files if not wanted.is_here()]
    tally.here = len(plan.files) - len(todo)
    return todo


def keep(tally: Tally, wanted: Wanted, data: bytes) -> None:
    """Put a verified file in its place.

    :raises Stopped: the disk does not take it.
    """
    changed = wanted.target.exists()
    write_whole(wanted.target, data)
    tally.fetched += 1
    tally.replaced += changed


def progress(tally: Tally, todo: Sequence[Wanted], where: str) -> tqdm[NoReturn]:
    """Return a bar on a terminal; elsewhere one line says what begins."""
    silent = not sys.stderr.isatty()
    if silent and todo:
        print(f"fetching {len(todo)} files of {where} to {tally.root}", flush=True)
    return tqdm(total=tally.total, initial=tally.here, unit=" files", leave=False, disable=silent)
