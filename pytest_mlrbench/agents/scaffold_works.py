"""Scholarly works as a catalogue describes them, made safe to show to a model and to print."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_mlrbench.values import Value

#: Most characters of an abstract, a title and other texts of a record that are kept.
_ABSTRACT, _TITLE, _OTHER = 1500, 300, 120
_MOST_AUTHORS = 20
_DOI = re.compile(r"https?://[\w.]+/10\.\d{4,9}/[\w.;()/:+-]{1,200}")


class Work(Value):
    """A scholarly work as the catalogue knows it; what it does not know is empty or null."""

    id: str
    title: str
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str = ""
    doi: str = ""
    abstract: str = ""


def read_work(entry: Any) -> Work | None:
    """Return a work; null for what has no title. Whatever is odd in the rest of it is left out."""
    if not isinstance(entry, dict) or not (title := clean(entry.get("display_name"), _TITLE)):
        return None
    location = entry.get("primary_location")
    source = location.get("source") if isinstance(location, dict) else None
    year, doi = entry.get("publication_year"), entry.get("doi")
    return Work(
        id=clean(entry.get("id"), _OTHER),
        title=title,
        authors=tuple(_authors(entry.get("authorships"))),
        year=year if isinstance(year, int) and 0 < year < 3000 else None,
        venue=clean(source.get("display_name"), _OTHER) if isinstance(source, dict) else "",
        doi=doi if isinstance(doi, str) and _DOI.fullmatch(doi) else "",
        abstract=clean(_abstract(entry.get("abstract_inverted_index")), _ABSTRACT),
    )


def _authors(entries: Any) -> Iterator[str]:
    for entry in entries[:_MOST_AUTHORS] if isinstance(entries, list) else ():
        author = entry.get("author") if isinstance(entry, dict) else None
        name = clean(author.get("display_name"), _OTHER) if isinstance(author, dict) else ""
        if name:
            yield name


def _abstract(index: Any) -> str:
    """The text that an inverted index (word → its places) was made of."""
    if not isinstance(index, dict):
        return ""
    placed = [
        (place, word)
        for word, places in index.items()
        for place in (places if isinstance(places, list) else ())
        if isinstance(place, int)
    ]
    return " ".join(word for _, word in sorted(placed)[: 2 * _ABSTRACT])


def clean(text: Any, limit: int) -> str:
    """Return a catalogue's text as plain words on one line, of which none looks like a key."""
    if not isinstance(text, str):
        return ""
    text = re.sub(r"</?[A-Za-z][^<>]{0,200}>", "", html.unescape(text[: 10 * limit]))
    text = "".join(char if char.isprintable() else " " for char in text)
    text = " ".join(text.translate(str.maketrans("[]<>`", "()()'")).split())
    return text if len(text) <= limit else f"{text[:limit].rstrip()}..."


def distinct(works: Iterable[Work]) -> Iterator[Work]:
    """Yield works once each: a preprint and its publication have the same title."""
    seen: set[str] = set()
    for work in works:
        title = "".join(filter(str.isalnum, work.title.casefold()))
        names = {name for name in (work.id, work.doi.lower(), title) if name}
        if not names & seen:
            yield work
        seen |= names
