"""The numbers that programs wrote or printed, each with an address that a person can look up.

``metrics.json#/ours/accuracy`` is a JSON pointer (into JSON Lines and YAML too: lines are the
elements of a list), ``results.csv#3/accuracy`` the third row below the header, ``log.txt:12`` a
line; ``log.txt:-12`` counts from the end of a log that is too long to be read as a whole.

Everything is bounded by bytes and numbers, so that the same files always give the same numbers;
the clock is only the last resort.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_mlrbench.evidence.records.arrays import numbers_of_archive, numbers_of_array
from pytest_mlrbench.evidence.records.data import MOST_BYTES, SUFFIXES, Table, decoded, parsed
from pytest_mlrbench.evidence.records.walking import in_lines, in_notebook, in_table, in_values

#: Numbers of one file. Of a log, as many are read at its beginning as at its end.
MOST_NUMBERS = 50_000
_ARRAYS = frozenset({".npy", ".npz"})


@dataclass(slots=True)
class Numbers:
    """The numbers of one file, or of one command's output: three sequences of one length.

    :param name: path, or a name for the output.
    :param values: all finite.
    :param keys: what makes *name* an address: ``#/a/b``, ``#3/accuracy``, ``:12``.
    :param labels: what stands beside a number: words before it in its line, texts of its row.
    :param cut: why these are not all, as the end of a sentence; null if they are.
    """

    name: str
    values: array[float] = field(default_factory=lambda: array("d"))
    keys: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    cut: str | None = None

    def place(self, index: int) -> str:
        """Return the address of a number."""
        return self.name + self.keys[index]

    def fill(self, found: Iterable[tuple[float, str, str]], most: int) -> None:
        """Take numbers until there are *most*."""
        for value, key, label in found:
            if len(self.values) >= most:
                self.cut = f"only the first {most:,} numbers are looked at"
                return
            self.values.append(value)
            self.keys.append(key)
            self.labels.append(label)


@dataclass(slots=True)
class Budget:
    """What may still be read for one run.

    :param until: in CPU time of this process: what is read must not depend on what else runs.
    """

    bytes: int = 64_000_000
    numbers: int = 200_000
    until: float = field(default_factory=lambda: time.process_time() + 8)

    def is_spent(self) -> bool:
        """Whether nothing more is read."""
        return self.bytes <= 0 or self.numbers <= 0 or time.process_time() > self.until


def read_all(files: Mapping[str, Path], budget: Budget | None = None) -> list[Numbers]:
    """Return the numbers of each of *files*, the small ones first: they sum the large ones up.

    :param files: name → path; pictures, models and other binary files have no numbers.
    """
    budget = budget or Budget()
    order = sorted((_size(path), name) for name, path in files.items())
    # Each may take an equal share of what is left, and what small files leave is the large ones'.
    return [
        read_numbers(name, files[name], budget, len(order) - place)
        for place, (_, name) in enumerate(order)
    ]


def read_numbers(name: str, path: Path, budget: Budget | None = None, among: int = 1) -> Numbers:
    """Return the numbers of one file, within its share of what is left of *budget*."""
    budget = budget or Budget()
    if budget.is_spent():
        return Numbers(name, cut="it is not read, as there is much to read before it")
    head, tail, size = _ends(path, min(MOST_BYTES, budget.bytes // among + 1))
    most = min(MOST_NUMBERS, budget.numbers // among + 1)
    budget.bytes -= len(head) + len(tail)
    found = _numbers(name, path.suffix.lower(), head, tail, most)
    if tail or size > len(head):
        found.cut = f"only {(len(head) + len(tail)) / 1e6:.1f} of {size / 1e6:.1f} MB are read"
    budget.numbers -= len(found.values)
    return found


def numbers_printed(name: str, text: str, budget: Budget | None = None) -> Numbers:
    """Return the numbers of a text that was printed; of a long one, of its two ends."""
    budget, half, found = budget or Budget(), MOST_BYTES // 2, Numbers(name)
    if budget.is_spent():
        return Numbers(name, cut="it is not read, as there is much to read before it")
    is_long = len(text) > MOST_BYTES
    head, tail = (text[:half], text[-half:]) if is_long else (text, "")
    _fill_lines(found, head, tail, min(MOST_NUMBERS, budget.numbers))
    if is_long:
        found.cut = f"only its first and last {half:,} letters are read"
    budget.bytes -= len(head) + len(tail)
    budget.numbers -= len(found.values)
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def _ends(path: Path, most: int) -> tuple[bytes, bytes, int]:
    """Return beginning and end of a regular file, and its size; the end where it is too long."""
    try:
        if not path.is_file():  # a pipe would block
            return b"", b"", 0
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= most:
                return file.read(most), b"", size
            head = file.read(most // 2)
            file.seek(-(most // 2), os.SEEK_END)
            return head, file.read(most // 2), size
    except (OSError, ValueError):
        return b"", b"", 0


def _numbers(name: str, suffix: str, head: bytes, tail: bytes, most: int) -> Numbers:
    found = Numbers(name)
    if suffix in _ARRAYS:
        arrays = numbers_of_array(head) if suffix == ".npy" else numbers_of_archive(head)
        found.fill(((value, f"#{key}", "") for value, key in arrays), most)
        return found
    if b"\0" in head[:4_000] and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return found
    text, end = decoded(head), decoded(tail)
    content = parsed(text, suffix) if suffix in SUFFIXES or suffix == ".ipynb" else None
    if suffix == ".ipynb" and not tail and isinstance(content, dict):
        found.fill(in_notebook(content), most)
        return found
    if isinstance(content, Table):
        found.fill(in_table(content), most)
    elif content is not None and suffix in SUFFIXES:
        found.fill(in_values(content), most)
    if not found.values:  # no data, whatever it is called, or only texts that hold numbers
        _fill_lines(found, text, end, most)
    return found


def _fill_lines(found: Numbers, head: str, tail: str, most: int) -> None:
    """Take as many numbers from the end of a text as from its beginning, where there are many."""
    lines, ends = head.split("\n"), tail.split("\n")[1:]  # the first of these is cut
    first = -len(ends)
    if not tail and len(head) > 20 * most:
        first = len(lines) // 2
        lines, ends = lines[:first], lines[first:]
        first += 1
    numbered = ((line, f":{place}") for place, line in enumerate(lines, 1))
    found.fill(in_lines(numbered), most // 2 if ends else most)
    behind = ((ends[place], f":{first + place}") for place in reversed(range(len(ends))))
    found.fill(in_lines(behind), most)
