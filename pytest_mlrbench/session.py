"""The hooks of an active run that controller and workers share."""

from __future__ import annotations

import gc
import inspect
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pytest_mlrbench import fixtures
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.nothing import why_nothing
from pytest_mlrbench.options import read_options
from pytest_mlrbench.report.table import explain, status
from pytest_mlrbench.resources import is_installed, shipped
from pytest_mlrbench.run.ahead import Ahead
from pytest_mlrbench.run.engine import Engine
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.plan import Plan
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.verdict import Verdict

#: The name and the id given to a case's parameter.
PARAMETER = "mlr_case"


class ActiveRun(ABC):
    """One process of an active run: it collects cases, runs them and reports them."""

    folder: RunFolder | None = None

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        #: Which of the options "agent" and "judge" the fixtures in force have asked for.
        self.wrapped: set[str] = set()
        #: The cases that were collected, and those of them that may run before their test.
        self.cases: list[Case] = []
        self.early: list[Case] = []
        #: The stages of our tests that were met while collecting, asked for or not.
        self.met: set[str] = set()
        #: What was being handled before, as where pytest is called in an ``except`` block.
        self._handled = sys.exception()
        #: How many cases this process may have under way at once.
        self.concurrency = 1
        self._ahead: Ahead | None = None
        try:
            self.plan = Plan.make(read_options(config))
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        config.stash[fixtures.ACTIVE] = self
        config.pluginmanager.register(fixtures, "mlrbench-fixtures")
        before = signal.signal(signal.SIGTERM, _interrupt)

        def restore() -> None:
            signal.signal(signal.SIGTERM, before)

        config.add_cleanup(restore)

    # Collection

    def pytest_sessionstart(self) -> None:
        """Let ``--lf`` know the files of the shipped tests that failed.

        It looks for them under the root folder, and once a test there has failed as well, it
        skips every file it does not know: failures of ours would be left out without a word.
        """
        last_failed = self.config.pluginmanager.get_plugin("lfplugin")
        known = getattr(last_failed, "_last_failed_paths", None)
        if known is not None:
            for test in map(str, getattr(last_failed, "lastfailed", ())):
                path = shipped("benchmarks") / test.partition("::")[0]
                if path.is_file():
                    known.add(path)

    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        """Give the shipped tests short ids, however they were named on the command line.

        pytest takes an id from the place below the root folder, which for an installed package is
        ``.venv/lib/…``, or from the argument, which for a file elsewhere gives an empty path.
        """
        checkout = module_path.is_relative_to(self.config.rootpath) and not is_installed()
        if module_path.parent == shipped("benchmarks") and not checkout:
            module = pytest.Module.from_parent(parent, path=module_path, nodeid=module_path.name)
            assert isinstance(module, pytest.Module)
            return module
        return None

    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str, obj: object) -> Any:
        """Leave out tests of cases of stages that were not asked for."""
        if inspect.isfunction(obj) and "mlr_result" in inspect.signature(obj).parameters:
            stage = _stage_of(obj)
            self.met |= {stage} if stage else set()
            return [] if stage and stage not in self.plan.stages else None
        return None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test of each case of the stage the test function is marked with."""
        if PARAMETER not in metafunc.fixturenames:
            return
        stage = _stage_of(metafunc.function)
        if stage is None:
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid} is of no stage: mark it, e.g. @pytest.mark.idea."
            )
        cases = [case for case in self.plan.cases if case.stage == stage]
        metafunc.parametrize(
            PARAMETER, cases, ids=[case.test_id for case in cases], scope="function"
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """In the order of research. What reorders on purpose (``--ff``, shuffling) comes after."""
        cases = [case_of(item) for item in items]
        if all(cases):
            order = {stage: number for number, stage in enumerate(STAGES)}
            by_item = {
                item: order[case.stage] for item, case in zip(items, cases, strict=True) if case
            }
            items.sort(key=by_item.__getitem__)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Make sure that there is something to measure, each case once, and say what."""
        error = sys.exception()
        if error is not self._handled:
            # pytest comes here on its way out too: an error of ours would hide its own.
            if isinstance(error, pytest.UsageError):
                self.refuse_empty("\n".join(map(str, error.args)))
            return
        tests: dict[str, str] = {}
        for item in session.items:
            if case := case_of(item):
                if case.name in tests:
                    self.refuse(
                        f"case {case.name} is collected twice, as {tests[case.name]} and"
                        f" {item.nodeid}: name the path of one of them only."
                    )
                    return
                tests[case.name] = item.nodeid
                self.cases.append(case)
                if self.concurrency > 1 and _may_run_early(item):
                    self.early.append(case)
        self.collected(session, tests)
        # What is there now stays to the end: looking through it for garbage again and again takes
        # a tenth of the time of a resumed run of a thousand cases.
        gc.freeze()

    def pytest_unconfigure(self) -> None:
        """Leave this process as it was found."""
        gc.unfreeze()

    def ahead(self, engine: Engine) -> Ahead:
        """Return what has *engine* measure several cases at once."""
        if self._ahead is None or self._ahead.engine is not engine:
            self._ahead = Ahead(engine, self.early, self.concurrency)
        return self._ahead

    def _under_way(self) -> int:
        return self._ahead.under_way if self._ahead else 0

    @abstractmethod
    def collected(self, session: pytest.Session, tests: dict[str, str]) -> None:
        """Called with the cases (name → test id) of this process, once they are known."""

    def refuse(self, why: str) -> None:
        """End the session with exit code 4.

        :raises pytest.UsageError: always, but in a worker, which leaves it to the controller.
        """
        raise pytest.UsageError(why)

    def refuse_empty(self, fault: str = "") -> None:
        """A benchmark that measured nothing is never green.

        :param fault: what pytest says of the paths, if anything.
        :raises pytest.UsageError: as :meth:`refuse`.
        """
        self.refuse(why_nothing(self.config, self.plan, self.met, fault))

    # Reports

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show a verdict as what it says, not as a traceback into the plugin."""
        verdict = call.excinfo.value if call.excinfo else None
        if isinstance(verdict, pytest.UsageError):
            report = yield
            report.longrepr = str(verdict)
            return report
        if self.folder is None or not isinstance(verdict, Verdict):
            return (yield)
        text = explain(verdict.result, self.folder.shown(verdict.result))
        # Said beforehand too: formatting the frames of pytest only to drop them takes longest.
        item.repr_failure = lambda excinfo: text  # type: ignore[method-assign,assignment,misc]
        report = yield
        report.longrepr = text
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: object) -> tuple[str, str, str] | None:
        """Put the score into the status word."""
        if not isinstance(report, pytest.TestReport) or hasattr(report, "wasxfail"):
            return None  # a module that could not be collected is reported here too
        if report.when == "teardown":
            return None
        found: dict[str, Any] = dict(report.user_properties)
        verdict = found.get("mlr.verdict")
        if verdict is None or report.skipped:
            return None
        names = ("mlr.overall", "mlr.cause", "mlr.evidence.level")
        word = status(verdict, *map(found.get, names))
        if verdict == "not_measured":
            return ("error", "E", f"ERROR {word}") if report.failed else None
        if report.when != "call":
            return None
        return (report.outcome, "." if report.passed else "F", f"{report.outcome.upper()} {word}")


def case_of(item: pytest.Item) -> Case | None:
    """Return the case a test stands for, if it is one of ours."""
    callspec = getattr(item, "callspec", None)
    case = callspec.params.get(PARAMETER) if callspec else None
    return case if isinstance(case, Case) else None


def _may_run_early(item: pytest.Item) -> bool:
    """Whether a case may be measured before its test: nothing of the user's could prevent it."""
    if any(next(item.iter_markers(name), None) for name in ("skip", "skipif", "xfail")):
        return False
    defined = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    return not any(_is_in_the_way(name, found[-1]) for name, found in defined.items())


def _is_in_the_way(name: str, fixture: Any) -> bool:
    """Whether a fixture of the user's belongs to a case: it may skip it, or set something up."""
    module = fixture.func.__module__
    if name in ("mlr_result", "mlr_engine", "mlr_runner"):
        return bool(module != fixtures.__name__)
    own = module.rpartition(".")[2] == "conftest" or module.rpartition(".")[2].startswith("test_")
    return bool(own and fixture.scope != "session")


def _stage_of(function: Any) -> str | None:
    """Return the stage a test function is marked with."""
    marks = getattr(function, "pytestmark", [])
    return next((mark.name for mark in marks if mark.name in STAGES), None)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that agents are stopped, fixtures finish and reports are written."""
    signal.signal(number, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in the background of a script, where Ctrl-C is not for us; SIGTERM is.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)
