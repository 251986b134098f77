"""Which thread belongs to which process, and who started whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pytest_mlrbench.sandbox import strace
from pytest_mlrbench.sandbox.folders import Folders, has_flag
from pytest_mlrbench.sandbox.way import PATHS

#: Contents that are remembered as read, of one process.
READS = 20_000
#: Events that are kept for threads whose birth has not been seen yet.
WAITING = 20_000
T = TypeVar("T")
_BIRTHS = frozenset(("clone", "clone3", "fork", "vfork"))
_EXECS = frozenset(("execve", "execveat"))


@dataclass(slots=True, eq=False)
class Process:
    """A process of the agent.

    :param number: given once in a run.
    :param pid: as the container numbers it; may be given again after its end.
    :param parent: number of the process that started it; null if that was not seen.
    :param begun: Unix time in seconds.
    :param cwd: its working directory, null if that is not known.
    """

    number: int
    pid: int
    parent: int | None
    begun: float
    cwd: bytes | None
    #: The command line of what it executes, cut short.
    program: str = ""
    folders: Folders = field(default_factory=Folders)
    #: Class of files → how many it has read.
    reads: dict[str, int] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    _seen: set[int] = field(default_factory=set)
    _connections: set[str] = field(default_factory=set)

    @property
    def where(self) -> bytes:
        """What stands for its working directory among names; no path is like it."""
        return b"cwd %d" % self.number

    def first_read(self, path: bytes, version: int) -> bool:
        """Whether it has not read this content of this file yet, as far as is remembered."""
        return _first(self._seen, hash((path, version)))

    def first_connection(self, address: str) -> bool:
        """Whether it has not connected to there yet, as far as is remembered."""
        return _first(self._connections, address)

    def moved(self, path: bytes, to: bytes, call: strace.Call, *, exchange: bool) -> None:
        """A folder has got another name; the process may be in it, or hold it open."""
        ways = ((path, to), (to, path)) if exchange else ((path, to),)
        self.folders.moved(ways, call)
        for old, new in ways:
            if self.cwd is not None and (self.cwd + b"/").startswith(old + b"/"):
                moved = new + self.cwd[len(old) :]
                self.cwd = moved if len(moved) <= PATHS else None
                return


def _first(seen: set[T], what: T) -> bool:
    if what in seen:
        return False
    if len(seen) < READS:
        seen.add(what)
    return True


class Processes:
    """All processes of a case.

    A thread may be seen before the call that made it has returned. What it did waits for that.

    :param begun: told of each new process but the first.
    """

    def __init__(self, begun: Callable[[Process], None]) -> None:
        self._begun = begun
        self._tasks: dict[int, Process] = {}
        self._waiting: dict[int, list[strace.Doing]] = {}
        self._replaced: set[int] = set()
        self._count = 0
        self._is_guessed = False
        #: Every pid that there was.
        self.pids: set[int] = set()

    @property
    def living(self) -> set[Process]:
        """Those that have not ended."""
        return set(self._tasks.values())

    @property
    def are_placed(self) -> bool:
        """Whether it is known, of each thread that was seen, to which process it belongs."""
        return not self._waiting and not self._is_guessed

    def of(self, task: int) -> Process | None:
        """The process of a thread that has not ended; null if it is not known."""
        return self._tasks.get(task)

    def start(self, pid: int, time: float, cwd: bytes | None) -> Process:
        """Begin with the agent's first process."""
        process = self._add(pid, None, time, cwd)
        process.folders.is_lost = False
        return process

    def place(self, event: strace.Doing) -> Iterator[tuple[Process, strace.Doing]]:
        """Yield the event with its process, and what has waited for it."""
        if isinstance(event, strace.Replaced):
            self._tasks.pop(event.by, None)
            self._replaced.add(event.task)
            return
        process = self._tasks.get(event.task)
        if process is None:
            self._waiting.setdefault(event.task, []).append(event)
            if sum(map(len, self._waiting.values())) > WAITING:
                yield from self.rest()
            return
        if isinstance(event, strace.Exit):
            del self._tasks[event.task]
            self._replaced.discard(event.task)
        elif event.name in _BIRTHS:
            yield from self._birth(process, event)
        elif event.name in _EXECS and event.task in self._replaced:
            # Strace has no result of its own for a call that returns in another thread.
            self._replaced.discard(event.task)
            event = replace(event, result=0)
        yield process, event

    def rest(self) -> Iterator[tuple[Process, strace.Doing]]:
        """Yield what still waits, as of processes without a known parent."""
        self._is_guessed |= bool(self._waiting)  # one that waits may be a thread of a known one
        for task in list(self._waiting):
            self._begun(self._add(task, None, self._waiting[task][0].time, None))
            yield from self._released(task)

    def _birth(self, process: Process, call: strace.Call) -> Iterator[tuple[Process, strace.Doing]]:
        if call.result is None:  # killed in the call: what it may have started has no parent
            yield from self.rest()
        elif call.result > 0 and call.result not in self._tasks:
            if has_flag(call.arguments, b"CLONE_THREAD"):
                self._tasks[call.result] = process
            else:
                child = self._add(call.result, process.number, call.time, process.cwd)
                child.program = process.program
                child.folders.is_lost = has_flag(call.arguments, b"CLONE_FILES")
                self._begun(child)
            yield from self._released(call.result)

    def _released(self, task: int) -> Iterator[tuple[Process, strace.Doing]]:
        for event in self._waiting.pop(task, []):
            yield from self.place(event)

    def _add(self, pid: int, parent: int | None, time: float, cwd: bytes | None) -> Process:
        self._count += 1
        self.pids.add(pid)
        self._tasks[pid] = process = Process(self._count, pid, parent, time, cwd)
        return process
