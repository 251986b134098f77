"""What the scaffold does in each stage of research."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from pytest_mlrbench.agents import scaffold_figures as figures
from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.agents.scaffold_author import Author
from pytest_mlrbench.agents.scaffold_literature import related_work
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.submission import check_contract
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

#: The share of the time left that experiments of a chain leave for the paper, and its most seconds.
_FOR_PAPER, _LONGEST_PAPER = 0.1, 1800.0
#: What experiments start from, and what a paper does.
_PLAN = ("task", "idea", "related_work", "proposal")


async def idea(author: Author) -> None:
    """Write ``idea.md``."""
    author.write("idea.md", await author.written("idea", "idea", **_texts(author, "task")))


async def proposal(author: Author) -> None:
    """Write ``proposal.md``."""
    texts = _texts(author, "task", "idea", "related_work")
    author.write("proposal.md", await author.written("proposal", "proposal", **texts))


async def paper(author: Author) -> None:
    """Write ``results/paper.md``, with figures that exist."""
    workspace = author.work.workspace
    found = await asyncio.to_thread(figures.figures, workspace)
    if not author.asking.config.images:
        found = found._replace(shown=())
    author.log.say(f"paper: {len(found.paths)} figures, {len(found.shown) // 2} of them shown")
    text = await author.written(
        "paper",
        "paper",
        *found.shown,
        **_texts(author, *_PLAN),
        results=author.read("results/results.md"),
        figures=figures.describe(found),
    )
    text, missing = figures.without_missing(text, workspace)
    for target in missing:
        author.log.say(f"paper: removed the image {target[:200]!r}: there is no such figure")
    author.write("results/paper.md", text)


async def end_to_end(author: Author, case: Case, coder: Agent, search: str) -> None:
    """Take all stages one after the other in one workspace, the experiments by *coder*."""
    await idea(author)
    await related_work(author, search)
    await proposal(author)
    await _experiment(author, experiment_of(case), coder)
    await paper(author)


def experiment_of(case: Case) -> Case:
    """Return the case of the experiments within an end-to-end case."""
    return replace(case, stage="experiment")


async def _experiment(author: Author, case: Case, coder: Agent) -> None:
    """Have *coder* run the experiments, or lay what it left in an earlier try."""
    work, content = author.work, await asyncio.to_thread(coder.digest, case)
    key = digests.of_json([coder.spec, content, [author.read(f"{name}.md") for name in _PLAN]])
    # A coder of unknown content may be another one today.
    known = content is not None
    if known and await asyncio.to_thread(author.steps.lay_files, "experiment", key, work.workspace):
        author.log.say("experiment: kept from an earlier try")
        return
    seconds = work.seconds_left
    reserve = min(_FOR_PAPER * seconds, _LONGEST_PAPER)
    author.log.say(f"experiment: by {coder.spec}, which has {seconds - reserve:.0f} s")
    start = time.monotonic()
    # A log of its own: whoever runs a command begins the file anew.
    log, deadline = work.log.with_name("coder.log"), work.deadline - reserve
    await coder.run(case, replace(work, stage="experiment", deadline=deadline, log=log))
    check_contract(work.workspace, STAGES["experiment"])
    author.log.say(f"experiment: done in {time.monotonic() - start:.0f} s")
    if known:
        await asyncio.to_thread(author.steps.keep_files, "experiment", key, work.workspace)


def _texts(author: Author, *names: str) -> dict[str, str]:
    return {name: author.read(f"{name}.md") for name in names}
