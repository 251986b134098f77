"""Data sets and models that a paper says it used, and that its run never mentions."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pytest_mlrbench.evidence.papers.known_names import KNOWN
from pytest_mlrbench.evidence.reports.outline import Line, outline

#: Characters of a paper, of a run, and of a sentence that are looked at.
_PAPER, _RUN, _SENTENCE = 500_000, 64_000_000, 600
_MOST = 30

_OURS = re.compile(
    r"\b(?:we|our|experiments?|evaluat\w+|train(?:ed|ing)?|fine-?tun\w+|test(?:ed)?|benchmark(?:ed)?"
    r"|measured?|conduct\w*|us(?:e|ed|es|ing)|perform(?:ed)?|appl(?:y|ied)|data ?sets?|subset|split"
    r"|initiali[sz]ed|pre-?trained|implemented|built on|backbone|achiev\w+|results?)\b",
    re.IGNORECASE,
)
#: What is said of others, of what could be, or of what was not done.
_NOT_OURS = re.compile(
    r"\b(?:et al|such as|like|similar to|unlike|inspired|propos\w+ by|introduced by|prior|previous"
    r"|future|would|could|should|might|plan\w*|intend\w*|aim to|originally|initially|instead of"
    r"|rather than|not|cannot|without|unable|lack\w*|infeasible|unavailable|e\.g|i\.e|for example"
    r"|for instance|comparable|reported in|literature|larger|beyond|extend\w*|including)\b",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    r"introduc|background|motivation|related|discussion|limitation|conclu|future|impact|ethic"
    r"|acknowledg|references|bibliograph|appendi",
    re.IGNORECASE,
)
_HEADED = re.compile(r"experiment|evaluat|data|set-?up|result|training", re.IGNORECASE)
_END = re.compile(r"(?<=[.?!;])\s+(?=[A-Z(\[*])")
_CUE = re.compile(
    r"\b(?:the|on|from|of)\s+\**(?P<name>[A-Z][\w/+-]{2,30}(?:[ -][A-Z0-9][\w+-]{0,20}){0,2})\**"
    r"(?:\s?\[[\d, ]{1,12}\]|\s?\([^()]{1,40}\))?\s+(?:data ?set|benchmark|corpus)\b"
)
#: Words of any sentence about data; what a paper made itself is called by no name of this kind.
_GENERAL = re.compile(
    r"(?:adult|all|base\w*|bold|combined|custom|drop|each|evaluation|full|held|hugging|leaf|my"
    r"|original|our|proposed|real|same|simulated|small|synthetic|target|test|this|toy|training"
    r"|validation)\b",
    re.IGNORECASE,
)
_NO_LETTERS = bytes(set(range(256)) - set((string.ascii_lowercase + string.digits).encode()))


class Named(NamedTuple):
    """A name that the paper uses, its line there, and the sentence."""

    name: str
    line: int
    sentence: str


def unseen(paper: str, run: Iterable[str]) -> Iterator[Named]:
    """Yield what *paper* says was used and no text of *run* names, in any spelling."""
    seen = _squeezed_all(run)
    told: set[bytes] = set()
    for line, sentence in _sentences(paper):
        for name, others in _names(sentence):
            squeezed = _squeezed(name)
            spellings = {squeezed, *map(_squeezed, others)}
            # The longer name of a family stands for the shorter one: it is told once.
            if any(it in seen for it in spellings) or any(it in squeezed for it in told):
                continue
            told.add(squeezed)
            yield Named(name, line, sentence)
            if len(told) >= _MOST:
                return


def _squeezed(text: str) -> bytes:
    """Letters and digits only: ``SST-2``, ``sst2`` and ``glue/sst_2`` become alike."""
    return text.lower().encode("ascii", "ignore").translate(None, _NO_LETTERS)


def _squeezed_all(texts: Iterable[str]) -> bytes:
    left, parts = _RUN, []
    for text in texts:
        parts.append(_squeezed(text[:left]))
        left -= len(text)
        if left <= 0:
            break
    return b" ".join(parts)


def _sentences(paper: str) -> Iterator[tuple[int, str]]:
    """Yield what the paper says of its own work: line and sentence."""
    for line in outline(paper[:_PAPER]):
        if line.kind == "others" or line.kind == "opening" or _LEFT_OUT.search(line.heading):
            continue
        for sentence in _END.split(line.text[:4000]):
            if _is_ours(line, sentence):
                yield line.number, sentence.strip()[:_SENTENCE]


def _is_ours(line: Line, sentence: str) -> bool:
    is_heading = bool(line.heading) and line.heading in line.text
    if not (_OURS.search(sentence) or (is_heading and _HEADED.search(sentence))):
        return False
    return not _NOT_OURS.search(sentence)


_Name = tuple[str, tuple[str, ...]]


def _names(sentence: str) -> Iterator[_Name]:
    found: list[tuple[int, int, _Name]] = []
    for match in _KNOWN.finditer(sentence[:_SENTENCE]):
        name = _BY_SPELLING[_squeezed(match[0])]
        found.append((match.start(), match.end(), (name, KNOWN[name])))
    for match in _CUE.finditer(sentence[:_SENTENCE]):
        inside = any(start < match.end() and match.start() < end for start, end, _ in found)
        if not inside and not _GENERAL.match(match["name"]):
            found.append((match.start(), match.end(), (match["name"], ())))
    yield from (name for _, _, name in found)


def _spellings(name: str) -> set[str]:
    """How papers write a name; one without digits is an ordinary word in small letters."""
    return {name, name.upper()} | (
        {name.lower(), name.capitalize()} if _MARKED.search(name) else set()
    )


_MARKED = re.compile(r"[\d-]")
_BY_SPELLING = {_squeezed(name): name for name in KNOWN}
_KNOWN = re.compile(
    r"(?<![\w/-])(?:"
    + "|".join(
        re.sub(r"(?:\\?[- ])+", "[- ]?", re.escape(spelling))
        for spelling in sorted(
            {it for name in KNOWN for it in _spellings(name)}, key=len, reverse=True
        )
    )
    + r")(?!\w|\.\d|-(?:like|style|inspired|based))"
)
