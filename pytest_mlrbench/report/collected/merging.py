"""What becomes of a case that stands in several sources. Nothing is averaged or left out unsaid.

1. A case that was not begun has no say where it was measured elsewhere.
2. Of one run, the source of the latest session stands: so does the run folder itself.
3. Rows that say the same are one.
4. Rows of different things (agent, its state, rubric, panel, state of the suite) are told apart:
   all stay.
5. What is left are two measurements of one thing, as of two runs. Which of them counts cannot be
   known: all stay, and it is a conflict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pytest_mlrbench.report.collected.rows import CaseRow, Scalar
from pytest_mlrbench.suites.stages import STAGES

#: Columns that are about a source and not about the case in it.
ABOUT_SOURCE = ("resumed", "artifacts")
_ORDER = {stage: place for place, stage in enumerate(STAGES)}


@dataclass(frozen=True)
class Conflict:
    """Measurements of one thing that differ: where they stand, and column → what each says."""

    case: str
    sources: tuple[str, ...]
    differs: Mapping[str, tuple[Scalar | None, ...]]


@dataclass(frozen=True)
class Merged:
    """The rows in the order of research, and what was done to get them."""

    rows: tuple[CaseRow, ...]
    conflicts: tuple[Conflict, ...]
    #: Sources → how many cases stand in all of them, with one content.
    same: Mapping[tuple[str, ...], int]
    #: (source, the one of a later session of the same run) → how many cases it replaces.
    replaced: Mapping[tuple[str, str], int]
    #: (source, where it was measured) → how many cases were not begun in the first.
    begun_elsewhere: Mapping[tuple[str, str], int]


def merge(rows: Iterable[CaseRow]) -> Merged:
    """Bring the rows of several sources together by ``mlr.case``."""
    by_case: dict[str, list[CaseRow]] = {}
    for row in rows:
        by_case.setdefault(row.case, []).append(row)
    same: Counter[tuple[str, ...]] = Counter()
    replaced: Counter[tuple[str, str]] = Counter()
    begun: Counter[tuple[str, str]] = Counter()
    kept: list[CaseRow] = []
    conflicts: list[Conflict] = []
    for case, found in by_case.items():
        left = _united(_newest(_begun(found, begun), replaced), same)
        rivals = [row for row in left if any(_is_rival(row, other) for other in left)]
        if rivals:
            conflicts.append(_conflict(case, rivals))
        kept += [replace(row, conflict=row in rivals) for row in left]
    kept.sort(key=lambda r: (r.suite, _ORDER.get(r.stage, len(_ORDER)), r.task, r.repeat))
    return Merged(tuple(kept), tuple(conflicts), same, replaced, begun)


def _begun(rows: Sequence[CaseRow], counted: Counter[tuple[str, str]]) -> list[CaseRow]:
    measured = [row for row in rows if not row.not_run]
    if not measured:
        return list(rows)
    counted.update((r.sources[0], measured[0].sources[0]) for r in rows if r.not_run)
    return measured


def _newest(rows: Sequence[CaseRow], counted: Counter[tuple[str, str]]) -> list[CaseRow]:
    """Leave out what a later session of the same run says otherwise."""
    left = []
    for row in rows:
        later = [other for other in rows if _replaces(other, row)]
        if later:
            newest = max(later, key=lambda other: _time(other) or 0.0)
            counted[row.sources[0], newest.sources[0]] += 1
        else:
            left.append(row)
    return left


def _replaces(new: CaseRow, old: CaseRow) -> bool:
    if new.run is None or new.run != old.run or _content(new) == _content(old):
        return False
    then, now = _time(old), _time(new)
    return then is not None and now is not None and then < now


def _time(row: CaseRow) -> float | None:
    """When the session of a source began; null where it does not say, or not in which zone."""
    try:
        time = datetime.fromisoformat(row.written or "")
    except ValueError:
        return None
    return None if time.tzinfo is None else time.timestamp()


def _united(rows: Iterable[CaseRow], counted: Counter[tuple[str, ...]]) -> list[CaseRow]:
    """Make one of rows that say the same: the first, with the sources of all."""
    alike: list[list[CaseRow]] = []
    for row in rows:
        for others in alike:
            if _content(row) == _content(others[0]):
                others.append(row)
                break
        else:
            alike.append([row])
    counted.update(tuple(row.sources[0] for row in those) for those in alike if len(those) > 1)
    return [
        replace(those[0], sources=tuple(dict.fromkeys(row.sources[0] for row in those)))
        for those in alike
    ]


def _content(row: CaseRow) -> dict[str, Scalar]:
    return {name: value for name, value in row.cells.items() if name not in ABOUT_SOURCE}


def _is_rival(row: CaseRow, other: CaseRow) -> bool:
    """Whether both measured one thing: all that is known of it is equal."""
    if row is other:
        return False
    kinds = zip(kind(row), kind(other), strict=True)
    return all(a is None or b is None or a == b for a, b in kinds)


def kind(row: CaseRow) -> tuple[str | None, ...]:
    """What was measured, and by what; null is what is not known, as where a worker died."""
    return (row.agent, row.agent_digest, row.rubric, row.panel, row.suite_digest)


def _conflict(case: str, rows: Sequence[CaseRow]) -> Conflict:
    names = dict.fromkeys(name for row in rows for name in _content(row))
    said = {name: tuple(row.cells.get(name) for row in rows) for name in names}
    differs = {name: values for name, values in said.items() if len(set(values)) > 1}
    return Conflict(case, tuple("; ".join(row.sources) for row in rows), differs)
