"""The summary: every number with its denominator, and nothing that vanishes from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from statistics import fmean

import pytest
from builders import NO_OUTPUT, NO_REVIEW, make_result, make_run_record
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.summary import StageSummary, summarise
from pytest_mlrbench.report.terminal import summary_lines
from pytest_mlrbench.run.result import CaseResult, FaultRecord, JudgeRecord
from pytest_mlrbench.suites.stages import STAGES

TIMEOUT = FaultRecord(blame="agent", cause="timeout", message="too slow.")
panels = st.lists(st.integers(1, 10), min_size=2, max_size=2)
#: What went wrong and what two judges gave; null for a case that was not run.
outcomes = st.one_of(
    st.none(),
    st.tuples(st.sampled_from([NO_OUTPUT, TIMEOUT, NO_REVIEW]), st.none()),
    st.tuples(st.sampled_from([None, TIMEOUT]), panels),
)
mixes = st.lists(st.tuples(st.sampled_from(list(STAGES)), outcomes), max_size=25)
Mix = list[tuple[str, tuple[FaultRecord | None, list[int] | None] | None]]


def run_of(mix: Mix) -> tuple[list[str], dict[str, CaseResult]]:
    """The names of the selected cases, and the results of those that have one."""
    selected, results = [], {}
    for number, (stage, outcome) in enumerate(mix):
        task = f"task{number}"
        selected.append(f"small/{stage}/{task}/r1")
        if outcome:
            fault, given = outcome
            judges = dict(zip(("anna", "ben"), given, strict=True)) if given else None
            results[selected[-1]] = make_result(task, stage, judges=judges, fault=fault)
    return selected, results


def summary_of(*results: CaseResult, not_run: int = 0) -> StageSummary:
    by_name = {result.case: result for result in results}
    missing = [f"small/idea/missing{number}/r1" for number in range(not_run)]
    (summary,) = summarise([*by_name, *missing], by_name)
    return summary


@given(mixes)
def test_every_selected_case_is_counted_once(mix: Mix) -> None:
    summaries = summarise(*run_of(mix))
    assert sum(stage.selected for stage in summaries) == len(mix)
    for stage in summaries:
        assert stage.passed + stage.failed + stage.not_measured == stage.selected
        assert stage.scored <= stage.passed + stage.failed


@given(mixes)
def test_every_case_that_did_not_end_well_is_counted_under_its_cause(mix: Mix) -> None:
    for stage in summarise(*run_of(mix)):
        here = [outcome for where, outcome in mix if where == stage.stage]
        causes = Counter(o[0].cause for o in here if o and o[0])
        causes["not_run"] = here.count(None)
        assert Counter(stage.failed_causes) + Counter(stage.not_measured_causes) == +causes
        assert set(stage.failed_causes) <= {"no_output", "timeout"}
        assert set(stage.not_measured_causes) <= {"no_review", "not_run"}
        assert sum(stage.not_measured_causes.values()) == stage.not_measured
        unscored = [o for o in here if o and o[0] in (NO_OUTPUT, TIMEOUT) and not o[1]]
        assert stage.selected - stage.not_measured - stage.scored == len(unscored)


@given(mixes)
def test_means_are_over_the_scored_cases_only(mix: Mix) -> None:
    for stage in summarise(*run_of(mix)):
        pairs = [o[1] for where, o in mix if where == stage.stage and o and o[1]]
        assert stage.scored == len(pairs)
        if not pairs:
            assert (stage.overall_mean, stage.spread_mean, stage.score_means) == (None, None, {})
            continue
        assert stage.overall_mean == pytest.approx(fmean(map(fmean, pairs)))
        assert stage.spread_mean == pytest.approx(fmean(abs(a - b) for a, b in pairs))
        assert set(stage.score_means.values()) == {stage.overall_mean}
        for name, mean in (
            ("anna", fmean(a for a, _ in pairs)),
            ("ben", fmean(b for _, b in pairs)),
        ):
            assert stage.judges[name].reviews == len(pairs)
            assert stage.judges[name].overall_mean == pytest.approx(mean)


@given(mixes)
def test_stages_are_in_the_order_of_research(mix: Mix) -> None:
    found = [stage.stage for stage in summarise(*run_of(mix))]
    assert found == [stage for stage in STAGES if stage in {where for where, _ in mix}]


def test_a_case_that_fails_without_a_score_does_not_lower_the_mean() -> None:
    summary = summary_of(make_result("a"), make_result("b", fault=NO_OUTPUT), not_run=1)
    assert (summary.scored, summary.selected, summary.overall_mean) == (1, 3, 7.0)


def test_nothing_run_is_not_measured() -> None:
    summary = summary_of(not_run=3)
    assert summary.rubric is None
    assert (summary.selected, summary.not_measured) == (3, 3)
    assert summary.not_measured_causes == {"not_run": 3}


def test_a_single_judge_has_no_spread() -> None:
    assert summary_of(make_result("a"), make_result("b")).spread_mean is None


def test_a_judges_reviews_count_where_another_judge_is_missing() -> None:
    judges = {
        "anna": JudgeRecord(spec="stub:anna", overall=3),
        "ben": JudgeRecord(spec="stub:ben", fault=NO_REVIEW),
    }
    half = make_result("half", fault=NO_REVIEW).model_copy(update={"judges": judges})
    summary = summary_of(make_result("full", judges={"anna": 9, "ben": 7}), half)
    assert (summary.scored, summary.overall_mean) == (1, 8.0)
    assert (summary.judges["anna"].reviews, summary.judges["anna"].overall_mean) == (2, 6.0)
    assert (summary.judges["ben"].reviews, summary.judges["ben"].overall_mean) == (1, 7.0)


def test_a_judge_that_never_answered_has_no_mean() -> None:
    judges = {"anna": JudgeRecord(spec="stub:anna", fault=NO_REVIEW)}
    summary = summary_of(make_result(fault=NO_REVIEW).model_copy(update={"judges": judges}))
    assert (summary.judges["anna"].reviews, summary.judges["anna"].overall_mean) == (0, None)


# As text


def test_the_summary_as_text() -> None:
    selected, results = run_of(
        [
            ("idea", (None, [9, 6])),
            ("idea", (None, [4, 5])),
            ("idea", (TIMEOUT, None)),
            ("idea", (TIMEOUT, None)),
            ("idea", (NO_REVIEW, None)),
            ("idea", None),
            ("paper", (NO_REVIEW, None)),
        ]
    )
    assert summary_lines(report_of(selected, results)) == [
        "agent cmd:./agent.sh on suite small: 3 tasks, not part of MLR-Bench",
        "",
        "stage  scored  passed  failed  not measured  overall mean  spread of judges",
        "idea   2/6     1       3       2             6.00          2.00",
        "paper  0/1     0       0       1             -             -",
        "  idea judges' overall means: anna 6.50 (n=2), ben 5.50 (n=2)",
        "  idea failed by how they ended: 2 timeout",
        "  idea not measured: 1 no review, 1 not run",
        "  paper not measured: 1 no review",
        "  `--mlr-resume=run --mlr-rerun=errors` measures what was not measured",
    ]


NO_INPUTS = FaultRecord(blame="system", cause="no_inputs", message="there is no task.md.")


@pytest.mark.parametrize(
    ("spec", "faults", "words"),
    [
        (
            "",
            [NO_INPUTS],
            ["`mlrbench tasks fetch --stage idea` *; then `--mlr-resume='my *"],
        ),
        (
            "path:/ours",
            [NO_INPUTS],
            ["add the inputs *; then `--mlr-resume='my runs/x'` *"],
        ),
        (
            "",
            [NO_INPUTS, NO_REVIEW],
            ["`mlrbench tasks *", "`--mlr-resume='my runs/x' --mlr-rerun=errors` measures *"],
        ),
        ("", [NO_OUTPUT, None], []),
    ],
)
def test_the_remedy_is_one_that_helps_and_names_the_run(
    spec: str, faults: list[FaultRecord | None], words: list[str]
) -> None:
    """To try again does not bring inputs; and the last run need not be this one."""
    results = by_name(*(make_result(f"t{n}", fault=fault) for n, fault in enumerate(faults)))
    report = report_of(results, results)
    suite = report.run.suite.model_copy(update={"spec": spec})
    report = report.model_copy(update={"run": report.run.model_copy(update={"suite": suite})})
    said = [line for line in summary_lines(report, place="my runs/x") if "`" in line]
    assert len(said) == len(words)
    for line, pattern in zip(said, words, strict=True):
        assert fnmatchcase(line, f"  {pattern}"), line


def test_several_cases_are_spoken_of_as_several() -> None:
    results = by_name(*(make_result(f"{n}", rerun_because="it was not measured") for n in range(3)))
    assert summary_lines(report_of(results, results), (), set(results))[-1] == (
        "3 run again since they were not measured"
    )


def test_the_text_tells_what_was_taken_from_an_earlier_session() -> None:
    results = by_name(make_result("a"), make_result("b", rerun_because="the agent changed"))
    lines = summary_lines(report_of(results, results), {"small/idea/a/r1"}, set(results))
    assert lines[-2:] == [
        "1 of the 2 cases of this session were reused",
        "1 run again since the agent changed",
    ]


def test_a_case_run_again_in_an_earlier_session_is_not_told_as_run_again() -> None:
    again = make_result(rerun_because="the agent changed")
    lines = summary_lines(report_of(by_name(again), by_name(again)), {again.case}, {again.case})
    assert lines[-1] == "1 of the 1 cases of this session were reused"


def test_a_case_that_is_not_of_this_session_is_not_told_as_run_again() -> None:
    results = by_name(make_result("a"), make_result("b", rerun_because="the agent changed"))
    lines = summary_lines(report_of(results, results), {"small/idea/a/r1"}, {"small/idea/a/r1"})
    assert lines[-1] == "1 of the 1 cases of this session were reused"


def test_results_of_two_states_of_the_suite_are_told() -> None:
    results = by_name(make_result("a"), make_result("b").model_copy(update={"suite_digest": "x"}))
    lines = summary_lines(report_of(results, results))
    assert any(line.startswith("  MIXED: results of 2 different states of the") for line in lines)


def test_a_stage_in_which_nothing_is_asserted_is_told() -> None:
    results = by_name(make_result("a", thresholds=["paper:clarity>=5"]))
    assert "  idea has no threshold: what was measured has passed" in summary_lines(
        report_of(results, results)
    )


def test_scores_of_the_checklist_are_told_for_what_they_are() -> None:
    results = by_name(make_result("a", rubric="checklist"))
    assert "not how good they are" in summary_lines(report_of(results, results))[-1]


def test_the_text_says_that_a_demonstration_is_one() -> None:
    results = by_name(make_result(agent="reference"))
    demo = make_run_record().model_copy(update={"demo": True, "agent": "reference"})
    report = report_of(results, results).model_copy(update={"run": demo})
    assert "DEMO" in "\n".join(summary_lines(report))
    # A fixture may have put another agent into its place.
    wrapped = by_name(make_result(agent="fixture:conftest:answer"))
    report = report_of(wrapped, wrapped).model_copy(update={"run": demo})
    assert "DEMO" not in "\n".join(summary_lines(report))


def by_name(*results: CaseResult) -> dict[str, CaseResult]:
    return {result.case: result for result in results}


def report_of(selected: Iterable[str], results: Mapping[str, CaseResult]) -> Report:
    return Report(
        run=make_run_record(),
        share="3 tasks, not part of MLR-Bench",
        summary=tuple(summarise(selected, results)),
        cases=tuple(results.values()),
        not_run=(),
    )
