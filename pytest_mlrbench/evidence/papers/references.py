"""Lists of references as people and models write them, read into entries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pytest_mlrbench.evidence.papers import arxiv_ids
from pytest_mlrbench.evidence.papers.bibtex import BibEntry, bibtex

#: Bounds of what is read: characters of a document, of a line and of an entry; entries.
DOCUMENT, _LINE, _ENTRY, _MOST = 2_000_000, 2_000, 4_000, 500

_HEADING = re.compile(
    r"[ \t]{0,3}(?P<level>#{1,6})?[\s*_]{0,6}(?:(?:\d{1,2}|[IVX]{1,5})[.)]?\s{1,3})?"
    r"(?:references|bibliography|works cited|literature cited)[\s*_:]{0,6}",
    re.IGNORECASE,
)
_OTHER = re.compile(r"[ \t]{0,3}(?P<level>#{1,6})\s+\S")
#: ``[1]``, ``[W1]``, ``[^1]:``, ``1.``, ``1)``, or a bullet that a key in brackets may follow.
_MARK = re.compile(
    r"\s{0,8}(?:\[\^?(?P<key>[\w:+-]{1,40})\](?![(\w]):?\s{0,8}|(?P<number>\d{1,3})[.)]\s{1,8}"
    r"|[-*•+]\s{1,8}(?:\[(?P<named>[A-Za-z]{0,20}\d{1,4}[a-z]?)\](?!\()\s{0,8})?)(?=\S)"
)
_FIELD = re.compile(
    r"[\s>*•+-]{0,12}(?:\d{1,3}[.)]\s{1,4})?\*{0,2}(?P<name>title|authors?|year|date|published)"
    r"\*{0,2}\s?:\s?\*{0,2}\s{0,4}(?P<value>.*)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<![\d.:/])(?:19[5-9]|20[0-4])\d(?=[a-z]?(?!\d|\.\d))")
#: The year behind the authors, as most styles have it in front of the title.
_DATED = re.compile(r"[(,]\s?(?:19[5-9]|20[0-4])\d[a-z]?(?:, \w{3,9})?\s?\)?[.:,]?(?=\s|$)")
_QUOTED = re.compile(r"[“\"«](?P<title>[^“”\"«»]{3,400})[”\"»]")
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>{}|\\^`\[\]*]{1,200}")
#: A stop behind an initial does not end a sentence.
_STOP = re.compile(r"(?<=[\w)\]’']{2})(?<!\W[A-Z])[.?!](?:\s+|$)")  # noqa: RUF001
_WORD = re.compile(r"[^\W\d_]{3}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One reference; what it does not say is empty or null.

    :param key: as the list numbers or names it.
    :param line: where it begins, from 1.
    :param text: the whole of it.
    """

    key: str
    authors: str
    title: str
    year: int | None
    arxiv: str
    doi: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text's references, and its body: the text without them, each line where it was."""

    entries: tuple[Entry, ...]
    body: str


def read(text: str) -> Document:
    """Read a paper or a literature review, in whichever form it gives its references."""
    text = text[:DOCUMENT]
    lines = [line[:_LINE] for line in text.split("\n")]
    spans = list(_lists(lines))
    bib = list(islice(bibtex(text), _MOST))
    entries = [*_fielded(lines), *(_of_bibtex(text, found) for found in bib)]
    for start, end in spans[:_MOST]:
        entries += (_entry(*item) for item in islice(_items(lines, start, end), _MOST))
    if not entries:
        items = islice(_items(lines, 0, len(lines)), _MOST)
        entries += filter(_is_reference, (_entry(*item) for item in items))
    inside = {number for start, end in spans for number in range(start, end)}
    for found in bib:
        first = text.count("\n", 0, found.start)
        inside |= set(range(first, first + text.count("\n", found.start, found.end) + 1))
    body = "\n".join("" if number in inside else line for number, line in enumerate(lines))
    return Document(tuple(entries[:_MOST]), body)


