"""The process the user started: it owns the run folder, the summary and the reports."""

from __future__ import annotations

import shutil
from functools import cached_property
from typing import Any

import pytest

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.properties import properties
from pytest_mlrbench.report.terminal import summary_lines
from pytest_mlrbench.run.crash import crashed
from pytest_mlrbench.run.folder import RunFolder, write_json
from pytest_mlrbench.run.record import RunRecord, earlier_record
from pytest_mlrbench.session import ActiveRun
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.watching import Watching

#: What xdist calls the phase in which a worker has died.
CRASH = "???"


class Controller(ActiveRun):
    """Prepares the run, hands it to xdist's workers if there are any, and reports it."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        #: Names of this session's cases, and of those that were on disk before.
        self.seen: set[str] = set()
        self.reused: set[str] = set()
        self.session_cases: set[str] = set()
        #: Names of those whose test has passed: neither a skip nor an xfail mark is as good.
        self.passed: set[str] = set()
        #: What went wrong at the end, to be printed last.
        self.said: list[str] = []
        self.watching = Watching(config, self.plan, self._under_way)
        config.pluginmanager.register(self.watching, "mlrbench-watching")
        self.seconds: dict[str, float] = {}
        if self.plan.options.estimate:
            config.option.dist = "no"  # nothing is run, so there is nothing to spread
        self.on_demand = config.getoption("dist", "no") == "load"
        self.concurrency = self._concurrency()
        if config.getoption("dist", "no") == "each":
            raise pytest.UsageError(
                "--dist=each would run every case in every worker: leave it out."
            )
        if config.option.setuponly and not config.option.setupplan:
            raise pytest.UsageError(
                "--setup-only would run agents and judge nothing: leave it out."
            )
        looking = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")
        if any(getattr(config.option, name, False) for name in looking):
            return
        if self.plan.options.estimate:
            return
        target = self.plan.options.json
        if target and (target.is_dir() or (target.parent.exists() and not target.parent.is_dir())):
            raise pytest.UsageError(f"--mlr-json {target} cannot be written: name a file.")
        try:
            if run := self.plan.options.resume:
                # Before the agent, which may be the default one, is asked whether it can work.
                earlier_record(RunFolder.find(self.plan.options.out, run), self.plan)
            self.plan.prepare()
            self.folder = self._open_folder()
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        config.add_cleanup(self._leave_folder)

    def _concurrency(self) -> int:
        """How many cases to have under way at once in this process.

        :raises pytest.UsageError: the user wants several where there can be only one.
        """
        given, option = self.plan.options.concurrency, self.config.option
        alone = {
            "-n, where every worker has one case at a time": getattr(option, "dist", "no") != "no",
            "-x or --maxfail, which let no case begin before the last has ended": option.maxfail,
        }
        why = next((words for words, holds in alone.items() if holds), "")
        if why and (given or 1) > 1:
            raise pytest.UsageError(
                f"--mlr-concurrency={given} does not go with {why}: leave one of them out."
            )
        return 1 if why else given or self.plan.concurrency

    def _open_folder(self) -> RunFolder:
        options = self.plan.options
        runs = sorted(path.parent for path in options.out.glob("*/run.json"))
        if options.resume:
            folder = RunFolder.find(options.out, options.resume)
            self.seconds = _seconds(folder)
        else:
            folder = RunFolder.create(options.out)
            self.seconds = _seconds(RunFolder(runs[-1])) if runs else {}
        folder.acquire(alone=True)
        try:
            folder.selection()  # that it can be read is known before the first case
            earlier = earlier_record(folder, self.plan) if options.resume else None
            record = RunRecord.of(folder.run_id, self.plan, earlier)
            self.watching.tried = record.asks_as(earlier)
            write_json(folder.path / "run.json", record)
            self.plan.live.share(folder.path, 1)
        except InputError:
            folder.release()
            raise
        return folder

    def _leave_folder(self) -> None:
        """Free the run; a session that has collected nothing leaves none behind."""
        assert self.folder is not None
        self.folder.release()
        self.plan.rooms.leave()
        (self.folder.path / "refused").unlink(missing_ok=True)
        if not self.folder.selection() and not (self.folder.path / "journal.jsonl").exists():
            shutil.rmtree(self.folder.path, ignore_errors=True)

    # Collection

    def collected(self, session: pytest.Session, tests: dict[str, str]) -> None:
        """Without workers, this process has collected."""
        # A broken test module is told by pytest; that nothing was collected follows from it.
        if not tests and not session.testsfailed:
            self.refuse_empty()
        self.session_cases = set(tests)
        if self.folder and tests:
            self.folder.select(tests)
            self.watching.begin(self.folder, self.session_cases)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which run it works for."""
        node.workerinput["mlr_run"] = str(self.folder.path) if self.folder else ""
        node.workerinput["mlr_on_demand"] = self.on_demand
        node.workerinput["mlr_seconds"] = self.seconds

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Replace what ``--dist=load`` does; any other choice of the user stands."""
        if not self.on_demand:
            return None
        from pytest_mlrbench.scheduling import OnDemandScheduling

        return OnDemandScheduling(
            config, log, len(self.plan.rooms.gpus.uuids), lambda test: test in self._on_gpus
        )

    @cached_property
    def _on_gpus(self) -> set[str]:
        """Ids of the tests whose cases are lent a GPU."""
        assert self.folder is not None
        found = self.folder.selection()
        return {test for name, test in found.items() if STAGES[name.split("/")[1]].runs_code}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """With workers, the first that has collected says whether there are cases."""
        if self.folder is None:
            return
        if why := self.folder.refusal():
            raise pytest.UsageError(why)
        names = {test: name for name, test in self.folder.selection().items()}
        self.session_cases = {names[test] for test in ids if test in names}
        if not self.session_cases:
            self.refuse_empty()
        self.watching.begin(self.folder, self.session_cases)

    def pytest_runtestloop(self) -> bool | None:
        """An estimate takes the place of the run."""
        if not self.plan.options.estimate:
            return None
        self.watching.estimate(self.cases)
        return True

    # Reports

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which cases were on disk already, and complete the report of a crash."""
        if report.when == "teardown":
            return
        found: dict[str, Any] = dict(report.user_properties)
        if report.when == "call" and report.passed and "mlr.case" in found:
            self.passed.add(found["mlr.case"])
        elif report.when in ("setup", CRASH) and "mlr.case" in found:
            self.seen.add(found["mlr.case"])
            if found["mlr.resumed"]:
                self.reused.add(found["mlr.case"])
        if report.when == CRASH and "mlr.case" in found:
            # JUnit takes the properties from the report of the teardown, which never came.
            end = pytest.TestReport(
                nodeid=report.nodeid,
                location=report.location,
                keywords={},
                outcome="passed",
                longrepr=None,
                when="teardown",
                user_properties=report.user_properties,
            )
            end.node = getattr(report, "node", None)  # type: ignore[attr-defined]
            self.config.hook.pytest_runtest_logreport(report=end)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """A worker that died took the case's properties along: record the case without them."""
        if self.folder is None:
            return
        name = {test: name for name, test in self.folder.selection().items()}.get(crashitem)
        if name is None:
            return
        result = crashed(self.folder, self.plan, name)
        report.user_properties = list(
            properties(
                result,
                resumed=False,
                artifacts=self.folder.shown(result),
                replayed=self.plan.live.replays,
            )
        )

    @cached_property
    def report(self) -> Report:
        """What was measured, read once when all is over."""
        assert self.folder is not None
        return Report.of(self.folder)

    def pytest_report_header(self) -> list[str]:
        """Say what is run, on what share of the benchmark, and where it is kept."""
        try:
            lines = self.plan.describe()
        except InputError as error:  # of GPUs, where nothing was prepared
            raise pytest.UsageError(str(error)) from None
        if self.folder:
            resumed = ", resumed" if self.plan.options.resume else ""
            lines.append(f"mlrbench: run folder {self.folder.shown_path}{resumed}")
        return lines

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the JSON report, and see that what was not measured is not green."""
        target = self.plan.options.json
        if self.folder is None or not self.folder.selection():
            return
        if target:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_json(target, self.report)
            except OSError as error:
                self.said.append(f"--mlr-json {target} could not be written: {error.strerror}")
                session.exitstatus = max(session.exitstatus, pytest.ExitCode.TESTS_FAILED)
        if session.exitstatus == pytest.ExitCode.OK and self.session_cases - self.passed:
            # As by a skip or an xfail mark, from wherever it came.
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            measured = {one.case for one in self.report.cases if one.verdict != "not_measured"}
            self._say_lacking(self.session_cases - measured, "are not measured")
            lacking = (self.session_cases & measured) - self.passed
            self._say_lacking(lacking, "are measured, but their tests have not passed")

    def _say_lacking(self, cases: set[str], what: str) -> None:
        if cases:
            of = len(self.session_cases)
            self.said.append(f"exit 1: {len(cases)} of the {of} cases of this session {what}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was measured, of how much."""
        if self.folder is None or not self.folder.selection():
            return
        report = self.report
        terminalreporter.write_sep("=", "mlrbench")
        session = self.seen if self.plan.options.resume else None
        for line in summary_lines(report, self.reused, session, self.folder.shown_path):
            terminalreporter.write_line(line)
        for line in self.plan.live.spent():
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"run folder: {self.folder.shown_path}")
        if self.plan.options.json:
            terminalreporter.write_line(f"JSON report: {self.plan.options.json}")
        for line in self.said:
            terminalreporter.write_line(line, red=True)


def _seconds(folder: RunFolder) -> dict[str, float]:
    """How long the cases of an earlier run took: a guess of what they take now."""
    return {line.case: line.seconds for line in folder.journal() if line.seconds is not None}
