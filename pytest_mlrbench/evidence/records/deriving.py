"""Simple values that a report works out: means and spreads of runs, differences and ratios.

Only numbers of one metric are compared: those whose addresses differ in one step, as
``/ours/accuracy`` and ``/base/accuracy``, ``#1/accuracy`` and ``#2/accuracy``, or the same key of
two files. Of all pairs of numbers some would give any result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from pytest_mlrbench.evidence.records.pools import Pool
from pytest_mlrbench.evidence.records.values import Numbers

#: A larger file holds raw data, whose means nobody reports.
_LARGEST_FILE = 20_000
_MOST_NUMBERS = 20_000
#: Members of a group that a mean, or that pairs, are made of.
_MOST_RUNS, _MOST_COMPARED = 1_000, 30
_MOST_DERIVED = 30_000

#: Numbers of a log whose lines are put together by what they name, and words that each names.
_LARGEST_LOG, _MOST_WORDS = 2_000, 6

_WORD = re.compile(r"[^\W\d_][\w.-]{1,30}")
_LAST_WORD = re.compile(r"([^\W\d_]{1,30})[^\w]{0,5}$")
#: Stands for the step that is left out of an address: a name, or a place in a list.
_STEP, _ELEMENT = "*", "[*]"
#: Index → where that number stands.
Place = Callable[[int], str]


class Derived(NamedTuple):
    """A value that was worked out, and of which numbers."""

    value: float
    what: str
    first: int
    second: int | None = None
    #: How many there are from the first one on, where it is not two.
    among: int = 0

    def told(self, place: Place) -> str:
        """Say what it is, for a person to check."""
        if self.second is None:
            return f"{self.what} of {self.among} numbers from {place(self.first)} on"
        return f"{self.what} of {place(self.first)} and {place(self.second)}"


class Related:
    """Numbers of small files, and which of their addresses differ in one step only."""

    def __init__(self, files: Iterable[Numbers]) -> None:
        self._values: list[float] = []
        self._at: list[tuple[Numbers, int]] = []
        groups: dict[tuple[str, ...], list[int]] = {}
        for file in files:
            if len(self._values) + len(file.values) <= _MOST_NUMBERS:
                self._add(file, groups)
        #: Elements of lists, which have no names, and are not compared with each other.
        lists = {name for name in groups if name[-1] == _ELEMENT}
        kept = [name for name, group in groups.items() if 2 <= len(group) <= _MOST_RUNS]
        kept.sort(key=lambda name: len(groups[name]))
        self._groups = [groups[name] for name in kept]
        self._named = [groups[name] for name in kept if name not in lists]

    def _add(self, file: Numbers, groups: dict[tuple[str, ...], list[int]]) -> None:
        for index, value in enumerate(file.values):
            number = len(self._values)
            self._values.append(value)
            self._at.append((file, index))
            names = [*_names(file.name, file.keys[index], file.labels[index])]
            if len(file.values) <= _LARGEST_LOG and not file.keys[index].startswith("#"):
                names += _names_in_log(file.name, file.labels[index])
            for name in names:
                group = groups.setdefault(name, [])
                if len(group) <= _MOST_RUNS:
                    group.append(number)

    def _place(self, number: int) -> str:
        file, index = self._at[number]
        return file.place(index)

    def summaries(self) -> Pool:
        """Return means, deviations (of a sample, of a population) and standard errors."""
        found = (derived for group in self._groups for derived in self._summary(group))
        return pool_of(found, self._place)

    def _summary(self, group: Sequence[int]) -> Iterator[Derived]:
        values, count = [self._values[number] for number in group], len(group)
        mean = sum(values) / count
        squares = sum((value - mean) * (value - mean) for value in values)
        deviation = math.sqrt(squares / (count - 1)) if math.isfinite(squares) else math.inf
        for value, what in (
            (mean, "mean"),
            (deviation, "standard deviation"),
            (deviation * math.sqrt((count - 1) / count), "standard deviation"),
            (deviation / math.sqrt(count), "standard error"),
        ):
            yield Derived(value, what, group[0], among=count)

    def comparisons(self) -> Pool:
        """Return differences, ratios and relative changes of the numbers in small groups."""
        found = (
            derived
            for group in self._named
            if len(group) <= _MOST_COMPARED
            for derived in compared(group, self._values)
        )
        return pool_of(found, self._place)


def _names(file: str, key: str, label: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of the groups that a number belongs to: its address without one step."""
    if not key.startswith("#"):
        if word := _LAST_WORD.search(label):
            yield file, _STEP, word[1].lower()
        return
    steps = (file, *key[1:].lstrip("/").split("/"))
    is_element = steps[-1].isdigit()
    for place in range(len(steps)):
        # What a list is called is its metric: elements of two lists are not compared.
        if not (is_element and place == len(steps) - 2 > 1):
            star = _ELEMENT if is_element and place == len(steps) - 1 else _STEP
            name = (*steps[:place], star, *steps[place + 1 :])
            yield name
            if label:  # the rows of a table may be those of several methods
                yield (label, *name)


def _names_in_log(file: str, label: str) -> Iterator[tuple[str, ...]]:
    """Yield what a number has in common with those of other lines: its name, and another word.

    ``digits svm acc 0.97`` and ``wine svm acc 0.94`` are two accuracies of one method.
    """
    if last := _LAST_WORD.search(label):
        name = last[1].lower()
        found = {word.lower() for word in _WORD.findall(label[: last.start()])[:_MOST_WORDS]}
        yield from ((file, _STEP, name, word) for word in sorted(found - {name}))


def compared(group: Sequence[int], values: Sequence[float]) -> Iterator[Derived]:
    """Yield what pairs of numbers give, without sign; ratios and changes are shares, not percent.

    :param group: indices in *values*.
    """
    for one, two in combinations(group, 2):
        a, b = values[one], values[two]
        if a == b:
            continue
        yield Derived(abs(a - b), "difference", one, two)
        for x, y in ((a, b), (b, a)):
            if y:
                yield Derived(abs(x / y), "ratio", one, two)
                yield Derived(abs((x - y) / y), "relative change", one, two)


def pool_of(found: Iterable[Derived], place: Place) -> Pool:
    """Return the pool of what was worked out; of very much, the first part."""
    kept = list(islice((one for one in found if math.isfinite(one.value)), _MOST_DERIVED))
    return Pool([derived.value for derived in kept], lambda index: kept[index].told(place))
