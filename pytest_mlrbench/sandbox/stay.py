"""What one command has of this machine and of the engine while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox.backlog import Backlog
from pytest_mlrbench.sandbox.base import Job, Limits
from pytest_mlrbench.sandbox.cgroup import ControlGroup
from pytest_mlrbench.sandbox.container_options import home_of
from pytest_mlrbench.sandbox.engine import engine_faults
from pytest_mlrbench.sandbox.output import Output
from pytest_mlrbench.sandbox.reading import Reading
from pytest_mlrbench.sandbox.workspace_watch import WorkspaceWatch

if TYPE_CHECKING:
    from docker import DockerClient


class Stay:
    """Filled step by step by a sandbox; everything in it is let go of by :meth:`close`.

    :param loop: that the sandbox waits on.
    """

    #: The agent's container, of the SDK.
    container: Any
    output: Output
    disk: WorkspaceWatch
    group: ControlGroup
    _streams: Reading
    _events: Reading

    def __init__(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        self.job = job
        #: Those that the agent may write to.
        self.folders = (job.workspace, home_of(job))
        self.recorder: Any = None
        #: Kind and name of each thing in the engine, in the order in which they were made.
        self.names: list[tuple[str, str]] = []
        #: When the command began, on the monotonic clock.
        self.started = time.monotonic()
        #: Whether the agent's folders are still its own, and not to be read here.
        self.is_given = False
        self.forks_refused = 0
        #: Of this machine, in bytes: the least that was seen.
        self.free_memory = 2**63
        self._exited = threading.Event()
        self._trace: Backlog | None = None
        self._loop = loop
        self._news = asyncio.Event()
        self._word = uuid.uuid4().hex[:12]
        self._open: list[Any] = []

    def name(self, kind: str, part: str) -> str:
        """Return a name for a new thing; it is removed at the end whether or not it came to be."""
        name = f"mlrbench-{self._word}-{part}"
        self.names.append((kind, name))
        return name

    def listen(self, client: DockerClient, limits: Limits) -> None:
        """Begin to read and watch what the container, which has not started yet, will do."""
        job = self.job
        self.output = self._hold(Output(job.log, limits.log))
        # An engine that is stopped ends its containers, which then look as if they had been killed
        # for something the agent did. What tells is a connection that breaks when the engine goes.
        events = client.events(filters={"container": self.container.id}, decode=True)
        self._events = self._hold(Reading(events, self._hear, self._wake))
        self.disk = self._hold(WorkspaceWatch(self.folders, limits.disk, self._wake))
        pieces = self.container.attach(
            stdout=True, stderr=True, stream=True, logs=False, demux=True
        )
        if self.recorder is not None:
            self._trace = Backlog(self._follow, self._wake)
        self._streams = self._hold(Reading(pieces, self._take, self._all_came))
        if self._trace is not None:
            self._hold(self._trace)

    def _hear(self, event: Mapping[str, Any]) -> None:
        """Take what the engine says: that the container has ended, however much is to be read."""
        if event.get("Action") == "die":
            self._exited.set()
            self._wake()

    def _take(self, piece: tuple[bytes | None, bytes | None]) -> None:
        """Take what the container printed on either stream; the second may be the trace."""
        out, err = piece
        if out:
            self.output.feed(out)
        if err and self._trace is None:
            self.output.feed(err)
        elif err and self._trace is not None:
            self._trace.put(err)

    def _all_came(self) -> None:
        if self._trace is not None:
            self._trace.end()
        self._wake()

    def _follow(self, piece: bytes) -> None:
        self.recorder.feed(piece)
        if self.recorder.main_exit is not None:  # not sooner: there is a lot of it
            self._wake()

    def _hold(self, thing: Any) -> Any:
        self._open.append(thing)
        return thing

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._news.set)

    @property
    def has_ended(self) -> bool:
        """Whether the container has, or nothing more can be read of it."""
        return self._exited.is_set() or self._streams.ended.is_set()

    @property
    def is_read(self) -> bool:
        """Whether all that it printed has been taken, and what it did has been recorded."""
        is_followed = self._trace is None or self._trace.ended.is_set()
        return self._streams.ended.is_set() and is_followed

    @property
    def is_over(self) -> bool:
        """Whether the command has ended; others that it started may still run.

        :raises SystemFault: it cannot be known any more.
        """
        self.check()
        main_ended = self.recorder is not None and self.recorder.main_exit is not None
        return self.has_ended or main_ended

    def check(self) -> None:
        """Make sure that all that was to be seen of the container could be.

        :raises SystemFault: the engine went away, or this machine's disk is full.
        """
        if self._events.ended.is_set():
            raise SystemFault("engine", "the Docker engine went away while the agent ran.")
        for reading in (self._streams, self._trace):
            if reading is not None and reading.error is not None:
                with engine_faults("the agent's output could not be kept"):
                    raise reading.error

    def look(self) -> None:
        """Note what can only be seen while the container is there."""
        import psutil

        self.free_memory = min(self.free_memory, psutil.virtual_memory().available)
        self.forks_refused = max(self.forks_refused, self.group.forks_refused())

    async def wait(self, seconds: float) -> None:
        """Wait until there is news, for so long at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)
        self._news.clear()

    async def wait_for_end(self, seconds: float) -> None:
        """Wait until the container has ended, for so long at most."""
        await self._wait_until(lambda: self.has_ended, seconds)

    async def wait_until_read(self, seconds: float) -> None:
        """Wait until all that it printed has been taken, for so long at most."""
        await self._wait_until(lambda: self.is_read, seconds)

    async def _wait_until(self, is_so: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not is_so() and (left := end - time.monotonic()) > 0:
            await self.wait(left)

    def close(self) -> None:
        """Let go of the threads and the file.

        :raises SystemFault: the end of the output could not be written.
        """
        if self.recorder is not None:
            self.recorder.close()
        with engine_faults("the agent's output could not be kept"):
            for thing in reversed(self._open):
                thing.close()
