"""How much an agent has on disk, looked at while it runs.

File systems rarely have quotas for folders, so the limit is kept by looking: it can be passed for
as long as one look and the pause before it take.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox.cgroup import ControlGroup

#: Seconds between two looks, at least; and what share of the time looking may take.
PAUSE, SHARE = 1.0, 0.1
#: Seconds between two looks, at most.
LONGEST = 5.0
#: As a size: more than any limit, and not to be stated, as nobody has counted it.
ENDLESS = sys.maxsize
#: Free bytes on the disk below which the machine counts as full.
RESERVE = 64 * 2**20


class WorkspaceWatch:
    """A thread that looks at the size of *folders* until it is closed.

    :param limit: bytes they may have together.
    :param wake: called, from the thread, when there is something to be done.
    """

    def __init__(self, folders: Sequence[Path], limit: int, wake: Callable[[], None]) -> None:
        self.folders = folders
        self.limit = limit
        #: Bytes at the last look.
        self.size = 0
        self._most = 0
        #: Of the processes that write to the folders; null while there are none.
        self.group: ControlGroup | None = None
        self._devices = {folder.stat().st_dev for folder in folders}
        self._wake = wake
        self._closed = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether more than the limit was there at the last look."""
        return self.size > self.limit

    @property
    def measured(self) -> int | None:
        """The most bytes at any look; null where they could not be counted."""
        return self._most if self._most < ENDLESS else None

    def look(self) -> bool:
        """Look now, and return whether there is more than the limit."""
        self._note(size_of(self.folders))
        return self.is_over

    def check_disk(self) -> None:
        """Make sure that the machine has room left.

        :raises SystemFault: its disk is full, though the folders are within their limit.
        """
        for folder in self.folders:
            if not self.is_over and shutil.disk_usage(folder).free < RESERVE:
                raise SystemFault("host_disk", f"the disk that {folder} is on is full.")

    def close(self) -> None:
        """Look no more."""
        self._closed.set()

    def _note(self, size: int) -> None:
        self.size = size
        self._most = max(self._most, size)

    def _watch(self) -> None:
        while not self._closed.is_set():
            start = time.monotonic()
            # Files may be removed and go on growing: while they are open they take their place.
            hidden = self.group.hidden_bytes(self._devices) if self.group else 0
            self._note(size_of(self.folders, self._closed) + hidden)
            if self.is_over:
                self._wake()
            pause = max(PAUSE, (time.monotonic() - start) / SHARE)
            self._closed.wait(min(pause, LONGEST))


def size_of(folders: Sequence[Path], closed: threading.Event | None = None) -> int:
    """Return the bytes that everything below *folders* takes on disk; links are not followed.

    :param closed: set to leave off early.
    """
    total = 0
    counted: set[tuple[int, int]] = set()
    waiting = [os.fspath(folder) for folder in folders]
    while waiting and not (closed and closed.is_set()):
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += _size(entry, counted, waiting)
        except OSError as error:  # gone since, or closed to us
            if error.errno == errno.ENAMETOOLONG:  # nobody works so deep but to hide something
                return ENDLESS
    return total


def _size(entry: os.DirEntry[str], counted: set[tuple[int, int]], waiting: list[str]) -> int:
    """Return the bytes of one entry, and put a folder on the list of those still to be seen."""
    try:
        status = entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            waiting.append(entry.path)
        elif status.st_nlink > 1:
            name = (status.st_dev, status.st_ino)
            if name in counted:
                return 0
            counted.add(name)
        return status.st_blocks * 512
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise
        return 0  # gone since
