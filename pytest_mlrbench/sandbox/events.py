"""From the calls of an agent's processes to the events of the ledger.

Every event has ``e`` (its kind), ``t`` (when it was written down) and ``prev``. A process is named
by ``proc``, a number that is given once: the kernel gives a ``pid`` again. Paths are as the
container has them; bytes that are no UTF-8 are kept as surrogates. The kinds made here:

``process``
    A process began, or took on another program. ``proc``, ``pid``, ``parent`` (a ``proc``, null
    where it was not seen), ``how`` (``fork``: same program as its parent; ``exec``), ``at`` (Unix
    time); for ``exec`` also ``exe`` (as it was called), ``argv``, ``cut`` (``argv`` is not whole),
    ``cwd``.
``read``
    The first time that a process opened this content for reading. ``proc``, ``path``, ``class``
    (see :mod:`~pytest_mlrbench.sandbox.classes`). Not written for ``system``, and not for the code
    of ``package``, ``installed`` and ``image``: ``exit`` counts them.
``write``
    A process opened a file so that it may write. Not written again while it stays the last to have
    done so, unless it empties what it had only opened. ``proc``, ``path``, ``how``: ``open`` (what
    was in it may still be), ``truncate`` (it was emptied), ``make`` (it was not there before).
``rename``, ``link``, ``symlink``, ``unlink``
    ``proc``, ``path``, and ``to``, the new name. A symlink's ``path`` is its target as it was
    given; a link's is null where the file had no name before. ``rename`` has ``exchange``.
``connect``
    The first time with this address and answer. ``proc``, ``address`` (``host:port``,
    ``unix:path``, ``unix:@name``), ``ok`` (null: the answer was not waited for).
``memory``
    A process made a file that lies in no folder. ``proc``, ``name``.
``unclear``
    A call whose file cannot be told. ``proc``, ``call``, ``why``. Nobody can say what it changed.
``exit``
    ``proc``, ``code`` (negative for a signal, null if unknown), ``wall`` and ``cpu`` (seconds;
    ``cpu`` null where it was not seen), ``reads`` (class → number of files), ``packages`` (their
    names).

Calls that failed leave no event, but for ``connect``. Who writes to a descriptor that it was given
already open (by its parent, or through a socket) is not seen: the process that opened it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_mlrbench.sandbox import strace
from pytest_mlrbench.sandbox.calls import follow
from pytest_mlrbench.sandbox.classes import BROUGHT, class_of, is_code, package
from pytest_mlrbench.sandbox.overlaps import Recent
from pytest_mlrbench.sandbox.processes import Process, Processes
from pytest_mlrbench.sandbox.shadow import Shadow
from pytest_mlrbench.sandbox.strace_arguments import text

#: Events that a ledger takes; further ones are counted.
EVENTS = 2_000_000
#: Names of packages that are kept of one process.
_PACKAGES = 1000


class Write(Protocol):
    """Writes an event down, like :meth:`pytest_mlrbench.sandbox.ledger.Ledger.write`."""

    def __call__(self, event: str, **fields: Any) -> None:
        """Append an event."""


@dataclass(slots=True)
class Writer:
    """A process that has written.

    :param program: command line of what it executed when it last did, cut short.
    :param code: how it ended; null while it has not, or if that is not known.
    """

    program: str
    code: int | None = None


class Events:
    """What is known of the processes of one case, and written down of them.

    :param write: takes the events.
    :param shadow: with what was there at first; kept up to date.
    :param root: folder whose files are compared at the end.
    :param cpu: seconds of processor time that a process has used, by its pid in the container.
    """

    def __init__(
        self,
        write: Write,
        shadow: Shadow,
        *,
        root: bytes,
        cpu: Callable[[int], float | None] = lambda pid: None,
    ) -> None:
        self._write = write
        self._cpu = cpu
        self._written = 0
        self.shadow = shadow
        self.root = root + b"/"
        self.processes = Processes(self._begun)
        self.recent = Recent()
        #: Those that have written, by number.
        self.writers: dict[int, Writer] = {}
        #: Resolved paths of calls in which a process was killed, and its number.
        self.cut_short: dict[bytes, int] = {}
        #: Events that were not written down, by kind.
        self.dropped: dict[str, int] = {}
        #: How many calls there were whose file cannot be told.
        self.unclear = 0

    def write(self, event: str, **fields: Any) -> None:
        """Write an event down, or count it."""
        if self._written >= EVENTS:
            self.dropped[event] = self.dropped.get(event, 0) + 1
            return
        self._written += 1
        self._write(event, **fields)

    def take(self, event: strace.Event) -> None:
        """Follow one event of the trace."""
        if isinstance(event, strace.Unread):
            self._unclear(text(event.line))
        elif isinstance(event, strace.Orphan):
            if event.task not in self.processes.pids:
                self._unclear(f"process {event.task} was not traced")
        else:
            self._follow(self.processes.place(event))

    def close(self) -> None:
        """Follow what was left waiting for the birth of its process to be seen."""
        self._follow(self.processes.rest())

    def _follow(self, placed: Iterator[tuple[Process, strace.Doing]]) -> None:
        for process, event in placed:
            if isinstance(event, strace.Call):
                follow(self, process, event)
            elif isinstance(event, strace.Exit) and event.task == process.pid:
                self._exit(process, event)

    def _begun(self, process: Process) -> None:
        self.write(
            "process",
            proc=process.number,
            pid=process.pid,
            parent=process.parent,
            how="fork",
            at=process.begun,
        )

    def _exit(self, process: Process, exit_: strace.Exit) -> None:
        if process.number in self.writers:
            self.writers[process.number].code = exit_.code
        self.write(
            "exit",
            proc=process.number,
            code=exit_.code,
            wall=round(exit_.time - process.begun, 6),
            cpu=self._cpu(process.pid),
            reads=dict(sorted(process.reads.items())),
            packages=sorted(process.packages),
        )

    def read(self, process: Process, path: bytes) -> None:
        """A process has opened a file for reading."""
        content = self.shadow.get(path)
        if not process.first_read(path, content.version if content else 0):
            return
        kind = class_of(path, content)
        process.reads[kind] = process.reads.get(kind, 0) + 1
        if (name := package(path)) is not None and len(process.packages) < _PACKAGES:
            process.packages.add(name)
        if kind == "system" or (kind in BROUGHT and is_code(path)):
            return
        self.write("read", proc=process.number, path=text(path), **{"class": kind})

    def written(self, process: Process, path: bytes, how: str) -> None:
        """A process may write what lies at *path*."""
        self.wrote(process)
        if self.shadow.written(path, process.number, how):
            self.write("write", proc=process.number, path=text(path), how=how)

    def wrote(self, process: Process) -> None:
        """Remember a process as one that changes files, and what it executes."""
        self.writers[process.number] = Writer(process.program)

    def _unclear(self, why: str) -> None:
        self.unclear += 1
        self.write("unclear", proc=None, call=None, why=why)

    def doubt(self, process: Process, call: strace.Call, why: str) -> None:
        """It cannot be told what a call did to which file."""
        self.unclear += 1
        self.write("unclear", proc=process.number, call=call.name, why=why)
