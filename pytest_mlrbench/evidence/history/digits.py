"""Numbers in texts, compared as people copy them: rounded, or as a share of a hundred."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable
from functools import lru_cache

#: Characters of one text in which numbers are looked for.
_LONGEST = 2_000_000

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?(?![\w.]*\d)")


class Values:
    """All numbers of some texts."""

    def __init__(self, *texts: str) -> None:
        self._sorted = sorted(
            {abs(float(n)) for text in texts for n in _NUMBER.findall(text[:_LONGEST])}
        )

    def has(self, value: float, slack: float) -> bool:
        """Tell whether a number is here that *value* may be a rounded copy of."""
        return any(self._near(value * scale, slack * scale * 1.001) for scale in (1.0, 0.01, 100.0))

    def _near(self, value: float, slack: float) -> bool:
        place = bisect.bisect_left(self._sorted, value - slack)
        return place < len(self._sorted) and self._sorted[place] <= value + slack


@lru_cache(maxsize=256)
def values(text: str) -> Values:
    """Return all numbers of *text*."""
    return Values(text)


def precise(text: str) -> dict[str, tuple[float, float]]:
    """Return the numbers that nobody would have guessed: text → value, half of its last digit.

    They have a decimal point and three digits that count; what is set by hand is mostly rounder.
    """
    found: dict[str, tuple[float, float]] = {}
    for number in _NUMBER.findall(text[:_LONGEST]):
        whole, point, decimals = number.lstrip("-").partition(".")
        is_plain = point and "e" not in decimals.lower() and decimals.strip("0")
        if is_plain and len((whole + decimals).lstrip("0")) >= 3:
            found[number.lstrip("-")] = abs(float(number)), 0.5 * 10.0 ** -len(decimals)
    return found


def shared(text: str, others: Iterable[Values]) -> tuple[list[str], int]:
    """Return the precise numbers of *text* that stand in one of *others*, and how many it has."""
    numbers = precise(text)
    pools = list(others)
    return [n for n, near in numbers.items() if any(p.has(*near) for p in pools)], len(numbers)
