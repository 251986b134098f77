"""The panel: several judges' scores become one, whatever their order."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from builders import make_answer, make_review
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.judges.panel import combine
from pytest_mlrbench.judges.review import Review
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.stages import STAGES

scores = st.integers(1, 10)


def exact_mean(numbers: list[int]) -> float:
    return float(Fraction(sum(numbers), len(numbers)))


@st.composite
def panels(draw: st.DrawFn) -> list[Review]:
    """One to seven complete reviews of one stage."""
    stage = draw(st.sampled_from(list(STAGES)))
    names = rubric(stage).names(stage)
    return [
        make_review(
            stage=stage,
            judge=f"judge{number}",
            answer=make_answer(draw(scores), stage, **{name: draw(scores) for name in names}),
        )
        for number in range(draw(st.integers(1, 7)))
    ]


@given(panels())
def test_every_score_is_the_exact_mean(reviews: list[Review]) -> None:
    panel = combine(reviews)
    assert panel.overall == exact_mean([review.answer.overall.score for review in reviews])
    assert panel.scores == {
        name: exact_mean([review.answer.dimensions[name].score for review in reviews])
        for name in reviews[0].answer.dimensions
    }


@given(panels(), st.randoms(use_true_random=False))
def test_the_order_of_the_judges_does_not_matter(reviews: list[Review], random: Random) -> None:
    shuffled = list(reviews)
    random.shuffle(shuffled)
    assert combine(shuffled) == combine(reviews)


@given(panels())
def test_the_spread_is_highest_minus_lowest_overall(reviews: list[Review]) -> None:
    overall = sorted(review.answer.overall.score for review in reviews)
    expected = overall[-1] - overall[0] if len(reviews) > 1 else None
    assert combine(reviews).spread == expected


@given(panels())
def test_a_panel_is_between_its_judges(reviews: list[Review]) -> None:
    overall = [review.answer.overall.score for review in reviews]
    assert min(overall) <= combine(reviews).overall <= max(overall)


def test_a_single_judge_has_no_spread() -> None:
    panel = combine([make_review(8)])
    assert (panel.overall, panel.spread) == (8.0, None)


def test_judges_that_agree_have_a_spread_of_0() -> None:
    assert combine([make_review(8, judge="anna"), make_review(8, judge="ben")]).spread == 0.0


def test_numbers_are_plain_floats() -> None:
    panel = combine([make_review(8, judge="anna"), make_review(8, judge="ben")])
    assert {type(panel.overall), type(panel.spread), *map(type, panel.scores.values())} == {float}


def test_the_overall_score_is_not_the_mean_of_the_dimensions() -> None:
    assert combine([make_review(answer=make_answer(2, clarity=9, novelty=9))]).overall == 2.0


def test_reviews_by_different_rubrics_are_not_averaged() -> None:
    with pytest.raises(ValueError, match="one rubric"):
        combine([make_review(8), make_review(8, judge="ben", rubric_digest="another")])


def test_a_panel_of_nobody_has_no_score() -> None:
    with pytest.raises(ValueError, match="one or more reviews"):
        combine([])
