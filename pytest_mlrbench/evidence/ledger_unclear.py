"""Calls whose file the recorder could not tell, as far as it follows from what it did tell.

An editor may write a new file beside the old one, and then rename it in the folder it holds open:
by ``/proc/self/fd/13/new`` and ``/proc/self/fd/13/old``. That way cannot be followed. But where a
process has just written ``…/new`` it is known in which folder. If it is the agent's own hand, the
file is typed, and nothing is in doubt. Of any other process, it stays so.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pytest_mlrbench.evidence.ledger_view import ROOT, LedgerView, Made, Process
from pytest_mlrbench.evidence.ledger_writers import Writers

_THROUGH = re.compile(r"'(/proc/(?:self|\d{1,10})/fd/\d{1,10})/([^/]{1,300})' cannot be followed")
#: Files that are held in doubt by name.
_FILES = 100_000


class Unclear:
    """Takes such calls while a ledger is read, and says in the end what they leave in doubt."""

    def __init__(self) -> None:
        #: Whose calls they are; null where that is not known.
        self._by: set[int | None] = set()
        #: The process, folder and name of a rename of which the second half is to come.
        self._half: tuple[Process, str, str] | None = None
        self._unresolved = 0
        #: Path → process that renamed to it, and number of the event.
        self._edits: dict[str, tuple[int, int]] = {}
        self._left: set[str] = set()
        self._unrecorded: set[str] = set()

    def take(
        self, process: Process | None, call: str, why: str, number: int, writers: Writers
    ) -> None:
        """Take one call. Of a rename there are two: for the old name and for the new one."""
        self._by.add(process.key if process else None)
        way = _THROUGH.fullmatch(why)
        if process is None or way is None or not call.startswith(("rename", "unlink")):
            self._unresolved += 1
        elif call.startswith("rename"):
            half, self._half = self._half, None
            if half is not None and half[:2] == (process, way[1]):
                self._renamed(process, half[2], way[2], number, writers)
            else:
                self._unresolved += half is not None
                self._half = process, way[1], way[2]

    def _renamed(self, process: Process, old: str, new: str, number: int, writers: Writers) -> None:
        written = [path for path in process.wrote if path.endswith(f"/{old}")]
        if not written or len(self._edits) >= _FILES:
            self._unresolved += 1
            return
        path = f"{written[-1].rpartition('/')[0]}/{new}"
        writers.rename(written[-1], path, exchange=False)
        process.wrote[path] = number
        self._edits[path] = process.key, number
        self._left.add(written[-1])

    def unrecorded(self, path: str) -> None:
        """A file that is not as it should be by what was recorded; relative to the workspace."""
        if len(self._unrecorded) < _FILES:
            self._unrecorded.add(path)

    def finish(self, view: LedgerView) -> None:
        """Put down what is in doubt, and who made what hands have renamed."""
        others = self._by - view.hands
        if others or self._unresolved or self._half is not None:
            view.doubts.append("there were calls of which cannot be told what they changed")
        for key in others:
            if key is not None:
                view.processes[key].is_partial = True
        if None in others:
            view.is_whole = False
        edits = {path: by for path, by in self._edits.items() if by[0] in view.hands}
        for path, (key, number) in edits.items():
            _edited(view, path.removeprefix(ROOT), key, number)
        explained = {path.removeprefix(ROOT) for path in (*edits, *self._left)} if edits else set()
        if unsure := self._unrecorded - explained:
            view.doubts.append("there are files of which the last writer is not known for certain")
            view.made.update((path, Made(None, (), "", is_sure=False)) for path in unsure)


def _edited(view: LedgerView, name: str, key: int, number: int) -> None:
    """A hand wrote a file as well: last, unless another process first wrote it afterwards."""
    if (made := view.made.get(name)) is None:
        return
    later = [it for it in made.writers if _first(view, it, name) > number]
    before = [it for it in made.writers if it not in later]
    view.made[name] = replace(made, writers=(*before, key, *later))


def _first(view: LedgerView, key: int, name: str) -> int:
    process = view.processes.get(key)
    return process.wrote.get(ROOT + name, 0) if process else 0
