"""Several cases at once in one process: while one test waits, the cases of later tests go on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from pytest_mlrbench.run.engine import Engine
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.suites.select import Case


class Ahead:
    """Keeps *most* cases under way, in the order of the tests.

    What bounds them is how many are unfinished: a window after the test that waits would stand
    still behind a slow case (6.2 s where 5.0 s were possible).

    :param cases: those that may be begun before their test has come.
    """

    def __init__(self, engine: Engine, cases: Iterable[Case], most: int) -> None:
        self.engine = engine
        self.most = most
        self._waiting = deque(cases if most > 1 else ())
        self._begun: dict[str, asyncio.Task[CaseResult]] = {}
        #: What the test that is being run waits for.
        self._awaited: asyncio.Task[CaseResult] | None = None

    @property
    def under_way(self) -> int:
        """How many cases have been begun and not finished."""
        return sum(not task.done() for task in self._begun.values())

    def recall(self, case: Case) -> CaseResult | None:
        """Return the result that is on disk; none of a case that has been begun."""
        return None if case.name in self._begun else self.engine.recall(case)

    async def measure(self, case: Case) -> CaseResult:
        """Return the result of *case*, which is begun now if it has not been."""
        task = self._begun.get(case.name)
        if task is not None and task.cancelled():
            # An earlier test was ended by a plugin's time limit, and all that was begun with it.
            self.engine.set_aside(case)
            task = None
        if task is None:
            task = self._begin(case)
        self._awaited = task
        self._fill()
        try:
            return await task
        finally:
            del self._begun[case.name]

    def _begin(self, case: Case) -> asyncio.Task[CaseResult]:
        task = asyncio.create_task(self.engine.measure(case), name=case.name)
        self._begun[case.name] = task
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[CaseResult]) -> None:
        # After the awaited one the next test goes on: if the session ends here, none is begun.
        if task is not self._awaited and not task.cancelled() and not task.exception():
            self._fill()

    def _fill(self) -> None:
        while self._waiting and self.under_way < self.most:
            case = self._waiting.popleft()
            if case.name not in self._begun and self.engine.recall(case) is None:
                self._begin(case)
