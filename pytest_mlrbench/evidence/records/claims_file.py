"""``results/claims.json``: where an agent says its numbers come from.

It is a list of entries, or an object with such a list under ``claims``::

    [{"text": "accuracy of ours", "value": 0.873, "source": "results/metrics.json#/ours/accuracy"},
     {"text": "87.3%", "document": "results/paper.md", "source": "results/table.csv#ours/accuracy"}]

or, in short, an object of printed numbers: ``{"87.3%": "results/metrics.json#/ours/accuracy"}``.
What an object says of the run beside its claims (:data:`SAID`), others read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from pytest_mlrbench.evidence.records.data import decoded, read
from pytest_mlrbench.evidence.reports.numbers import Number, numbers_in
from pytest_mlrbench.values import Value

#: What an object says of the run beside its claims.
SAID = ("simulation", "data", "models", "replay")
_MOST_BYTES = 4_000_000
#: Letters of a printed number that are looked at.
_LONGEST = 200


class Entry(Value):
    """A number of a report, and where it comes from."""

    #: The number as printed, or what it is where *value* has the number.
    text: str = Field(max_length=10_000)
    #: The number as printed: a JSON number, or text with its unit.
    value: str | None = None
    #: The document that prints it; any if it is not said.
    document: str | None = None
    #: File, ``#`` and place: see :mod:`pytest_mlrbench.evidence.records.cells`.
    source: str

    @property
    def printed(self) -> str:
        """The number as printed, with its unit."""
        return (self.text if self.value is None else self.value).strip()[:_LONGEST]

    def number(self) -> Number | None:
        """Return the printed number; null if there is none, or several that are no ``a ± b``."""
        found = list(numbers_in(self.printed))
        return found[0] if found and all(other.spread for other in found[1:]) else None


def entries_in(path: Path) -> tuple[dict[str, Any], str | None]:
    """Return place → entry, as it is, or why there is none."""
    data = read(path, _MOST_BYTES)
    if data is None or len(data) > _MOST_BYTES:
        return {}, "cannot be read" if data is None else "is too long to be read"
    try:
        # As they are written: 0.870 is more exact than 0.87.
        found = json.loads(decoded(data), parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError, MemoryError):
        return {}, "is no JSON"
    start = ""
    if isinstance(found, dict) and isinstance(found.get("claims"), list):
        found, start = found["claims"], "/claims"
    if isinstance(found, list):
        return {f"{start}/{place}": entry for place, entry in enumerate(found)}, None
    if not isinstance(found, dict):
        return {}, "is no list of claims"
    return {
        f"/{text.replace('~', '~0').replace('/', '~1')}": {"text": text, "source": source}
        for text, source in found.items()
        if text not in SAID
    }, None


def read_entry(raw: Any) -> tuple[Entry | None, Number | None, str]:
    """Return an entry and its number, or what is wrong with it, as the end of a sentence."""
    try:
        entry = Entry.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = "/".join(map(str, first["loc"]))
        return None, None, f"cannot be used: {f'{where}: ' if where else ''}{first['msg']}"
    number = entry.number()
    return entry, number, "" if number else "has no number, or several of them and no value"
