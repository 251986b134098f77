"""What a command of the agent's had to work with, beside what the agent had typed.

All that one command starts is looked at together: data pass through pipes and pools of processes,
which the ledger does not see. So a command counts as *closed* only if nothing in it read anything.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pytest_mlrbench.evidence.ledgers.programs import is_code, is_shell
from pytest_mlrbench.evidence.ledgers.view import Call, LedgerView, Process, Read
from pytest_mlrbench.sandbox.container_options import GATE_PORT

#: Where a container reaches models and hosts.
GATE = f"127.0.0.1:{GATE_PORT}"
_LOOPBACK = ("127.", "[::1]", "::1", "localhost", "0.0.0.0")
#: Commands before one that are looked at for what was typed, or asked, in them.
_LINEAGE = 1_000
#: Seconds that the clocks of trace and gate may be apart.
_CLOCKS = 1.0


@dataclass(frozen=True, eq=False)
class Work:
    """One command of the agent's with all that it started.

    :param inputs: what it read or reached that the agent had not typed, the first few.
    :param answered: models and hosts that answered while a process of it could ask them.
    :param failed: calls without an answer meanwhile.
    :param typed: paths of data that it read and the agent had typed.
    :param before: numbers of the works whose files it read.
    """

    number: int
    processes: tuple[Process, ...]
    inputs: tuple[str, ...] = ()
    answered: frozenset[str] = frozenset()
    failed: int = 0
    typed: frozenset[str] = frozenset()
    before: frozenset[int] = frozenset()
    #: Whether a process of it tried to reach a model.
    asked: bool = False

    @property
    def seconds(self) -> float:
        """Processor time, as far as it is known; never too little."""
        return sum(process.seconds for process in self.processes)

    @property
    def packages(self) -> frozenset[str]:
        """Names of the packages that were loaded."""
        return frozenset[str]().union(*(process.packages for process in self.processes))


@dataclass
class Works:
    """The commands of a case."""

    view: LedgerView
    _number: dict[int, int] = field(default_factory=dict)

    @cached_property
    def all(self) -> tuple[Work, ...]:
        """Every command, in the order of their beginning."""
        groups = self._groups()
        for number, group in enumerate(groups):
            self._number.update((process.key, number) for process in group)
        return tuple(self._work(number, group) for number, group in enumerate(groups))

    def of(self, key: int) -> Work | None:
        """The command that a process belongs to; null for the agent's own."""
        works = self.all
        number = self._number.get(key)
        return None if number is None else works[number]

    @cached_property
    def open(self) -> frozenset[int]:
        """Numbers of those that had something to work with, by themselves or by what they read."""
        after: dict[int, list[int]] = {}
        for work in self.all:
            for number in work.before:
                after.setdefault(number, []).append(work.number)
        found = {work.number for work in self.all if work.inputs}
        todo = list(found)
        while todo:
            new = set(after.get(todo.pop(), ())) - found
            found |= new
            todo += new
        return frozenset(found)

    def lineage(self, work: Work) -> list[Work]:
        """The command, and those whose files it read, directly or by others; at most so many."""
        found, todo = {work.number}, [work.number]
        while todo and len(found) < _LINEAGE:
            new = self.all[todo.pop()].before - found
            found |= new
            todo += new
        return [self.all[number] for number in sorted(found)]

    def _groups(self) -> list[list[Process]]:
        """Each process that a hand or the agent's own script started, with all below it."""
        tops = [process for process in self.view.processes.values() if self._is_top(process)]
        tops.sort(key=lambda process: process.born)
        groups: list[list[Process]] = []
        #: Of each script, its last group, and the number of the event at which that had ended.
        last: dict[int, tuple[list[Process], float]] = {}
        for top in tops:
            group = [it for it in self.view.below(top.key) if it.key not in self.view.hands]
            script = self.view.parent(top)
            if script is None or not self._is_script(script):
                groups.append(group)
                continue
            before, until = last.get(script.key, ([], 0.0))
            if top.born < until:  # what a script has running at once may be one pipe
                before += group
            else:
                groups.append(group)
                before, until = group, 0.0
            ended = float("inf") if top.ended is None else top.ended
            last[script.key] = before, max(until, ended)
        return groups

    def _is_top(self, process: Process) -> bool:
        if process.key in self.view.hands or self._is_script(process):
            return False
        parent = self.view.parent(process)
        return parent is None or parent.key in self.view.hands or self._is_script(parent)

    def _is_script(self, process: Process) -> bool:
        """Whether it is a shell that was started as the agent."""
        return process.parent is None and is_shell(self.view.program(process.key))

    def _work(self, number: int, group: list[Process]) -> Work:
        reads = [read for process in group for read in process.reads if not is_code(read.path)]
        typed = {read.path for read in reads if self._is_typed(read)}
        before = {self._number.get(key, number) for read in reads for key in read.writers}
        calls = self._calls(group)
        answered = frozenset(call.what for call in calls if call.answered)
        inputs = [what for process in group for what in self._inputs(process)]
        return Work(
            number,
            tuple(group),
            tuple(dict.fromkeys((*inputs, *sorted(answered))))[:20],
            answered,
            sum(not call.answered for call in calls),
            frozenset(typed),
            frozenset(before - {number}),
            any(_is_gate(where) for it in group for where, _ in it.connections),
        )

    def _is_typed(self, read: Read) -> bool:
        return any(key in self.view.hands for key in read.kept)

    def _inputs(self, process: Process) -> Iterator[str]:
        if process.is_partial:
            yield "more than was kept of the ledger"
        for read in process.reads:
            if self._is_input(read):
                yield read.path
        for where, ok in process.connections:
            # What passes to the gate is known by its calls; what passes elsewhere is not.
            if ok is not False and not _is_gate(where):
                yield where

    def _is_input(self, read: Read) -> bool:
        """Whether it is something to work with; what is kept of others is no program."""
        if read.kind != "own":
            return True
        if is_code(read.path):
            return False
        if not read.writers:  # brought by the agent, or laid into its image
            return True
        # What a hand that reaches into the network writes may come from there.
        return any(
            ok is not False and not where.startswith(("unix:", *_LOOPBACK))
            for key in read.writers
            if key in self.view.hands
            for where, ok in self.view.processes[key].connections
        )

    def _calls(self, group: list[Process]) -> list[Call]:
        """What passed the gate while processes that had connected to it were there."""
        there = [
            it for it in group if any(_is_gate(w) and ok is not False for w, ok in it.connections)
        ]
        if not there:
            return []
        first = bisect_left(self._times, min(it.begun for it in there) - _CLOCKS)
        last = bisect_right(self._times, max(it.end for it in there) + _CLOCKS)
        return self.view.calls[first:last]

    @cached_property
    def _times(self) -> list[float]:
        return [call.time for call in self.view.calls]


def _is_gate(where: str) -> bool:
    return where == GATE
