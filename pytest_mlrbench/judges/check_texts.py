"""What a program can read off a Markdown report: words, sections, tables, printed numbers.

Everything here is meant for text of unknown origin: every pattern is bounded, so that no text makes
it slow, and nothing raises.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BLOCK = re.compile(r"#|\||[-*+>]\s|\d{1,3}[.)]\s|!\[|<")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_BOLD = re.compile(r"\*\*([^*]{1,200})\*\*[ \t:]*(.*)")
_LABEL = re.compile(r"([A-Z][\w &/-]{2,40}):(.*)")
_BARE = re.compile(r"([A-Z][\w &/-]{2,40})()")  # the second group stands for an empty rest
_NUMBER_OF_SECTION = re.compile(r"\d{1,2}(?:\.\d{1,2}){0,3}[.):]?\s+")
#: The level of sections that a bold, ``Label:`` or bare line opens.
_BELOW_HEADINGS = 7
_IMAGE = re.compile(
    # Possessive: no shorter match helps, and to try them all takes minutes.
    r"!\[[^\[\]\n]{0,500}+\]\(\s{0,5}+<?([^)>\s]{1,500}+)[^)\n]{0,200}+\)"
    r"|<img\s[^<>]{0,300}?src=[\"']([^\"'<>]{1,500})[\"']",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.])([-+−]?\d{1,15}(?:,\d{3}){0,4}(\.\d{1,17})?(?:[eE][-+]?\d{1,3})?)"  # noqa: RUF001
    r"(\s?\\?%)?(?![\w]|\.\d)"
)
#: What stands between a mean and its spread; ``+/-`` may have lost its minus to the number.
_PLUS_MINUS = re.compile(r"\s?\$?\s?(?:±|\+/-?|\\pm)\s?\$?\s?")
#: Tables of settings hold numbers that nobody measured.
_SETTINGS = re.compile(r"param|setting|config|argument", re.IGNORECASE)
#: Places of a text that a sentence is compared with, where it begins like each of them.
_PLACES = 100
#: Letters of the lines around a table that are kept with it.
_CONTEXT = 5_000


def words(text: str) -> list[str]:
    """Return the words and numbers of *text* in lower case."""
    return _WORD.findall(text.lower())


def sentences(text: str) -> list[str]:
    """Split *text* into sentences, headings, list items and table rows; undo hard line breaks."""
    blocks: list[list[str]] = []
    fresh = True
    for line in map(str.strip, text.splitlines()):
        if line:
            if fresh or _BLOCK.match(line):
                blocks.append([])
            blocks[-1].append(line)
        fresh = not line or line.startswith(("#", "|"))
    return [part for block in blocks for part in _SENTENCE_END.split(" ".join(block))]


def ngrams(items: Sequence[str], length: int) -> list[tuple[str, ...]]:
    """Return every run of *length* neighbouring items."""
    return [tuple(items[start : start + length]) for start in range(len(items) - length + 1)]


def new_share(text: str, source: str, length: int = 6) -> float:
    """Return the share of the runs of *length* words in *text*, tables apart, not in *source*."""
    prose = "\n".join(line for line in text.splitlines() if "|" not in line)
    runs, known = ngrams(words(prose), length), set(ngrams(words(source), length))
    return sum(run not in known for run in runs) / len(runs) if runs else 1.0


def without_fences(text: str) -> str:
    """Drop fenced code, in which ``#`` starts a comment and not a heading.

    A fence around the whole text is a habit of language models and is only peeled off.
    """
    lines = text.strip().splitlines()
    if lines and re.fullmatch(r"```(markdown|md)?\s*", lines[0]):
        lines = lines[1 : -1 if lines[-1].startswith("```") else None]
    kept, inside = [], False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def without(text: str, source: str) -> str:
    """Drop the sentences of *text* that stand word for word in *source*."""
    heard = words(source)
    haystack = f" {' '.join(heard)} "
    stated = {" ".join(words(part)) for part in _parts(source)}
    begun = _begun(heard)

    def own(sentence: str) -> bool:
        spoken = words(sentence)
        places = begun.get(tuple(spoken[:4])) if len(spoken) >= 4 else None
        if not places:
            return True
        said = " ".join(spoken)
        around = f" {said} "
        return said not in stated and not any(haystack.startswith(around, at) for at in places)

    return "\n".join(
        " ".join(part for part in _SENTENCE_END.split(line) if own(part))
        for line in text.splitlines()
    )


def _begun(heard: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    """Return four words → where they stand in the text of all; of hundreds of places, the first."""
    found: dict[tuple[str, ...], list[int]] = {}
    start = 0
    for four in ngrams(heard, 4):
        places = found.setdefault(four, [])
        if len(places) < _PLACES:
            places.append(start)
        start += len(four[0]) + 1
    return found


def _parts(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from _SENTENCE_END.split(line)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it, deeper headings included."""

    title: str
    body: str


