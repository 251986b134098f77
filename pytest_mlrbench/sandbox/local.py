"""A local process: its own session, a deadline, its output in a file, nothing left behind.

This is for agents you trust: it bounds time and output and cleans up, it isolates nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: The variable that marks every process of a case; also how leftovers are found again.
MARK = "MLR_WORKSPACE"
_SUPERVISE = str(Path(__file__).with_name("supervise.py"))
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
#: Bytes of the end of the output that are returned.
TAIL = 2000
#: Bytes of output kept; what comes after is read, counted and thrown away.
LOG_LIMIT = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended. *code* is negative for a signal; *tail* is the end of its output."""

    reason: Literal["exit", "timeout"]
    code: int
    seconds: float
    tail: str


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
    the case is left (see :mod:`pytest_mlrbench.sandbox.supervise`).

    :param environment: replaces the environment; :data:`MARK` is added.
    :raises OSError: the command cannot be started.
    """
    start = time.monotonic()
    reading, writing = os.pipe()
    failing, failed = os.pipe()
    output = _Output(log)
    copying = asyncio.create_task(output.copy(reading))
    supervisor = [sys.executable, "-I", "-S", _SUPERVISE, str(failed), str(GRACE), str(os.getpid())]
    try:
        process = await asyncio.create_subprocess_exec(
            *supervisor,
            *command,
            cwd=workspace,
            env={**environment, MARK: str(workspace)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            pass_fds=[failed],
            start_new_session=True,
        )
    finally:
        os.close(writing)  # so that the pipe ends with the last process that holds it
        os.close(failed)
    reason: Literal["exit", "timeout"] = "exit"
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        reason = "timeout"
    finally:
        code = await _end(process)
        reap(workspace)
        await asyncio.wait({copying}, timeout=GRACE)
        copying.cancel()
        with os.fdopen(failing, "rb") as status:
            why = status.read().decode()
    if why:
        raise OSError(why)
    return Ended(reason, code, time.monotonic() - start, output.tail.decode("utf-8", "replace"))


async def _end(process: asyncio.subprocess.Process) -> int:
    """Have the supervisor end what still runs; it has a moment more than it gives the agent."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        return await asyncio.wait_for(process.wait(), GRACE + 3)
    except TimeoutError:
        process.kill()
        return await process.wait()


@dataclass
class _Output:
    """What a process prints: kept up to a limit, counted beyond it."""

    log: Path
    total: int = 0
    tail: bytes = b""

    async def copy(self, reading: int) -> None:
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb", buffering=0)
        )
        try:
            with self.log.open("wb") as file:
                while chunk := await stream.read(2**16):
                    if self.total < LOG_LIMIT:
                        file.write(chunk[: LOG_LIMIT - self.total])
                        file.flush()
                    self.total += len(chunk)
                    self.tail = (self.tail + chunk)[-TAIL:]
                if self.total > LOG_LIMIT:
                    lost = self.total - LOG_LIMIT
                    file.write(f"\n[{lost} more bytes of output were not kept]\n".encode())
        finally:
            transport.close()


def reap(workspace: Path) -> int:
    """Kill every process that works in *workspace*, and return how many there were.

    For what a supervisor could not do: where it was killed itself, or is not on Linux.
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
