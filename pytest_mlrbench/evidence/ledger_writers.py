"""Who has written what lies under a path, while a ledger is read."""

from __future__ import annotations

from pytest_mlrbench.evidence.ledger_view import Process

#: Writers of one file that are kept, as many as the recorder keeps.
WRITERS = 16
_PATHS = 300_000
#: Names that were not known, renamed, for which all paths are looked through: a folder's may be.
_FOLDERS = 1_000


class Writers:
    """Path in the container → keys of the processes that wrote it, the last one last."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, ...]] = {}
        self._folders = 0

    def of(self, path: str) -> tuple[int, ...]:
        """Who wrote what lies there now; nobody if it was given, or is not known."""
        return self._of.get(path, ())

    def write(self, process: Process, path: str, number: int) -> None:
        """A process may write there; *number* is the event's."""
        writers = self._of.get(path, ())
        if not writers and len(self._of) >= _PATHS:
            process.is_partial = True
            return
        process.wrote.setdefault(path, number)
        if writers[-1:] != (process.key,):
            self._of[path] = (*writers[1 - WRITERS :], process.key)

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
