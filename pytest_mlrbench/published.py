"""The published reviews of MLR-Bench as data, and whether the paper's means follow from them.

Source: the reviews released with arXiv 2505.19955 (``benchmarks/published/``, whose
``published.yaml`` says which commit and licence). Scores are integers 1..10, confidence 1..5.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import mean

import yaml

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import shipped

TABLES, FIGURE, PANEL = "Tables 9-18, one judge", "Figure 3, one judge", "mean of both judges"
RULES = ("exact", "of rounded means")


class UnknownSystem(InputError):
    """No published system has this name in this stage; the message lists those that do."""


@dataclass(frozen=True)
class System:
    """Something that was reviewed; ``raw`` maps each stage it is in to the source's name for it."""

    name: str
    title: str
    raw: Mapping[str, str]


@dataclass(frozen=True)
class PublishedJudge:
    """A judge of the paper; ``raw`` maps each stage to the names the source uses for it there."""

    id: str
    title: str
    raw: Mapping[str, tuple[str, ...]]


class Published:
    """The published scores in a folder; each stage's CSV is read once, on first use.

    A stage without published reviews raises :class:`InputError` naming those that have some.
    """

    def __init__(self, folder: Path) -> None:
        text = (folder / "published.yaml").read_text(encoding="utf-8")
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.folder = folder
        self.stages = {stage: tuple(e["dimensions"]) for stage, e in data["stages"].items()}
        self.systems = {name: System(name, **entry) for name, entry in data["systems"].items()}
        self.judges: dict[str, PublishedJudge] = {}
        for id, entry in data["judges"].items():
            raw = {stage: tuple(names) for stage, names in entry["raw"].items()}
            self.judges[id] = PublishedJudge(id, entry["title"], raw)

    @staticmethod
    @cache
    def load() -> Published:
        """Return the shipped data (one object per process)."""
        return Published(shipped("benchmarks") / "published")

    def dimensions(self, stage: str) -> tuple[str, ...]:
        """Return the dimensions scored in a stage, in the order of its cells."""
        if stage not in self.stages:
            raise InputError(f"no reviews of stage {stage!r}, only of {', '.join(self.stages)}")
        return self.stages[stage]

    def system(self, stage: str, name: str) -> System:
        """Return a system of a stage by its public name, else by the source's name for it there.

        :raises UnknownSystem: there is none.
        """
        self.dimensions(stage)  # an unknown stage is said as such
        inside = [system for system in self.systems.values() if stage in system.raw]
        found = {s.raw[stage]: s for s in inside} | {s.name: s for s in inside}
        if name not in found:
            names = ", ".join(sorted(s.name for s in inside))
            raise UnknownSystem(f"no published system {name!r} in stage {stage}; known: {names}")
        return found[name]

    def tasks(self, stage: str, system: str) -> tuple[str, ...]:
        """Return the ids of the tasks for which the system has a published review, sorted."""
        prefix = self.system(stage, system).raw[stage] + "|"
        rows = _read(self.folder, stage).items()
        return tuple(task for task, row in rows if any(name.startswith(prefix) for name in row))

    def scores(self, stage: str, system: str, task: str) -> dict[str, tuple[str, dict[str, int]]]:
        """Return judge id -> (the source's name of that judge, dimension -> score).

        A judge without a published review of this task is absent: the answer may be empty.

        :raises UnknownSystem: no such system in this stage.
        """
        dimensions, raw = self.dimensions(stage), self.system(stage, system).raw[stage]
        row = _read(self.folder, stage).get(task, {})
        return {
            judge.id: (name, dict(zip(dimensions, row[f"{raw}|{name}"], strict=True)))
            for judge in self.judges.values()
            for name in judge.raw.get(stage, ())
            if f"{raw}|{name}" in row
        }


@dataclass(frozen=True)
class MeanCell:
    """One cell of a published table (``row``: its row of ``means.csv``) and what the scores give.

    ``rule`` says how the published mean (1..10) follows: ``exact``, rounded half up to two
    decimals; ``of rounded means``, the judges' means rounded before and after averaging; empty if
    by neither. ``recomputed`` is None if there are not ``n`` reviews of each judge.
    """

    row: Mapping[str, str]
    group: str
    recomputed: float | None = None
    rule: str = ""


@dataclass(frozen=True)
class MeansReport:
    """The outcome of :func:`check_means`: every cell of ``means.csv`` in its order."""

    cells: tuple[MeanCell, ...]

    @property
    def mismatches(self) -> tuple[MeanCell, ...]:
        """The cells whose published value follows by neither rule; none if all is well."""
        return tuple(cell for cell in self.cells if not cell.rule)

    def count(self, group: str, rule: str = "") -> tuple[int, int]:
        """Return (cells that follow, by this rule if given; all cells) of a group or a source."""
        cells = [cell for cell in self.cells if group in (cell.group, cell.row["source"])]
        return sum(bool(cell.rule) and rule in ("", cell.rule) for cell in cells), len(cells)

    def format(self) -> str:
        """Return lines for a terminal, each with its denominator, then each cell that differs."""
        panels = dict.fromkeys(cell.row["source"] for cell in self.cells if cell.group == PANEL)
        lines = []
        for group in (TABLES, FIGURE, PANEL, *panels):
            follow, total = self.count(group)
            split = ", ".join(f"{self.count(group, rule)[0]} {rule}" for rule in RULES)
            lines.append(f"{'  ' * (group in panels)}{group}: {follow} of {total} cells ({split})")
        for cell in self.mismatches:
            lines.append(f"differs: {', '.join(cell.row.values())}; recomputed: {cell.recomputed}")
        return "\n".join(lines)


def check_means(published: Published | None = None) -> MeansReport:
    """Recompute every cell of ``means.csv`` from the scores (by default the shipped ones)."""
    data = published or Published.load()

    @cache
    def reviews(stage: str, system: str, judge: str) -> list[dict[str, int]]:
        answers = (data.scores(stage, system, task) for task in data.tasks(stage, system))
        return [answer[judge][1] for answer in answers if judge in answer]

    def cell(row: dict[str, str]) -> MeanCell:
        panel = row["judge"] == "panel"
        group = PANEL if panel else FIGURE if "Fig" in row["source"] else TABLES
        judges = data.judges if panel else [row["judge"]]
        found = [reviews(row["stage"], row["system"], judge) for judge in judges]
        if any(len(judge) != int(row["n"]) for judge in found):
            return MeanCell(row, group)
        means = [mean(Fraction(review[row["dimension"]]) for review in judge) for judge in found]
        candidates = (mean(means), mean(map(_round, means)))
        follows = [_round(value) == Fraction(row["published_mean"]) for value in candidates]
        rule = RULES[follows.index(True)] if any(follows) else ""
        return MeanCell(row, group, float(mean(means)), rule)

    return MeansReport(tuple(cell(row) for row in _rows(data.folder / "means.csv")))


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, restval="")


@cache
def _read(folder: Path, stage: str) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return task -> "system|judge" -> scores of one stage, without the empty cells."""
    rows = ((row.pop("task"), row) for row in _rows(folder / f"{stage}.csv"))
    return {
        task: {column: tuple(map(int, cell.split())) for column, cell in row.items() if cell}
        for task, row in rows
    }


def _round(value: Fraction) -> Fraction:
    """Round half up to two decimals."""
    return Fraction(int(value * 100 + Fraction(1, 2)), 100)
