"""A row of the table: one case, as its test properties say it, each value in its own type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, get_args, overload

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.report.summary import NOT_RUN
from pytest_mlrbench.run.result import Verdict

Scalar = str | int | float | bool
T = TypeVar("T")

#: What names of our properties begin with; a column is named by what follows.
PREFIX = "mlr."
#: Columns of these names have a type; the first that matches counts, and all others are text.
_TYPES: tuple[tuple[type[Scalar], str], ...] = (
    (str, r"judge\.[^.]+\.(spec|kin)"),
    (bool, r"resumed|replayed|judge\.[^.]+\.hallucination"),
    (bool, r"evidence\.(fabricated|undisclosed_synthetic|paper_untraced)"),
    (int, r"repeat|judge\..+|hallucination\..+|tokens\..+"),
    (int, r"evidence\.(reported|traced|findings|findings\..+)"),
    (float, r"overall|score\..+|judges\.spread|checkpoint\..+\.overall|cost_usd\..+|seconds\..+"),
)
#: What each case has, however it ended.
_REQUIRED = ("case", "suite", "stage", "task", "repeat", "verdict")
#: An integer must be one for Python and for people, which ``1_000`` is not.
_INTEGER = re.compile(r"-?[0-9]{1,18}")


@lru_cache(4096)
def type_of(column: str) -> type[Scalar]:
    """Return the type of the values in a column."""
    return next((kind for kind, names in _TYPES if re.fullmatch(names, column, re.DOTALL)), str)


class _Cell(Generic[T]):
    """An attribute that is a cell of the row; null where the row has none."""

    def __init__(self, column: str) -> None:
        self.column = column

    @overload
    def __get__(self, row: None, owner: type[CaseRow]) -> _Cell[T]: ...

    @overload
    def __get__(self, row: CaseRow, owner: type[CaseRow]) -> T: ...

    def __get__(self, row: CaseRow | None, owner: type[CaseRow]) -> T | _Cell[T]:
        if row is None:
            return self
        found: Any = row.cells.get(self.column)
        return found  # type: ignore[no-any-return]  # read() gave it the type of its column


@dataclass(frozen=True)
class JudgeRow:
    """One judge's numbers in a case; null where there is no review that could be used."""

    spec: str | None
    overall: int | None
    scores: Mapping[str, int]
    kin: str | None
    confidence: int | None
    hallucination: bool | None
    #: Kind → number; empty also where the judge was not asked.
    hallucinations: Mapping[str, int]


@dataclass(frozen=True)
class CaseRow:
    """One case that was to be measured. Null means *not measured*; it is never a 0.

    :param cells: everything that is known, by the names of the columns, which are those of the
        test properties without ``mlr.``; what was not measured has no cell.
    :param sources: the files and folders it stands in, as they were named.
    :param run: id of the run it was measured in; null where the source does not say.
    :param written: when the session began that wrote the source, in ISO 8601; null as above.
    :param conflict: whether another row of the same case says something else.
    """

    cells: Mapping[str, Scalar]
    sources: tuple[str, ...]
    run: str | None = None
    written: str | None = None
    conflict: bool = False

    case = _Cell[str]("case")
    suite = _Cell[str]("suite")
    stage = _Cell[str]("stage")
    task = _Cell[str]("task")
    repeat = _Cell[int]("repeat")
    verdict = _Cell[Verdict]("verdict")
    #: Whose fault it is, and the word for it, where something went wrong.
    blame = _Cell[str | None]("blame")
    cause = _Cell[str | None]("cause")
    overall = _Cell[float | None]("overall")
    #: Highest minus lowest judge.
    spread = _Cell[float | None]("judges.spread")
    #: Level of evidence; null where it was not examined.
    level = _Cell[str | None]("evidence.level")
    agent = _Cell[str | None]("agent")
    agent_digest = _Cell[str | None]("agent_digest")
    suite_digest = _Cell[str | None]("suite_digest")
    rubric = _Cell[str | None]("rubric")
    resumed = _Cell[bool | None]("resumed")

    @property
    def scores(self) -> dict[str, float]:
        """Dimension → mean of the panel."""
        return self.group("score")

    @property
    def judges(self) -> dict[str, JudgeRow]:
        """Judge → what it says."""
        cells: dict[str, dict[str, Any]] = {}
        for name, value in self.group("judge").items():
            judge, _, what = name.partition(".")
            cells.setdefault(judge, {})[what] = value
        names = ("spec", "overall", "kin", "confidence", "hallucination")
        return {
            judge: JudgeRow(
                **{name: found.pop(name, None) for name in names},
                scores=found,
                hallucinations=self.group(f"hallucination.{judge}"),
            )
            for judge, found in cells.items()
        }

    @property
    def panel(self) -> str | None:
        """Who was to judge; null where the case did not come so far."""
        specs = (f"{name}={judge.spec}" for name, judge in self.judges.items())
        return ", ".join(sorted(specs)) or None

    @property
    def not_run(self) -> bool:
        """Whether it was selected and not begun: there is nothing to be said of it."""
        return self.cause == NOT_RUN

    def group(self, name: str) -> dict[str, Any]:
        """Return the cells ``name.*`` without that prefix, as of ``evidence`` or ``seconds``."""
        start = f"{name}."
        return {
            column.removeprefix(start): value
            for column, value in self.cells.items()
            if column.startswith(start)
        }


def read(properties: Mapping[str, str], where: str) -> dict[str, Scalar]:
    """Return the cells of a case, of which *where* holds the test properties as text.

    :raises InputError: they are not what this project writes.
    """
    ours = {n.removeprefix(PREFIX): v for n, v in properties.items() if n.startswith(PREFIX)}
    cells = {name: _value(name, text, where) for name, text in ours.items()}
    if absent := [name for name in _REQUIRED if name not in cells]:
        raise InputError(f"{where} has {PREFIX}case, but no {PREFIX}{absent[0]}.")
    named = "{suite}/{stage}/{task}/r{repeat}".format_map(cells)
    if cells["case"] != named:
        raise InputError(f"{where}: {PREFIX}case is {cells['case']!r}, its parts say {named!r}.")
    if cells["verdict"] not in get_args(Verdict):
        raise InputError(f"{where}: {PREFIX}verdict is {cells['verdict']!r}.")
    return cells


def _value(name: str, text: str, where: str) -> Scalar:
    kind = type_of(name)
    try:
        if kind is bool:
            return {"True": True, "False": False}[text]
        if kind is int and not _INTEGER.fullmatch(text):
            raise ValueError
        value = kind(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError
    except (ValueError, KeyError):
        wanted = {bool: "neither True nor False", int: "no whole number"}.get(kind, "no number")
        raise InputError(
            f"{where}: {PREFIX + name!r} is {text[:40]!r}, which is {wanted}."
        ) from None
    return value
