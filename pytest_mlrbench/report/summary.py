"""Numbers over the cases of a run, each with its denominator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from pydantic import Field

from pytest_mlrbench.evidence.base import LEVELS
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.run.thresholds import EXAMINED
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.suites.stages import CHAIN, STAGES
from pytest_mlrbench.values import Record

#: Cause of a case that was selected and has no result, e.g. after ``-x`` or Ctrl-C.
NOT_RUN = "not_run"
#: In place of the level of a case of which no evidence was examined.
NOT_EXAMINED = "not_examined"


class JudgeSummary(Record):
    """One judge's mean overall score, and over how many reviews."""

    reviews: int
    overall_mean: float | None


class SpentSummary(Record):
    """What models used in the cases of a stage: *cases* are those in which they were asked."""

    cases: int
    calls: int
    input: int | None
    output: int | None
    #: Null where the price of a model is not known.
    cost_usd: float | None


class CheckpointSummary(Record):
    """One stage within end-to-end cases: its mean over the *scored* ones of *selected* cases."""

    scored: int
    selected: int
    overall_mean: float | None


class StageSummary(Record):
    """The cases of one stage: ``passed + failed + not_measured == selected``.

    Means are over the *scored* cases, those with a complete panel; null where there is none.
    """

    stage: str
    rubric: str | None
    selected: int
    scored: int
    passed: int
    failed: int
    not_measured: int
    #: Why cases failed whatever their score, or were not measured: cause → number of cases.
    failed_causes: dict[str, int]
    not_measured_causes: dict[str, int]
    overall_mean: float | None
    score_means: dict[str, float]
    #: Mean over the cases of (highest - lowest judge); null with a single judge.
    spread_mean: float | None
    judges: dict[str, JudgeSummary]
    #: Level of evidence → number of cases that stand there, and ``not_examined``; in stages that
    #: are examined.
    evidence: dict[str, int] = Field(default_factory=dict)
    #: Of chains: stage → how many cases got as far, or further, in the order of research.
    reached: dict[str, int] = Field(default_factory=dict)
    #: What stopped the others → number of cases.
    stopped_by: dict[str, int] = Field(default_factory=dict)
    #: Of chains: stage → what it was scored by itself.
    checkpoints: dict[str, CheckpointSummary] = Field(default_factory=dict)
    #: ``agent`` and ``judge`` → what they used, where models were asked.
    spent: dict[str, SpentSummary] = Field(default_factory=dict)


def summarise(selected: Iterable[str], results: Mapping[str, CaseResult]) -> list[StageSummary]:
    """Return one summary per stage, in the order of research.

    :param selected: names of the cases that were to be measured.
    :param results: name → result of those that came to an end.
    """
    by_stage: dict[str, list[CaseResult | None]] = {}
    for name in selected:
        by_stage.setdefault(name.rsplit("/", 3)[1], []).append(results.get(name))
    return [_stage(stage, by_stage[stage]) for stage in STAGES if stage in by_stage]


def _stage(stage: str, cases: Sequence[CaseResult | None]) -> StageSummary:
    results = [result for result in cases if result]
    scored = [result for result in results if result.overall is not None]
    verdicts = Counter(result.verdict for result in results)
    absent = len(cases) - len(results)
    unmeasured = _causes(result for result in results if result.verdict == "not_measured")
    if absent:
        unmeasured[NOT_RUN] = unmeasured.get(NOT_RUN, 0) + absent
    spreads = [result.spread for result in scored if result.spread is not None]
    return StageSummary(
        stage=stage,
        rubric=results[0].rubric if results else None,
        selected=len(cases),
        scored=len(scored),
        passed=verdicts["pass"],
        failed=verdicts["fail"],
        not_measured=verdicts["not_measured"] + absent,
        failed_causes=_causes(result for result in results if result.verdict == "fail"),
        not_measured_causes=unmeasured,
        overall_mean=_mean([result.overall for result in scored if result.overall is not None]),
        score_means={
            name: fmean([result.scores[name] for result in scored])
            for name in (scored[0].scores if scored else ())
        },
        spread_mean=_mean(spreads),
        judges=_judges(results),
        evidence=_evidence(stage, cases),
        reached=_reached(results),
        stopped_by=dict(sorted(Counter(r.stopped_by for r in results if r.stopped_by).items())),
        checkpoints=_checkpoints(cases),
        spent=_spent(results),
    )


def _evidence(stage: str, cases: Sequence[CaseResult | None]) -> dict[str, int]:
    if stage not in EXAMINED:
        return {}
    levels = Counter(
        case.evidence.level if case and case.evidence else NOT_EXAMINED for case in cases
    )
    return {name: levels[name] for name in (*reversed(LEVELS), NOT_EXAMINED) if levels[name]}


def _reached(results: Sequence[CaseResult]) -> dict[str, int]:
    places = [CHAIN.index(r.reached) if r.reached in CHAIN else -1 for r in results if r.reached]
    if not places:
        return {}
    return {stage: sum(place >= n for place in places) for n, stage in enumerate(CHAIN)}


def _checkpoints(cases: Sequence[CaseResult | None]) -> dict[str, CheckpointSummary]:
    found = {}
    for stage in CHAIN[:-1]:
        parts = [case.checkpoints.get(stage) for case in cases if case]
        scores = [part.overall for part in parts if part and part.overall is not None]
        if any(parts):
            found[stage] = CheckpointSummary(
                scored=len(scores), selected=len(cases), overall_mean=_mean(scores)
            )
    return found


def _spent(results: Sequence[CaseResult]) -> dict[str, SpentSummary]:
    found = {}
    for role in ("agent", "judge"):
        parts = [getattr(result, f"spent_{role}") for result in results]
        known = [part for part in parts if part is not None]
        if known:
            total = Spent.total(known)
            found[role] = SpentSummary(
                cases=len(known),
                calls=total.calls,
                input=total.input,
                output=total.output,
                cost_usd=total.cost_usd,
            )
    return found


def _causes(results: Iterable[CaseResult]) -> dict[str, int]:
    counted = Counter(result.cause for result in results if result.cause)
    return dict(sorted(counted.items()))


def _judges(results: Iterable[CaseResult]) -> dict[str, JudgeSummary]:
    scores: dict[str, list[int]] = {}
    for result in results:
        for name, judge in result.judges.items():
            scores.setdefault(name, [])
            if judge.overall is not None:
                scores[name].append(judge.overall)
    return {
        name: JudgeSummary(reviews=len(given), overall_mean=_mean(given))
        for name, given in scores.items()
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return fmean(numbers) if numbers else None
