"""Blanks out what is no text to a reader: addresses, code, marks of HTML, commands of LaTeX.

What is left stays where it stood.
"""

from __future__ import annotations

import re

_CODE = re.compile(r"`([^`\n]{1,300})`")
#: Some set their numbers in the letters of code.
_ONLY_NUMBER = re.compile(
    r"\s?[-+−]?[0-9.,]{1,20}(?:e[-+]?[0-9]{1,3})?\s?%?(?:\s?[±/x×]\s?[0-9.]{0,9}%?)?"  # noqa: RUF001
)
_ADDRESS = re.compile(r"\b(?:[a-zA-Z]{2,10}://|www\.)[^\s|<>\"]{1,2000}")
_DOI = re.compile(r"\b10\.[0-9]{4,9}/[^\s|<>\"]{1,300}")
_ARXIV = re.compile(
    r"arxiv[^\w\n]{0,5}(?:preprint[^\w\n]{0,5})?(?:arxiv[^\w\n]{0,5})?[0-9]{3,5}\.[0-9]{3,6}(?:v[0-9]{1,2})?",
    re.I,
)
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,500}\](?:\([^()\n]{0,1500}\))?")
_LINK = re.compile(r"\]\([^()\s]{1,1000}[^()\n]{0,200}\)")
_CITATION = re.compile(r"\[\^?[0-9]{1,3}(?:\s?[,;–-]\s?[0-9]{1,3}){0,30}\]")  # noqa: RUF001
_RAISED_TEN = re.compile(r"(?<![0-9.])10<sup>\s?([-+−]?[0-9]{1,3})\s?</sup>")  # noqa: RUF001
_SMALL = re.compile(r"<(su[bp])>([^<>]{0,80})</\1>", re.I)
_TAG = re.compile(r"</?[a-zA-Z!][^<>]{0,1000}>")
_COMMAND = re.compile(
    r"\\(?:cite[a-z]{0,12}\*?|[a-zA-Z]{0,6}ref|label|includegraphics|[vh]space\*?|begin|end"
    r"|input|url"
    r"|cline|c?midrule|setlength|resizebox|scalebox|bibitem|usepackage|documentclass|multirow"
    r"|multicolumn|color|textcolor|cellcolor|rowcolor|arabic|fontsize|hskip|vskip|rule|tag)\b"
    r"(?:\([^()]{0,20}\)|\[[^\[\]]{0,200}\]){0,3}"
    r"(?:\{[^{}]{0,300}\}(?=\{[^{}]{0,300}\}\{))?(?:\{[^{}]{0,300}\})?(?:\[[^\[\]]{0,50}\])?"
)
_INDEX = re.compile(r"(?<=[A-Za-z}|)\]])[_^](?:\{([^{}]{0,80})\}|[-+]?\w)")
_NOTE_MARK = re.compile(r"(?<=[0-9%])\^(?:\{\\?\w{1,6}\}|\w)")
_TEN = re.compile(r"(?<![0-9.])10$")
_BREAK = re.compile(r"\\\\\[[^\[\]]{0,20}\]")


def masked(line: str) -> str:
    """Return *line* with what is no text blanked out; nothing moves."""
    if "`" in line:
        line = _CODE.sub(_code, line)
    if "://" in line or "www." in line:
        line = _ADDRESS.sub(_blank, line)
    if "10." in line:
        line = _DOI.sub(_blank, line)
    if "Xiv" in line or "xiv" in line:
        line = _ARXIV.sub(_blank, line)
    if "[" in line:
        line = _LINK.sub(_blank, _CITATION.sub(_blank, _IMAGE.sub(_blank, line)))
    if "<" in line:
        line = _TAG.sub(_blank, _SMALL.sub(_small, _RAISED_TEN.sub(_raised, line)))
    if "\\" in line:
        line = _COMMAND.sub(_blank, _BREAK.sub(_blank, line))
    if "_" in line or "^" in line:
        line = _NOTE_MARK.sub(_note_mark, _INDEX.sub(_index, line))
    return line


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _code(found: re.Match[str]) -> str:
    return f" {found[1]} " if _ONLY_NUMBER.fullmatch(found[1]) else _blank(found)


def _raised(found: re.Match[str]) -> str:
    return f"10^{{{found[1]}}}".ljust(len(found[0]))


def _small(found: re.Match[str]) -> str:
    """Keep a spread that is set in small letters; other small numbers are indices and notes."""
    return f"     {found[2]}      " if "±" in found[2] else _blank(found)


def _index(found: re.Match[str]) -> str:
    inside = found[1] or ""
    return f"  {inside} " if "pm" in inside or "±" in inside else _blank(found)


def _note_mark(found: re.Match[str]) -> str:
    """Keep the exponent of a power of ten."""
    line, start = found.string, found.start()
    return found[0] if _TEN.search(line, max(0, start - 3), start) else _blank(found)
