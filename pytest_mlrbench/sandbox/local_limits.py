"""Limits of a local process and all it has started, looked at while they run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pytest_mlrbench.sandbox.base import Limits, Reason
from pytest_mlrbench.sandbox.workspace_watch import size_of

#: Seconds between two looks.
PACE = 0.5
#: How many looks at the processes go by before the workspace, which costs more, is looked at.
_RARELY = 10


async def passed(process: int, workspace: Path, limits: Limits) -> tuple[Reason, int]:
    """Wait until *process* and its descendants pass one of *limits*; return which.

    The number beside it is that of the bytes in *workspace*, 0 if they were not what was too much.
    Memory is the sum of what is resident, so pages that processes share count more than once.
    """
    look = 0
    while True:
        if reason := await asyncio.to_thread(_passed_by, process, limits):
            return reason, 0
        if look % _RARELY == 0:
            size = await asyncio.to_thread(size_of, [workspace])
            if size > limits.disk:
                return "disk", size
        look += 1
        await asyncio.sleep(PACE)


def _passed_by(process: int, limits: Limits) -> Reason | None:
    import psutil

    try:
        found = psutil.Process(process).children(recursive=True)
    except psutil.Error:
        return None
    if len(found) > limits.pids:
        return "pids"
    memory = 0
    for one in found:
        try:
            memory += one.memory_info().rss
        except psutil.Error:
            continue
    return "memory" if memory > limits.memory else None
