"""What the command says of scores that were collected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_mlrbench.report.collected.collecting import Collection
from pytest_mlrbench.report.collected.merging import Conflict
from pytest_mlrbench.report.collected.rows import CaseRow, Scalar
from pytest_mlrbench.report.table import cause_words, columns, number

#: How many conflicts, and how many columns of one, are written out.
_SHOWN = 10
_SHOWN_COLUMNS = 4
_HEAD = ("case", "agent", "verdict", "overall", "spread", "evidence", "source")


def table_lines(rows: Sequence[CaseRow]) -> list[str]:
    """Return the table of *rows*, as much of it as a terminal shows."""
    return [safe(line) for line in columns([_HEAD, *map(_row, rows)])]


def _row(row: CaseRow) -> tuple[str, ...]:
    verdict = cause_words(row.verdict) + (f" ({cause_words(row.cause)})" if row.cause else "")
    return (
        row.case,
        row.agent or "-",
        f"{verdict}, CONFLICT" if row.conflict else verdict,
        number(row.overall),
        number(row.spread),
        row.level or "-",
        row.sources[0] + (f" +{len(row.sources) - 1}" if len(row.sources) > 1 else ""),
    )


def summary_lines(collection: Collection) -> list[str]:
    """Return what was read and measured, of how much, and all that is not as it should be."""
    return [
        safe(line)
        for line in (
            _measured(collection),
            *_others(collection),
            *_merged(collection),
            *_mixed(collection.merged.rows),
            *_conflicts(collection.merged.conflicts),
        )
    ]


def _measured(collection: Collection) -> str:
    rows = collection.merged.rows
    verdicts = Counter(row.verdict for row in rows)
    scored = sum(row.overall is not None for row in rows)
    causes = Counter(row.cause for row in rows if row.verdict == "not_measured" and row.cause)
    why = ", ".join(f"{n} {cause_words(cause)}" for cause, n in sorted(causes.items()))
    return (
        f"{counted(len({row.case for row in rows}), 'case')} in {counted(len(rows), 'row')} from"
        f" {counted(len(collection.sources), 'source')}: {scored}/{len(rows)} scored,"
        f" {verdicts['pass']} passed, {verdicts['fail']} failed,"
        f" {verdicts['not_measured']} not measured" + (f" ({why})" if why else "")
    )


def _others(collection: Collection) -> Iterable[str]:
    foreign = [source for source in collection.sources if source.foreign]
    if foreign:
        total = sum(source.foreign for source in foreign)
        yield f"  {counted(total, 'other test case')} in {_names(s.name for s in foreign)} left out"
    for source in collection.sources:
        if source.silent:
            yield (
                f"  {source.name}: {counted(len(source.silent), 'test case')} called like ours"
                f" without scores, not in the table: {_names(source.silent)}"
            )


def _merged(collection: Collection) -> Iterable[str]:
    merged = collection.merged
    for sources, n in merged.same.items():
        yield f"  {counted(n, 'case')} the same in {_names(sources)}: one row each"
    for (old, new), n in merged.replaced.items():
        yield f"  {counted(n, 'case')} of {old} replaced by {new}, a later session of the same run"
    for (absent, there), n in merged.begun_elsewhere.items():
        yield f"  {counted(n, 'case')} not run in {absent} and measured in {there}"


def _mixed(rows: Sequence[CaseRow]) -> Iterable[str]:
    """Name what rows differ in that are one result only if they do not."""
    looks: Sequence[tuple[str, Callable[[CaseRow], str], Callable[[CaseRow], str | None]]] = (
        ("agents", lambda row: "", lambda row: row.agent),
        ("states of agent {}", lambda row: row.agent or "", lambda row: row.agent_digest),
        ("rubrics in {}", lambda row: row.stage, lambda row: row.rubric),
        ("panels in {}", lambda row: row.stage, lambda row: row.panel),
        ("states of suite {}", lambda row: row.suite, lambda row: row.suite_digest),
    )
    for what, group, look in looks:
        found: dict[str, dict[str, None]] = {}
        for row in rows:
            if (value := look(row)) is not None:
                found.setdefault(group(row), {})[value] = None
        for name, values in found.items():
            if len(values) > 1:
                yield f"  MIXED: {len(values)} {what.format(name)}: {_names(values)}"


def _conflicts(conflicts: Sequence[Conflict]) -> Iterable[str]:
    for conflict in conflicts[:_SHOWN]:
        yield f"  CONFLICT: {conflict.case} in {' and '.join(conflict.sources)}:" + _differs(
            conflict.differs
        )
    if len(conflicts) > _SHOWN:
        yield f"  CONFLICT: and {counted(len(conflicts) - _SHOWN, 'case')} more"
    if conflicts:
        yield (
            f"  {counted(len(conflicts), 'case')} measured more than once, with different results;"
            " all are in the table: leave out the sources that do not count"
        )


def _differs(columns: Mapping[str, tuple[Scalar | None, ...]]) -> str:
    shown = [
        f" {name} {' / '.join('-' if value is None else str(value) for value in values)}"
        for name, values in list(columns.items())[:_SHOWN_COLUMNS]
    ]
    more = len(columns) - len(shown)
    return ",".join([*shown, f" and {counted(more, 'column')} more"] if more > 0 else shown)


def _names(values: Iterable[str]) -> str:
    found = list(values)
    shown = ", ".join(found[:5])
    return f"{shown} and {len(found) - 5} more" if len(found) > 5 else shown


def counted(n: int, what: str) -> str:
    """``1 case``, ``2 cases``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def safe(line: str) -> str:
    """A line whose parts may come from anyone, without what would steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in line)
