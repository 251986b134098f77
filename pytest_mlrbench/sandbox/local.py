"""A local process: its own session, a deadline, its output in a file, nothing left behind.

This is for agents you trust: it bounds time and output and cleans up, it isolates nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: The variable that marks every process of a case; also how leftovers are found again.
MARK = "MLR_WORKSPACE"
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
#: Bytes of output kept; what comes after is read, counted and thrown away.
LOG_LIMIT = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended. *code* is negative for a signal; *output* counts all bytes printed."""

    reason: Literal["exit", "timeout"]
    code: int
    seconds: float
    output: int


async def run_process(
    command: Sequence[str],
    *,
    workspace: Path,
    environment: Mapping[str, str],
    seconds: float,
    log: Path,
) -> Ended:
    """Run *command* in *workspace* until it exits or *seconds* have passed.

    Standard output and error go to *log*. When the call returns, or is cancelled, no process of
    the case is left: neither of its process group nor one that left the group.

    :param environment: replaces the environment; :data:`MARK` is added.
    :raises OSError: the command cannot be started.
    """
    start = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=workspace,
        env={**environment, MARK: str(workspace)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    copying = asyncio.create_task(_copy(process.stdout, log))
    reason: Literal["exit", "timeout"] = "exit"
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        reason = "timeout"
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE)
    finally:
        # A member of the group that outlives its leader would also keep the pipe open.
        _signal(process.pid, signal.SIGKILL)
        reap(workspace)
        code = await process.wait()
        output = await copying
    return Ended(reason, code, time.monotonic() - start, output)


async def _copy(stream: asyncio.StreamReader, log: Path) -> int:
    total = 0
    with log.open("wb") as file:
        while chunk := await stream.read(2**16):
            if total < LOG_LIMIT:
                file.write(chunk[: LOG_LIMIT - total])
                file.flush()
            total += len(chunk)
        if total > LOG_LIMIT:
            file.write(f"\n[{total - LOG_LIMIT} more bytes of output were not kept]\n".encode())
    return total


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def reap(workspace: Path) -> int:
    """Kill every process that works in *workspace*, and return how many there were.

    Finds those that left their process group, and those an earlier, killed run left behind.
    """
    import psutil  # not before it is needed: it costs every start of pytest 20 ms

    killed = 0
    for _ in range(10):  # a process may fork while the list is read
        found = 0
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == str(workspace):
                    process.kill()
                    found += 1
            except (psutil.Error, OSError):
                continue
        killed += found
        if not found:
            break
        time.sleep(0.02)
    return killed
