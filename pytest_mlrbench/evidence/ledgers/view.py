"""What a ledger says of a case: its processes, what they read and made, and what is in doubt.

:func:`~pytest_mlrbench.evidence.ledgers.reading.read_view` makes a view of a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Where a container has the submission.
ROOT = "/workspace/"
#: Parents that are looked through for the program of a process that was only forked.
_FORKS = 100


@dataclass(frozen=True, slots=True)
class Program:
    """What a process executed.

    :param exe: as it was called.
    :param argv: cut short.
    """

    exe: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A process opened a file for reading.

    :param path: in the container.
    :param kind: its class, as in :mod:`pytest_mlrbench.sandbox.classes`.
    :param writers: keys of the processes that had written it by then, the last one last.
    :param kept: those of them whose work may have been in it: they came since it was last emptied.
    """

    path: str
    kind: str
    writers: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Process:
    """A process of the case.

    :param key: its place in :attr:`LedgerView.processes`.
    :param born: number of its first event; *ended* of its last, null while it is not known.
    :param begun: Unix time in seconds.
    :param code: how it ended; null if that is not known.
    :param wall: seconds, null if it was not seen to end.
    :param cpu: seconds, null if it was too short to be looked at.
    """

    key: int
    parent: int | None
    born: int
    begun: float
    programs: list[Program] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    ended: int | None = None
    code: int | None = None
    wall: float | None = None
    cpu: float | None = None
    packages: frozenset[str] = frozenset()
    reads: list[Read] = field(default_factory=list)
    #: Path → number of the event by which it first wrote there.
    wrote: dict[str, int] = field(default_factory=dict)
    #: Where it connected to, and whether that worked (null: it did not wait for the answer).
    connections: list[tuple[str, bool | None]] = field(default_factory=list)
    #: Whether it did more than is kept here, or something that could not be followed.
    is_partial: bool = False
    #: Class → how many reads there were of it.
    counts: dict[str, int] = field(default_factory=dict)

    def overlaps(self, other: Process) -> bool:
        """Whether both were there at some moment."""
        return not (
            (self.ended is not None and self.ended < other.born)
            or (other.ended is not None and other.ended < self.born)
        )

    @property
    def has_read_more(self) -> bool:
        """Whether it read more than :attr:`reads` has."""
        return sum(self.counts.values()) > len(self.reads)

    @property
    def seconds(self) -> float:
        """Processor time, or what it can have been at most if one processor was used."""
        return self.cpu if self.cpu is not None else self.wall or 0.0

    @property
    def end(self) -> float:
        """When it ended, Unix time; infinite if that was not seen."""
        return float("inf") if self.wall is None else self.begun + self.wall


@dataclass(frozen=True, slots=True)
class Made:
    """A file of the workspace that was not there before, or not so.

    :param writers: keys of processes, the last one last; *kept* as in :class:`Read`.
    :param by: command line of the last one, cut short.
    :param is_sure: whether its writers were recorded, and their order is known.
    """

    sha256: str | None
    writers: tuple[int, ...]
    kept: tuple[int, ...]
    by: str
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Call:
    """Something passed the gate.

    :param time: when it had ended, Unix time.
    :param what: the model, or the host.
    :param is_host: whether it was a connection to a host, not a call to a model.
    :param answered: whether there was an answer, other than an error.
    """

    time: float
    what: str
    is_host: bool
    answered: bool


@dataclass
class LedgerView:
    """What is kept of a ledger. If it holds several commands, their processes are counted on."""

    processes: dict[int, Process] = field(default_factory=dict)
    #: Path below the workspace → who made it.
    made: dict[str, Made] = field(default_factory=dict)
    #: What passed the gate, in the order of time.
    calls: list[Call] = field(default_factory=list)
    #: Keys of the processes in which the agent itself writes.
    hands: frozenset[int] = frozenset()
    #: Why it cannot be relied on, or not in all; empty where it can.
    doubts: list[str] = field(default_factory=list)
    #: How many files were there before, and lie there as they were.
    unchanged: int = 0
    #: The commands that the sandbox was given.
    commands: list[tuple[str, ...]] = field(default_factory=list)
    #: Whether each command has an end, and nothing was left out. Without, nothing is proved by it.
    is_whole: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether a reader may rely on all of it."""
        return self.is_whole and not self.doubts

    def parent(self, process: Process) -> Process | None:
        """The process that started one; null if it was not seen."""
        return None if process.parent is None else self.processes.get(process.parent)

    def program(self, key: int) -> Program | None:
        """What a process executed last; one that was only forked executes what its parent did."""
        process = self.processes.get(key)
        for _ in range(_FORKS):
            if process is None or process.programs:
                break
            process = self.parent(process)
        return process.programs[-1] if process is not None and process.programs else None

    def command_line(self, key: int) -> str:
        """The command line of a process, cut short."""
        program = self.program(key)
        return " ".join(program.argv)[:200] if program else ""

    def below(self, key: int) -> list[Process]:
        """A process and all that it started, whoever started them in between."""
        found, todo = [], [key]
        while todo:
            if process := self.processes.get(todo.pop()):
                found.append(process)
                todo.extend(process.children)
        return found
