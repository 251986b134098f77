"""Verdicts: passed, failed or not measured, and how properties and words tell it."""

from __future__ import annotations

import math
import re
from itertools import product

import pytest
from builders import NO_OUTPUT, NO_REVIEW, make_result
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.report.properties import properties
from pytest_mlrbench.report.table import explain, status, verdict_line
from pytest_mlrbench.run.result import CaseResult, FaultRecord, JudgeRecord
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.verdict import CaseFailed, assert_passed

#: What a property may be called, from the contract.
CONTRACT = re.compile(
    r"mlr\.(case|suite|stage|task|repeat|suite_digest|agent|agent_digest|rubric|verdict|blame|cause"
    r"|overall|score\.[a-z0-9_]+|judge\.[a-z0-9_-]+\.(spec|overall|[a-z0-9_]+)|judges\.spread"
    r"|threshold|seconds\.(agent|judge)|resumed|artifacts)"
)
faults = st.none() | st.builds(
    FaultRecord,
    blame=st.sampled_from(["agent", "system"]),
    cause=st.sampled_from(["timeout", "no_review"]),
    message=st.text(),
)
results = st.builds(
    make_result,
    task=st.sampled_from(["alpha", "beta"]),
    stage=st.sampled_from(list(STAGES)),
    repeat=st.integers(1, 3),
    judges=st.dictionaries(st.sampled_from(["anna", "ben-2"]), st.integers(1, 10), min_size=1),
    fault=faults,
    agent_digest=st.none() | st.just("agent"),
    seconds_agent=st.none() | st.floats(0, 1e6),
)


def judged(result: CaseResult, *thresholds: str) -> str:
    names = rubric(result.stage).names(result.stage)
    return result.judged_by([Threshold.parse(text) for text in thresholds], names).verdict


def found(result: CaseResult) -> dict[str, str | int | float | bool]:
    return dict(properties(result, resumed=False, artifacts="run/cases/idea/alpha/r1"))


# The verdict


@pytest.mark.parametrize(
    ("score", "thresholds", "verdict"),
    [
        (6, ["overall>=6"], "pass"),
        (5, ["overall>=6"], "fail"),
        (7, ["overall>=6", "clarity>7"], "fail"),
        (7, ["overall>=6", "clarity>=7", "novelty<8"], "pass"),
        (2, ["experiment:overall>=6"], "pass"),
        (2, [], "pass"),
    ],
)
def test_a_case_passes_if_every_threshold_of_its_stage_is_met(
    score: int, thresholds: list[str], verdict: str
) -> None:
    assert judged(make_result(judges={"anna": score}), *thresholds) == verdict


@pytest.mark.parametrize("thresholds", [["overall>=6"], []])
def test_a_fault_decides_before_any_threshold(thresholds: list[str]) -> None:
    assert judged(make_result(fault=NO_OUTPUT), *thresholds) == "fail"
    assert judged(make_result(fault=NO_REVIEW), *thresholds) == "not_measured"


def test_a_threshold_on_a_score_that_does_not_exist_is_not_measured() -> None:
    result = make_result().model_copy(update={"overall": None})
    assert judged(result, "overall>=6") == "not_measured"
    assert judged(result, "overall>=6", "clarity>=6") == "not_measured"


def test_a_missed_threshold_fails_whatever_the_unmeasured_score_would_be() -> None:
    result = make_result().model_copy(update={"overall": None})
    assert judged(result, "overall>=6", "clarity>=8") == "fail"


def test_what_is_not_measured_is_neither_met_nor_missed() -> None:
    result = make_result(fault=NO_REVIEW, thresholds=["overall>=6", "clarity>=6"])
    assert [(check.score, check.met) for check in result.thresholds] == [(None, None)] * 2
    assert result.missed == ()


def test_the_missed_thresholds_are_named() -> None:
    result = make_result(thresholds=["overall>=6", "clarity>=8", "novelty<7", "paper:clarity>=9"])
    assert result.missed == ("clarity>=8.0", "novelty<7.0")
    assert [check.threshold for check in result.thresholds] == [
        "overall>=6.0",
        "clarity>=8.0",
        "novelty<7.0",
    ]


