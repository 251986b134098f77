"""What the processes of one run know together: one small file, which outlives them."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from pytest_mlrbench.errors import InputError, SystemFault

#: Seconds for which what was read is not looked at again.
FRESH = 0.05
#: Seconds; when a process began is worked out from the clock, which may be set meanwhile.
_ABOUT = 2.0

Content = dict[str, Any]


class SharedState:
    """A JSON document that processes change one after the other.

    Each change replaces the file as a whole, so a process that is killed at any time leaves the
    document as it was before its change or after it; the lock it may have held goes with it. It is
    not forced onto the disk: a machine that loses its power may lose the last changes.

    :param path: of the file; null for a document of this process only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._content: Content = {}
        self._looked = float("-inf")
        self._thread = threading.Lock()

    @contextmanager
    def change(self) -> Iterator[Content]:
        """Give the document to be changed; nobody else changes it meanwhile, nor if this fails.

        :raises SystemFault: it cannot be written (cause ``disk``).
        :raises InputError: it is damaged.
        """
        with self._thread:
            if self.path is None:
                # A copy, so that a change that fails half-way is none, as in a file.
                content = json.loads(json.dumps(self._content))
                yield content
                self._content = content
                return
            with _locked(self.path):
                before = _read(self.path)
                content = _parsed(before, self.path)
                yield content
                after = json.dumps(content).encode()
                if after != before:
                    _write(self.path, after)
                self._content, self._looked = content, time.monotonic()

    def look(self) -> Content:
        """Return the document as it was at most ``FRESH`` seconds ago; not to be changed.

        :raises InputError: it is damaged.
        """
        if self.path is not None:
            with self._thread:
                now = time.monotonic()
                if now - self._looked >= FRESH:
                    self._content, self._looked = _parsed(_read(self.path), self.path), now
        return self._content


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # Beside the file: the file itself is another one after each change.
    try:
        lock = open(path.with_name(f"{path.name}.lock"), "ab")  # noqa: SIM115
    except OSError as error:
        raise _unwritable(path, error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b"{}"


def _parsed(text: bytes, path: Path) -> Content:
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(
            f"{path} is damaged, and what the run has spent is in it: delete it to begin at 0."
        )
    return content


def _write(path: Path, text: bytes) -> None:
    # Only who has the lock writes, so what a killed process left here is written over.
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.write_bytes(text)
        beside.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> SystemFault:
    return SystemFault("disk", f"{path} cannot be written: {error.strerror}.")


_own: tuple[int, str] = (0, "")


def own_name() -> str:
    """Return the name of this process, which no other one has or will have."""
    global _own
    if _own[0] != os.getpid():  # a fork has another one
        _own = (os.getpid(), f"{os.getpid()}:{psutil.Process().create_time():.2f}")
    return _own[1]


def is_alive(name: str) -> bool:
    """Whether the process of that name is there; one that was killed and not yet buried is not."""
    number, _, began = name.partition(":")
    try:
        process = psutil.Process(int(number))
        same = abs(process.create_time() - float(began)) < _ABOUT
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ValueError):
        return False
