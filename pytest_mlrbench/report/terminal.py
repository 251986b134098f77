"""The summary as text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator

from pytest_mlrbench.judges.kinship import warning
from pytest_mlrbench.report.chains import beside, funnel
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.summary import NOT_EXAMINED, StageSummary
from pytest_mlrbench.report.table import cause_words, columns
from pytest_mlrbench.spent import usd

#: Name of the rubric whose scores say nothing about quality.
CHECKLIST = "checklist"
#: Causes of a case that to try again does not help: of what it is to go on from, something is not
#: here. A recording will not come; inputs may.
NO_RECORDING, NO_INPUTS = "no_recording", "no_inputs"
#: Why a case was run again, in the words for several.
_THEY = {
    "it was not measured": "they were not measured",
    "it failed": "they failed",
    "its record cannot be read": "their records cannot be read",
}
_HEAD = ("stage", "scored", "passed", "failed", "not measured", "overall mean", "spread of judges")


def summary_lines(
    report: Report,
    reused: Collection[str] = (),
    session: Collection[str] | None = None,
    place: str = "",
) -> list[str]:
    """Return the lines of the summary: what was measured, of how much, and what was not.

    :param reused: names of the cases whose results were on disk before the session.
    :param session: names of the cases of the session, where it is one of several of the run.
    :param place: how the user names the run folder; by default by its id.
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
    if both := beside(stages):
        lines += ["", *both, ""]
    lines += [
        f"  {stage.stage} has no threshold: what was measured has passed"
        for stage in stages
        if not any(r.thresholds for r in report.cases if r.stage == stage.stage) and stage.scored
    ]
    lines += [f"  {warning(name, related)}" for name, related in run.kin.items()]
    lines += _remedies(report, shlex.quote(place or run.run))
    lines += _mixed(report, agents)
    if session is not None:
        lines += ["", *_of_session(report, reused, session)]
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


def _mixed(report: Report, agents: Collection[str]) -> list[str]:
    """Say that the cases are not of one panel, agent or state of the suite, where that is so."""
    panels = {result.key["judges"] for result in report.cases if "judges" in result.key}
    states = {result.suite_digest for result in report.cases}
    said = {
        f"scores by {len(panels)} different panels; resume all cases to have one": panels,
        f"cases of {len(agents)} agents; resume with one of them to have one": agents,
        f"results of {len(states)} different states of the suite; resume all cases, or start a new"
        " run, to have one": states,
    }
    return [f"  MIXED: {what}" for what, found in said.items() if len(found) > 1]


def _of_session(report: Report, reused: Collection[str], session: Collection[str]) -> Iterator[str]:
    """Say which cases of a session were reused, and why others were not."""
    yield f"{len(reused)} of the {len(session)} cases of this session were reused"
    again = Counter(
        result.rerun_because
        for result in report.cases
        if result.rerun_because and result.case in session and result.case not in reused
    )
    for why, number in sorted(again.items()):
        yield f"{number} run again since {_THEY.get(why, why) if number > 1 else why}"


def _remedies(report: Report, run: str) -> list[str]:
    """Return what is to be typed, with the run it is about, for cases to be measured that are not.

    Those that were not begun need no more than the command that was given.
    """
    causes = {result.fault.cause for result in report.cases if result.fault}
    unmeasured = {s.stage: s.not_measured_causes.keys() & causes for s in report.summary}
    lines = []
    if lacking := [stage for stage, found in unmeasured.items() if NO_INPUTS in found]:
        get = f"`mlrbench tasks fetch --stage {','.join(lacking)}` gets inputs that are published"
        if report.run.suite.spec:  # a folder of the user's own
            get = "add the inputs that are missing"
        lines.append(f"  {get}; then `--mlr-resume={run}` measures the cases that lack them")
    if set().union(*unmeasured.values()) - {NO_RECORDING, NO_INPUTS}:
        lines.append(f"  `--mlr-resume={run} --mlr-rerun=errors` measures what was not measured")
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
    if stage.evidence.keys() - {NOT_EXAMINED}:
        levels = ", ".join(f"{n} {cause_words(level)}" for level, n in stage.evidence.items())
        lines.append(f"  {stage.stage} evidence, of {stage.selected} cases: {levels}")
    lines += funnel(stage)
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
