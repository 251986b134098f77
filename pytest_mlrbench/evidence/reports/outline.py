"""Walks through a document line by line, and knows in what sort of section each line stands."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

#: ``settings`` tells what was to be done; ``others`` what others have done or what is to come;
#: ``opening`` introduces; ``results`` says that it reports; ``open`` may hold anything.
Kind = Literal["open", "results", "settings", "opening", "others"]

_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,10}|#[0-9]{1,6});")
_FENCE = re.compile(r"\s{0,12}(?:>\s?)?(`{3,}|~{3,})\s*([\w+-]{0,20})")
#: Fences of these kinds show what a program printed.
_SHOWN = frozenset((
    "text", "txt", "markdown", "md", "csv", "tsv", "log", "output", "json", "yaml", "latex", "tex",
    "html", "none", "plain",
))  # fmt: skip
_CODE_LINE = re.compile(
    r"\s{0,40}(?:import\s|from\s\w{1,40}\simport|def\s|class\s|(?:for|if|while"
    r"|with)\s.{1,200}:\s*$|return\b"
    r"|\$\s|pip3?\s|python3?\s|bash\s|cd\s|git\s|#!|//|@\w|function\s"
    r"|\w{1,60}\s?=\s(?![-0-9])|\w{1,60}\(.{0,200}\)\s*$)"
)
#: Lines of a fence that are looked at to tell whether it is code.
_LOOKED_AT = 200
_DISPLAY = re.compile(r"\\begin\{(?:equation|align|gather|multline|eqnarray|math)\*?\}|\\\[")
_DISPLAY_END = re.compile(r"\\end\{(?:equation|align|gather|multline|eqnarray|math)\*?\}|\\\]")
#: A formula that is not closed ends with its paragraph, or after this many lines.
_LONGEST_FORMULA = 60

#: Headings that are marked begin with these.
_MARKS = frozenset("#\\<*_")
_HASH = re.compile(r"\s{0,3}(#{1,6})\s+(.{1,300})")
_TEX_HEADING = re.compile(r"\s{0,8}\\((?:sub){0,2}section|paragraph)\*?\{([^{}]{1,300})\}")
_TAG_HEADING = re.compile(r"\s{0,8}<h([1-6])[^<>]{0,200}>([^<>]{1,300})", re.I)
_BOLD = re.compile(r"\s{0,3}(?:\*\*|__)([^*_|]{1,120})(?:\*\*|__)\s*:?\s*")
_NUMBERED = re.compile(r"[1-9][0-9]?(?:\.[0-9]{1,2}){0,3}\.?\s+[A-Z][^.|;=]{2,80}")
_BARE = re.compile(
    r"(?:abstract|introduction|related work|references|results|conclusions?)\s*:?\s*", re.I
)
_NUMBER_OF_SECTION = re.compile(r"[\s*_#]{0,10}(?:[0-9]{1,2}|[A-Z])(?:\.[0-9]{1,2}){0,3}[.):]?\s+")
_NUMBER_OF_ITEM = re.compile(r"\s{0,40}(?:>\s?)?(?:\(?[0-9]{1,3}[.)](?=\s)|[-*+]\s)")
#: The number of a paragraph that begins with its heading: ``1.2 Challenges. We ...``
_NUMBER_OF_PARAGRAPH = re.compile(
    r"\s{0,3}[1-9][0-9]?(?:\.[1-9][0-9]?){1,3}\.?\s+(?=[A-Z][a-z]{3})"
)
_REFERENCE_ITEM = re.compile(r"\s{0,5}\[[0-9]{1,3}\]:?\s.{0,300}\b(?:19|20)[0-9]{2}\b")

_WORDS: dict[str, re.Pattern[str]] = {
    "appendix": re.compile(r"appendi|supplement"),
    "others": re.compile(
        r"references$|bibliography|works cited|citations$|literature|related|prior (?:work"
        r"|art)|previous work"
        r"|future|planned|\bplans?\b|proposed experiment|proposal|expected|anticipated"
        r"|next step|roadmap|timeline"
    ),
    "studied": re.compile(
        r"sensitiv|analysis|ablation|\bstudy|impact|effect|comparison|result|finding"
    ),
    "settings": re.compile(
        r"set-?up|settings?$|configurations?\b|hyper-?param|implementation|protocol"
        r"|evaluation metric"
        r"|training details|experimental design|reproducib"
    ),
    "results": re.compile(
        r"result|finding|evaluation|performance|comparison|analysis|ablation|discussion|outcome"
    ),
    "methods": re.compile(
        r"data ?sets?\b|^data\b|baselines?$|metrics$|method|approach|algorithm|architecture"
        r"|framework|preliminar"
        r"|problem|formulation|notation|procedure|pre-?processing|environment$|hardware"
        r"|objective|^models?$|^tasks?$"
    ),
    "opening": re.compile(r"introduction|background|motivation"),
}
#: Levels of headings without ``#``.
_TEX_LEVELS = {"section": 1, "subsection": 2, "subsubsection": 3, "paragraph": 8}
_BOLD_LEVEL = 8


class Line(NamedTuple):
    """A line that a reader sees; a tuple, since documents have a hundred thousand.

    :param number: from 1.
    :param text: without the number of a section or list item.
    :param kind: of the section that it stands in.
    :param heading: the last one before it, or itself.
    """

    number: int
    text: str
    kind: Kind
    heading: str = ""


def outline(text: str) -> Iterator[Line]:
    """Yield the lines of *text*; program code and formulas that stand apart are left out."""
    stack: list[tuple[int, Kind]] = []
    kind: Kind = "open"
    heading, blank, marked = "", True, 0
    for number, line in _seen(text.split("\n")):
        begin = line.lstrip()[:1]
        opened = _marked_heading(line) if begin in _MARKS else None
        if blank and marked < 2 and begin.isalnum():
            opened = opened or _plain_heading(line)
        if opened:
            marked += begin == "#"
            level, title = opened
            while stack and stack[-1][0] >= level:
                stack.pop()
            kind = kind_of(title, stack[-1][1] if stack else "open")
            if not heading and level == 1 and len(title.split()) > 2:
                kind = "open"  # a document's title speaks for none of its sections
            stack.append((level, kind))
            heading = title
        blank = not begin
        item: Kind = "others" if begin == "[" and _REFERENCE_ITEM.match(line) else kind
        if begin.isdigit() or begin in "(#*_>-+":
            line = _unnumbered(line, is_heading=bool(opened))
        yield Line(number, line, item, heading)


def _unnumbered(line: str, *, is_heading: bool) -> str:
    """Blank out the number of a section or of an item of a list."""
    patterns = (_NUMBER_OF_SECTION,) if is_heading else (_NUMBER_OF_ITEM, _NUMBER_OF_PARAGRAPH)
    start = next(filter(None, (one.match(line) for one in patterns)), None)
    return " " * start.end() + line[start.end() :] if start else line


def kind_of(title: str, above: Kind) -> Kind:
    """Return what a section with this *title* holds, in a section of the kind *above*."""
    title = title.lower().strip(" *_:#.")

    def has(name: str) -> bool:
        return bool(_WORDS[name].search(title))

    if has("appendix"):
        return "open"
    if above == "others" or has("others"):
        return "others"
    if has("settings") and not has("studied"):
        return "settings"
    if has("results") and (above != "settings" or "result" in title or "finding" in title):
        return "results"
    if above in ("open", "opening") and has("methods"):
        return "settings"
    if above == "open" and has("opening"):
        return "opening"
    return above


def _seen(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield what is neither code nor a formula, numbered from 1, entities as characters."""
    lines = _peeled(lines)
    unclosed: set[str] = set()
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence and fence[1] not in unclosed:
            end = _end_of_fence(lines, at, fence[1])
            if end == at:  # it hides nothing
                unclosed.add(fence[1])
                at += 1
                continue
            if not _is_code(fence[2].lower(), lines[at + 1 : min(end, at + _LOOKED_AT)]):
                yield from ((n + 1, _plain(lines[n])) for n in range(at + 1, end))
            at = end
        elif line.lstrip().startswith("$$") or ("\\" in line and _DISPLAY.search(line)):
            at = _end_of_formula(lines, at)
        else:
            yield at + 1, _plain(line)
        at += 1


