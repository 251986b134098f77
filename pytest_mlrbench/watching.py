"""What the controller does for live models before the first case, and shows while cases run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.report.progress import Progress
from pytest_mlrbench.report.running import table
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.plan import Plan
from pytest_mlrbench.sandbox.heartbeat import running
from pytest_mlrbench.suites.select import Case


class Watching:
    """The preflight, the line of progress, and the estimate that takes the place of a run.

    :param under_way: how many cases this process has under way; of workers it is seen by itself.
    """

    def __init__(self, config: pytest.Config, plan: Plan, under_way: Callable[[], int]) -> None:
        self.config = config
        self.plan = plan
        self._under_way = under_way
        self._progress: Progress | None = None
        #: Whether an earlier session of the run has asked the same models.
        self.tried = False
        #: Test ids of what is being run.
        self._begun: set[str] = set()

    def begin(self, folder: RunFolder, names: Collection[str]) -> None:
        """Ask every model a small question, unless nothing will be asked, and show progress.

        :param names: the cases of the session.
        :raises pytest.UsageError: a model cannot be used.
        """
        if self._progress is not None:  # another worker has collected before
            return
        try:
            if self.plan.live.models and not (self.tried and folder.holds(names)):
                for warning in self.plan.live.preflight():
                    self._say(f"mlrbench: {warning}")
        except InputError as error:
            self._forget(folder)
            raise pytest.UsageError(str(error)) from None
        self._progress = Progress(
            len(names),
            lambda: max(self._under_way(), len(self._begun)),
            lambda: [f"  {line}" for line in table(running(folder.path))[1:]],
        )
        if Progress.wanted() and self.config.option.verbose >= 0:
            self._progress.begin()

    def _forget(self, folder: RunFolder) -> None:
        """A run that could not begin is none: it leaves no folder, and there is nothing to report.

        One that is resumed stays as it was.
        """
        if not self.plan.options.resume:
            (folder.path / "selection.json").unlink(missing_ok=True)
            # At the end: a worker may still be collecting.
            self.config.add_cleanup(lambda: shutil.rmtree(folder.path, ignore_errors=True))

    def estimate(self, cases: Sequence[Case]) -> None:
        """Print what measuring *cases* would take."""
        from pytest_mlrbench.run.estimate import estimate

        try:
            if self.plan.live.models:
                self.plan.live.calls.check(self.plan.live.models)
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        for line in estimate(self.plan, cases):
            self._say(line)

    def _say(self, line: str) -> None:
        reporter: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.ensure_newline()
            reporter.write_line(line)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test has begun."""
        self._begun.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended."""
        self._begun.discard(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what has been measured."""
        if self._progress and report.when == "setup" and report.user_properties:
            found: dict[str, Any] = dict(report.user_properties)
            if "mlr.case" in found:
                self._progress.count(found)

    def pytest_sessionfinish(self) -> None:
        """Show no more."""
        if self._progress:
            self._progress.end()
