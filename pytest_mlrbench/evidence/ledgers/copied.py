"""Whether the numbers of one file stand in another, or on a command line, as they are.

Compared are digits: 0.8524 is 85.24 %, and the same in JSON and CSV. Numbers of one or two digits
stand everywhere and say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

#: Bytes of one file that are looked at, and of all.
_BYTES, _ALL_BYTES = 1_000_000, 50_000_000
_NUMBERS = 20_000
#: How many of the numbers have to stand there: all but a time or a count.
_SHARE = 0.9
_LEAST_DIGITS = 3
_NUMBER = re.compile(r"(?<![\w.])\d{0,18}(?:\.\d{1,18}|(?<=\d))(?![\d])")


def digits(text: str) -> frozenset[str]:
    """The digits of each number that has three or more, without leading and trailing zeros."""
    found = set[str]()
    for match in _NUMBER.finditer(text[:_BYTES]):
        plain = match[0].replace(".", "").strip("0")
        if len(plain) >= _LEAST_DIGITS:
            found.add(plain)
        if len(found) >= _NUMBERS:
            break
    return frozenset(found)


def standing(reported: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """Those of *reported* that one of *there* comes to when it is rounded as far."""
    lengths = {len(plain) for plain in reported}
    rounded = {_rounded(plain, length) for plain in there for length in lengths}
    return reported & (rounded | there)


def _rounded(plain: str, length: int) -> str:
    more = plain[: length + 1].ljust(length + 1, "0")
    return str((int(more) + 5) // 10).rstrip("0")


@dataclass
class Digits:
    """Looks into files, each once, and into so much in all."""

    _known: dict[Path | str, frozenset[str]] = field(default_factory=dict)
    _left: int = _ALL_BYTES

    def of(self, path: Path) -> frozenset[str]:
        """The digits of the numbers in a file; none if it cannot be read."""
        if path not in self._known:
            text = read_start(path) if self._left > 0 else ""
            self._left -= len(text)
            self._known[path] = digits(text)
        return self._known[path]

    def _in(self, text: str) -> frozenset[str]:
        if text not in self._known:
            self._known[text] = digits(text)
        return self._known[text]

    def are_copied(self, path: Path, files: Iterable[Path], texts: Iterable[str]) -> bool:
        """Whether the numbers in *path* stand in *files* and *texts*; not if it has none."""
        there = frozenset[str]().union(
            *map(self._in, texts), *(self.of(file) for file in files if file != path)
        )
        here = self.of(path) if there else frozenset()
        return bool(here) and len(here & there) >= _SHARE * len(here)


def read_start(path: Path) -> str:
    """The beginning of a file as text; empty if it cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
