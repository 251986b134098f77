"""The summary as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from pytest_mlrbench.judges.kinship import warning
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.summary import StageSummary
from pytest_mlrbench.report.table import cause_words, columns
from pytest_mlrbench.spent import usd

#: Name of the rubric whose scores say nothing about quality.
CHECKLIST = "checklist"
#: Cause of a case of which a replayed call was not recorded: to try again does not help.
NO_RECORDING = "no_recording"
_HEAD = ("stage", "scored", "passed", "failed", "not measured", "overall mean", "spread of judges")


def summary_lines(
    report: Report, reused: Collection[str] = (), session: Collection[str] | None = None
) -> list[str]:
    """Return the lines of the summary: what was measured, of how much, and what was not.

    :param reused: names of the cases whose results were on disk before the session.
    :param session: names of the cases of the session, where it is one of several of the run.
    """
    run, stages = report.run, report.summary
    agents = sorted({result.agent for result in report.cases}) or [run.agent]
    repeats = f", {run.repeats} repeats" if run.repeats > 1 else ""
    lines = [
        f"agent {', '.join(agents)} on suite {run.suite.name}: {report.share}{repeats}",
        "",
        *columns([_HEAD, *map(_row, stages)]),
    ]
    for stage in stages:
        lines += _details(stage)
    lines += [
        f"  {stage.stage} has no threshold: what was measured has passed"
        for stage in stages
        if not any(r.thresholds for r in report.cases if r.stage == stage.stage) and stage.scored
    ]
    lines += [f"  {warning(name, related)}" for name, related in run.kin.items()]
    causes = {result.fault.cause for result in report.cases if result.fault}
    if any(stage.not_measured_causes.keys() & causes - {NO_RECORDING} for stage in stages):
        lines.append("  `--mlr-resume --mlr-rerun=errors` measures what was not measured")
    panels = {result.key["judges"] for result in report.cases if "judges" in result.key}
    if len(panels) > 1:
        lines.append(
            f"  MIXED: scores by {len(panels)} different panels; resume all cases to have one"
        )
    if len(agents) > 1:
        lines.append(f"  MIXED: cases of {len(agents)} agents; resume with one of them to have one")
    if len(states := {result.suite_digest for result in report.cases}) > 1:
        lines.append(
            f"  MIXED: results of {len(states)} different states of the suite; resume all cases, or"
            " start a new run, to have one"
        )
    if session is not None:
        lines += ["", f"{len(reused)} of the {len(session)} cases of this session were reused"]
        again = Counter(
            result.rerun_because
            for result in report.cases
            if result.rerun_because and result.case in session and result.case not in reused
        )
        lines += [f"{number} run again since {reason}" for reason, number in sorted(again.items())]
    if run.demo and agents == [run.agent]:
        lines += [
            "",
            "DEMO: the bundled agent, scored by a checklist: no result on MLR-Bench.",
            "Name your own with --mlr-agent, --mlr-judge and --mlr-suite.",
        ]
    elif any(stage.rubric == CHECKLIST for stage in stages):
        lines += [
            "",
            "The checklist says which parts of the work are there, not how good they are.",
        ]
    return lines


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
    for role, used in stage.spent.items():
        tokens = " and ".join(
            f"{'unknown' if number is None else f'{number:,}'} tokens {way}"
            for way, number in (("in", used.input), ("out", used.output))
        )
        cost = "price unknown" if used.cost_usd is None else usd(used.cost_usd)
        lines.append(
            f"  {stage.stage} models of the {role}: {used.calls} calls in {used.cases} cases,"
            f" {tokens}, {cost}"
        )
    for what, causes in (
        ("failed by how they ended", stage.failed_causes),
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
