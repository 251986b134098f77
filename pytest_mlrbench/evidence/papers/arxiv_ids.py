"""Identifiers of arXiv: where a text has them, and which of them no paper can have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Literal

#: arXiv numbered by subject until March 2007; sequence numbers have five digits since 2015.
_FIRST, _FIVE_DIGITS = (7, 4), (15, 1)
#: More papers than any month had until the end of 2025, and by how much that grows in a year.
_MOST_A_MONTH, _GROWTH, _MEASURED_UNTIL = 30_000, 1.25, 25
#: So many neighbours at one distance are a series; of two, the distance says nothing.
_SERIES = 3

_NEW = re.compile(r"(?P<year>\d\d)(?P<month>\d\d)\.(?P<number>\d{4,5})", re.ASCII)
_OLD = re.compile(r"[a-z-]{2,12}(?:\.[A-Z]{2})?/(?P<year>\d\d)(?P<month>\d\d)\d{3}", re.ASCII)
#: With the name alone in front, only what has the form of an identifier is meant as one; what
#: follows the colon or the address is meant as one whatever its form.
_MENTION = re.compile(
    r"\barxiv(?:"
    r"(?:\.org/(?:abs|pdf|html)/|:\s?|\.(?=\d))(?P<meant>[\w-]{1,12}(?:\.[A-Z]{2})?[./]?\w{0,12})"
    r"|[^\w\n]{1,4}(?:(?:preprint|id|no|e-print)\W{1,4}){0,2}(?P<named>\d{4}\.\d{4,5})\b)",
    re.IGNORECASE | re.ASCII,
)
_DIGITS = re.compile(r"\d{3}|\d\.\d|[xy]{4}", re.IGNORECASE)
_VERSION = re.compile(r"v\d{1,3}\Z")
_RUNS = ("01234567890123456789", "98765432109876543210")

Fault = Literal["impossible", "malformed", "patterned"]


@dataclass(frozen=True, slots=True)
class Mention:
    """An identifier in a text, without its version, and its line there, from 1."""

    id: str
    line: int


def mentions(text: str) -> Iterator[Mention]:
    """Yield each identifier of *text* once, where it is first."""
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        for found in _MENTION.finditer(line):
            name = _VERSION.sub("", (found["meant"] or found["named"]).rstrip("./_-"))
            if name not in seen and _DIGITS.search(name):
                seen.add(name)
                yield Mention(name, number)


def without(text: str) -> str:
    """Return *text* without its identifiers, whose digits may look like years."""
    return _MENTION.sub("", text)


def fault(name: str, today: date) -> tuple[Fault, str] | None:
    """Say what is wrong with an identifier: what it is, and why; null if nothing is.

    ``impossible``: no paper has it or can have had it by *today*. ``patterned``: a paper may have
    it, but it is a number that people and models write down when they know none.
    """
    if old := _OLD.fullmatch(name):
        month = int(old["month"])
        return None if 1 <= month <= 12 else ("impossible", f"there is no month {month:02}")
    if not (new := _NEW.fullmatch(name)):
        return "malformed", "it has not the form of an identifier"
    year, month, digits = int(new["year"]), int(new["month"]), new["number"]
    if why := _impossible(year, month, int(digits), today):
        return "impossible", why
    if len(digits) != (5 if (year, month) >= _FIVE_DIGITS else 4):
        return "malformed", f"numbers of that month have not {len(digits)} digits"
    if len(set(digits)) == 1 or any(digits in run for run in _RUNS):
        return "patterned", "its digits are a row that is easily made up"
    return None


def _impossible(year: int, month: int, number: int, today: date) -> str:
    # Somewhere it is tomorrow already.
    now = today + timedelta(days=1)
    if not 1 <= month <= 12:
        return f"there is no month {month:02}"
    if (year, month) < _FIRST:
        return "identifiers of this form begin with 0704"
    if (2000 + year, month) > (now.year, now.month):
        return "that month is still to come"
    most = round(_MOST_A_MONTH * _GROWTH ** max(0, year - _MEASURED_UNTIL))
    if not 1 <= number <= most:
        return "no month has so many papers" if number else "the first paper of a month has 1"
    return ""


def series(names: Sequence[str]) -> list[list[str]]:
    """Return neighbours whose sequence numbers rise or fall by one step, three or more at a time.

    Numbers are given in the order of arrival, so papers of different authors hardly have such.
    """
    read = [(name, int(found["number"])) for name in names if (found := _NEW.fullmatch(name))]
    steps = [after[1] - before[1] for before, after in pairwise(read)]
    groups, start = [], 0
    for end in range(1, len(steps) + 1):
        if end == len(steps) or steps[end] != steps[start]:
            if end - start + 1 >= _SERIES:
                groups.append([name for name, _ in read[start : end + 1]])
            start = end
    return groups
