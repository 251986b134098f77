"""The summary as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pytest_mlrbench.report.summary import StageSummary
from pytest_mlrbench.report.table import cause_words
from pytest_mlrbench.run.record import RunRecord
from pytest_mlrbench.run.result import CaseResult

_HEAD = ("stage", "scored", "passed", "failed", "not measured", "overall mean", "spread of judges")


def summary_lines(
    run: RunRecord,
    stages: Sequence[StageSummary],
    results: Mapping[str, CaseResult],
    resumed: Collection[str] = (),
) -> list[str]:
    """Return the lines of the summary: what was measured, of how much, and what was not.

    :param resumed: names of the cases whose results were on disk before the session.
    """
    agents = sorted({result.agent for result in results.values()}) or [run.agent]
    lines = [
        f"agent {', '.join(agents)} on suite {run.suite.name}: {run.suite.share}"
        + (f", {run.repeats} repeats" if run.repeats > 1 else ""),
        "",
        *_table(stages),
    ]
    for stage in stages:
        lines += _details(stage)
    again = Counter(
        result.rerun_because
        for name, result in results.items()
        if result.rerun_because and name not in resumed
    )
    if resumed or again:
        selected = sum(stage.selected for stage in stages)
        lines += ["", f"{len(resumed)} of {selected} cases were on disk already"]
        lines += [f"{number} run again since {reason}" for reason, number in sorted(again.items())]
    if run.demo:
        lines += [
            "",
            "DEMO: the bundled agent, scored by a checklist: no result on MLR-Bench.",
            "Name your own with --mlr-agent, --mlr-judge and --mlr-suite.",
        ]
    return lines


def _table(stages: Sequence[StageSummary]) -> list[str]:
    rows = [_HEAD, *(_row(stage) for stage in stages)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _row(stage: StageSummary) -> tuple[str, ...]:
    return (
        stage.stage,
        f"{stage.scored}/{stage.selected}",
        str(stage.passed),
        str(stage.failed),
        str(stage.not_measured),
        _number(stage.overall_mean),
        _number(stage.spread_mean),
    )


def _details(stage: StageSummary) -> list[str]:
    lines = []
    if len(stage.judges) > 1:
        means = ", ".join(
            f"{name} {_number(judge.overall_mean)} (n={judge.reviews})"
            for name, judge in stage.judges.items()
        )
        lines.append(f"  {stage.stage} judges' overall means: {means}")
    for what, causes in (
        ("failed without a score", stage.failed_causes),
        ("not measured", stage.not_measured_causes),
    ):
        if causes:
            counted = ", ".join(
                f"{number} {cause_words(cause)}" for cause, number in causes.items()
            )
            lines.append(f"  {stage.stage} {what}: {counted}")
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
