"""Sorted numbers that a printed one is looked up in, and how many like it would be found there."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: How far a number is moved, as a share of it, to see how many like it would match too: about as
#: far as an invented number is from a measured one.
REACH = 0.2
#: It is moved by this many units of its last digit at least.
_LEAST_UNITS = 2
#: Known numbers that are counted one by one; among more, as many places are tried.
_FEW, _PROBES = 100, 60
#: For binary fractions.
_TINY = 1e-9
#: Beyond it, sums of numbers are infinite.
_LARGEST = 1e300


class Pool:
    """Known numbers.

    :param place: index in *values* → where that number stands.
    """

    def __init__(self, values: Sequence[float], place: Callable[[int], str]) -> None:
        self._order = sorted(range(len(values)), key=values.__getitem__)
        self.values = array("d", (values[index] for index in self._order))
        self._place = place

    def place(self, rank: int) -> str:
        """Return where the number of this rank stands."""
        return self._place(self._order[rank])


@dataclass(frozen=True, slots=True)
class View:
    """A way to look at a pool.

    :param scale: what its numbers are multiplied by: a share may be printed in percent.
    :param unsigned: whether the sign is left to the words around: "falls by 3.1".
    """

    pool: Pool
    scale: float = 1
    unsigned: bool = False

    def range(self, low: float, high: float) -> tuple[int, int]:
        """Return the ranks of the numbers from *low* to *high*."""
        values, scale = self.pool.values, self.scale
        return bisect_left(values, low / scale), bisect_right(values, high / scale)

    def find(self, value: float, slack: float) -> str | None:
        """Return where a number stands that, rounded, gives *value*; null if none does."""
        value = abs(value) if self.unsigned else value
        slack += _TINY * (slack + abs(value))
        first, end = self.range(value - slack, value + slack)
        return self.pool.place(first) if first < end else None


def coverage(views: Sequence[View], value: float, slack: float) -> float:
    """Return the share of the numbers like *value*, near it, that are found in *views*.

    Like it are those that are printed as exactly and end in as many noughts: what is measured on
    few examples is round, and 0.5000 is found in any run. Where *value* itself is found, this is
    how probable it is that another would have been.
    """
    if abs(value) < slack:  # nought is found in any run, and proves nothing
        return float(any(view.find(value, slack) is not None for view in views))
    if abs(value) > _LARGEST:
        return 1.0
    unit = _unit(value, 2 * max(slack, _TINY * abs(value)))
    half = max(int(REACH * abs(value) / unit), _LEAST_UNITS)
    ranges = [(view, *_near(view, value, half * unit + slack)) for view in views]
    if sum(end - first for _, first, end in ranges) <= _FEW:
        taken = {
            place
            for view, first, end in ranges
            for known in view.pool.values[first:end]
            if (place := _place(view, known, value, unit, slack)) is not None
        }
        return min(1.0, len(taken) / (2 * half + 1))
    occupied = [view for view, first, end in ranges if first < end]
    places = {0, *range(-half, half + 1, max(1, (2 * half + 1) // _PROBES))}
    hits = sum(
        any(view.find(value + place * unit, slack) is not None for view in occupied)
        for place in places
    )
    return hits / len(places)


def _unit(value: float, unit: float) -> float:
    """Return the unit of the last digit of *value* that is not nought, of those printed."""
    digits = round(value / unit) if abs(value) < 1e15 * unit else 0
    while digits and digits % 10 == 0:
        digits //= 10
        unit *= 10
    return unit


def _near(view: View, value: float, reach: float) -> tuple[int, int]:
    value = abs(value) if view.unsigned else value
    return view.range(value - reach, value + reach)


def _place(view: View, known: float, value: float, unit: float, slack: float) -> int | None:
    """Return how many units from *value* the number is that *known* gives; null if none."""
    away = known * view.scale - (abs(value) if view.unsigned else value)
    place = round(away / unit)
    return place if abs(away - place * unit) <= slack * (1 + 1e-6) else None
