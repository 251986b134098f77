"""What the scaffold does in each stage of research."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from pytest_mlrbench.agents import scaffold_figures as figures
from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.agents.scaffold_author import Author
from pytest_mlrbench.agents.scaffold_literature import related_work
from pytest_mlrbench.evidence.examine import examine_case
from pytest_mlrbench.evidence.table import table
from pytest_mlrbench.run import checkpoints, digests
from pytest_mlrbench.run.submission import check_contract
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

#: The share of the time left that experiments of a chain leave for the paper, and its most seconds.
_FOR_PAPER, _LONGEST_PAPER = 0.1, 1800.0
#: Above the table of what is known of the results.
_FOUND_OUT = (
    "What follows is not by the author of the report: it is what a program found out about it. Name"
    " as unsupported, or leave out, what it does not bear out."
)
#: What was recorded of the experiments: their evidence depends on it.
_RECORDS = ("ledger.jsonl", "coder.log", "transcript.jsonl")
#: What experiments start from, and what a paper does.
_PLAN = ("task", "idea", "related_work", "proposal")


async def idea(author: Author) -> None:
    """Write ``idea.md``."""
    author.write("idea.md", await author.written("idea", "idea", **_texts(author, "task")))


async def proposal(author: Author) -> None:
    """Write ``proposal.md``."""
    texts = _texts(author, "task", "idea", "related_work")
    author.write("proposal.md", await author.written("proposal", "proposal", **texts))


async def paper(author: Author, found_out: str = "") -> None:
    """Write ``results/paper.md``, with figures that exist.

    :param found_out: what the benchmark says of the results, for the writer to heed.
    """
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
        results="\n\n".join(filter(None, [author.read("results/results.md"), found_out])),
        figures=figures.describe(found),
    )
    text, missing = figures.without_missing(text, workspace)
    for target in missing:
        author.log.say(f"paper: removed the image {target[:200]!r}: there is no such figure")
    author.write("results/paper.md", text)


async def end_to_end(author: Author, case: Case, coder: Agent, search: str, *, stops: bool) -> None:
    """Take all stages one after the other in one workspace, the experiments by *coder*.

    :param stops: whether results that nothing executed supports end the chain.
    :raises AgentFault: they do.
    """
    await idea(author)
    await related_work(author, search)
    await proposal(author)
    await _experiment(author, experiment_of(case), coder)
    await paper(author, await _found_out(author, stops))


async def _found_out(author: Author, stops: bool) -> str:
    """Return what supports the results of the experiments, as the writer of the paper is told."""
    folder = author.work.workspace.parent
    evidence = await asyncio.to_thread(examine_case, folder, "experiment")
    author.log.say(f"experiment: evidence {evidence.level}, {evidence.because}")
    _, stopped_by = checkpoints.reached(author.work.workspace, evidence, None)
    if stops and (fault := checkpoints.refusal(stopped_by)):
        raise fault
    return f"{_FOUND_OUT}\n\n{table(evidence)}"


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
        await asyncio.to_thread(author.steps.lay_copies, "records", key, work.workspace.parent)
        if work.room:
            work.room.ledger.go_on()
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
        records = [work.workspace.with_name(name) for name in _RECORDS]
        await asyncio.to_thread(author.steps.keep_copies, "records", key, records)


def _texts(author: Author, *names: str) -> dict[str, str]:
    return {name: author.read(f"{name}.md") for name in names}
