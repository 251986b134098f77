"""Titles of works: how much alike two of them are."""

from __future__ import annotations

import re
import unicodedata

#: From here on two titles name one work: a dropped subtitle or a reworded end stays above it.
SAME = 0.6

_LITTLE = {
    *("a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the"),
    *("to", "via", "with"),
}


def folded(text: str) -> str:
    """Return *text* in small letters without accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in parts if not unicodedata.combining(char))


def words(title: str) -> frozenset[str]:
    """Return the words of a title by which it is compared."""
    found = frozenset(re.findall(r"[^\W_]+", folded(title[:1000])))
    return found - _LITTLE or found


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the words of both that are common to them, from 0 to 1."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
