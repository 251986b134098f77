"""Thresholds: the grammar, what it refuses, and where a threshold applies."""

from __future__ import annotations

import pytest
from builders import one_sentence
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.run.thresholds import DEFAULT, Threshold, check_names
from pytest_mlrbench.suites.rubrics import HIGHEST, LOWEST, rubric, stage_rubrics
from pytest_mlrbench.suites.stages import STAGES

OPERATORS = (">=", ">", "<=", "<", "==")
thresholds = st.builds(
    Threshold,
    stage=st.sampled_from(["", *STAGES]),
    name=st.from_regex(r"[a-z][a-z0-9_.]{0,12}", fullmatch=True).filter(lambda n: n != "evidence"),
    op=st.sampled_from(OPERATORS),
    value=st.floats(LOWEST, HIGHEST),
)
spaces = st.text(" \t", max_size=2)


def check(text: str, *selected: str) -> None:
    check_names([Threshold.parse(text)], stage_rubrics(), selected)


def applies(text: str, stage: str) -> bool:
    return Threshold.parse(text).applies(stage, stage_rubrics()[stage].names(stage))


# The grammar


@given(thresholds)
def test_a_threshold_is_read_back_from_its_text(threshold: Threshold) -> None:
    assert Threshold.parse(str(threshold)) == threshold


@given(thresholds, st.lists(spaces, min_size=6, max_size=6))
def test_spaces_between_the_parts_do_not_matter(threshold: Threshold, gaps: list[str]) -> None:
    parts = [threshold.name, threshold.op, repr(threshold.value)]
    if threshold.stage:
        parts = [threshold.stage, ":", *parts]
    spaced = "".join(gap + part for gap, part in zip(gaps, [*parts, ""], strict=False))
    assert Threshold.parse(spaced) == threshold


def test_a_stage_qualifies_a_name() -> None:
    parsed = Threshold.parse("experiment:soundness>=5")
    assert parsed == Threshold("experiment", "soundness", ">=", 5.0)


def test_the_default_is_the_line_of_the_paper() -> None:
    assert Threshold.parse(DEFAULT) == Threshold("", "overall", ">=", 6.0)


@pytest.mark.parametrize(
    ("op", "below", "at", "above"),
    [
        (">=", False, True, True),
        (">", False, False, True),
        ("<=", True, True, False),
        ("<", True, False, False),
        ("==", False, True, False),
    ],
)
def test_each_operator(op: str, below: bool, at: bool, above: bool) -> None:
    threshold = Threshold.parse(f"overall{op}6.5")
    assert [threshold.met(score) for score in (6.0, 6.5, 7.0)] == [below, at, above]


# What it refuses


@pytest.mark.parametrize(
    "text",
    [
        "",
        "overall",
        "overall>=",
        ">=6",
        "overall=>6",
        "overall=6",
        "overall!=6",
        "overall >= six",
        "overall>=-1",
        "overall>=6,5",
        "overall>=6.",
        "overall>=1e1",
        "overall>=nan",
        "overall>=٦",
        "Overall>=6",
        "over all>=6",
        "overall>=6 clarity>=6",
        "idea::overall>=6",
        ":overall>=6",
        "6<=overall",
    ],
)
def test_what_is_no_threshold_is_told_the_form(text: str) -> None:
    with one_sentence(repr(text), "[stage:]NAME OP NUMBER", DEFAULT):
        Threshold.parse(text)


def test_an_unknown_stage_is_told_the_stages() -> None:
    with one_sentence("'experiments'", "end_to_end"):
        Threshold.parse("experiments:overall>=6")


@pytest.mark.parametrize("value", ["0", "0.99", "10.5", "11", "60", "9" * 400])
def test_a_value_no_score_can_have_is_refused(value: str) -> None:
    with one_sentence("from 1 to 10"):
        Threshold.parse(f"overall>={value}")


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("evidence>=3", 3, "evidence>=traced"),
        ("experiment:evidence >= executed", 2, "experiment:evidence>=executed"),
        ("evidence==none", 0, "evidence==none"),
    ],
)
def test_evidence_is_compared_by_its_level(text: str, value: int, shown: str) -> None:
    found = Threshold.parse(text)
    assert (found.value, str(found)) == (value, shown)
    assert Threshold.parse(shown) == found
    assert found.applies("experiment", ())
    assert not found.applies("idea", ())


def test_a_name_that_is_scored_nowhere_is_told_those_that_are() -> None:
    with one_sentence("'brilliance'", "idea, paper", "overall, consistency, clarity", "soundness"):
        check("brilliance>=6", "idea", "paper")


def test_a_name_of_another_stage_only_is_refused() -> None:
    with one_sentence("'insightfulness'", "not scored in idea"):
        check("insightfulness>=6", "idea")


def test_a_qualified_name_must_be_scored_in_that_stage() -> None:
    with one_sentence("'feasibility'", "not scored in paper"):
        check("paper:feasibility>=6", "idea", "paper")


def test_a_name_of_another_judges_rubric_says_so() -> None:
    with one_sentence(
        "'baseline' is not scored in experiment by the rubric experiment; scored there: overall,",
        " (baseline belongs to the rubric of --mlr-judge=checklist).",
    ):
        check("experiment:baseline>=5", "idea")
    with one_sentence("is not scored in idea, paper by the rubrics idea, paper;"):
        check("brilliance>=6", "idea", "paper")


def test_the_checklist_says_which_rubric_has_a_name() -> None:
    checklist = dict.fromkeys(STAGES, rubric("checklist"))
    with one_sentence(
        "'soundness' is not scored in experiment by the rubric checklist;",
        " (soundness belongs to the rubric experiment, which the checklist does not use).",
    ):
        check_names([Threshold.parse("experiment:soundness>=5")], checklist, ["experiment"])


@pytest.mark.parametrize("name", ["confidence", "hallucination"])
def test_what_is_asked_beside_the_scores_is_no_threshold(name: str) -> None:
    with one_sentence(f"{name!r} is not scored"):
        check(f"{name}>=4", *STAGES)


# Where it applies


def test_an_unqualified_name_needs_one_of_the_stages_only() -> None:
    check("insightfulness>=6", "idea", "experiment")


def test_overall_is_scored_in_every_stage() -> None:
    for stage in STAGES:
        check("overall>=6", stage)
        assert applies("overall>=6", stage)


def test_a_qualified_threshold_for_a_stage_not_selected_is_kept_for_later() -> None:
    check("experiment:soundness>=5", "idea")
    assert not applies("experiment:soundness>=5", "idea")


def test_a_qualified_threshold_applies_in_its_stage_only() -> None:
    where = [stage for stage in STAGES if applies("paper:clarity>=6", stage)]
    assert where == ["paper"]


def test_an_unqualified_threshold_applies_wherever_the_name_is_scored() -> None:
    where = [stage for stage in STAGES if applies("soundness>=6", stage)]
    assert where == ["proposal", "experiment", "paper", "end_to_end"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["overall", "clarity", "insightfulness", "brilliance"])
def test_a_threshold_is_accepted_exactly_if_it_applies(stage: str, name: str) -> None:
    if applies(f"{name}>=6", stage):
        check(f"{name}>=6", stage)
    else:
        with one_sentence(repr(name)):
            check(f"{name}>=6", stage)