def sections(text: str, labels: re.Pattern[str]) -> list[Section]:
    """Find the sections of *text*.

    Besides ``#`` headings, a bold, ``Label:`` or bare line opens a section where *labels* matches
    it: without that restriction every ``Note:`` would cut the section it stands in.
    """
    lines = text.splitlines()
    opened = [
        (number, *found) for number, line in enumerate(lines) if (found := _opening(line, labels))
    ]
    ends = [len(lines)] * len(opened)
    pending: list[int] = []
    for index, (number, level, _, _) in enumerate(opened):
        while pending and opened[pending[-1]][1] >= level:
            ends[pending.pop()] = number
        pending.append(index)
    return [
        Section(title, "\n".join([rest, *lines[number + 1 : end]]).strip())
        for (number, _, title, rest), end in zip(opened, ends, strict=True)
    ]


def _opening(line: str, labels: re.Pattern[str]) -> tuple[int, str, str] | None:
    """Return level, title and rest of the line if *line* opens a section."""
    line = line.strip()
    if found := _HEADING.match(line):
        level, title, rest = len(found[1]), found[2], ""
    else:
        number = _NUMBER_OF_SECTION.match(line)
        line = line[number.end() :] if number else line
        found = _BOLD.match(line) or _LABEL.match(line) or _BARE.fullmatch(line)
        if not found:
            return None
        level = _BELOW_HEADINGS + (number[0].strip(" .):").count(".") if number else 0)
        title, rest = found[1], found[2].strip()
    title = plain(title)
    before, colon, after = title.partition(":")
    if colon and labels.fullmatch(before.strip(" *_")):
        title, rest = before.strip(" *_"), f"{after.strip()} {rest}".strip()
    opens = level < _BELOW_HEADINGS or labels.fullmatch(title)
    return (level, title, rest) if opens else None


