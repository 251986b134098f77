"""An xdist worker of an active run."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.scheduling import IdleItem
from pytest_mlrbench.session import ActiveRun, case_of
from pytest_mlrbench.suites.stages import STAGES

#: Where a test module could not be read, nobody knows which tests it has.
_BROKEN = "no case was collected, as a test module cannot be read: see the error above."


class Worker(ActiveRun):
    """Collects like the controller would, in the order that keeps all workers busy."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        given: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
        self.on_demand = bool(given["mlr_on_demand"])
        self.seconds: dict[str, float] = given["mlr_seconds"]
        if given["mlr_run"]:
            self.folder = RunFolder(Path(given["mlr_run"]))
            self.folder.acquire(alone=False)
            config.add_cleanup(self.folder.release)
            self.plan.live.share(self.folder.path, int(given["workercount"]))
            config.add_cleanup(self.plan.rooms.leave)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Longest first. Whatever reorders tests on purpose (``--ff``, shuffling) comes after."""
        if self._applies(items):
            items.sort(key=self._expected_seconds, reverse=True)

    def collected(self, session: pytest.Session, tests: dict[str, str]) -> None:
        """Tell the controller, through the run folder, and offer the idle slot."""
        if self.folder and tests:
            self.folder.select(tests)
        if not tests:
            self.refuse_empty(_BROKEN if session.testsfailed else "")
        if self._applies(session.items):
            session.items.append(IdleItem.from_parent(session, name="idle"))

    def refuse(self, why: str) -> None:
        """An error here would be one of xdist's: the controller reads it and ends the session."""
        if self.folder:
            self.folder.refuse(why)

    def _applies(self, items: list[pytest.Item]) -> bool:
        return self.on_demand and bool(items) and all(case_of(item) for item in items)

    def _expected_seconds(self, item: pytest.Item) -> float:
        case = case_of(item)
        assert case is not None
        same = [s for name, s in self.seconds.items() if name.split("/")[-3] == case.stage]
        return self.seconds.get(case.name, fmean(same) if same else STAGES[case.stage].weight)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """The idle slot is not a test: nothing runs and nothing is reported."""
        return True if isinstance(item, IdleItem) else None
