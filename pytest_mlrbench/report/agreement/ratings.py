"""What judges and people gave to the same work, read into one form."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.published import Published
from pytest_mlrbench.report.collected.collecting import collect

#: The source that is shipped.
PUBLISHED = "published"
_PREFIX = "published:"
#: What a judge says of itself, and not of the work.
_NO_DIMENSION = ("confidence",)
_KEYS = ("reviewer_id", "model_name", "workshop_name")


@dataclass(frozen=True)
class Work:
    """One piece of work that was judged; ``scores`` is judge → dimension → 1..10."""

    name: str
    stage: str
    #: What its scores are measured by: the stage, and the rubric where there are several.
    group: str
    task: str
    agent: str
    scores: Mapping[str, Mapping[str, int]]

    @property
    def known_as(self) -> set[str]:
        """The names that ratings may call its agent by."""
        name = self.agent.removeprefix(_PREFIX)
        system = Published.load().systems.get(name) if name != self.agent else None
        raw = system.raw.get(self.stage) if system else None
        return {self.agent, name, raw or name}


@dataclass(frozen=True)
class Rating:
    """What one person gave to one piece of work, by dimension; what was left empty is not there."""

    reviewer: str
    task: str
    system: str
    scores: Mapping[str, float]

    @property
    def paper(self) -> str:
        """What was rated, for a person."""
        return f"{self.task}/{self.system}"


def read_judges(sources: Iterable[str], stage: str | None = None) -> list[Work]:
    """Return what the judges of *sources* have given, of one stage or of all.

    :param sources: files and run folders as ``mlrbench collect`` takes them, or ``published``.
    :raises InputError: a source cannot be used, stands against another, or has no scores.
    """
    names = list(sources)
    works = list(_published()) if names == [PUBLISHED] else list(_collected(names))
    found = sorted((w for w in works if stage in (None, w.stage)), key=lambda work: work.name)
    if not found:
        raise InputError(
            f"{', '.join(names)} has no case with scores{f' of stage {stage!r}' if stage else ''}."
        )
    return found


def _published() -> Iterator[Work]:
    data = Published.load()
    for stage in data.stages:
        for system in (s for s in data.systems.values() if stage in s.raw):
            for task in data.tasks(stage, system.name):
                scores = data.scores(stage, system.name, task)
                yield Work(
                    name=f"{stage}/{task}/{system.name}",
                    stage=stage,
                    group=stage,
                    task=task,
                    agent=_PREFIX + system.name,
                    scores={judge: _scored(found) for judge, (_, found) in scores.items()},
                )


def _collected(names: list[str]) -> Iterator[Work]:
    if PUBLISHED in names:
        raise InputError(f"{PUBLISHED!r} are scores of their own: name no other source beside it.")
    rows = [row for row in collect(names) if row.overall is not None]
    rubrics = {(row.stage, row.rubric) for row in rows}
    several = {s for s, n in Counter(stage for stage, _ in rubrics).items() if n > 1}
    seen: set[str] = set()
    for row in rows:
        name = f"{row.case}/{row.agent or '-'}"
        if name in seen:
            # Two judgements of what may be two pieces of work: which belong together is unknown.
            raise InputError(
                f"{row.case} of agent {row.agent} stands twice, in {row.sources[0]} with another"
                " state, rubric or panel: leave out one of the sources."
            )
        seen.add(name)
        yield Work(
            name=name,
            stage=row.stage,
            group=f"{row.stage} ({row.rubric})" if row.stage in several else row.stage,
            task=row.task,
            agent=row.agent or "-",
            scores={
                judge: _scored({**found.scores, "overall": found.overall})
                for judge, found in row.judges.items()
                if found.overall is not None
            },
        )


def _scored(scores: Mapping[str, int]) -> dict[str, int]:
    return {name: score for name, score in scores.items() if name not in _NO_DIMENSION}


def read_ratings(path: Path) -> list[Rating]:
    """Return the ratings of a CSV with ``reviewer_id``, ``model_name`` and ``workshop_name``.

    All other columns are dimensions (1..10), in any case of letters. The layout is the one of
    MLR-Bench's ``human_review.csv``.

    :raises InputError: it cannot be read, or is not in this layout.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restkey="", restval="", strict=True)
            if absent := [name for name in _KEYS if name not in (reader.fieldnames or ())]:
                raise InputError(f"{path} has no column {absent[0]!r}.")
            ratings = [_rating(row, f"{path}, line {reader.line_num}") for row in reader]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path} is no CSV in UTF-8.") from None
    if not any(rating.scores for rating in ratings):
        raise InputError(f"{path} has no ratings.")
    return ratings


def _rating(row: Mapping[str, str], where: str) -> Rating:
    if "" in row:
        raise InputError(f"{where} has more cells than columns.")
    reviewer, system, task = (row[name].strip() for name in _KEYS)
    if not (reviewer and system and task):
        raise InputError(f"{where} does not say who rated what.")
    scores = {
        name.strip().lower(): _score(text, f"{where}, {name}")
        for name, text in row.items()
        if name not in _KEYS and text.strip()
    }
    return Rating(reviewer, task, system, scores)


def _score(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= 10:
        raise InputError(f"{where} is {text[:40]!r}, which is no score from 1 to 10.")
    return value