@given(results, st.floats(1, 10))
def test_a_verdict_can_be_taken_again_with_other_thresholds(
    result: CaseResult, line: float
) -> None:
    again = result.judged_by([Threshold("", "overall", ">=", line)], ())
    if result.fault:
        assert again.verdict == result.verdict
    else:
        assert result.overall is not None
        assert again.verdict == ("pass" if result.overall >= line else "fail")
    assert again.model_copy(update={"thresholds": (), "verdict": "pass"}) == result.model_copy(
        update={"thresholds": (), "verdict": "pass"}
    )


@given(results)
def test_a_result_is_read_back_the_same(result: CaseResult) -> None:
    assert CaseResult.model_validate_json(result.model_dump_json()) == result


def test_only_a_pass_passes_the_assertion() -> None:
    assert_passed(make_result())
    for result in (make_result(judges={"anna": 2}), make_result(fault=NO_OUTPUT)):
        with pytest.raises(CaseFailed):
            assert_passed(result)


# Properties


def test_the_properties_of_a_measured_case() -> None:
    result = make_result(
        stage="end_to_end",
        repeat=2,
        judges={"anna": 8, "ben": 5},
        thresholds=["overall>=6", "clarity>=7"],
        seconds_agent=12.34567,
    )
    judge = {
        name: record.model_copy(update={"confidence": 4}) for name, record in result.judges.items()
    }
    assert properties(result.model_copy(update={"judges": judge}), resumed=True, artifacts="x") == [
        ("mlr.case", "small/end_to_end/alpha/r2"),
        ("mlr.suite", "small"),
        ("mlr.stage", "end_to_end"),
        ("mlr.task", "alpha"),
        ("mlr.repeat", 2),
        ("mlr.suite_digest", "suite"),
        ("mlr.agent", "cmd:./agent.sh"),
        ("mlr.agent_digest", "agent"),
        ("mlr.rubric", "end_to_end"),
        ("mlr.verdict", "fail"),
        ("mlr.overall", 6.5),
        ("mlr.score.clarity", 6.5),
        ("mlr.score.novelty", 6.5),
        ("mlr.score.soundness", 6.5),
        ("mlr.score.significance", 6.5),
        ("mlr.judge.anna.spec", "stub:anna"),
        ("mlr.judge.anna.overall", 8),
        ("mlr.judge.anna.clarity", 8),
        ("mlr.judge.anna.novelty", 8),
        ("mlr.judge.anna.soundness", 8),
        ("mlr.judge.anna.significance", 8),
        ("mlr.judge.anna.confidence", 4),
        ("mlr.judge.ben.spec", "stub:ben"),
        ("mlr.judge.ben.overall", 5),
        ("mlr.judge.ben.clarity", 5),
        ("mlr.judge.ben.novelty", 5),
        ("mlr.judge.ben.soundness", 5),
        ("mlr.judge.ben.significance", 5),
        ("mlr.judge.ben.confidence", 4),
        ("mlr.judges.spread", 3.0),
        ("mlr.threshold", "overall>=6.0; clarity>=7.0"),
        ("mlr.seconds.agent", 12.346),
        ("mlr.seconds.judge", 0.5),
        ("mlr.resumed", True),
        ("mlr.artifacts", "x"),
    ]


@pytest.mark.parametrize("fault", [NO_OUTPUT, NO_REVIEW], ids=["agent", "system"])
def test_a_case_without_a_score_has_no_number_for_it(fault: FaultRecord) -> None:
    names = found(make_result(fault=fault))
    assert not [name for name in names if "overall" in name or "score" in name or "spread" in name]
    assert (names["mlr.blame"], names["mlr.cause"]) == (fault.blame, fault.cause)


def test_a_judge_without_an_answer_is_named_without_a_score() -> None:
    judges = {
        "anna": JudgeRecord(spec="stub:anna", overall=8, scores={"clarity": 8}),
        "ben": JudgeRecord(spec="stub:ben", fault=NO_REVIEW),
    }
    names = found(make_result(fault=NO_REVIEW).model_copy(update={"judges": judges}))
    assert names["mlr.judge.anna.overall"] == 8
    assert [name for name in names if name.startswith("mlr.judge.ben.")] == ["mlr.judge.ben.spec"]
    assert "mlr.overall" not in names