def _lists(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines of each list that has a heading: up to the next heading that is not below it."""
    start, level = None, 6
    for number, line in enumerate(lines):
        if found := _HEADING.fullmatch(line):
            if start is not None:
                yield start, number
            start, level = number + 1, len(found["level"] or "") or 6
        elif start is not None and (other := _OTHER.match(line)) and len(other["level"]) <= level:
            yield start, number
            start = None
    if start is not None:
        yield start, len(lines)


_Item = tuple[str, str, int]


def _items(lines: Sequence[str], start: int, end: int) -> Iterator[_Item]:
    """Key, text and line of each item; where few lines are marked, each paragraph is one."""
    marks = [_MARK.match(lines[number]) for number in range(start, end)]
    filled = sum(bool(line.strip(" -")) for line in lines[start:end])
    by_marks = 3 * sum(map(bool, marks)) >= filled
    # Without marks or blank lines between them, each line is an item.
    by_lines = not by_marks and not any(
        not lines[n].strip() and lines[n + 1].strip() for n in range(start + 1, end - 1)
    )
    item: _Item | None = None
    for number, mark in zip(range(start, end), marks, strict=True):
        line = lines[number].strip()
        begins = bool(mark) if by_marks else by_lines or item is None
        if item and (not line or begins):
            yield item
            item = None
        if not line.strip("-"):
            continue
        if mark and begins:
            key = mark["key"] or mark["number"] or mark["named"] or ""
            item = key, lines[number][mark.end() :].strip(), number + 1
        elif item:
            item = item[0], f"{item[1]} {line}"[:_ENTRY], item[2]
        elif not by_marks:
            item = "", line, number + 1
    if item:
        yield item


def _entry(key: str, raw: str, line: int) -> Entry:
    plain = re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", raw)
    authors, title = _who_and_what(plain)
    return _made(key, authors, title, plain, line)


def _who_and_what(text: str) -> tuple[str, str]:
    """Authors and title of a reference: the title is quoted, behind the year, or the second part.

    Where the two cannot be told apart, both are the whole.
    """
    if (quoted := _QUOTED.search(text)) and _STOP.search(
        text[: quoted.start()].rstrip(". ")
    ) is None:
        return _DATED.sub("", text[: quoted.start()]).strip(" ,.:(["), quoted["title"].strip(" ,.")
    dated = _DATED.search(text)
    if dated and not _STOP.search(text[: dated.start()].rstrip(". ")):
        title = _STOP.split(text[dated.end() :].strip(), maxsplit=1)[0]
        if _WORD.search(title):
            return text[: dated.start()].strip(" ,."), title
    parts = _STOP.split(text, maxsplit=2)
    if len(parts) == 1 or not parts[1].strip():
        return text, text
    if not _WORD.search(parts[1]):
        return "", parts[0]
    return parts[0].strip(), parts[1].strip()


def _made(key: str, authors: str, title: str, text: str, line: int, year: str = "") -> Entry:
    years = _YEAR.findall(year or arxiv_ids.without(text))
    doi = _DOI.search(text)
    return Entry(
        key=key,
        authors=authors[:_LINE],
        title=title[:_LINE],
        year=int(years[-1]) if years else None,
        arxiv=next((found.id for found in arxiv_ids.mentions(text)), ""),
        doi=doi[0].rstrip(".,;)") if doi else "",
        line=line,
        text=text[:_ENTRY],
    )


def _is_reference(entry: Entry) -> bool:
    """Whether an item of a text without a list is one: it has what only references have."""
    return bool((entry.arxiv or entry.doi) and _WORD.search(entry.title))


def _fielded(lines: Sequence[str]) -> list[Entry]:
    """Works described by fields, a line each, of which the first is the title.

    A single one is none: a paper's own title may stand so.
    """
    works: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(lines, start=1):
        if found := _FIELD.match(line):
            name = found["name"].lower().removesuffix("s")
            if name == "title":
                works.append((number, {}))
            if works:
                works[-1][1].setdefault(name, found["value"].strip(" *"))
    if len(works) < 2:
        return []
    return [_from_fields("", work, number) for number, work in works[:_MOST]]


def _of_bibtex(text: str, found: BibEntry) -> Entry:
    fields = dict(found.fields)
    if eprint := fields.get("eprint"):
        fields["eprint"] = f"arXiv:{eprint.removeprefix('arXiv:')}"
    return _from_fields(found.key, fields, text.count("\n", 0, found.start) + 1)


def _from_fields(key: str, fields: Mapping[str, str], line: int) -> Entry:
    title = re.sub(r"\s?\(?arxiv:.{0,40}$", "", fields.get("title", ""), flags=re.IGNORECASE)
    year = fields.get("year") or fields.get("date") or fields.get("published") or ""
    return _made(key, fields.get("author", ""), title, "; ".join(fields.values()), line, year)
