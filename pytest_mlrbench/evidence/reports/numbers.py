"""Reads the numbers off a line or a document: what they come to, and how exactly they are printed.

The text is of unknown origin: every pattern is bounded, and nothing raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from pytest_mlrbench.evidence.reports.maskings import masked
from pytest_mlrbench.evidence.reports.namings import is_named
from pytest_mlrbench.evidence.reports.outline import outline

#: What may stand between a number and its sign, its unit or the next part of it.
_THIN = r"(?:\\[,;!:]|[ \t~\u00a0\u2009\u202f])"
#: The end of bold letters, of a formula or of a group.
_CLOSED = r"[*_})\]$]"
# It begins with a set of characters, so that it is found fast; what may not stand before comes
# second. Unless three digits follow a comma, the comma ends the number.
_DIGITS = re.compile(
    r"[0-9.](?<![^\W_][0-9.])(?<!\.[0-9.])(?:"
    r"(?<=[0-9])(?:[0-9]{0,2}(?:(?:,|\{,\}|\\,|[\u2009\u202f])[0-9]{3}){1,5}(?![0-9])|[0-9]{0,19})"
    r"(?:\.[0-9]{1,30})?"
    r"|(?<=\.)[0-9]{1,30})(?![0-9])"
)
_TAIL = re.compile(
    rf"""
    (?:
        [eE](?P<exponent>[-+−]?[0-9]{{1,3}})(?!\w|\.[0-9])
        | (?:
            (?P<cross>
                {_CLOSED}{{0,2}}{_THIN}{{0,3}}\$?(?:[×x*·⋅]|\\times|\\cdot)
                {_THIN}{{0,3}}\$?{_THIN}?10
            )
            | (?<=10)(?<![0-9.,]10)
        )
        \$?(?:
            \^(?:\{{{_THIN}?(?P<braced>[-+−]?[0-9]{{1,3}}){_THIN}?\}}|(?P<bare>[-+−]?[0-9]{{1,3}}))
            | (?P<raised>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}})
        )
        | (?P<scale>[kKMB])(?![\w-])
    )?
    (?:
        {_CLOSED}{{0,3}}{_THIN}{{0,2}}{_CLOSED}?
        (?P<percent>\\?%|percent\b|per[ ]cent\b|percentage[ -]points?\b|pp\b)
        | {_CLOSED}{{0,3}}(?P<times>
            (?:{_THIN}?\$?(?:×|\\times)|x(?!\w))(?!{_THIN}{{0,2}}\$?[0-9])|-fold\b|[ ]times\b
        )
        | {_THIN}?(?P<unit>
            ms|[µμun]s|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|[KMGT]i?B|bytes?
            |[KMGT]?FLOPS?|[KMGT]Hz|k?Wh?|k?J|°C|dB|bits?|nats?|points?|pts?
            |(?:tokens?|samples?)/s(?:ec)?|it/s|fps
        )(?![\w-])
    )?
    """,  # noqa: RUF001
    re.VERBOSE,
)
#: Nothing that belongs to a number begins with them.
_AFTER_NUMBER = frozenset(",;|&")
_MINUS = frozenset("-−–")  # noqa: RUF001
#: After them, a dash joins two numbers.
_NO_SIGN_AFTER = frozenset(")]}%")
_PLUS_MINUS = re.compile(rf"(?:±|\\pm|\+{_THIN}?/{_THIN}?-|\+-){_THIN}{{0,2}}\$?[*_{{]{{0,2}}")
_RANGE = re.compile(rf"{_CLOSED}?{_THIN}?(?:[-–—~]|--|to|\\sim){_THIN}?\$?[*]{{0,2}}")  # noqa: RUF001
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SCALES = {"k": 3, "K": 3, "M": 6, "B": 9}
_SEPARATORS = re.compile(r"\{,\}|\\,|[,\u2009\u202f]")


class Number(NamedTuple):
    """A number as it is printed; a tuple, since documents have hundreds of thousands.

    :param value: what it comes to; of ``12.3%``, 12.3; of ``1.2k``, 1200.
    :param slack: half a unit of the last digit that is printed.
    :param text: with sign and unit.
    :param line: from 1.
    :param start: the place of its first character in its line.
    :param end: the place after its last one.
    :param percent: whether it is printed as a share of a hundred, or in percentage points.
    :param times: whether it is printed as a multiple: ``2.3x``.
    :param pointed: whether it has a decimal point or an exponent.
    :param spread: whether it follows ±.
    :param ends_range: whether it is the second of two: ``0.1-0.2``.
    """

    value: float
    slack: float
    text: str
    line: int
    start: int
    end: int
    percent: bool = False
    times: bool = False
    pointed: bool = False
    spread: bool = False
    ends_range: bool = False

    @property
    def is_precise(self) -> bool:
        """Whether it looks measured: whole numbers without a unit mostly count or name things."""
        return self.pointed or self.percent or self.times


def numbers_of(text: str) -> Iterator[Number]:
    """Yield the numbers of a Markdown, HTML or LaTeX *text*; those in program code are none."""
    for line in outline(text):
        yield from numbers_in(line.text, line.number)


def numbers_in(line: str, number: int = 1) -> Iterator[Number]:
    """Yield the numbers in one line of a text; those that belong to names are none.

    :param number: of the line.
    """
    held: Number | None = None
    for one in _alone(masked(line), number):
        if held is not None:
            held, one = _joined(line, held, one)
            yield held
        held = one
    if held is not None:
        yield held


def _alone(line: str, number: int) -> Iterator[Number]:
    named_until = end = -1
    for match in _DIGITS.finditer(line):
        start = match.start()
        if start < end:
            continue  # the exponent of the number before
        end = match.end()
        tail = None
        if end < len(line) and line[end] not in _AFTER_NUMBER:
            tail = _TAIL.match(line, end)
            end = tail.end() if tail else end
        if is_named(line, start, match.end(), end, named_until):
            named_until = end
        elif one := _read(line, match, tail, number):
            yield one


def _read(
    line: str, match: re.Match[str], tail: re.Match[str] | None, number: int
) -> Number | None:
    digits, start, end = match[0], match.start(), match.end()
    whole, point, decimals = digits.partition(".")
    power, percent, times, exponent = 0, False, False, None
    if tail is not None and tail.end() > end:
        end = tail.end()
        percent, times = tail["percent"] is not None, tail["times"] is not None
        exponent = tail["exponent"] or tail["braced"] or tail["bare"]
        if tail["raised"]:
            exponent = tail["raised"].translate(_RAISED)
        if exponent and not tail["exponent"] and not tail["cross"]:
            whole = "1"  # a bare power of ten is one of them
        power = int(exponent.replace("−", "-")) if exponent else 0  # noqa: RUF001
        power += _SCALES.get(tail["scale"] or "", 0)
    value = float(f"{_SEPARATORS.sub('', whole)}{point}{decimals}e{power}")
    slack = 0.5 * float(f"1e{power - len(decimals)}")
    if math.isinf(value) or math.isinf(slack):
        return None
    sign = _sign(line, start)
    if sign.strip("$") in _MINUS:
        value = -value
    start -= len(sign)
    pointed = bool(point or exponent)
    return Number(value, slack, line[start:end], number, start, end, percent, times, pointed)


def _sign(line: str, start: int) -> str:
    """Return the sign of the number at *start*, empty if it has none."""
    before = line[start - 1 : start]
    if before not in _MINUS and before != "+":
        return "$-$" if line[max(0, start - 3) : start] == "$-$" else ""
    ahead = line[start - 2 : start - 1] if start > 1 else " "
    # ``+-`` and ``+/-`` are spreads.
    return "" if ahead.isalnum() or ahead in _NO_SIGN_AFTER or ahead in "/+" else before


def _joined(line: str, one: Number, two: Number) -> tuple[Number, Number]:
    """Mark a range and a mean with its spread; they share their percent sign."""
    if two.start - one.end > 12:
        return one, two
    spread = bool(_PLUS_MINUS.search(line, one.end, two.start))
    ranged = not spread and bool(_RANGE.fullmatch(line, one.end, two.start))
    if not spread and not ranged:
        return one, two
    percent, times = one.percent or two.percent, one.times or two.times
    return (
        one._replace(percent=percent, times=times),
        two._replace(percent=percent, times=times, spread=spread, ends_range=ranged),
    )