def plain(line: str) -> str:
    """Return a heading's words without its marks and number."""
    line = line.strip(" *_#:")[:300]
    number = _NUMBER_OF_SECTION.match(line)
    return line[number.end() if number else 0 :].strip(" *_#:")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as a report prints it."""

    value: float
    #: Digits after the decimal point that were written.
    decimals: int
    percent: bool = False

    def within(self, value: float) -> bool:
        """Whether *value*, rounded as this number is, gives this number."""
        return abs(value - self.value) <= self.slack

    @property
    def slack(self) -> float:
        """Half a unit of the last printed digit, and a little for binary fractions."""
        return 0.5 * 10.0**-self.decimals + 1e-9 * (1 + abs(self.value))


#: A mean and its spread.
Pair = tuple[Printed, Printed]


def as_printed(value: float) -> Printed:
    """Read the precision of a JSON number off its shortest spelling."""
    exponent = Decimal(repr(value)).as_tuple().exponent
    return Printed(value, max(0, -exponent) if isinstance(exponent, int) else 0)


def printed_numbers(text: str, *, every: bool = False) -> list[Printed]:
    """Return the numbers of *text* that look measured: with a decimal point or a percent sign.

    :param every: also whole numbers, which mostly count things.
    """
    return [_printed(found) for found in _NUMBER.finditer(text) if every or _is_measured(found)]


def spreads(text: str) -> tuple[list[Printed], list[Pair]]:
    """Return the numbers of *text* that look measured: those alone, and pairs like ``0.9 ± 0.1``.

    Of a pair, one number with a decimal point or a percent sign is enough.
    """
    found = list(_NUMBER.finditer(text))
    alone, pairs, number = [], [], 0
    while number < len(found):
        one, two = found[number], found[number + 1] if number + 1 < len(found) else None
        paired = two and _PLUS_MINUS.fullmatch(text[one.end() : two.start()])
        if two and paired and (_is_measured(one) or _is_measured(two)):
            spread = _printed(two)
            pairs.append((_printed(one), replace(spread, value=abs(spread.value))))
        elif not paired and _is_measured(one):
            alone.append(_printed(one))
        number += 2 if paired else 1
    return alone, pairs


def _is_measured(found: re.Match[str]) -> bool:
    return bool(found[2] or found[3])


def _printed(found: re.Match[str]) -> Printed:
    value = float(found[1].replace(",", "").replace("−", "-"))  # noqa: RUF001
    return Printed(value, _decimals(found[1]), bool(found[3]))


def _decimals(number: str) -> int:
    mantissa, _, exponent = number.lower().partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(exponent or 0))


#: A share may be printed as it is or in percent.
SCALES = (1, 100)


class Known:
    """Numbers that a printed number may be looked up in."""

    def __init__(self, numbers: Iterable[float]) -> None:
        self._sorted = sorted(numbers)

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[float]:
        return iter(self._sorted)

    def __contains__(self, printed: object) -> bool:
        """Whether *printed* is one of the numbers, rounded; a share may be printed in percent."""
        return isinstance(printed, Printed) and any(
            self.around(printed.value / scale, printed.slack / scale) for scale in SCALES
        )

    def around(self, middle: float, slack: float) -> bool:
        """Whether one of the numbers is *middle*, give or take *slack*."""
        place = bisect_left(self._sorted, middle - slack)
        return place < len(self._sorted) and self._sorted[place] <= middle + slack


@dataclass(frozen=True, slots=True)
class Table:
    """A Markdown table with the lines around it."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: The nearest heading and the neighbouring lines, where captions stand.
    context: str
    #: The measured numbers in the table, apart from its first column and those in pairs.
    alone: tuple[Printed, ...]
    #: Its means with their spreads.
    pairs: tuple[Pair, ...]

    @property
    def numbers(self) -> tuple[Printed, ...]:
        """All measured numbers."""
        return (*self.alone, *chain.from_iterable(self.pairs))

    @property
    def labels(self) -> Iterator[str]:
        """Names of what is compared: first cells of the rows, and the header."""
        yield from (row[0] for row in self.rows)
        yield from self.header[1:]


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of *text* that print measured numbers."""
    heading = caption = ""
    lines = [line.strip() for line in text.splitlines()]
    number = 0
    while number < len(lines):
        line = lines[number]
        if "|" in line and _is_rule(lines[number + 1 : number + 2]):
            first = number
            number += 2
            while number < len(lines) and "|" in lines[number]:
                number += 1
            after = next(filter(None, lines[number : number + 3]), "")
            rows = tuple(_cells(row) for row in lines[first + 2 : number])
            cells = [spreads(cell) for row in rows for cell in row[1:]]
            alone = tuple(number for numbers, _ in cells for number in numbers)
            pairs = tuple(pair for _, found_pairs in cells for pair in found_pairs)
            if (alone or pairs) and not _SETTINGS.search(_cells(line)[0]):
                context = "\n".join(text[:_CONTEXT] for text in (heading, caption, after))
                yield Table(_cells(line), rows, context, alone, pairs)
            continue
        if line.startswith("#"):
            heading = line
        caption = line or caption
        number += 1


def _is_rule(lines: list[str]) -> bool:
    return bool(lines) and {"|", "-"} <= set(lines[0]) <= set("|-: \t")


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip(" *`_") for cell in line.strip("|").split("|"))


def image_links(text: str) -> list[str]:
    """Return the targets of the images in *text*."""
    return [found[1] or found[2] for found in _IMAGE.finditer(text)]


def without_images(text: str) -> str:
    """Drop the images of *text*, with their alternative texts."""
    return _IMAGE.sub("", text)
