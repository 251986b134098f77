"""Who has written what lies under a path, while a ledger is read."""

from __future__ import annotations

from typing import NamedTuple

from pytest_mlrbench.evidence.ledgers.view import Process
from pytest_mlrbench.sandbox.way import EMPTYING, WRITERS

_PATHS = 300_000
#: Names that were not known, renamed, for which all paths are looked through: a folder's may be.
_FOLDERS = 1_000


class Written(NamedTuple):
    """Keys of the processes that wrote a file, the last one last.

    :param kept: those that came since it was last emptied or made; all, if it never was.
    """

    writers: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


_NOBODY = Written()


class Writers:
    """Path in the container → who wrote what lies there."""

    def __init__(self) -> None:
        self._of: dict[str, Written] = {}
        self._folders = 0

    def of(self, path: str) -> Written:
        """Who wrote what lies there now; nobody if it was given, or is not known."""
        return self._of.get(path, _NOBODY)

    def write(self, process: Process, path: str, number: int, how: str) -> None:
        """A process may write there, *how* as the recorder says; *number* is the event's."""
        found = self._of.get(path)
        if found is None and len(self._of) >= _PATHS:
            process.is_partial = True
            return
        process.wrote.setdefault(path, number)
        writers, kept = found or _NOBODY
        if writers[-1:] != (process.key,):
            writers = (*writers[1 - WRITERS :], process.key)
            kept = (*kept[1 - WRITERS :], process.key)
        self._of[path] = Written(writers, (process.key,) if how in EMPTYING else kept)

    def rename(self, old: str, new: str, *, exchange: bool) -> bool:
        """A file or folder has another name; false if it is not followed where that leads."""
        replaced = self._of.pop(new, None)
        if (writers := self._of.pop(old, None)) is not None:
            self._of[new] = writers
        elif self._folders < _FOLDERS:
            self._folders += 1
            for path in [path for path in self._of if path.startswith(old + "/")]:
                self._of[new + path[len(old) :]] = self._of.pop(path)
        if exchange and replaced is not None:
            self._of[old] = replaced
        return self._folders < _FOLDERS

    def link(self, path: str, to: str) -> None:
        """A file has one name more."""
        if path in self._of:
            self._of[to] = self._of[path]

    def unlink(self, path: str) -> None:
        """A name was taken away."""
        self._of.pop(path, None)
