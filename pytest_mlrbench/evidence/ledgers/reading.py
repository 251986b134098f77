"""Reads a ledger once, line by line.

It may hold two million events; and one in a folder that somebody hands over may hold anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_mlrbench.evidence.ledgers.reader import Event, Reader
from pytest_mlrbench.evidence.ledgers.view import LedgerView
from pytest_mlrbench.sandbox.events import EVENTS
from pytest_mlrbench.sandbox.ledger import NONE

#: Bytes of the longest line; the recorder's own are far below.
LINE = 1_000_000


def read_view(path: Path) -> LedgerView:
    """Read a ledger. One that is absent, broken or cut off gives a view with doubts."""
    reader = Reader()
    broken = ""
    try:
        with path.open("rb") as file:
            for event in _events(file):
                reader.take(event)
    except (OSError, ValueError, RecursionError) as error:
        broken = f"it cannot be read on: {error}"
    except (KeyError, TypeError, AttributeError, OverflowError):
        broken = f"its event {reader.number} is none of the recorder's"
    return reader.finish(broken)


def _events(file: BinaryIO) -> Iterator[Event]:
    last = NONE
    for number in range(1, 2 * EVENTS):
        line = file.readline(LINE + 1)
        if not line:
            return
        if len(line) > LINE:
            raise ValueError(f"line {number} is too long")
        whole = line.removesuffix(b"\n")
        event = json.loads(whole)
        if not isinstance(event, dict) or event.get("prev") != last:
            raise ValueError(f"line {number} does not follow from the line before it")
        last = hashlib.sha256(whole).hexdigest()
        yield event
    raise ValueError("it has too many lines")
