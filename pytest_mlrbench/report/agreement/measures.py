"""Measures of agreement between two lists of scores, or of several raters.

Each gives a :class:`Figure`: a number and the n it stands on, or no number and why. A list in which
nothing varies agrees with nothing, which is not an agreement of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import krippendorff
import numpy as np
from scipy.stats import mannwhitneyu

from pytest_mlrbench.report.agreement.intervals import (
    Interval,
    Values,
    of_share,
    over_tasks,
    whole,
)

#: Pairs that a correlation needs to mean anything at all.
LEAST = 3


@dataclass(frozen=True)
class Figure:
    """A number, the pairs or units ``n`` it stands on, and its interval; each null where ``why``.

    ``why`` says what stands in the way: of the number, or of its interval only.
    """

    value: float | None
    n: int
    interval: Interval | None = None
    why: str = ""


@dataclass(frozen=True)
class Decisions:
    """On how many of ``n`` both say the same of a threshold, and how many would by chance.

    ``by_chance`` is what two raters reach who pass as many as these do, without looking.
    """

    same: int
    n: int
    by_chance: float | None
    interval: Interval | None


@dataclass(frozen=True)
class RankSum:
    """A two-sided Mann-Whitney U test of two lists; U is of the first. Null if a list is empty."""

    n: tuple[int, int]
    mean: tuple[float | None, float | None]
    u: float | None
    p: float | None


def weighted_kappa(a: Values, b: Values) -> Figure:
    """Return Cohen's kappa with quadratic weights, of two raters that score by one scale.

    With these weights kappa needs no table: it is 1 less the mean squared difference over the one
    of all pairs that could be made (Cohen 1968; equal to ``sklearn``'s ``cohen_kappa_score``).
    """
    return _figure(_kappa, a, b)


def _kappa(a: Values, b: Values) -> float:
    expected = a.var() + b.var() + (a.mean() - b.mean()) ** 2
    return float(1 - np.mean((a - b) ** 2) / expected)


def icc(a: Values, b: Values) -> Figure:
    """Return the intraclass correlation of absolute agreement of single scores of two raters."""
    return _figure(lambda a, b: icc_agreement(np.column_stack([a, b])), a, b)


def icc_agreement(scores: Values) -> float:
    """Return ICC(A,1), which is also called ICC(2,1), of a table of subjects x raters.

    It is 1 at most; of few subjects it may be below -1. Source: Shrout & Fleiss 1979; McGraw &
    Wong 1996, table 4.
    """
    n, k = scores.shape
    whole = scores.mean()
    rows = k * np.sum((scores.mean(axis=1) - whole) ** 2) / (n - 1)
    columns = n * np.sum((scores.mean(axis=0) - whole) ** 2) / (k - 1)
    total = np.sum((scores - whole) ** 2)
    rest = (total - rows * (n - 1) - columns * (k - 1)) / ((n - 1) * (k - 1))
    return float((rows - rest) / (rows + (k - 1) * rest + k * (columns - rest) / n))


def pearson(a: Values, b: Values) -> Figure:
    """Return the linear correlation."""
    return _figure(_pearson, a, b)


def _pearson(a: Values, b: Values) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def spearman(a: Values, b: Values, tasks: Sequence[str]) -> Figure:
    """Return the correlation of ranks, with its interval over *tasks*."""
    found = _figure(lambda a, b: whole(_spearman, a, b), a, b)
    if found.value is None:
        return found
    return Figure(found.value, found.n, *over_tasks(_spearman, a, b, tasks))


def _spearman(counts: Values, of_a: Values, of_b: Values) -> Values:
    n_a, n_b = counts.sum(axis=-1), counts.sum(axis=-2)
    ranks_a, ranks_b = _ranks(n_a), _ranks(n_b)
    shared = np.einsum("...ij,...i,...j", counts, ranks_a, ranks_b)
    scale = np.sqrt((n_a * ranks_a**2).sum(axis=-1) * (n_b * ranks_b**2).sum(axis=-1))
    found: Values = np.divide(shared, scale, out=np.full_like(shared, np.nan), where=scale > 0)
    np.clip(found, -1, 1, out=found)
    return found


def _ranks(counts: Values) -> Values:
    """Return the mean rank of each value, of which there are so many, less the mean of all."""
    ranks: Values = np.cumsum(counts, axis=-1) - counts / 2
    ranks -= counts.sum(axis=-1, keepdims=True) / 2
    return ranks


def mean_difference(a: Values, b: Values, tasks: Sequence[str]) -> Figure:
    """Return the mean of a - b, with its interval over *tasks*."""
    if not len(a):
        return Figure(None, 0, why="n = 0")
    return Figure(whole(_difference, a, b), len(a), *over_tasks(_difference, a, b, tasks))


def _difference(counts: Values, of_a: Values, of_b: Values) -> Values:
    of_pairs = np.subtract.outer(of_a, of_b)
    return np.asarray((counts * of_pairs).sum(axis=(-2, -1)) / counts.sum(axis=(-2, -1)))


def alpha(raters: Sequence[Mapping[str, float]]) -> Figure:
    """Return Krippendorff's alpha (ordinal) of raters, each of which scores units by name.

    ``n`` counts the units with at least two scores; the others say nothing of agreement.
    """
    names = sorted({unit for rater in raters for unit in rater})
    table = np.array([[rater.get(unit, np.nan) for unit in names] for rater in raters], float)
    kept = table[:, np.sum(~np.isnan(table), axis=0) > 1] if names else table.reshape(0, 0)
    n = kept.shape[1]
    if n < LEAST:
        return Figure(None, n, why=f"n < {LEAST}")
    if np.nanmax(kept) == np.nanmin(kept):
        return Figure(None, n, why="no variance")
    return Figure(float(krippendorff.alpha(kept, level_of_measurement="ordinal")), n)


def decisions(a: Values, b: Values, threshold: float) -> Decisions:
    """Return on how many both lists say the same of ``>= threshold``."""
    n = len(a)
    if not n:
        return Decisions(0, 0, None, None)
    first, second = a >= threshold, b >= threshold
    same = int(np.sum(first == second))
    p, q = float(first.mean()), float(second.mean())
    return Decisions(same, n, p * q + (1 - p) * (1 - q), of_share(same, n))


def rank_sum(a: Sequence[float], b: Sequence[float]) -> RankSum:
    """Compare two lists of differences."""
    means = tuple(float(np.mean(list_)) if len(list_) else None for list_ in (a, b))
    if not (len(a) and len(b)):
        return RankSum((len(a), len(b)), (means[0], means[1]), None, None)
    found = mannwhitneyu(a, b, alternative="two-sided")
    return RankSum((len(a), len(b)), (means[0], means[1]), float(found[0]), float(found[1]))


def _figure(measure: Callable[[Values, Values], float], a: Values, b: Values) -> Figure:
    n = len(a)
    if n < LEAST:
        return Figure(None, n, why=f"n < {LEAST}")
    if not (np.ptp(a) and np.ptp(b)):
        return Figure(None, n, why="no variance")
    return Figure(measure(a, b), n)
