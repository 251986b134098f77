"""The assertion of the shipped tests, and the exceptions that say why it does not hold."""

from __future__ import annotations

from pytest_mlrbench.report.table import verdict_line
from pytest_mlrbench.run.result import CaseResult


class Verdict(Exception):
    """A verdict other than *pass*; the plugin shows the scores of its *result*, not a traceback."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(verdict_line(result))
        self.result = result


class CaseFailed(Verdict, AssertionError):
    """The agent did not reach the thresholds, or made it impossible to judge its work."""


class NotMeasured(Verdict):
    """The case could not be measured, through no fault of the agent."""


def assert_passed(result: CaseResult) -> None:
    """Assert that a measured case has passed.

    :raises CaseFailed: it has not.
    """
    if result.verdict != "pass":
        raise CaseFailed(result)
