"""The record of one finished case, and the verdict on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pytest_mlrbench.errors import Blame
from pytest_mlrbench.evidence.base import LEVELS, Evidence, Level
from pytest_mlrbench.run.thresholds import EVIDENCE, Threshold
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


class EvidenceRecord(Record):
    """What ``evidence.json`` comes to, where the findings are. Null: it cannot be told."""

    level: Level
    examined: tuple[str, ...]
    fabricated: bool | None
    undisclosed_synthetic: bool | None
    paper_untraced: bool | None
    #: Kind of finding → how many.
    findings: dict[str, int]
    #: Numbers that are reported, in all documents, and those of them that were traced.
    reported: int
    traced: int
    #: What came of running it again: those of ``same``, ``moved``, ``changed`` that are as they
    #: should be. Null where it was not asked for, or could not be run.
    replay: str | None = None
    #: Whether it could not be run again for a fault that is not the agent's.
    is_open: bool = False

    @classmethod
    def of(cls, evidence: Evidence) -> EvidenceRecord:
        """Sum up what was found."""
        kinds = Counter(finding.kind for finding in evidence.findings)
        return cls(
            level=evidence.level,
            examined=evidence.examined,
            fabricated=evidence.fabricated,
            undisclosed_synthetic=evidence.undisclosed_synthetic,
            paper_untraced=evidence.paper_untraced,
            findings=dict(sorted(kinds.items())),
            reported=sum(counted.reported for counted in evidence.claims.values()),
            traced=sum(counted.traced for counted in evidence.claims.values()),
            replay=evidence.replay.passed if evidence.replay and evidence.replay.runs else None,
            is_open=evidence.replay is not None and evidence.replay.is_open,
        )


class CheckpointRecord(Record):
    """What the panel says of a stage within an end-to-end case; nothing is asserted of it."""

    rubric: str
    overall: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    #: Judge → its overall score.
    judges: dict[str, int] = Field(default_factory=dict)
    #: Why it has no score.
    fault: FaultRecord | None = None


class ThresholdRecord(Record):
    """One threshold that applies, the score, and whether it is met; null if unmeasured.

    The score of ``evidence`` is the number of a level.
    """

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
    #: Null where it was not examined.
    evidence: EvidenceRecord | None = None
    #: Of a chain: stage → its score by itself, where it was asked for and its files are there.
    checkpoints: dict[str, CheckpointRecord] = Field(default_factory=dict)
    #: Of a chain: the last stage that counts, and what stopped it, where something did.
    reached: str | None = None
    stopped_by: str | None = None
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
                score = self._score(t.name)
                met = None if score is None or self._may_meet(t, score) else t.met(score)
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

    def _score(self, name: str) -> float | None:
        if name == EVIDENCE:
            return float(LEVELS.index(self.evidence.level)) if self.evidence else None
        return self.overall if name == "overall" else self.scores.get(name)

    def _may_meet(self, threshold: Threshold, level: float) -> bool:
        """Whether repetitions, which the agent did not prevent, may have met what is missed now."""
        if threshold.name != EVIDENCE or self.evidence is None or not self.evidence.is_open:
            return False
        is_next = self.evidence.level == LEVELS[-2]
        return is_next and not threshold.met(level) and threshold.met(float(len(LEVELS) - 1))

    @property
    def cause(self) -> str | None:
        """The word for what went wrong, where something did; a missed threshold is nothing such."""
        if self.fault is None and self.verdict == "not_measured":
            # Only the evidence can be missing where there are scores.
            return "not_replayed" if self.evidence else "not_examined"
        return self.fault.cause if self.fault else None

    @property
    def missed(self) -> tuple[str, ...]:
        """The thresholds that were not met."""
        return tuple(check.threshold for check in self.thresholds if check.met is False)
