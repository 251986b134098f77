"""Which numbers of a sentence are reported as measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pytest_mlrbench.evidence.reports.numbers import Number, numbers_in
from pytest_mlrbench.evidence.reports.outline import Line
from pytest_mlrbench.evidence.reports.settings import is_chosen

PRECISE = re.compile(
    r"[0-9]?\.[0-9]|[0-9][\s*_}$]{0,3}\\?(?:%|×|x\b|p)|[0-9](?:[eE]-|\^|-fold|\stimes)"  # noqa: RUF001
)
#: A number after them is a bound of what was measured.
_BOUND = (
    "<", ">", "≤", "≥", "\\leq", "\\geq", "\\le", "\\ge", "\\lt", "\\gt", " over", " under",
    " above", " below", " beyond", " exceed", " exceeds", " exceeding", " exceeded", " than",
    " at least", " at most", " within", " close to", " near", " surpassing", " surpasses",
    " surpassed",
)  # fmt: skip
_ROUGH = (
    "≈", "∼", "≃", "\\approx", "\\sim", " about", " around", " approximately", " approx",  # noqa: RUF001
    " roughly", " nearly", " almost", " circa", " some",
)  # fmt: skip
#: A number that is said to be rough is held to be exact if its last digit tells less than this.
_FINE = 0.005
_NOT_YET = re.compile(
    r"\b(?:expect(?:ed)? (?:to|that|a|an)|will|would|could|should|might|aim(?:s|ed"
    r"|ing)? (?:to|for|at)"
    r"|target(?:s|ed|ing)?|hypothesi[sz]e[sd]?|anticipate[sd]?|plan(?:s|ned)? to|goal|suppose)\b",
    re.I,
)
_CITED = re.compile(
    r"\[\^?[0-9]{1,3}|\bet al\b|\([A-Z][^()]{1,60},? (?:19|20)[0-9]{2}[a-z]?\)|\\cite|\[@"
)
_END = re.compile(r"[.!?][*)]{0,3}\s")
_REACH = 30
#: Letters before a number that may belong to its sentence.
_LONGEST = 600


class _Sentence(NamedTuple):
    start: int
    end: int
    #: From here on it speaks of what has not happened.
    not_yet: int
    cites: bool


def measured_in(line: Line) -> Iterator[Number]:
    """Yield the numbers of *line* that a reader takes for results of the authors' own."""
    if line.kind in ("others", "settings") or not PRECISE.search(line.text):
        return
    sentence: _Sentence | None = None
    exact = True
    for number in numbers_in(line.text, line.number):
        exact = is_exact(line.text, number) and (exact or not number.ends_range)
        if not number.is_precise or not exact:
            continue
        if sentence is None or number.start >= sentence.end:
            sentence = _sentence(line.text, number.start, sentence.end if sentence else 0)
        if number.start > sentence.not_yet or (line.kind == "opening" and sentence.cites):
            continue
        if not is_chosen(line.text, sentence.start, number.start, number.end):
            yield number


def is_exact(text: str, number: Number) -> bool:
    """Tell whether *number* is given as the value, and not as a bound or roughly."""
    before = " " + text[max(0, number.start - _REACH) : number.start].lower()
    before = before.rstrip(" \t\u00a0$*_=({.")
    if before.endswith(_BOUND):
        return False
    rough = before.endswith(_ROUGH) or (before.endswith("~") and not before.endswith(" ~~"))
    return not rough or number.slack < _FINE * abs(number.value)


def _sentence(text: str, place: int, least: int) -> _Sentence:
    """Return the sentence at *place*; it begins at *least* or later."""
    ending = _END.search(text, place)
    end = ending.end() if ending else len(text)
    least = max(least, place - _LONGEST)
    start = max(least, *(text.rfind(mark, least, place) + 1 for mark in (". ", "! ", "? ")))
    not_yet = _NOT_YET.search(text, start, end)
    return _Sentence(
        start, end, not_yet.start() if not_yet else len(text), bool(_CITED.search(text, start, end))
    )
