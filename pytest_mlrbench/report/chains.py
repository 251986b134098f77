"""End-to-end cases in lines: how far research came, and its stages beside those taken alone."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_mlrbench.report.summary import StageSummary
from pytest_mlrbench.report.table import cause_words, columns
from pytest_mlrbench.suites.stages import CHAIN

_NONE = "-"


def funnel(stage: StageSummary) -> list[str]:
    """Return how many cases came how far, and what stopped the others."""
    if not stage.reached:
        return []
    steps = " > ".join(f"{number} {name}" for name, number in stage.reached.items())
    line = f"  {stage.stage} reached, of {stage.selected} cases: {steps}"
    if stage.stopped_by:
        causes = (f"{number} {cause_words(why)}" for why, number in stage.stopped_by.items())
        line += f"; stopped by: {', '.join(causes)}"
    parts = [
        f"{name} {mean(part.overall_mean, part.scored, part.selected)}"
        for name, part in stage.checkpoints.items()
    ]
    return [line, *([f"  {stage.stage} stages by themselves: {', '.join(parts)}"] if parts else [])]


def beside(stages: Iterable[StageSummary]) -> list[str]:
    """Return a table of stages taken alone and within end-to-end cases, where there are both.

    A paper within a chain is scored as a part of the whole, by another rubric: it has no line.
    """
    found = list(stages)
    alone = {one.stage: one for one in found if one.stage in CHAIN[:-1]}
    within = {name: part for one in found for name, part in one.checkpoints.items()}
    rows = [
        (
            name,
            mean(alone[name].overall_mean, alone[name].scored, alone[name].selected),
            mean(within[name].overall_mean, within[name].scored, within[name].selected),
        )
        for name in CHAIN[:-1]
        if name in alone and name in within
    ]
    return columns([("stage", "taken alone", "within a chain"), *rows]) if rows else []


def mean(value: float | None, scored: int, selected: int) -> str:
    """Return a mean with its denominator: ``6.25 (4/6 scored)``."""
    return f"{_NONE if value is None else format(value, '.2f')} ({scored}/{selected} scored)"
