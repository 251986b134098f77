"""Test properties: a result as (name, value) pairs of plain built-in types.

The names are a contract. What was not measured has no property: a number is never made up for it.
"""

from __future__ import annotations

from pytest_mlrbench.run.result import CaseResult, EvidenceRecord
from pytest_mlrbench.spent import Spent

Property = tuple[str, str | int | float | bool]


def properties(
    result: CaseResult, *, resumed: bool, artifacts: str, replayed: bool = False
) -> list[Property]:
    """Return the properties of one case, in a fixed order.

    :param resumed: whether the result was on disk before this session.
    :param artifacts: where the case's folder is, as a reader of the report finds it.
    :param replayed: whether the run's models were answered from a recording, so that nothing was
        spent.
    """
    fault = result.fault
    found: list[tuple[str, str | int | float | bool | None]] = [
        ("mlr.case", result.case),
        ("mlr.suite", result.suite),
        ("mlr.stage", result.stage),
        ("mlr.task", result.task),
        ("mlr.repeat", result.repeat),
        ("mlr.suite_digest", result.suite_digest),
        ("mlr.agent", result.agent),
        ("mlr.agent_digest", result.agent_digest),
        ("mlr.author", result.author),
        ("mlr.rubric", result.rubric),
        ("mlr.verdict", result.verdict),
        ("mlr.blame", fault.blame if fault else None),
        ("mlr.cause", result.cause),
        ("mlr.overall", result.overall),
        *((f"mlr.score.{name}", score) for name, score in result.scores.items()),
    ]
    for judge_id, judge in result.judges.items():
        found += [
            (f"mlr.judge.{judge_id}.spec", judge.spec),
            (f"mlr.judge.{judge_id}.overall", judge.overall),
            *((f"mlr.judge.{judge_id}.{name}", score) for name, score in judge.scores.items()),
            (f"mlr.judge.{judge_id}.kin", judge.kin),
            (f"mlr.judge.{judge_id}.confidence", judge.confidence),
            (f"mlr.judge.{judge_id}.hallucination", judge.hallucination),
            *(
                (f"mlr.hallucination.{judge_id}.{kind}", number)
                for kind, number in (judge.hallucinations or {}).items()
            ),
        ]
    found += [
        ("mlr.judges.spread", result.spread),
        *_evidence(result.evidence),
        *_checkpoints(result),
        ("mlr.threshold", "; ".join(check.threshold for check in result.thresholds)),
        *_spent("agent", result.spent_agent),
        *_spent("judge", result.spent_judge),
        ("mlr.seconds.agent", _round(result.seconds_agent)),
        ("mlr.seconds.judge", _round(result.seconds_judge)),
        ("mlr.sandbox", result.sandbox),
        ("mlr.gpu", ",".join(result.gpus) or None),
        ("mlr.replayed", True if replayed else None),
        ("mlr.resumed", resumed),
        ("mlr.artifacts", artifacts),
    ]
    return [(name, value) for name, value in found if value is not None]


def _evidence(found: EvidenceRecord | None) -> list[tuple[str, str | int | bool | None]]:
    if found is None:
        return []
    return [
        ("mlr.evidence.level", found.level),
        ("mlr.evidence.examined", ",".join(found.examined)),
        ("mlr.evidence.fabricated", found.fabricated),
        ("mlr.evidence.undisclosed_synthetic", found.undisclosed_synthetic),
        ("mlr.evidence.paper_untraced", found.paper_untraced),
        ("mlr.evidence.reported", found.reported),
        ("mlr.evidence.traced", found.traced),
        ("mlr.evidence.replay", found.replay or ("none" if found.replay == "" else None)),
        ("mlr.evidence.findings", sum(found.findings.values())),
        *((f"mlr.evidence.findings.{kind}", number) for kind, number in found.findings.items()),
    ]


def _checkpoints(result: CaseResult) -> list[tuple[str, str | float | None]]:
    found: list[tuple[str, str | float | None]] = [
        (f"mlr.checkpoint.{stage}.overall", part.overall)
        for stage, part in result.checkpoints.items()
    ]
    if result.reached is not None and result.evidence:
        found.append(("mlr.checkpoint.experiment.evidence", result.evidence.level))
    return [*found, ("mlr.reached", result.reached), ("mlr.stopped_by", result.stopped_by)]


def _spent(role: str, spent: Spent | None) -> list[tuple[str, int | float | None]]:
    if spent is None:
        return []
    return [
        (f"mlr.tokens.{role}.input", spent.input),
        (f"mlr.tokens.{role}.output", spent.output),
        (f"mlr.cost_usd.{role}", spent.cost_usd),
    ]


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