@given(results, st.booleans())
def test_properties_are_plain_values_with_names_of_the_contract(
    result: CaseResult, resumed: bool
) -> None:
    given = properties(result, resumed=resumed, artifacts="run/case")
    for name, value in given:
        assert CONTRACT.fullmatch(name)
        assert type(name) is str
        assert type(value) in {str, int, float, bool}
        assert not (isinstance(value, float) and math.isnan(value))
    assert len({name for name, _ in given}) == len(given)


@given(results)
def test_the_parts_of_a_case_add_up_to_its_name(result: CaseResult) -> None:
    p = found(result)
    parts = f"{p['mlr.suite']}/{p['mlr.stage']}/{p['mlr.task']}/r{p['mlr.repeat']}"
    assert p["mlr.case"] == parts


# Words


@pytest.mark.parametrize(
    ("verdict", "overall", "cause", "words"),
    [
        ("pass", 6.5, None, "6.5/10"),
        ("pass", 10.0, None, "10.0/10"),
        ("fail", 4.25, None, "4.25/10"),
        ("fail", None, "no_output", "no output"),
        ("fail", None, "timeout", "timeout"),
        ("fail", None, None, "no score"),
        ("not_measured", None, "no_review", "not measured (no review)"),
        ("not_measured", None, None, "not measured (unknown)"),
    ],
)
def test_the_status_in_words(
    verdict: str, overall: float | None, cause: str | None, words: str
) -> None:
    assert status(verdict, overall, cause) == words


def test_a_missed_score_is_never_shown_as_the_line_it_missed() -> None:
    """Three judges can give 5.67: `5.7/10, missed overall>=5.7` would explain nothing."""
    result = make_result(judges={"anna": 6, "ben": 6, "cleo": 5}, thresholds=["overall>=5.7"])
    assert result.verdict == "fail"
    assert not verdict_line(result).startswith("5.7/10")


def test_the_verdict_comes_first_then_the_scores_then_the_place() -> None:
    result = make_result(judges={"anna": 8, "ben": 3}, thresholds=["overall>=6", "clarity<=5"])
    assert explain(result, "runs/x/cases/idea/alpha/r1").splitlines() == [
        "5.5/10, missed overall>=6.0, clarity<=5.0",
        "",
        "              anna  ben  mean",
        "consistency      8    3   5.5",
        "clarity          8    3   5.5  < missed clarity<=5.0",
        "novelty          8    3   5.5",
        "feasibility      8    3   5.5",
        "significance     8    3   5.5",
        "overall          8    3   5.5  < missed overall>=6.0",
        "anna = stub:anna",
        "ben = stub:ben",
        "see runs/x/cases/idea/alpha/r1",
    ]


def test_rows_that_are_not_missed_carry_no_mark() -> None:
    text = explain(make_result(thresholds=["overall>=6", "novelty>=8"]), "here")
    marked = [line.split()[0] for line in text.splitlines() if "< missed" in line]
    assert marked == ["novelty"]


def test_a_score_missed_twice_is_marked_with_both() -> None:
    text = explain(make_result(thresholds=["overall>=8", "overall>=9"]), "here")
    row = next(line for line in text.splitlines() if line.startswith("overall "))
    assert "overall>=8.0" in row
    assert "overall>=9.0" in row


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (NO_OUTPUT, "no output: the agent left no idea.md."),
        (NO_REVIEW, "not measured (no review): judge anna: no review."),
    ],
    ids=["agent", "system"],
)
def test_a_fault_is_told_in_its_own_words_without_a_table(fault: FaultRecord, line: str) -> None:
    assert explain(make_result(fault=fault), "here").splitlines() == [line, "see here"]


def test_every_explanation_begins_with_the_verdict() -> None:
    for judges, fault in product([{"anna": 2}, {"anna": 2, "b": 3}], [None, NO_OUTPUT, NO_REVIEW]):
        result = make_result(judges=judges, fault=fault)
        assert explain(result, "here").splitlines()[0] == verdict_line(result)
