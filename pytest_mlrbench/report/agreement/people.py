"""How far judges agree with people who rated the same work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pytest_mlrbench.report.agreement import measures
from pytest_mlrbench.report.agreement.intervals import Values
from pytest_mlrbench.report.agreement.judges import judges_of
from pytest_mlrbench.report.agreement.matching import Paper, match
from pytest_mlrbench.report.agreement.measures import Decisions, Figure, RankSum
from pytest_mlrbench.report.agreement.ratings import Rating, Work


@dataclass(frozen=True)
class Comparison:
    """One judge, or the mean of a panel, beside people in one dimension.

    Correlations, bias (judge - people) and decisions take the mean of a paper's ratings. Kappa is
    of single ratings, and null for a panel: its half points are no score that a person may give.
    ``differences`` are those between two people, and those between a person and the judge.
    """

    dimension: str
    papers: int
    ratings: int
    people_mean: float | None
    judge_mean: float | None
    bias: Figure
    kappa: Figure | None
    icc: Figure
    spearman: Figure
    pearson: Figure
    decisions: Decisions
    differences: RankSum


@dataclass(frozen=True)
class Beside:
    """One judge or a panel beside people, by dimension."""

    judges: tuple[str, ...]
    dimensions: tuple[Comparison, ...]


@dataclass(frozen=True)
class System:
    """Overall of one system: the mean of its ratings, and of the panel over its papers."""

    system: str
    ratings: int
    people_mean: float | None
    papers: int
    judges_mean: float | None


@dataclass(frozen=True)
class People:
    """What people gave, and every judge beside them.

    :param among: dimension → Krippendorff's alpha (ordinal) of the reviewers.
    :param faults: what is wrong with the ratings, in sentences. Nothing is left out for it, except
        that pairs of people are taken only from papers that each of them rated once.
    """

    threshold: float
    reviewers: int
    ratings: int
    papers: int
    tasks: int
    paired_papers: int
    among: Mapping[str, Figure]
    beside: tuple[Beside, ...]
    systems: tuple[System, ...]
    faults: tuple[str, ...]


def with_people(works: Sequence[Work], ratings: Sequence[Rating], threshold: float) -> People:
    """Compare the judges of *works* with people, the panel of all judges first.

    :raises InputError: no rating belongs to a work, or one to several.
    """
    papers, faults = match(works, ratings)
    judges = judges_of(paper.work for paper in papers)
    panels = [*([tuple(judges)] if len(judges) > 1 else []), *((judge,) for judge in judges)]
    names = sorted(
        dict.fromkeys(name for rating in ratings for name in rating.scores),
        key=lambda name: name == "overall",
    )
    used = [rating for paper in papers for rating in paper.ratings]
    return People(
        threshold=threshold,
        reviewers=len({rating.reviewer for rating in used}),
        ratings=len(used),
        papers=len(papers),
        tasks=len({paper.work.task for paper in papers}),
        paired_papers=sum(paper.paired for paper in papers),
        among={name: _among(papers, name) for name in names},
        beside=tuple(
            Beside(panel, tuple(_compare(papers, panel, name, threshold) for name in names))
            for panel in panels
        ),
        systems=tuple(_systems(papers, panels[0])),
        faults=tuple(faults),
    )


def _among(papers: Iterable[Paper], dimension: str) -> Figure:
    """Agreement of the people, on papers where it is known who rated what."""
    reviewers: dict[str, dict[str, float]] = {}
    for paper in papers:
        for rating in paper.ratings if paper.paired else ():
            if dimension in rating.scores:
                given = reviewers.setdefault(rating.reviewer, {})
                given[paper.work.name] = rating.scores[dimension]
    return measures.alpha(list(reviewers.values()))


def _compare(
    papers: Sequence[Paper], judges: tuple[str, ...], dimension: str, threshold: float
) -> Comparison:
    both = [
        (paper, given, score)
        for paper in papers
        if (given := _given(paper, dimension)) and (score := paper.score(judges, dimension))
    ]
    people = np.array([np.mean(given) for _, given, _ in both], float)
    judged = np.array([score for *_, score in both], float)
    tasks = [paper.work.task for paper, *_ in both]
    # Each rating beside the judge's score of that paper.
    single = np.array([value for _, given, _ in both for value in given], float)
    repeated = np.array([score for _, given, score in both for _ in given], float)
    pairs = [
        abs(a - b) for paper, given, _ in both if paper.paired for a, b in combinations(given, 2)
    ]
    return Comparison(
        dimension=dimension,
        papers=len(both),
        ratings=len(single),
        people_mean=_mean(single),
        judge_mean=_mean(judged),
        bias=measures.mean_difference(judged, people, tasks),
        kappa=measures.weighted_kappa(single, repeated) if len(judges) == 1 else None,
        icc=measures.icc(people, judged),
        spearman=measures.spearman(people, judged, tasks),
        pearson=measures.pearson(people, judged),
        decisions=measures.decisions(people, judged, threshold),
        differences=measures.rank_sum(pairs, list(abs(single - repeated))),
    )


def _given(paper: Paper, dimension: str) -> list[float]:
    return [r.scores[dimension] for r in paper.ratings if dimension in r.scores]


def _mean(values: Sequence[float] | Values) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _systems(papers: Sequence[Paper], judges: tuple[str, ...]) -> Iterable[System]:
    """Yield the systems in the order in which people have them."""
    found = []
    for name in dict.fromkeys(paper.system for paper in papers):
        those = [paper for paper in papers if paper.system == name]
        given = [value for paper in those for value in _given(paper, "overall")]
        scores = [s for paper in those if (s := paper.score(judges, "overall")) is not None]
        found.append(System(name, len(given), _mean(given), len(scores), _mean(scores)))
    return sorted(found, key=lambda system: -(system.people_mean or 0))
