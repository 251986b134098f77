"""Citations of a literature review: they lead to works that were found, or they are taken out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_mlrbench.agents.scaffold_works import Work

Works = Mapping[str, Work]

#: Stands for a work that the review names in its sentence and that was not found.
REMOVED = "(unsupported citation removed)"
#: Most authors of a work that the list of references names.
_MOST_AUTHORS = 6

_KEYS = re.compile(r"\s?\[(\s*W\d{1,4}(?:\s*[,;&–-]\s*W\d{1,4})*\s*)\]")  # noqa: RUF001
_RANGE = re.compile(r"W(\d{1,4})\s*[–-]\s*W(\d{1,4})")  # noqa: RUF001
#: One number only: two of them may be an interval.
_NUMBER = re.compile(r"(?<=[\w.,;:)])\s\[[1-9]\d{0,2}\]")
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\((?:https?://|doi:)[^()\s]{1,500}\)", re.IGNORECASE)
_PLACE = (
    r"(?:https?://[^\s()<>\]]{1,500}|\b(?:doi|arxiv):\s?\d[^\s()<>,\]]{3,200}"
    r"|\b10\.\d{4,9}/[^\s()<>,\]]{1,200})(?<![.,;:])"
)
_ADDRESS = re.compile(rf"\s?\({_PLACE}\)|\s?{_PLACE}", re.IGNORECASE)
_NAME = r"[A-Z][\w'’-]{1,40}"  # noqa: RUF001
_YEAR = r"(?:19|20)\d\d[a-z]?"
_PEOPLE = rf"{_NAME}(?:,? et al\.?|,? (?:and|&) {_NAME})"
_ASIDE = re.compile(rf"\s?\((?:[^()\n]{{0,200}}?\b)?{_PEOPLE},? {_YEAR}[^()\n]{{0,200}}\)")
_SPOKEN = re.compile(rf"{_PEOPLE},? \({_YEAR}\)")
_REFERENCES = re.compile(
    r"^(#{1,6})\s*\**(?:\d+\.?\s+)?(?:references|bibliography|works cited)\**\s*:?\s*$"
    r"|^\*\*(?:references|bibliography|works cited)\**:?\**\s*$",
    re.IGNORECASE | re.MULTILINE,
)


def keyed(works: Sequence[Work]) -> Works:
    """Return *works* by the keys under which they are cited: W1, W2 and so on."""
    return {f"W{number}": work for number, work in enumerate(works, start=1)}


def for_model(works: Works) -> str:
    """Return the works as the model is shown them."""
    return "\n\n".join(
        f"[{key}] {work.title}\n{_who(work)} · {work.year or 'no year'}"
        f"{f' · {work.venue}' if work.venue else ''}\n{work.abstract or '(no abstract)'}"
        for key, work in works.items()
    )


def checked(text: str, works: Works) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return *text* without what does not lead to *works*; the keys it cites; what was taken out.

    Works are cited by key only, so any other form of citation comes from the model's memory. A
    list of references that it wrote goes as well; ours takes its place.
    """
    text, removed = without_references(text)
    cited: dict[str, None] = {}

    def keys(found: re.Match[str]) -> str:
        inside = _RANGE.sub(_spread, found[1])
        wanted = list(dict.fromkeys(re.findall(r"W\d+", inside)))
        known = [key for key in wanted if key in works]
        removed.extend(f"[{key}]" for key in wanted if key not in works)
        cited.update(dict.fromkeys(known))
        space = " " if found[0][:1].isspace() else ""
        return f"{space}[{', '.join(known)}]" if known else ""

    def drop(found: re.Match[str]) -> str:
        removed.append(found[0].strip())
        return ""

    def name(found: re.Match[str]) -> str:
        removed.append(found[0])
        return REMOVED

    def unlink(found: re.Match[str]) -> str:
        removed.append(found[0])
        return found[1]

    text = _KEYS.sub(keys, text)
    text = _LINK.sub(unlink, text)
    for pattern, instead in ((_ADDRESS, drop), (_ASIDE, drop), (_SPOKEN, name), (_NUMBER, drop)):
        text = pattern.sub(instead, text)
    return text, tuple(cited), tuple(removed)


def _spread(found: re.Match[str]) -> str:
    first, last = int(found[1]), int(found[2])
    if not first < last <= first + 50:
        return found[0]
    return ", ".join(f"W{number}" for number in range(first, last + 1))


def without_references(text: str) -> tuple[str, list[str]]:
    """Return *text* without its own list of references, and a word about it if it had one."""
    found = _REFERENCES.search(text)
    if not found:
        return text, []
    level = len(found[1] or "") or 6
    after = re.compile(rf"^#{{1,{level}}}\s", re.MULTILINE).search(text, found.end())
    rest = text[after.start() :] if after else ""
    return f"{text[: found.start()].rstrip()}\n\n{rest}".rstrip(), ["its own list of references"]


def references(cited: Sequence[str], works: Works) -> str:
    """Return the list of the works that are cited, written from the catalogue's records."""
    lines = [f"- [{key}] {_reference(works[key])}" for key in works if key in cited]
    return "## References\n\n" + ("\n".join(lines) or "No work is cited.")


def _reference(work: Work) -> str:
    title = work.title if work.title[-1] in ".?!" else f"{work.title}."
    parts = [f"{_who(work)} ({work.year or 'n.d.'}).", title]
    if work.venue:
        parts.append(f"{work.venue}.")
    return " ".join([*parts, work.doi or work.id]).strip()


def _who(work: Work) -> str:
    names = work.authors[:_MOST_AUTHORS]
    more = " et al." if len(work.authors) > len(names) else ""
    return ", ".join(names) + more if names else "(authors unknown)"
