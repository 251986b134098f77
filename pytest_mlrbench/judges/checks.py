"""What a check is; the checks themselves are in ``check_writing`` and ``check_results``.

A check answers one yes-or-no question about a submission, and passes on evidence only: where there
is nothing to look at, it fails. Its function is called what ``rubrics/checklist.yaml`` calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pytest_mlrbench.judges.check_files import Submission


class CheckOutcome(NamedTuple):
    """Whether a check passed, and what was seen, in words that can stand alone."""

    passed: bool
    detail: str


Check = Callable[[Submission], CheckOutcome]


class Registry(dict[str, Check]):
    """Name → check."""

    def add(self, check: Check) -> Check:
        """Register a function under its own name; a decorator."""
        self[check.__name__] = check
        return check


def share(part: int, whole: int, least: float, what: str) -> CheckOutcome:
    """Pass if *part* of *whole* is at least the share *least*; of nothing it never is."""
    return CheckOutcome(whole > 0 and part >= least * whole, f"{part:,} of {whole:,} {what}")


def example(outcome: CheckOutcome, word: str, cases: list[str]) -> CheckOutcome:
    """Add the first of *cases*, if there is one, to the detail."""
    shown = f"; {word} {cases[0][:100]!r}" if cases else ""
    return outcome._replace(detail=outcome.detail + shown)
