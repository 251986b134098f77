"""What is made of a submission: its evidence, the reviews of it and of its checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.agents.replay import ReplayAgent
from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.evidence.base import Evidence
from pytest_mlrbench.evidence.options import EvidenceOptions
from pytest_mlrbench.judges.base import Judge, Reviewable
from pytest_mlrbench.judges.panel import PanelScore, combine
from pytest_mlrbench.run import checkpoints
from pytest_mlrbench.run.examining import examine, is_examined, keep
from pytest_mlrbench.run.faults import fault_record
from pytest_mlrbench.run.judging import Reviews, complete, panel_fault, review_all, spent
from pytest_mlrbench.run.result import FaultRecord
from pytest_mlrbench.run.submission import (
    SubmissionRecord,
    can_be_judged,
    digest_of,
    is_tampered,
)
from pytest_mlrbench.run.thresholds import REPLAYED
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

if TYPE_CHECKING:
    from pytest_mlrbench.run.replaying import Replayer

_CHANGED = FaultRecord(
    blame="agent",
    cause="unusable_output",
    message="what the agent left was changed while it was judged.",
)


@dataclass
class Assessment:
    """All that was found out about a submission; *fault* is the first thing that went wrong."""

    fault: FaultRecord | None
    evidence: Evidence | None = None
    reviews: Reviews = field(default_factory=dict)
    panel: PanelScore | None = None
    #: Stage within the case → its reviews.
    parts: dict[str, Reviews] = field(default_factory=dict)
    #: What all reviews took, those included that do not count.
    spent: Spent | None = None
    reached: str | None = None
    stopped_by: str | None = None


@dataclass(frozen=True)
class Assessor:
    """Looks at what agents left.

    :param options: what is made of the evidence.
    :param replayer: runs cases again; null where that is not asked for.
    """

    agent: Agent
    judges: Sequence[Judge]
    options: EvidenceOptions
    replayer: Replayer | None = None

    async def assess(self, case: Case, submission: SubmissionRecord, folder: Path) -> Assessment:
        """Examine, then judge, what lies in the *folder* of *case*."""
        found, workspace = Assessment(submission.fault), folder / "submission"
        if is_examined(self.agent, case.stage):
            await self._examine(case, folder, submission.seconds, found)
        work = Reviewable(
            case, workspace, submission.digest, self.agent.system, evidence=found.evidence
        )
        if can_be_judged(workspace, STAGES[case.stage], found.fault):
            found.reviews = await review_all(self.judges, work, folder / "reviews")
        if self._has_checkpoints(case, found.fault):
            found.parts = await checkpoints.review(self.judges, work, folder)
        found.spent = spent([found.reviews, *found.parts.values()])
        if submission.sandbox is None and await _was_changed(workspace, submission.digest):
            found.reviews, found.parts = {}, {}
            found.fault = found.fault or _CHANGED
        missing = panel_fault(found.reviews)
        found.fault = found.fault or missing
        if found.reviews and not missing:
            found.panel = combine(complete(found.reviews))
        return found

    async def _examine(self, case: Case, folder: Path, took: float, found: Assessment) -> None:
        is_copy = isinstance(self.agent, ReplayAgent)
        evidence = await examine(folder, case.stage, asks=self.options.asks, is_copy=is_copy)
        if isinstance(evidence, SystemFault):
            found.fault = found.fault or fault_record(evidence)
            return
        if self.replayer and case.stage in REPLAYED:
            evidence = await self.replayer.replay(case, folder, took, evidence)
            keep(folder, evidence)
        found.evidence = evidence
        if case.stage == "end_to_end":
            found.reached, found.stopped_by = checkpoints.reached(
                folder / "submission", evidence, found.fault
            )
            refusal = checkpoints.refusal(found.stopped_by) if self.options.stops else None
            found.fault = found.fault or (fault_record(refusal) if refusal else None)

    def _has_checkpoints(self, case: Case, fault: FaultRecord | None) -> bool:
        # Scores that are published are of other works than the checkpoints of this one.
        judged = all(getattr(judge, "of_parts", True) for judge in self.judges)
        return (
            case.stage == "end_to_end"
            and self.options.checkpoints
            and self.agent.has_files
            and judged
            and not is_tampered(fault)
        )


async def _was_changed(workspace: Path, digest: str | None) -> bool:
    """Whether a function of this process, which nobody can end, has written on.

    By content, as times can be set back.
    """
    if digest is None:
        return False
    return (await asyncio.to_thread(digest_of, workspace))[0] != digest
