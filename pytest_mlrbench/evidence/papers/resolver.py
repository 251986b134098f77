"""Whether cited works exist, as catalogues say over HTTP: only for those who ask for it.

An answer is a catalogue's. A fault of it, of the network or of ours is never ``not_found``.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from importlib.util import find_spec
from typing import Literal

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.evidence.papers import arxiv_ids
from pytest_mlrbench.evidence.papers.asking import Asker, NotAsked, Patience, client
from pytest_mlrbench.evidence.papers.catalogue_cache import Cache
from pytest_mlrbench.evidence.papers.catalogues import CATALOGUES, Name
from pytest_mlrbench.evidence.papers.references import Entry
from pytest_mlrbench.evidence.papers.titles import SAME, overlap, words
from pytest_mlrbench.values import Record

Verdict = Literal["exists", "title_differs", "not_found", "not_asked"]

_WORD = re.compile(r"[^\W\d_]{3}")


class Answer(Record):
    """What is known of one cited work."""

    verdict: Verdict
    #: The catalogue that says so; null where none was asked.
    by: Name | None = None
    #: The title that it has, the nearest of several.
    title: str | None = None
    #: Why there is no answer.
    why: str | None = None


#: A catalogue, and what it is asked for.
_Question = tuple[Name, str]
#: Its titles, or why there is no answer.
_Known = dict[_Question, tuple[str, ...] | NotAsked]


def check() -> None:
    """Check, without asking them, that catalogues can be asked.

    :raises InputError: they cannot.
    """
    if missing := [name for name in ("httpx", "tenacity") if find_spec(name) is None]:
        raise InputError(
            f"looking up citations needs {' and '.join(missing)}:"
            " pip install 'pytest-mlrbench[fetch]'."
        )


def resolve(
    entries: Sequence[Entry],
    today: date,
    *,
    cache: Cache | None = None,
    patience: Patience | None = None,
) -> list[Answer]:
    """Look up *entries*, each by its arXiv identifier, else its DOI, else its title.

    A title differs if the share of common words (:func:`~.titles.overlap`) is below
    :data:`~.titles.SAME`. What only has a title exists if any work found by it has the same.

    :param today: identifiers that nobody can have by then are not asked for.
    :raises InputError: an extra is not installed, or the environment names an unusable address.
    """
    check()
    return asyncio.run(_resolve(entries, today, cache or Cache(), patience or Patience()))


async def _resolve(
    entries: Sequence[Entry], today: date, cache: Cache, patience: Patience
) -> list[Answer]:
    ways = [_ways(entry, today) for entry in entries]
    known: _Known = {}
    try:
        async with asyncio.timeout(patience.total), client(patience) as http:
            askers = {name: Asker(it, http, patience) for name, it in CATALOGUES.items()}
            # The next catalogue is asked only for what the one before does not know.
            for turn in range(max(map(len, ways), default=0)):
                open_still = [
                    way[turn] for way in ways if len(way) > turn and not _found(way[:turn], known)
                ]
                await _ask(dict.fromkeys(open_still), askers, known, cache)
        why = ""
    except NotAsked as fault:
        why = str(fault)
    except TimeoutError:
        why = f"there was no answer within {patience.total:g} s in all"
    return [_answer(entry, way, known, why) for entry, way in zip(entries, ways, strict=True)]


def _ways(entry: Entry, today: date) -> Sequence[_Question]:
    """What to ask for an entry, in this order."""
    in_doi = re.fullmatch(r"10\.48550/arxiv\.(.{1,40})", entry.doi, re.IGNORECASE)
    name = entry.arxiv or (in_doi[1] if in_doi else "")
    if name:
        fault = arxiv_ids.fault(name, today)
        return [] if fault and fault[0] != "patterned" else [("arxiv", name)]
    if entry.doi:
        return [("crossref", entry.doi), ("openalex", entry.doi)]
    return [("openalex", entry.title)] if _WORD.search(entry.title) else []


def _found(way: Sequence[_Question], known: _Known) -> bool:
    """Whether a catalogue has the work, or there was no answer and there is nothing to add."""
    return any(isinstance(known.get(it), NotAsked) or known.get(it) for it in way)


async def _ask(
    questions: Iterable[_Question], askers: Mapping[Name, Asker], known: _Known, cache: Cache
) -> None:
    todo: dict[Name, list[str]] = defaultdict(list)
    for question in questions:
        if (titles := cache.get(*question)) is not None:
            known[question] = titles
        else:
            todo[question[0]].append(question[1])

    async def part(name: Name, wanted: Sequence[str]) -> None:
        try:
            answers = await askers[name].ask(wanted)
        except NotAsked as fault:
            known.update(((name, it), fault) for it in wanted)
            return
        for it, titles in answers.items():
            known[name, it] = titles
            cache.put(name, it, titles)

    async with asyncio.TaskGroup() as group:
        for name, wanted in todo.items():
            size = CATALOGUES[name].together
            for start in range(0, len(wanted), size):
                group.create_task(part(name, wanted[start : start + size]))


def _answer(entry: Entry, way: Sequence[_Question], known: _Known, why: str) -> Answer:
    if not way:
        return Answer(verdict="not_asked", why="it has nothing by which it can be looked up")
    for question in way:
        titles = known.get(question)
        if titles is None or isinstance(titles, NotAsked):
            return Answer(verdict="not_asked", why=str(titles) if titles else why)
        if titles:
            return _compared(entry, question, titles)
    return Answer(verdict="not_found", by=way[-1][0])


def _compared(entry: Entry, question: _Question, titles: Sequence[str]) -> Answer:
    ours = words(entry.title)
    nearest = max(titles, key=lambda title: overlap(ours, words(title)))
    same = not _WORD.search(entry.title) or overlap(ours, words(nearest)) >= SAME
    if same:
        verdict: Verdict = "exists"
    else:
        # What a search finds beside it is another work.
        verdict = "not_found" if question[1] == entry.title else "title_differs"
    return Answer(verdict=verdict, by=question[0], title=nearest)
