"""Entries of BibTeX inside any text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

#: Most characters of an entry that are read.
_LONGEST = 6_000

_START = re.compile(
    r"@(?:article|book|incollection|inproceedings|mastersthesis|misc|online|phdthesis|techreport"
    r"|unpublished)\s?\{\s{0,4}(?P<key>[^\s,{}]{1,100})\s{0,4},",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?:\A|,)\s*(\w{2,30})\s*=\s*")


class BibEntry(NamedTuple):
    """An entry: where it begins and ends in the text, its key, and its fields in small letters."""

    start: int
    end: int
    key: str
    fields: Mapping[str, str]


def bibtex(text: str) -> Iterator[BibEntry]:
    """Yield the entries of *text*; one that is not closed ends where the next begins."""
    found = _START.search(text)
    while found:
        after = _START.search(text, found.end())
        limit = min(found.end() + _LONGEST, after.start() if after else len(text))
        body = _to_its_brace(text[found.end() : limit])
        parts = _FIELD.split(body)
        fields = {
            name.lower(): " ".join(re.sub(r"[{}\"]", "", value).split()).rstrip(" ,")
            for name, value in zip(parts[1::2], parts[2::2], strict=True)
        }
        yield BibEntry(found.start(), found.end() + len(body), found["key"], fields)
        found = after


def _to_its_brace(text: str) -> str:
    depth = 1
    for found in re.finditer(r"[{}]", text):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return text[: found.start()]
    return text
