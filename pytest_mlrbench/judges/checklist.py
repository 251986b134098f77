"""The checklist judge's scoring: a rubric whose dimensions are lists of named checks.

It needs no model and gives the same scores always. It sees form and bookkeeping, not merit, and
who wants to please it can: it is for trying the benchmark out and for catching empty work. It puts
an honest agent above the control agents (``agents.controls``), but cannot tell for certain what was
run from what was made up: invented numbers beside a program that names their file look like those
of a run. To know takes a record of the run itself, which is a matter for a gate and not for a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges import check_results, check_writing
from pytest_mlrbench.judges.check_files import Submission
from pytest_mlrbench.judges.checks import Check
from pytest_mlrbench.suites.rubrics import HIGHEST, LOWEST, Rubric

#: Name → check.
CHECKS: Mapping[str, Check] = {**check_writing.CHECKS, **check_results.CHECKS}


@dataclass(frozen=True)
class CheckResult:
    """One check of one submission."""

    name: str
    passed: bool
    #: What was seen, for a person.
    detail: str


def score(passed: int, total: int) -> int:
    """Map *passed* of *total* checks onto the scale, halves upwards."""
    return LOWEST + (2 * (HIGHEST - LOWEST) * passed + total) // (2 * total)


def run_checks(stage: str, workspace: Path, rubric: Rubric) -> dict[str, tuple[CheckResult, ...]]:
    """Check what lies in *workspace*; return dimension → its results, in the rubric's order.

    :raises InputError: the rubric is not one for this judge or this stage.
    """
    _refuse_unsuitable(rubric, stage)
    work = Submission(stage, workspace)
    return {
        dimension.name: tuple(_run(name, work) for name in dimension.checks)
        for dimension in rubric.dimensions_of(stage)
    }


def _run(name: str, work: Submission) -> CheckResult:
    if not work.raw.strip():  # also where inputs alone would satisfy a check
        return CheckResult(name, False, f"{work.document_path} is absent or blank")
    passed, detail = CHECKS[name](work)
    # What an agent wrote may hold what no report can: half characters, terminal control codes.
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in detail)
    return CheckResult(name, passed, printable)


def _refuse_unsuitable(rubric: Rubric, stage: str) -> None:
    if stage not in rubric.stages:
        raise InputError(f"rubric {rubric.name!r} does not score the stage {stage!r}.")
    for dimension in rubric.dimensions:
        if not dimension.checks:
            raise InputError(
                f"rubric {rubric.name!r} cannot be scored by the checklist judge: "
                f"its dimension {dimension.name!r} lists no checks."
            )
        if unknown := sorted(set(dimension.checks) - set(CHECKS)):
            raise InputError(
                f"rubric {rubric.name!r} asks in {dimension.name!r} for checks that do not exist: "
                f"{', '.join(unknown)}; checks are {', '.join(sorted(CHECKS))}."
            )