def _plain(line: str) -> str:
    if "&" in line and _ENTITY.search(line):
        return html.unescape(line).replace("\n", " ")
    return line


def _peeled(lines: list[str]) -> list[str]:
    """Undo a fence around the whole text, a habit of language models."""
    held = [place for place, line in enumerate(lines) if line.strip()]
    if len(held) > 1 and re.fullmatch(r"```(?:markdown|md)\s*", lines[held[0]].strip()):
        if lines[held[-1]].strip() == "```":
            lines = [*lines[: held[-1]], ""]
        lines = [*[""] * (held[0] + 1), *lines[held[0] + 1 :]]
    return lines


def _end_of_fence(lines: list[str], at: int, mark: str) -> int:
    """Return the line that closes the fence at *at*; *at* if none does."""
    for place in range(at + 1, len(lines)):
        if mark in lines[place] and not lines[place].strip(" >\t\r`~"):
            return place
    return at


def _is_code(language: str, lines: list[str]) -> bool:
    if language and language not in _SHOWN:
        return True
    return language not in ("json", "yaml") and any(map(_CODE_LINE.match, lines))


def _end_of_formula(lines: list[str], at: int) -> int:
    line = lines[at].strip()
    dollars = line.startswith("$$")
    if line.count("$$") > 1 if dollars else _DISPLAY_END.search(line):
        return at
    for place in range(at + 1, min(len(lines), at + _LONGEST_FORMULA)):
        if "$$" in lines[place] if dollars else _DISPLAY_END.search(lines[place]):
            return place
        if not lines[place].strip():
            return place
    return at


def _marked_heading(line: str) -> tuple[int, str] | None:
    """Return level and title if *line* is marked as a heading."""
    if len(line) > 400:
        return None
    if found := _HASH.match(line):
        return len(found[1]), _NUMBER_OF_SECTION.sub("", found[2], count=1)
    if found := _TEX_HEADING.match(line):
        return _TEX_LEVELS[found[1]], found[2]
    if found := _TAG_HEADING.match(line):
        return int(found[1]), found[2]
    if found := _BOLD.fullmatch(line):
        return _BOLD_LEVEL, _NUMBER_OF_SECTION.sub("", found[1], count=1)
    return None


def _plain_heading(line: str) -> tuple[int, str] | None:
    """Return level and title if *line* looks like a heading in a text that does not mark them."""
    line = line.strip()
    if _BARE.fullmatch(line):
        return 2, line.strip(" :")
    if not _NUMBERED.fullmatch(line):
        return None
    number, _, title = line.partition(" ")
    words = [word for word in title.split() if len(word) > 4 and word.isalpha()]
    if len(title.split()) > 3 and not all(word[0].isupper() for word in words):
        return None  # an item of a list
    return 2 + number.strip(".").count("."), title.strip()
