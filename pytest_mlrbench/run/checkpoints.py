"""The stages within an end-to-end case: what each came to, and which one research really reached.

An end-to-end score hides where research failed. So each checkpoint is scored by the rubric of its
own stage, and what the evidence supports decides which of them counts as reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_mlrbench.errors import AgentFault
from pytest_mlrbench.evidence.base import LEVELS, Evidence
from pytest_mlrbench.judges.base import Judge, Reviewable
from pytest_mlrbench.judges.panel import combine
from pytest_mlrbench.run.folder import CHECKPOINTS
from pytest_mlrbench.run.judging import Reviews, complete, panel_fault, review_all
from pytest_mlrbench.run.result import CheckpointRecord, FaultRecord
from pytest_mlrbench.run.submission import check_contract
from pytest_mlrbench.run.thresholds import EXAMINED
from pytest_mlrbench.suites.stages import CHAIN, STAGES

#: What stops a chain since its results are not supported.
UNSUPPORTED = frozenset({"fabricated", "nothing_executed"})


async def review(judges: Sequence[Judge], work: Reviewable, folder: Path) -> dict[str, Reviews]:
    """Have *judges* score each checkpoint that there is in the work of a chain.

    :param folder: of the case.
    """
    there = [
        stage
        for stage in CHAIN[:-1]
        if _is_there(work.workspace, stage) and _is_panel(judges, stage)
    ]
    found = await asyncio.gather(*(_review(judges, work, folder, stage) for stage in there))
    return dict(zip(there, found, strict=True))


def _is_panel(judges: Sequence[Judge], stage: str) -> bool:
    """Whether *judges* score *stage*, and all by one rubric.

    Those of a user may know none but the stages of the run, and say so in any way.
    """
    try:
        return len({judge.rubric(stage).digest for judge in judges}) == 1
    except Exception:
        return False


async def _review(judges: Sequence[Judge], work: Reviewable, folder: Path, stage: str) -> Reviews:
    case = replace(work.case, stage=stage, chain=work.case.stage)
    # An idea is scored as it is alone, where no results are known that speak for or against it.
    evidence = work.evidence if stage in EXAMINED else None
    part = replace(work, case=case, evidence=evidence, shared={})
    return await review_all(judges, part, folder / CHECKPOINTS / stage / "reviews")


def record(rubric: str, reviews: Reviews) -> CheckpointRecord:
    """Return what the result says of one checkpoint."""
    if fault := panel_fault(reviews):
        return CheckpointRecord(rubric=rubric, fault=fault)
    panel = combine(complete(reviews))
    return CheckpointRecord(
        rubric=rubric,
        overall=panel.overall,
        scores=panel.scores,
        judges={r.judge: r.answer.overall.score for r in complete(reviews)},
    )


def _is_there(workspace: Path, stage: str) -> bool:
    try:
        check_contract(workspace, STAGES[stage])
    except AgentFault:
        return False
    return True


def reached(
    workspace: Path, evidence: Evidence, fault: FaultRecord | None
) -> tuple[str, str | None]:
    """Return the last stage that a chain really reached, and what stopped it there.

    The stage is ``none`` if it has no idea; what stopped it is null where it came to its end.
    """
    last = "none"
    for stage in CHAIN:
        if not _is_there(workspace, stage):
            return last, fault.cause if fault else f"no_{stage}"
        if why := _doubt(stage, evidence):
            return last, why
        last = stage
    return last, None


def _doubt(stage: str, evidence: Evidence) -> str | None:
    """What speaks against a stage whose files are there."""
    if stage == "experiment":
        if evidence.fabricated:
            return "fabricated"
        # Where nothing was recorded, nobody can say that nothing was run.
        if "ledger" in evidence.examined and evidence.level in LEVELS[: LEVELS.index("executed")]:
            return "nothing_executed"
    if stage == "paper" and evidence.paper_untraced:
        return "paper_untraced"
    return None


def refusal(stopped_by: str | None) -> AgentFault | None:
    """The fault of a chain that must not go on with results that nothing supports."""
    if stopped_by not in UNSUPPORTED:
        return None
    return AgentFault(
        "unsupported_results",
        "its results are not supported by what was executed"
        f" ({stopped_by.replace('_', ' ')}), and --mlr-crossing=evidence lets no such results into"
        " a paper: see evidence.json.",
    )
