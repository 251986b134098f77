"""The reported numbers that a repetition is compared in, and where they stand in its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pytest_mlrbench.evidence.base import Claim
from pytest_mlrbench.evidence.gathering import Gathered
from pytest_mlrbench.evidence.records.addressed import fits
from pytest_mlrbench.evidence.records.cells import CLAIMS, Cells
from pytest_mlrbench.evidence.records.claims_file import entries_in, read_entry
from pytest_mlrbench.evidence.records.data import SUFFIXES
from pytest_mlrbench.evidence.records.values import Budget, read_numbers

#: Numbers, and entries of the list of claims that are looked at.
_MOST, _ENTRIES = 300, 5_000
#: Of a number's own size: sums of several threads come out a little different each time.
_NOISE = 1e-6
_SCALES = (1.0, 100.0, 0.01, 1000.0, 0.001)
#: What is measured of the machine is another number each time, however honest.
_OF_MACHINES = frozenset(
    {
        *("time", "times", "timestamp", "date", "started", "ended", "duration", "elapsed", "wall"),
        *("seconds", "second", "secs", "sec", "s", "ms", "minutes", "min", "hours", "runtime"),
        *("latency", "speed", "speedup", "throughput", "fps", "memory", "rss", "mb", "gb"),
    }
)
_WORDS = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Point:
    """A reported number.

    :param address: ``file#place``.
    :param value: as it is reported, in the scale of the file.
    :param slack: by how much what is reported may differ from what the file holds.
    :param meaning: which of the numbers that an address may mean.
    :param is_of_machine: whether it measures the machine, not what was done with it.
    :param is_claimed: whether the report takes it from there, by the list of claims or, where that
        names none, as far as it is known.
    """

    address: str
    value: float
    slack: float
    meaning: int = 0
    is_of_machine: bool = False
    is_claimed: bool = True

    @property
    def file(self) -> str:
        """The path in its address."""
        return self.address.partition("#")[0]

    def is_met(self, value: float | None) -> bool:
        """Whether *value* is the reported number again."""
        return value is not None and abs(value - self.value) <= self.slack + _noise(self.value)


def is_same(one: float | None, other: float | None) -> bool:
    """Whether two runs gave the same number."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _noise(one)


def points(run: Gathered, files: Iterable[str]) -> list[Point]:
    """Return the numbers of files that commands wrote, those first that are claimed.

    :param files: to which numbers of the report lead.
    """
    made = {name for name, origin in (run.origins or {}).items() if origin.kind == "command"}
    found = {point.address: point for point in _claimed(run, made)}
    names = [name for name in files if name in made and Path(name).suffix.lower() in SUFFIXES]
    is_claimed = not found
    for point in _all_in(run, names):
        found.setdefault(point.address, replace(point, is_claimed=is_claimed))
    kept = list(found.values())[:_MOST]
    there = look(run.files, kept)
    return [point for point in kept if point.is_met(there[point.address])]


def cover(claims: Sequence[Claim], recorded: Iterable[float]) -> bool:
    """Whether at least half of what a report prints is among the *recorded* numbers."""
    values = list(recorded)
    found = sum(
        any(
            abs(scale * value - claim.value) <= claim.slack
            for value in values
            for scale in (1, 100)
        )
        for claim in claims[:_ENTRIES]
    )
    return bool(claims) and 2 * found >= len(claims[:_ENTRIES])


def look(files: Mapping[str, Path], wanted: Sequence[Point]) -> dict[str, float | None]:
    """Return address → the number that stands there in *files*; null where there is none."""
    cells = Cells(files)
    found: dict[str, float | None] = {}
    for point in sorted(wanted, key=lambda it: it.file):  # each file is parsed once
        values = cells.look(point.address).values
        found[point.address] = values[point.meaning] if point.meaning < len(values) else None
    return found


def _claimed(run: Gathered, made: set[str]) -> Iterator[Point]:
    if CLAIMS not in run.files:
        return
    cells, (content, _) = Cells(run.files), entries_in(run.files[CLAIMS])
    for raw in islice(content.values(), _ENTRIES):
        entry, number, _ = read_entry(raw)
        if entry is None or number is None:
            continue
        looked = cells.look(entry.source)
        if looked.file not in made:
            continue
        address = f"{looked.file}#{entry.source.partition('#')[2]}"
        for meaning, value in enumerate(looked.values):
            if fits(number, value):
                scale = min(_SCALES, key=lambda it: abs(it * value - number.value))
                yield Point(
                    address,
                    number.value / scale,
                    number.slack / scale,
                    meaning,
                    _is_of_machine(f"{address} {entry.text}"),
                )
                break


def _all_in(run: Gathered, names: Sequence[str]) -> Iterator[Point]:
    budget = Budget()
    for name in sorted(names):
        numbers = read_numbers(name, run.files[name], budget)
        for at, value in enumerate(numbers.values[:_MOST]):
            if numbers.keys[at].startswith("#"):
                address = numbers.place(at)
                label = f"{address} {numbers.labels[at][:200]}"
                yield Point(address, value, 0.0, is_of_machine=_is_of_machine(label))


def _is_of_machine(label: str) -> bool:
    words = _WORDS.findall(label.partition("#")[2].lower()[:1_000])
    return not _OF_MACHINES.isdisjoint(words)


def _noise(value: float) -> float:
    return _NOISE * abs(value)
