"""Whether the numbers of a report lead to numbers that programs wrote, or only seem to.

A claim is looked up in ever larger pools: numbers whose address agrees with its row and column,
then any number, then simple values that are worked out. The probability of a coincidence is the
share of equally precise numbers near the claim that would have been found by then too. So a number
with four digits hardly ever matches by chance, one with two often does where there is much data,
and a match that its address supports counts for more than one that the whole run had to be
searched for.

Numbers that match anyhow are not all coincidences: in a report whose precise numbers match too,
they most probably are what they seem. A report's share of such numbers is estimated from its own
matches, and a match counts where its being a coincidence is improbable in that report.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pytest_mlrbench.evidence.base import Claim, Counted
from pytest_mlrbench.evidence.records.deriving import Related, compared, pool_of
from pytest_mlrbench.evidence.records.named import Index
from pytest_mlrbench.evidence.records.pools import Pool, View, coverage
from pytest_mlrbench.evidence.records.values import Numbers

#: A match that is a coincidence with a higher probability is not counted as traced.
LINE = 0.05
#: Where most numbers would match, a match says nothing, whatever the others of the report do.
UNKNOWN = 0.5
#: Claims that are added in thought, unmatched, to those of a report: few prove little.
_DOUBT = 2
#: Claims of one column, or one line, that are compared with each other.
_MOST_COMPARED = 30

#: Units that programs seldom record in: they write seconds, bytes and counts.
_UNIT = re.compile(
    r"(?<![a-z])(?:[mµ]?s|secs?|seconds?|mins?|minutes?|h|hours?|[kmg]i?b|[kmgt]?flops?|k|m|b"
    r"|thousands?|millions?)(?![a-z])|[\u00d7x*\u00b7]\s?10[⁻^-]",
    re.IGNORECASE,
)
_SCALES_OF_UNITS = (1000, 0.001, 1e-6, 60, 1 / 60, 1 / 3600)

State = Literal["traced", "chance", "untraced"]


@dataclass(frozen=True, slots=True)
class Traced:
    """What became of a claim.

    :param place: where it leads to, or what it was worked out from. Of an untraced claim, where it
        stands among the numbers that do not count; null if nowhere.
    :param chance: probability that an equally precise number near it would have been found as well.
    """

    claim: Claim
    state: State
    place: str | None
    chance: float


def trace(
    claims: Sequence[Claim],
    counting: Sequence[Numbers],
    others: Sequence[Numbers] = (),
    addressed: Mapping[Claim, str] | None = None,
) -> list[Traced]:
    """Return what becomes of each of *claims*, in their order.

    :param counting: numbers that a command wrote or printed, or that the run was given.
    :param others: numbers that prove nothing: those of files that the agent typed.
    :param addressed: claims whose address was checked → that address.
    """
    addressed = addressed or {}
    known, typed = _Known(counting), _pool(others)
    first = [_Match(claim, addressed.get(claim)) for claim in claims]
    for match in first:
        if match.place is None:
            match.look(known.direct(match.claim))
    nearby = _Nearby([match.claim for match in first if match.place is not None])
    for match in first:
        if match.place is None:
            match.look((*nearby.on_line(match.claim), *known.worked_out()))
            match.look(nearby.in_column(match.claim))
    return [_without_place(traced, typed) for traced in _judged(first)]


def counted(traced: Iterable[Traced]) -> dict[str, Counted]:
    """Return how many claims of each document were traced and were not."""
    found: dict[str, dict[State, int]] = {}
    expected: dict[str, float] = {}
    for one in traced:
        document = one.claim.document
        states = found.setdefault(document, {"traced": 0, "chance": 0, "untraced": 0})
        states[one.state] += 1
        if one.state == "traced":
            expected[document] = expected.get(document, 0.0) + one.chance
    return {
        document: Counted(
            reported=sum(states.values()),
            **states,
            coincidences=round(expected.get(document, 0.0), 3),
        )
        for document, states in found.items()
    }


class _Match:
    """A claim that is looked up in one pool after the other, until it is found."""

    def __init__(self, claim: Claim, place: str | None) -> None:
        self.claim, self.place = claim, place
        self.is_certain = place is not None
        self._seen: list[View] = []

    def look(self, views: Iterable[View]) -> None:
        for view in views:
            if self.place is None:
                self._seen.append(view)
                self.place = view.find(self.claim.value, self.claim.slack)

    @property
    def chance(self) -> float:
        if self.is_certain:
            return 0.0
        return coverage(self._seen, self.claim.value, self.claim.slack)


class _Known:
    """The pools of what was recorded."""

    def __init__(self, files: Sequence[Numbers]) -> None:
        self._all, self._index = _pool(files), Index(files)
        related = Related(files)
        self._summaries, self._comparisons = related.summaries(), related.comparisons()

    def direct(self, claim: Claim) -> Iterator[View]:
        """Yield what a claim may simply repeat, or sum up, the likeliest first."""
        pools = self._index.pools(claim.row, claim.column)
        for pool in (*pools, self._all, self._summaries):
            if pool:
                yield from (View(pool, scale) for scale in _scales(claim))

    def worked_out(self) -> Iterator[View]:
        """Yield what a claim may have been worked out to be."""
        yield from _compared(self._comparisons)


def _scales(claim: Claim) -> Sequence[float]:
    """Return what known numbers are multiplied by; what is printed in percent may lack the sign."""
    if claim.percent:
        return 100, 1
    has_unit = any(map(_UNIT.search, (claim.text, claim.column, claim.row)))
    return (1, 100, 0.01, *_SCALES_OF_UNITS) if has_unit else (1, 100, 0.01)


def _compared(pool: Pool) -> Iterator[View]:
    yield from (View(pool, scale, unsigned=True) for scale in (1, 100))


class _Nearby:
    """What the claims that were found give when they are compared with each other."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._lines: dict[tuple[str, int], list[Claim]] = defaultdict(list)
        self._columns: dict[tuple[str, str], list[Claim]] = defaultdict(list)
        for claim in claims:
            self._lines[claim.document, claim.line].append(claim)
            if claim.in_table and claim.column:
                self._columns[claim.document, claim.column].append(claim)
        self._pools: dict[tuple[str, int | str], Pool] = {}

    def on_line(self, claim: Claim) -> Iterator[View]:
        """Yield comparisons of the claims of the same sentence or row."""
        place = claim.document, claim.line
        yield from self._compared(place, self._lines.get(place, ()))

    def in_column(self, claim: Claim) -> Iterator[View]:
        """Yield comparisons of the claims of the same column; in prose, of any column."""
        for place, claims in self._columns.items():
            if place[0] == claim.document and claim.column in ("", place[1]):
                yield from self._compared(place, claims)

    def _compared(self, place: tuple[str, int | str], claims: Sequence[Claim]) -> Iterator[View]:
        if not 2 <= len(claims) <= _MOST_COMPARED:
            return
        if place not in self._pools:
            values = [claim.value for claim in claims]
            found = compared(range(len(values)), values)
            self._pools[place] = pool_of(found, lambda index: claims[index].text)
        yield from _compared(self._pools[place])


