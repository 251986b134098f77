"""From an exception to the record of it."""

from __future__ import annotations

import traceback
from pathlib import Path

from pytest_mlrbench.errors import Fault, SystemFault, describe
from pytest_mlrbench.run.result import FaultRecord


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
    message = fault.message.encode("utf-8", "replace").decode()
    return FaultRecord(blame=fault.blame, cause=fault.cause, message=message)
