"""From an exception to the record of it."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from pytest_mlrbench.errors import Fault, SystemFault, describe
from pytest_mlrbench.run.result import FaultRecord

#: Colours, positions and titles that programs write to terminals.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)
_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)


def internal_fault(who: str, error: BaseException) -> SystemFault:
    """A fault nobody foresaw is a fault of the system, told with the place it happened."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return SystemFault(
        "internal",
        f"{who}: {describe(error)} ({Path(place.filename).name}:{place.lineno}).",
    )


def fault_record(fault: Fault) -> FaultRecord:
    """Return what is kept of a fault."""
    # Reports cannot carry half a character, as in a file name that is not UTF-8.
    message = plain(fault.message.encode("utf-8", "replace").decode())
    return FaultRecord(blame=fault.blame, cause=fault.cause, message=message)


def plain(text: str) -> str:
    """Return what others said as mere text.

    Escape sequences would repaint a terminal, and a line that begins with ``::`` is a command to
    GitHub Actions.
    """
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in ESCAPES.sub("", text))
    return _COMMAND.sub(r"\1: :", shown)