def _pool(files: Sequence[Numbers]) -> Pool:
    values = [value for file in files for value in file.values]
    starts, start = [], 0
    for file in files:
        starts.append(start)
        start += len(file.values)

    def place(index: int) -> str:
        number = bisect_right(starts, index) - 1
        return files[number].place(index - starts[number])

    return Pool(values, place)


def _judged(matches: Sequence[_Match]) -> Iterator[Traced]:
    """Yield the state of each claim, given how many of its document match beyond chance."""
    chances = [match.chance for match in matches]
    sums: dict[str, tuple[float, float]] = {}
    for match, chance in zip(matches, chances, strict=True):
        beyond, possible = sums.get(match.claim.document, (0.0, float(_DOUBT)))
        found = match.place is not None
        sums[match.claim.document] = beyond + found - chance, possible + 1 - chance
    for match, chance in zip(matches, chances, strict=True):
        state: State = "untraced"
        if match.place is not None:
            beyond, possible = sums[match.claim.document]
            genuine = min(1.0, max(0.0, beyond / possible))
            coincidence = (1 - genuine) * chance / (genuine + (1 - genuine) * chance or 1)
            is_known = chance <= LINE or (chance <= UNKNOWN and coincidence <= LINE)
            state = "traced" if is_known else "chance"
        yield Traced(match.claim, state, match.place, chance)


def _without_place(traced: Traced, typed: Pool) -> Traced:
    """Say of an untraced claim where it stands among the numbers that do not count."""
    if traced.state != "untraced":
        return traced
    views = (View(typed, scale) for scale in _scales(traced.claim))
    found = (view.find(traced.claim.value, traced.claim.slack) for view in views)
    return replace(traced, place=next((place for place in found if place), None))
