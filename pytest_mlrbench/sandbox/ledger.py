"""``ledger.jsonl``: what the sandbox saw of a case, written by us where no agent can reach.

Each line is one event and carries ``prev``, the SHA-256 of the line before: a line that is changed,
taken out or put in later shows. Kinds of events and their fields are in ``docs/sandbox.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
#: What the first line has for the line before it.
NONE = "0" * 64


class Ledger:
    """Appends events to a file; from several threads, but from one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._last = NONE
        self.go_on()

    def go_on(self) -> None:
        """Write on behind what lies there by now."""
        if self.path.exists():
            for line in self.path.read_bytes().splitlines():
                self._last = _digest(line)

    def write(self, event: str, **fields: Any) -> None:
        """Append an event with its time; *fields* are plain data."""
        with self._lock:
            record = {"e": event, "t": round(time.time(), 6), **fields, "prev": self._last}
            # Names of files are bytes: those that are no text are kept as surrogates.
            line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode()
            # Not by a file object, which takes longer to make than all the rest.
            try:
                file = os.open(self.path, _APPEND, 0o666)
            except FileNotFoundError:  # a local agent has removed the folder of its case
                self.path.parent.mkdir(parents=True, exist_ok=True)
                file = os.open(self.path, _APPEND, 0o666)
            try:
                _write(file, line + b"\n")
            finally:
                os.close(file)
            self._last = _digest(line)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a ledger.

    :raises ValueError: a line is no event, or does not follow from the one before it; what came
        before it has been yielded.
    """
    last = NONE
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            whole = line.removesuffix(b"\n")
            try:
                event = json.loads(whole)
            except ValueError:
                raise ValueError(f"{path}:{number} is no JSON.") from None
            if not isinstance(event, dict) or event.get("prev") != last:
                raise ValueError(f"{path}:{number} does not follow from the line before it.")
            last = _digest(whole)
            yield event


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
