"""MLR-Bench as pytest tests: every (task, stage) pair runs an agent, is judged and is recorded.

``collect``, ``to_frame``, ``CaseRow`` and ``ConflictError`` are for programs that read scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_mlrbench.report.collected.collecting import ConflictError, collect, to_frame
    from pytest_mlrbench.report.collected.rows import CaseRow

__all__ = ["CaseRow", "ConflictError", "collect", "to_frame"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Every pytest of every user imports this module: what few of them need is loaded when asked.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pytest_mlrbench.report.collected import collecting

    return getattr(collecting, name)
