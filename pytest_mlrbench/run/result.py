"""The record of one finished case, and the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pytest_mlrbench.errors import Blame
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.values import Record

Verdict = Literal["pass", "fail", "not_measured"]


class FaultRecord(Record):
    """What went wrong, whose fault it is, and the word it is counted under."""

    blame: Blame
    cause: str
    message: str


class JudgeRecord(Record):
    """One judge's numbers, or why there are none."""

    spec: str
    overall: int | None = None
    scores: dict[str, int] = Field(default_factory=dict)
    #: ``model`` or ``family`` where it is the agent's own.
    kin: str | None = None
    confidence: int | None = None
    hallucination: bool | None = None
    #: Kind → how many of it the judge's review of hallucinations names; null if not asked.
    hallucinations: dict[str, int] | None = None
    fault: FaultRecord | None = None


class ThresholdRecord(Record):
    """One threshold that applies, the score, and whether it is met; null if unmeasured."""

    threshold: str
    name: str
    score: float | None
    met: bool | None


class CaseResult(Record):
    """Everything reports say about a case: the content of its ``result.json``.

    Null means *not measured*; it is never written as 0.
    """

    case: str
    suite: str
    stage: str
    task: str
    repeat: int
    suite_digest: str
    agent: str
    agent_digest: str | None
    rubric: str
    verdict: Verdict
    fault: FaultRecord | None = None
    overall: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    spread: float | None = None
    judges: dict[str, JudgeRecord] = Field(default_factory=dict)
    thresholds: tuple[ThresholdRecord, ...] = ()
    seconds_agent: float | None = None
    seconds_judge: float | None = None
    #: What the models asked for it used; null where none was asked.
    spent_agent: Spent | None = None
    spent_judge: Spent | None = None
    #: Where the agent's commands ran: ``docker`` or ``local``; null if it ran none.
    sandbox: str | None = None
    #: GPUs that were lent to it, by UUID.
    gpus: tuple[str, ...] = ()
    #: Who made what was judged, where it is not the agent: of a run that is judged again.
    author: str | None = None
    #: Case folder, relative to the run folder.
    artifacts: str
    #: How often an agent was started for the case in this run folder.
    attempts: int = 1
    #: Why a result that was on disk was not reused.
    rerun_because: str | None = None
    #: Of the submission it is the result of, as in ``submission.json``.
    submission_digest: str | None
    submission_stamp: str | None
    #: Named digests of everything the result depends on; what resuming compares.
    key: dict[str, str | None]

    def judged_by(self, thresholds: Sequence[Threshold], names: Sequence[str]) -> CaseResult:
        """Return the result with its verdict; *names* are the dimensions its rubric scores."""
        checks = []
        for t in thresholds:
            if t.applies(self.stage, names):
                score = self.overall if t.name == "overall" else self.scores.get(t.name)
                met = None if score is None else t.met(score)
                checks.append(ThresholdRecord(threshold=str(t), name=t.name, score=score, met=met))
        if self.fault is not None:
            verdict: Verdict = "fail" if self.fault.blame == "agent" else "not_measured"
        else:
            outcomes = {check.met for check in checks}
            verdict = (
                "fail" if False in outcomes else "not_measured" if None in outcomes else "pass"
            )
        if (tuple(checks), verdict) == (self.thresholds, self.verdict):
            return self
        return self.model_copy(update={"thresholds": tuple(checks), "verdict": verdict})

    @property
    def missed(self) -> tuple[str, ...]:
        """The thresholds that were not met."""
        return tuple(check.threshold for check in self.thresholds if check.met is False)
