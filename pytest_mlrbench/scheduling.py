"""On-demand scheduling under xdist: a worker gets a case when it is free, never one ahead.

xdist's schedulers commit each worker to two tests, since a worker needs to know the next one to
tear down the present one. With cases of an hour, one worker would hold a case while another
idles. So every worker collects one more item, which is no test, and each case is sent to a worker
with that idle slot behind it. Upstream wish: pytest-dev/pytest-xdist#894.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScheduling

#: Node id of the idle slot; no file can be called so.
IDLE = "mlrbench::idle"


class IdleItem(pytest.Item):
    """What a worker looks ahead to, so that no case is held back."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(nodeid=IDLE, **kwargs)

    def runtest(self) -> None:
        """Never called."""
        raise AssertionError("the idle slot was run as a test")


class OnDemandScheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no type information
    """Hand every worker one case at a time; without idle slots, what xdist does for ``load``.

    :param gpus: how many cases that need a GPU may be handed out at once, so that further workers
        have the others meanwhile; 0 for any number.
    :param needs_gpu: whether the test of that id needs one.
    """

    collection: list[str] | None
    idle: int | None = None

    def __init__(
        self,
        config: pytest.Config,
        log: Any,
        gpus: int = 0,
        needs_gpu: Callable[[str], bool] = lambda test: False,
    ) -> None:
        super().__init__(config, log)
        self._gpus = gpus
        self._needs_gpu = needs_gpu

    def add_node_collection(self, node: Any, collection: list[str]) -> None:
        """Take the idle slot out of what counts as a test.

        The list is the one xdist goes on to count and compare, so it is changed in place; the
        index of the slot is known by its place, the last.
        """
        if collection.count(IDLE) == 1 and collection[-1] == IDLE:
            collection.pop()
            self.idle = len(collection)
            session = self.config.pluginmanager.get_plugin("session")
            session.testscollected = len(collection)
        super().add_node_collection(node, collection)

    def schedule(self) -> None:
        """Start every worker on one case."""
        if self.idle is None:
            super().schedule()
            return
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            cases = next(iter(self.node2collection.values()))
            self.collection = cases
            self.pending[:] = range(len(cases))
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        """Give a free worker the next case, or let it go."""
        if self.idle is None:
            super().check_schedule(node, duration)
        elif node.shutting_down or self.node2pending[node]:
            return
        elif not self.pending:
            node.shutdown()
        elif (place := self._next()) is not None:
            index = self.pending.pop(place)
            self.node2pending[node].append(index)
            node.send_runtest_some([index, self.idle])

    def _next(self) -> int | None:
        """Return the place of the first pending case that can run now, if there is one."""
        tests: Sequence[str] = self.collection or ()
        handed_out = [tests[index] for indices in self.node2pending.values() for index in indices]
        is_free = not self._gpus or sum(map(self._needs_gpu, handed_out)) < self._gpus
        for place, index in enumerate(self.pending):
            if is_free or not self._needs_gpu(tests[index]):
                return place
        return None

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """A worker has passed an item; passing the idle slot means nothing."""
        if item_index == self.idle:
            return
        super().mark_test_complete(node, item_index, duration)
        if self.idle is not None:
            for other in self.nodes:  # one may have waited for the GPU
                self.check_schedule(other)

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to hand out or to wait for."""
        if self.idle is None:
            return bool(super().tests_finished)
        busy: Sequence[Any] = [node for node, pending in self.node2pending.items() if pending]
        return self.collection_is_completed and not self.pending and not busy
