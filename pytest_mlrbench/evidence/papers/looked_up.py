"""What catalogues say of the works that a paper cites, and a literature review before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date

from pytest_mlrbench.evidence.base import Finding
from pytest_mlrbench.evidence.papers import references
from pytest_mlrbench.evidence.papers.references import Entry
from pytest_mlrbench.evidence.papers.resolver import Answer, resolve

#: Works of one document that are asked for.
_MOST = 300
_QUOTED = 300


def look_up(documents: Mapping[str, str], today: date) -> tuple[dict[str, int], list[Finding]]:
    """Return verdict → number of cited works, and what is to be looked at.

    :param documents: name → text.
    :raises InputError: catalogues cannot be asked at all.
    """
    entries = [
        (name, entry)
        for name, text in documents.items()
        for entry in references.read(text).entries[:_MOST]
    ]
    answers = resolve([entry for _, entry in entries], today)
    counted = Counter(answer.verdict for answer in answers)
    found = [
        finding
        for (name, entry), answer in zip(entries, answers, strict=True)
        for finding in _finding(name, entry, answer)
    ]
    return dict(sorted(counted.items())), found


def _finding(document: str, entry: Entry, answer: Answer) -> Iterator[Finding]:
    """A catalogue may lack a work, so that what it does not know is for a person to look at."""
    if answer.verdict == "not_found":
        sentence = f"{answer.by} knows no such work."
    elif answer.verdict == "title_differs":
        sentence = f"{answer.by} has another work by that identifier: {answer.title!r}."
    else:
        return
    yield Finding(
        kind=f"citation_{answer.verdict}",
        severity="hint",
        sentence=sentence,
        place=f"{document}:{entry.line}",
        quote=entry.text[:_QUOTED],
    )
