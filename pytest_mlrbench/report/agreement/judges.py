"""How far judges agree among themselves, and whether they tell works apart at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pytest_mlrbench.report.agreement import measures
from pytest_mlrbench.report.agreement.measures import Figure
from pytest_mlrbench.report.agreement.ratings import Work
from pytest_mlrbench.suites.stages import STAGES

#: The top two points of the scale: what is given more cannot be seen there.
CEILING = 9
#: A judge that gives one score to this share of at least so many works tells little apart.
_SAME_SHARE, _SAME_LEAST = 0.8, 10
_ORDER = {stage: place for place, stage in enumerate(STAGES)}


@dataclass(frozen=True)
class Judge:
    """What one judge gives in one dimension: to ``usual`` of ``n`` works it gives ``usual_score``.

    ``ceiling`` counts the scores of :data:`CEILING` and more.
    """

    judge: str
    n: int
    mean: float
    usual_score: int
    usual: int
    ceiling: int

    @property
    def discriminates(self) -> bool:
        """Whether it has more than one score for nearly everything; yes if that is unknown."""
        return self.n < _SAME_LEAST or self.usual < _SAME_SHARE * self.n


@dataclass(frozen=True)
class Pair:
    """Two judges on the ``n`` works that both have scored; ``same`` of them got equal scores."""

    judges: tuple[str, str]
    n: int
    same: int
    difference: Figure
    kappa: Figure
    spearman: Figure


@dataclass(frozen=True)
class Dimension:
    """All judges in one dimension of one group of works; alpha is Krippendorff's, ordinal."""

    group: str
    dimension: str
    works: int
    alpha: Figure
    judges: tuple[Judge, ...]
    pairs: tuple[Pair, ...]


def among(works: Sequence[Work]) -> list[Dimension]:
    """Compare the judges of *works*, by what was measured and by dimension, in a fixed order."""
    groups: dict[tuple[int, str], list[Work]] = {}
    for work in sorted(works, key=lambda work: work.name):
        groups.setdefault((_ORDER.get(work.stage, len(_ORDER)), work.group), []).append(work)
    return [
        _dimension(group, dimension, inside)
        for (_, group), inside in sorted(groups.items())
        for dimension in dimensions(inside)
    ]


def dimensions(works: Iterable[Work]) -> list[str]:
    """Return what the works are scored in, overall last."""
    found = dict.fromkeys(
        name for work in works for scores in work.scores.values() for name in scores
    )
    return sorted(found, key=lambda name: name == "overall")


def judges_of(works: Iterable[Work]) -> list[str]:
    """Return the judges that have scored anything."""
    return sorted({judge for work in works for judge in work.scores})


def _dimension(group: str, dimension: str, works: Sequence[Work]) -> Dimension:
    given = {
        judge: {
            work.name: work.scores[judge][dimension]
            for work in works
            if dimension in work.scores.get(judge, {})
        }
        for judge in judges_of(works)
    }
    given = {judge: scores for judge, scores in given.items() if scores}
    tasks = {work.name: work.task for work in works}
    return Dimension(
        group,
        dimension,
        len(works),
        measures.alpha(list(given.values())),
        tuple(_judge(judge, list(scores.values())) for judge, scores in given.items()),
        tuple(_pair(a, b, given[a], given[b], tasks) for a, b in combinations(given, 2)),
    )


def _judge(name: str, scores: Sequence[int]) -> Judge:
    (usual_score, usual), *_ = sorted(Counter(scores).items(), key=lambda item: (-item[1], item))
    ceiling = sum(score >= CEILING for score in scores)
    return Judge(name, len(scores), float(np.mean(scores)), usual_score, usual, ceiling)


def _pair(a: str, b: str, of_a: dict[str, int], of_b: dict[str, int], by: dict[str, str]) -> Pair:
    both = [name for name in of_a if name in of_b]
    first = np.array([of_a[name] for name in both], float)
    second = np.array([of_b[name] for name in both], float)
    tasks = [by[name] for name in both]
    return Pair(
        (a, b),
        len(both),
        int(np.sum(first == second)),
        measures.mean_difference(first, second, tasks),
        measures.weighted_kappa(first, second),
        measures.spearman(first, second, tasks),
    )
