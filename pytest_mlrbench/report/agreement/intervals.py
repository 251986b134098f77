"""Intervals by a bootstrap over tasks: scores of one task are no independent observations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, bootstrap

Values = NDArray[np.float64]
#: Takes how often each pair of values is there (... x values of a x values of b), the values of a
#: and those of b; gives one number for each such table.
Statistic = Callable[[Values, Values, Values], Values]

LEVEL = 0.95
#: With fewer tasks there is too little to draw from.
LEAST_TASKS = 10
_RESAMPLES = 1999
#: Resamples that are held in memory at once.
_BATCH = 100


@dataclass(frozen=True)
class Interval:
    """Where a number lies with a confidence of ``level``, and how that was found."""

    low: float
    high: float
    method: str
    level: float = LEVEL


def over_tasks(
    statistic: Statistic, a: Values, b: Values, tasks: Sequence[str]
) -> tuple[Interval | None, str]:
    """Return the interval of a statistic of pairs, or why there is none.

    Tasks are drawn with all of their pairs. Equal input gives an equal interval, in any order.
    In simulations (three scores to a task) 95 % intervals held the truth in 90 to 93 % of cases
    with 10 tasks, and in 93 to 94 % with 50.
    """
    tables, of_a, of_b = _tables(a, b, tasks)
    n = len(tables)
    if n < LEAST_TASKS:
        return None, f"{n} of the {LEAST_TASKS} tasks that an interval needs"

    def drawn(which: NDArray[np.intp], axis: int = -1) -> Values:
        # The tasks stand in the last axis, and what is drawn adds up.
        return statistic(tables[which].sum(axis=axis - 2), of_a, of_b)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # A sample in which nothing varies gives no number, which is told below.
        warnings.simplefilter("ignore")
        found = _bootstrap(n, drawn, n_resamples=_RESAMPLES)
        numbers = np.isfinite(found.bootstrap_distribution)
        kept = int(numbers.sum())
        if kept < _RESAMPLES * LEVEL:
            return None, "nothing varies in too many resamples"
        if kept < _RESAMPLES:
            found.bootstrap_distribution = found.bootstrap_distribution[numbers]
            found = _bootstrap(n, drawn, n_resamples=0, bootstrap_result=found)
    low, high = map(float, found.confidence_interval)
    if not (math.isfinite(low) and math.isfinite(high)):
        return None, "nothing varies between the resamples"
    return Interval(low, high, f"BCa bootstrap over {n} tasks, {kept} resamples"), ""


def _bootstrap(n: int, drawn: Callable[..., Values], **how: Any) -> Any:
    return bootstrap(
        (np.arange(n),),
        drawn,
        vectorized=True,
        batch=_BATCH,
        confidence_level=LEVEL,
        method="BCa",
        rng=np.random.default_rng(0),
        **how,
    )


def whole(statistic: Statistic, a: Values, b: Values) -> float:
    """Return a statistic of all pairs."""
    (table,), of_a, of_b = _tables(a, b, [""] * len(a))
    return float(statistic(table, of_a, of_b))


def _tables(a: Values, b: Values, tasks: Sequence[str]) -> tuple[Values, Values, Values]:
    """Count the pairs of values in each task, the tasks in the order of their names."""
    of_a, in_a = np.unique(a, return_inverse=True)
    of_b, in_b = np.unique(b, return_inverse=True)
    names, in_tasks = np.unique(np.array(tasks), return_inverse=True)
    tables = np.zeros((len(names), len(of_a), len(of_b)))
    np.add.at(tables, (in_tasks, in_a, in_b), 1)
    return tables, of_a, of_b


def of_share(k: int, n: int) -> Interval:
    """Return the interval of *k* out of *n*, as of independent cases."""
    found = binomtest(k, n).proportion_ci(LEVEL, method="wilson")
    return Interval(float(found.low), float(found.high), "Wilson, as if cases were independent")
