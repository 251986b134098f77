"""What can be told of citations without asking anybody: of papers and of the literature reviews."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice

from pytest_mlrbench.evidence.base import Finding
from pytest_mlrbench.evidence.papers import arxiv_ids, citing
from pytest_mlrbench.evidence.papers.references import DOCUMENT, Document, Entry, read
from pytest_mlrbench.evidence.papers.titles import SAME, folded, overlap, words

#: Most findings of one kind in one document.
_MOST = 50
#: The review that the literature step hands on to those that write the paper.
_REVIEW = re.compile(r"(?:.*/)?related_work[^/]*\.md")

_WORD = re.compile(r"[^\W\d_]{2}")
_UNKNOWN = re.compile(
    r"\W*(?:(?:first )?authors?(?: names?)?(?: n\.?/?a\.?| (?:unknown|withheld))?|anonymous"
    r"(?: authors?)?|n\.?/?a\.?|none|tb[ad]|to be (?:added|determined)|unknown(?: authors?)?"
    r"|various(?: authors?)?|et al\.?|(?:author(?:s|\(s\))?|names?|author names?)?\s?(?:are )?not"
    r" (?:available|disclosed|given|known|listed|provided|specified|stated)\b.{0,60})\W*",
    re.IGNORECASE,
)
_DOE = re.compile(r"\b(?:J\.?|John|Jane) Doe\b|\bDoe, J", re.IGNORECASE)
#: Names of people in examples. One is nobody's fault; a work by nobody else hardly exists.
_STOCK = {
    *("adams", "anderson", "black", "blue", "brown", "davis", "doe", "garcia", "gray", "green"),
    *("johnson", "jones", "lee", "martinez", "miller", "moore", "red", "smith", "taylor"),
    *("thomas", "white", "williams", "wilson"),
}


_WHAT = {
    "impossible": "is the identifier of no paper",
    "malformed": "is no identifier of arXiv",
    "patterned": "may exist, but is a number as people make them up",
}


@dataclass(frozen=True, slots=True)
class _Text:
    """A document, its references, and its identifiers in their order, each once."""

    name: str
    document: Document
    ids: Mapping[str, int]

    @property
    def is_review(self) -> bool:
        return bool(_REVIEW.fullmatch(self.name))


def findings(documents: Mapping[str, str], today: date) -> list[Finding]:
    """Check the citations of papers and reviews; a paper's faults that a review has say so.

    :param documents: path in the submission → text; a review of the literature is known by its
        name, ``related_work.md``.
    :param today: no identifier is younger.
    """
    texts = [_read(name, text) for name, text in documents.items()]
    reviews = [text for text in texts if text.is_review]
    found: list[Finding] = []
    for text in texts:
        above = [] if text.is_review else reviews
        for check in (
            _ids(text, above, today),
            _series(text, above),
            _entries(text, above),
            _keys(text),
            _beside(text, above),
        ):
            found += islice(check, _MOST)
    return found


def _read(name: str, text: str) -> _Text:
    document = read(text)
    mentions = islice(arxiv_ids.mentions(text[:DOCUMENT]), 5_000)
    ids = {mention.id: mention.line for mention in mentions}
    for entry in document.entries:
        if entry.arxiv:
            ids.setdefault(entry.arxiv, entry.line)
    return _Text(name, document, ids)


def _from(reviews: Iterable[_Text]) -> str:
    """The words that say which of the *reviews* with the same fault a paper's comes from."""
    return next((f"; it comes from {review.name}" for review in reviews), "")


def _ids(text: _Text, reviews: Sequence[_Text], today: date) -> Iterator[Finding]:
    for name, line in text.ids.items():
        if not (fault := arxiv_ids.fault(name, today)):
            continue
        kind, why = fault
        origin = _from(review for review in reviews if name in review.ids)
        yield Finding(
            kind=f"{kind}_arxiv_id",
            severity="strong" if kind == "impossible" else "hint",
            sentence=f"arXiv:{name} {_WHAT[kind]}: {why}{origin}.",
            place=f"{text.name}:{line}",
            quote=name,
        )


def _series(text: _Text, reviews: Sequence[_Text]) -> Iterator[Finding]:
    for group in arxiv_ids.series(list(text.ids)):
        origin = _from(review for review in reviews if set(group) <= review.ids.keys())
        yield Finding(
            kind="arxiv_id_series",
            severity="hint",
            sentence=f"The numbers of {len(group)} identifiers of arXiv in a row differ by one and"
            f" the same step{origin}.",
            place=f"{text.name}:{text.ids[group[0]]}",
            quote=", ".join(group[:10]),
        )


def _entries(text: _Text, reviews: Sequence[_Text]) -> Iterator[Finding]:
    for entry in text.document.entries:
        title = _WORD.search(entry.title)
        if title and (why := _placeholder(entry.authors)):
            kind, what = "placeholder_authors", why
        elif not title or not _WORD.search(entry.authors):
            kind, what = "incomplete_reference", f"names no {'authors' if title else 'title'}"
        else:
            continue
        origin = _from(r for r in reviews if _same(entry, r.document.entries))
        yield Finding(
            kind=kind,
            severity="hint",
            sentence=f"A reference {what}{origin}.",
            place=f"{text.name}:{entry.line}",
            quote=(entry.text if kind == "incomplete_reference" else entry.authors)[:200],
        )


def _placeholder(authors: str) -> str:
    """Why *authors* stand for nobody; empty where they may be people."""
    if _UNKNOWN.fullmatch(authors):
        return "does not say who wrote it"
    if _DOE.search(authors):
        return "has John Doe among its authors"
    names = [
        folded(words[-1])
        for part in re.split(r"[,;&]|\band\b|\bet al", authors)
        if (words := re.findall(r"[^\W\d_]{2,}", part))
    ]
    if len(names) >= 2 and _STOCK.issuperset(names):
        return "has only authors with the names of people in examples"
    return ""


def _same(entry: Entry, others: Sequence[Entry]) -> Entry | None:
    """The entry among *others* for the same work."""
    title = words(entry.title)
    for other in others:
        if entry.arxiv and entry.arxiv == other.arxiv:
            return other
        if overlap(title, words(other.title)) >= SAME:
            return other
    return None


def _keys(text: _Text) -> Iterator[Finding]:
    for key, line in citing.without_entry(text.document):
        yield Finding(
            kind="citation_without_entry",
            severity="hint",
            sentence=f"{key} is cited and no entry of the references is for it.",
            place=f"{text.name}:{line}",
            quote=key,
        )


def _beside(text: _Text, reviews: Sequence[_Text]) -> Iterator[Finding]:
    """The works of a paper that the literature step did not find, counted."""
    known = [entry for review in reviews for entry in review.document.entries]
    if not known or not (entries := text.document.entries):
        return
    new = [entry for entry in entries if not _same(entry, known)]
    if new:
        yield Finding(
            kind="references_beside_review",
            severity="hint",
            sentence=f"Of {len(entries)} references, {len(new)} are not in {reviews[0].name}:"
            " nothing says where they come from.",
            place=f"{text.name}:{new[0].line}",
            quote=new[0].title[:200],
        )
