"""The panel: several judges' reviews become one score, or the case is not measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from pytest_mlrbench.judges.review import Review
from pytest_mlrbench.values import Value


class PanelScore(Value):
    """Plain means over the judges, and how far apart the judges were."""

    overall: float
    scores: dict[str, float]
    #: Highest minus lowest overall score; null with a single judge.
    spread: float | None


def combine(reviews: Sequence[Review]) -> PanelScore:
    """Average complete reviews of one rubric.

    The result does not depend on the order of the judges: :func:`statistics.mean` is exact.

    :raises ValueError: no review, or reviews of different rubrics.
    """
    if len({review.rubric_digest for review in reviews}) != 1:
        raise ValueError("a panel averages one or more reviews of one rubric")
    overall = [review.answer.overall.score for review in reviews]
    return PanelScore(
        overall=float(mean(overall)),
        scores={
            name: float(mean([review.answer.dimensions[name].score for review in reviews]))
            for name in reviews[0].answer.dimensions
        },
        spread=float(max(overall) - min(overall)) if len(reviews) > 1 else None,
    )
