"""The addresses in ``results/claims.json``, checked exactly.

An entry holds if the number at its address rounds to the printed one; so a change below the last
printed digit cannot be seen. How the list is written says :mod:`.claims_file`, what an address may
look like :mod:`.cells`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_mlrbench.evidence.base import Claim, Finding, Severity
from pytest_mlrbench.evidence.records.cells import CLAIMS, Cells, Looked
from pytest_mlrbench.evidence.records.claims_file import Entry, entries_in, read_entry
from pytest_mlrbench.evidence.records.data import decoded, read
from pytest_mlrbench.evidence.reports.numbers import Number, numbers_of

_MOST_ENTRIES = 5_000
#: Letters of a source that are quoted, numbers of which there are many that are.
_LONGEST, _QUOTED = 200, 3
_DOCUMENTS = ("results/results.md", "results/paper.md")
#: Bytes of a document that are read.
_MOST_READ = 2_000_000
#: A share may be printed in percent, and the other way round.
_SCALES = (1.0, 100.0, 0.01)
#: Seconds may be printed as milliseconds, and thousands as such, where a unit says so.
_SCALES_OF_UNITS = (1000.0, 0.001)
#: For binary fractions.
_TINY = 1e-9
#: One wrong entry may be a slip of who wrote the address. Where as many as this are wrong, and most
#: of those that lead anywhere, the numbers were not taken from there.
_MANY = 3


#: An entry and the number that it prints.
_Read = tuple[Entry, Number]


@dataclass
class Addressed:
    """What the list of claims is worth.

    :param listed: how many entries it has, usable or not.
    :param held: addresses of the entries that hold, each once.
    :param places: claims of the documents that an entry that holds vouches for → its address.
    """

    listed: int = 0
    held: list[str] = field(default_factory=list)
    places: dict[Claim, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def check(files: Mapping[str, Path], claims: Sequence[Claim]) -> Addressed:
    """Check every entry of the list of claims; where there is no list, there is nothing to say.

    :param files: path below the submission → file.
    :param claims: what the documents print.
    """
    if CLAIMS not in files:
        return Addressed()
    content, fault = entries_in(files[CLAIMS])
    if fault:
        return Addressed(findings=[_hint(f"{CLAIMS} {fault}, so no number is looked up by it.")])
    result, cells = Addressed(listed=len(content)), Cells(files)
    right: list[_Read] = []
    wrong: list[tuple[Entry, Finding]] = []
    for place, raw in islice(content.items(), _MOST_ENTRIES):
        entry, number, fault = read_entry(raw)
        if entry is None or number is None:
            result.findings.append(_hint(f"An entry of {CLAIMS} {fault}.", place, raw))
        elif (finding := _finding(entry, number, cells.look(entry.source), place)) is None:
            right.append((entry, number))
        elif finding.kind == "claim_mismatch":
            wrong.append((entry, finding))
        else:
            result.findings.append(finding)
    are_many = len(wrong) >= max(_MANY, len(right))
    result.findings += [_meant(*one) if are_many else one[1] for one in wrong]
    result.findings += _left_out(len(content)) + _not_printed(right, files)
    result.held = list(dict.fromkeys(entry.source for entry, _ in right))
    result.places = dict(_vouched(right, claims))
    return result


def _finding(entry: Entry, number: Number, looked: Looked, place: str) -> Finding | None:
    """Return what is wrong with an entry; null if it holds."""
    source = entry.source[:_LONGEST]
    severity: Severity = "strong"
    if looked.fault:
        kind = "claim_unresolved"
        severity = "strong" if looked.is_known else "hint"
        sentence = f"{CLAIMS} gives a source for {entry.printed}, but {source} {looked.fault}."
    elif not any(fits(number, value) for value in looked.values):
        kind = "claim_mismatch"
        sentence = f"{CLAIMS} says {entry.printed}, but {source} holds {looked.values[0]:.10g}."
    else:
        return None
    return Finding(
        kind=kind,
        severity=severity,
        sentence=sentence,
        place=f"{CLAIMS}#{place}",
        quote=entry.printed,
    )


def fits(number: Number, value: float) -> bool:
    """Whether *value*, rounded as *number* is printed, gives it."""
    has_unit = any(letter.isalpha() for letter in number.text)
    slack = number.slack + _TINY * (number.slack + abs(number.value))
    scales = (*_SCALES, *_SCALES_OF_UNITS) if has_unit else _SCALES
    return any(abs(scale * value - number.value) <= slack for scale in scales)


def _vouched(right: Iterable[_Read], claims: Iterable[Claim]) -> Iterator[tuple[Claim, str]]:
    """Yield the claims that print the number of an entry, with its address.

    They may print it shorter, but with three digits: one of one digit would be many an entry's.
    """
    printed = defaultdict(list)
    for claim in claims:
        printed[_key(claim.value)].append(claim)
    for entry, number in right:
        for claim in chain.from_iterable(printed.get(key, ()) for key in _keys(number, 3)):
            if f"/{claim.document}".endswith(f"/{(entry.document or claim.document).strip('./')}"):
                yield claim, entry.source


def _not_printed(right: Sequence[_Read], files: Mapping[str, Path]) -> list[Finding]:
    """Say which numbers stand in the list and its sources, but in no document."""
    printed: set[float] = set()
    for name in _DOCUMENTS:
        data = read(files[name], _MOST_READ) if name in files else None
        printed |= {_key(number.value) for number in numbers_of(decoded(data or b""))}
    lost = [entry for entry, number in right if printed.isdisjoint(_keys(number, 1))]
    if not lost:
        return []
    some = ", ".join(f"{entry.printed} ({entry.source[:_LONGEST]})" for entry in lost[:_QUOTED])
    more = ", …" if len(lost) > _QUOTED else ""
    sentence = (
        f"No document prints {len(lost)} of the {len(right)} numbers whose source in {CLAIMS} is "
        f"right: {some}{more}."
    )
    return [
        Finding(
            kind="claim_not_printed",
            severity="hint",
            sentence=sentence,
            place=CLAIMS,
            quote=lost[0].printed,
        )
    ]


def _left_out(count: int) -> list[Finding]:
    if count <= _MOST_ENTRIES:
        return []
    return [_hint(f"Of the {count:,} entries of {CLAIMS}, {_MOST_ENTRIES:,} are looked at.")]


def _keys(number: Number, fewest: int) -> set[float]:
    """Return what *number* comes to in print, with as many digits or fewer, and in percent."""
    return {_key(scale * number.value, digits) for scale in _SCALES for digits in range(fewest, 10)}


def _key(value: float, digits: int = 9) -> float:
    return float(f"{value:.{digits}g}")


def _hint(sentence: str, place: str = "", raw: Any = None) -> Finding:
    quote = raw.get("text") if isinstance(raw, dict) else None
    return Finding(
        kind="claims_unreadable",
        severity="hint",
        sentence=sentence,
        place=CLAIMS + (f"#{place}" if place else ""),
        quote=quote[:_LONGEST] if isinstance(quote, str) else None,
    )


def _meant(entry: Entry, finding: Finding) -> Finding:
    is_paper = (entry.document or "").endswith("paper.md")
    return finding.model_copy(update={"means": "paper_untraced" if is_paper else "fabricated"})
