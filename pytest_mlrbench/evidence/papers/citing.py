"""Keys by which a text cites, and those of them that no entry of its references has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_mlrbench.evidence.papers.references import Document, Entry
from pytest_mlrbench.evidence.papers.titles import folded

#: Fewer entries are no list that keys could be held against.
_ENTRIES = 3

_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1|`[^`\n]{1,300}`", re.DOTALL | re.MULTILINE)
_MATH = re.compile(r"\$\$[^$]{1,4000}\$\$|\$[^$\n]{1,500}\$|\\\(.{1,500}?\\\)|\\\[.{1,2000}?\\\]")
_NUMBERS = re.compile(
    r"(?<=[\w.,;:)\"”*] )\[(\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,20})\](?![(\[\]])"  # noqa: RUF001
)
#: After these words, numbers in brackets are an interval or a list.
_NO_CITATION = re.compile(
    r"(?:\b(?:between|dimensions?|elements?|from|in|interval|layers?|range|over|shape|sizes?|to"
    r"|values?|within)|[=∈≈:])\s{0,2}$",
    re.IGNORECASE,
)
_NAME = r"[A-Z][\w'’-]{1,40}"  # noqa: RUF001
_PEOPLE = re.compile(
    rf"(?P<name>{_NAME})(?:,? et al\.?|,? (?:and|&) {_NAME}),? ?[(\[]?(?P<year>(?:19|20)\d\d)(?!\d)"
)
_SPELT_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "ß": "ss"})
_LATEX = re.compile(r"\\cite[a-z]{0,10}\*?(?:\[[^\]\n]{0,80}\]){0,2}\{([^{}\n]{1,300})\}")
_PANDOC = re.compile(r"(?<=[\[;])\s?-?@([\w:.+-]{2,60})(?=[^\[\]\n]{0,80}\])")
_NAMED = re.compile(
    r"(?<=\s)\[([A-Za-z]{1,20}\d{1,4}[a-z]?(?:, ?[A-Za-z]{1,20}\d{1,4}[a-z]?){0,9})\]"
)


def without_entry(document: Document) -> Iterator[tuple[str, int]]:
    """Yield each key of the body that leads to no entry, with its first line.

    Only forms of keys that the list itself has are held against it.
    """
    if len(document.entries) < _ENTRIES:
        return
    body = _MATH.sub(_blank, _CODE.sub(_blank, document.body))
    seen: set[str] = set()
    for key, place in (
        *_numbers(body, document.entries),
        *_names(body, document.entries),
        *_keys(body, document.entries),
    ):
        if key not in seen:
            seen.add(key)
            yield key, body.count("\n", 0, place) + 1


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _numbers(body: str, entries: Sequence[Entry]) -> Iterator[tuple[str, int]]:
    known = {int(entry.key) for entry in entries if entry.key.isdecimal()}
    groups = [
        (found.start(), [int(number) for number in re.findall(r"\d+", found[1])])
        for found in _NUMBERS.finditer(body)
        if not _NO_CITATION.search(body, max(0, found.start() - 20), found.start())
    ]
    cited = [(place, numbers) for place, numbers in groups if 0 not in numbers]
    # Where few groups lead to the list, numbers in brackets are something else here.
    if len(known) < _ENTRIES or 2 * sum(known.issuperset(n) for _, n in cited) < len(cited):
        return
    for place, numbers in cited:
        yield from ((f"[{number}]", place) for number in numbers if number not in known)


def _names(body: str, entries: Sequence[Entry]) -> Iterator[tuple[str, int]]:
    # The whole texts, as authors may be cut off wrongly where the style is not known.
    texts = [(folded(entry.text), entry.year) for entry in entries]
    for found in _PEOPLE.finditer(body):
        names = {folded(found["name"]), folded(found["name"].translate(_SPELT_OUT))}
        year = int(found["year"])
        # A preprint and its publication are often a year apart.
        if not any(
            any(name in text for name in names) and (not dated or abs(dated - year) <= 1)
            for text, dated in texts
        ):
            yield f"{found['name']} {year}", found.start()


def _keys(body: str, entries: Sequence[Entry]) -> Iterator[tuple[str, int]]:
    known = {entry.key for entry in entries if not entry.key.isdecimal()} - {""}
    if len(known) < _ENTRIES:
        return
    for pattern in (_LATEX, _PANDOC, _NAMED):
        for found in pattern.finditer(body):
            for key in filter(None, re.split(r"[,\s]+", found[1])):
                if key not in known:
                    yield key, found.start()
