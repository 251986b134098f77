"""Tells digits that belong to a name from numbers: figures, versions, models, dates, years."""

from __future__ import annotations

import re

#: Letters before a number that are looked at.
_REACH = 60
_JOINTS = frozenset("-_@#/.+:‐‑‒")  # noqa: RUF001
_CUTS = re.compile(r"[\s|()\[\]{}=,;$&<>*\"'≈~±]")
#: Words whose number names a thing.
_NAMED = frozenset((
    "figure", "figures", "fig", "figs", "table", "tables", "tab", "tabs", "section", "sections",
    "sec", "secs", "§", "equation", "equations", "eq", "eqs", "eqn", "appendix", "appendices",
    "app", "algorithm", "algorithms", "alg", "chapter", "chapters", "page", "pages", "theorem",
    "lemma", "proposition", "corollary", "definition", "listing", "footnote", "note", "ref",
    "refs", "line", "lines", "step", "phase", "stage", "rq", "hypothesis", "issue", "volume",
    "vol", "no", "version", "ver", "v", "python", "cuda", "cudnn", "pytorch", "tensorflow",
    "ubuntu", "java", "node", "gpt", "claude", "gemini", "llama", "qwen", "mistral", "mixtral",
    "phi", "gemma", "deepseek", "falcon", "vicuna", "grok", "sonnet", "opus", "haiku", "codex",
    "palm", "starcoder", "codellama", "diffusion", "yi", "imagen", "january", "february", "march",
    "april", "june", "july", "august", "september", "october", "november", "december", "jan",
    "feb", "mar", "apr", "jun", "jul", "aug", "sept", "oct", "nov", "dec",
))  # fmt: skip
_AND = re.compile(r"[a-z]?\s?(?:[,&–-]|--|,?\s?and|to|through|or)\s?")  # noqa: RUF001
_NAME_AFTER = re.compile(
    r"[\s-]{0,2}(?:Pro|Flash|Sonnet|Opus|Haiku|Turbo|Nano|Ultra|Mini|Lite"
    r"|January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b"
)
#: What follows shows that the digits are part of a name, a time, a date or a file.
_GOES_ON = re.compile(
    r"[^\W\d_]|@|_[^\W_]|\.\w|:[0-9]|-[0-9]{1,2}-|/[0-9]{1,2}/|-[A-Za-z]{1,20}-[0-9]"
    r"|,\s(?:19|20)[0-9]{2}\b"
)
_GOES_ON_AT = frozenset("@_.:-/,")
_YEAR = re.compile(r"(?:19[5-9]|20[0-4])[0-9]")
_DATE = re.compile(r"20[0-4][0-9](?:0[1-9]|1[0-2])[0-3][0-9]")


def is_named(line: str, start: int, digits_end: int, end: int, named_until: int) -> bool:
    """Tell whether the number at *start* … *end* of *line* belongs to a name.

    :param digits_end: where its unit begins.
    :param named_until: the end of the last number that did: of ``Tables 2 and 3`` both do.
    """
    after = line[end : end + 1]
    if (after in _GOES_ON_AT or after.isalpha()) and _GOES_ON.match(line, end):
        return True
    before = line[start - 1] if start else " "
    if before in _JOINTS and _is_joined(line, start, before):
        return True
    length = digits_end - start
    if length in (4, 8) and end == digits_end and _is_date(line[start:end]):
        return True
    if named_until >= 0 and start - named_until < 8:
        between = line[named_until:start]
        if _AND.fullmatch(between) or (between == " " and line[end - 1] in "BM"):
            return True
    word = line[max(0, start - 26) : start].rstrip(" ~(#:.}*\u00a0").rpartition(" ")[2]
    if word.lstrip("([{*_\\").lower() in _NAMED:
        return True
    upper = line[end + 1 : end + 2] if after in (" ", "-") else after
    return upper.isupper() and bool(_NAME_AFTER.match(line, end))


def _is_date(digits: str) -> bool:
    if len(digits) == 4:
        return digits != "2000" and bool(_YEAR.fullmatch(digits))
    return bool(_DATE.fullmatch(digits))


def _is_joined(line: str, start: int, joint: str) -> bool:
    """Tell whether what is joined to the number from the left is a name, and no number."""
    chunk = _CUTS.split(line[max(0, start - _REACH) : start])[-1]
    if joint == ":":
        return len(chunk) > 1 and chunk[-2].isdigit()
    if joint == ".":
        return len(chunk) > 1
    return chunk[:1].isalpha() or (chunk[:1] in "_./" and any(map(str.isalpha, chunk)))
