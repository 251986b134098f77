"""From the events of a ledger, one after the other, to a view of the case.

What is kept is bounded; a process of which more was recorded is marked as *partial*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_mlrbench.evidence.ledgers.agent import hands
from pytest_mlrbench.evidence.ledgers.programs import PACKAGES, is_code, is_setting
from pytest_mlrbench.evidence.ledgers.view import Call, LedgerView, Made, Process, Program, Read
from pytest_mlrbench.evidence.ledgers.writers import Writers
from pytest_mlrbench.sandbox.way import WRITERS

#: What is kept in all.
PROCESSES, READS, FILES, CALLS = 200_000, 300_000, 300_000, 200_000
#: Reads of one process that are kept: of the agent's own files, and of each other class.
_OWN, _OTHERS = 5_000, 100
#: Programs and connections of one process, and characters of a command line.
_PROGRAMS, _CONNECTIONS, _ARGV = 16, 100, 16_000
_DOUBTS = 20
Event = Mapping[str, Any]


class Reader:
    """Takes the events in their order."""

    def __init__(self) -> None:
        self.view = LedgerView()
        self.number = 0
        #: Added to the numbers of this command's processes, and the highest that was given.
        self._base = self._top = 0
        self._reads = self._inputs = 0
        self._writers = Writers()
        self._is_open = self._is_cut = False

    def take(self, event: Event) -> None:
        """Follow one event; kinds that say nothing of this are passed over."""
        self.number += 1
        if handle := _HANDLERS.get(str(event["e"])):
            handle(self, event)

    def finish(self, broken: str) -> LedgerView:
        """Say what there is in the end; *broken* is why there is no more, or empty."""
        view = self.view
        if broken:
            self._doubt(broken)
        if self._is_open:
            self._doubt("a command has no end")
        if not view.commands:
            self._doubt("nothing was recorded")
        view.is_whole = bool(view.commands) and not (broken or self._is_open or self._is_cut)
        view.hands = hands(view)
        view.unchanged = max(self._inputs, 0)
        view.calls.sort(key=lambda call: call.time)
        return view

    def _doubt(self, why: str) -> None:
        if why not in self.view.doubts and len(self.view.doubts) < _DOUBTS:
            self.view.doubts.append(why[:500])

    def _process(self, event: Event) -> Process | None:
        number = event["proc"]
        return None if number is None else self.view.processes.get(self._base + int(number))

    # Commands

    def begin(self, event: Event) -> None:
        """A command: its workspace is what the one before has left, if there was one."""
        if self._is_open:
            self._doubt("a command has no end")
            self._is_cut = True
        self.view.commands.append(tuple(str(word)[:_ARGV] for word in event["command"][:1000]))
        self._is_open, self._base, self._inputs = True, self._top, int(event["inputs"])

    def blind(self, event: Event) -> None:
        """A command that was not recorded."""
        self._doubt(str(event["why"]))
        self._is_cut = True

    def unclear(self, event: Event) -> None:
        """A call whose file cannot be told: of its process, what it made is not known."""
        if process := self._process(event):
            process.is_partial = True
        else:
            self._is_cut = True
        self._doubt("there were calls of which cannot be told what they changed")

    def end(self, event: Event) -> None:
        """The end of a command, with what was not seen of it."""
        self._is_open = False
        if not event["whole"] or event["dropped"]:
            self._doubt("not all of a command was recorded")
            self._is_cut = True
        for path in event["unrecorded"][:FILES]:
            self._doubt("there are files of which the last writer is not known for certain")
            self.view.made[str(path)] = Made(None, (), (), "", is_sure=False)

    # Processes

    def process(self, event: Event) -> None:
        """A process began, or executes something else."""
        key, processes = self._base + int(event["proc"]), self.view.processes
        process = processes.get(key)
        if process is None:
            if len(processes) >= PROCESSES:
                self._is_cut = True
                return
            above = None if event["parent"] is None else self._base + int(event["parent"])
            parent = processes.get(above) if above is not None else None
            process = processes[key] = Process(
                key, parent.key if parent else None, self.number, float(event["at"])
            )
            self._top = max(self._top, key)
            if parent is not None:
                parent.children.append(key)
        if event["how"] == "exec":
            del process.programs[_PROGRAMS - 1 :]
            process.programs.append(Program(str(event["exe"] or ""), _cut(event["argv"])))

    def exit(self, event: Event) -> None:
        """A process ended."""
        if process := self._process(event):
            process.ended = self.number
            process.code = None if event["code"] is None else int(event["code"])
            process.wall = float(event["wall"])
            process.cpu = None if event["cpu"] is None else float(event["cpu"])
            process.packages = frozenset(str(name) for name in event["packages"][:1000])

    def connect(self, event: Event) -> None:
        """A process connected, or tried to."""
        if process := self._process(event):
            if len(process.connections) < _CONNECTIONS:
                process.connections.append((str(event["address"]), event["ok"]))
            else:
                process.is_partial = True

    # Files

    def read(self, event: Event) -> None:
        """A process read a file."""
        process, path, kind = self._process(event), str(event["path"]), str(event["class"])
        if process is None:
            return
        writers, kept = self._writers.of(path)
        # What an earlier command of the case has made was laid out for this one.
        kind = "own" if writers and kind == "benchmark-input" else kind
        # A program reads hundreds of its letters and modules before its data.
        if kind != "own" and (is_setting(path) if kind in PACKAGES else is_code(path)):
            return
        count = process.counts[kind] = process.counts.get(kind, 0) + 1
        if self._reads < READS and count <= (_OWN if kind == "own" else _OTHERS):
            self._reads += 1
            process.reads.append(Read(path, kind, writers, kept))
        elif kind == "own":
            process.is_partial = True

    def write(self, event: Event) -> None:
        """A process may write a file."""
        if process := self._process(event):
            self._writers.write(process, str(event["path"]), self.number, str(event["how"]))

    def rename(self, event: Event) -> None:
        """A file or a folder has another name; who wrote it stays."""
        old, new = str(event["path"]), str(event["to"])
        if not self._writers.rename(old, new, exchange=bool(event["exchange"])):
            self._is_cut = True
        if (process := self._process(event)) and old in process.wrote:
            process.wrote[new] = process.wrote[old]

    def link(self, event: Event) -> None:
        """A file has one name more."""
        process, new = self._process(event), str(event["to"])
        if event["path"] is not None:
            self._writers.link(str(event["path"]), new)
        elif process:
            self._writers.write(process, new, self.number, "make")

    def unlink(self, event: Event) -> None:
        """A name was taken away."""
        self._writers.unlink(str(event["path"]))

    def file(self, event: Event) -> None:
        """What the sandbox found at the end."""
        self._inputs -= event["was"] is not None
        if len(self.view.made) < FILES:
            writers = tuple(self._base + int(number) for number in event["writers"][-WRITERS:])
            self.view.made[str(event["path"])] = Made(
                None if event["sha256"] is None else str(event["sha256"]),
                writers,
                writers[max(0, len(writers) - int(event["since"])) :],
                str(event["by"] or "")[:200],
                # Without a writer it is a file that was given, under another name.
                is_sure=not event["unsure"] and event["kind"] in ("file", "link"),
            )

    def gone(self, event: Event) -> None:
        """A file that was there before is not any more."""
        self._inputs -= 1
        self.view.made.pop(str(event["path"]), None)

    # Calls

    def api(self, event: Event) -> None:
        """A call to a model ended."""
        answered = 200 <= int(event["status"]) < 300 and not event["error"]
        self._call(event, str(event["model"]), answered, is_host=False)

    def host(self, event: Event) -> None:
        """A connection to a host ended."""
        answered = int(event["received"]) > 0
        self._call(event, str(event["host"]), answered, is_host=True)

    def _call(self, event: Event, what: str, answered: bool, *, is_host: bool) -> None:
        if len(self.view.calls) < CALLS:
            self.view.calls.append(Call(float(event["t"]), what[:200], is_host, answered))
        else:
            self._is_cut = True


def _cut(argv: list[Any]) -> tuple[str, ...]:
    room, words = _ARGV, []
    for word in argv:
        words.append(str(word)[:room])
        room -= len(words[-1])
        if room <= 0:
            break
    return tuple(words)


_HANDLERS: Mapping[str, Callable[[Reader, Event], None]] = {
    "begin": Reader.begin,
    "blind": Reader.blind,
    "unclear": Reader.unclear,
    "end": Reader.end,
    "process": Reader.process,
    "exit": Reader.exit,
    "connect": Reader.connect,
    "read": Reader.read,
    "write": Reader.write,
    "rename": Reader.rename,
    "link": Reader.link,
    "unlink": Reader.unlink,
    "file": Reader.file,
    "gone": Reader.gone,
    "api": Reader.api,
    "connect-host": Reader.host,
}
