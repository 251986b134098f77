"""A local process: its own session, limits, its output in a file, nothing left behind.

This is for agents you trust: it bounds what they use and cleans up, it isolates nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox.base import Ended, Job, Limits, Reason
from pytest_mlrbench.sandbox.local_limits import passed
from pytest_mlrbench.sandbox.output import Output
from pytest_mlrbench.sandbox.workspace_watch import ENDLESS, size_of

#: The variable that marks every process of a case; also how leftovers are found again.
MARK = "MLR_WORKSPACE"
_SUPERVISE = str(Path(__file__).with_name("supervise.py"))
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0


class LocalSandbox:
    """``--mlr-sandbox=local``.

    :param limits: null for those of the machine.
    """

    name = "local"

    def __init__(self, limits: Limits | None = None) -> None:
        self._given = limits
        self.limits = limits or Limits()

    def prepare(self) -> None:
        """Nothing to check: this machine is there."""

    async def run(self, job: Job) -> Ended:
        """Run a command beside us, with our environment."""
        ledger = job.ledger
        ledger.write("begin", run=job.run, case=job.case, command=list(job.command), by="local")
        ledger.write("blind", why="processes on this machine itself are not recorded")
        own = {n: value for n, value in os.environ.items() if not n.startswith("PYTEST_")}
        if job.gpus:
            own["CUDA_VISIBLE_DEVICES"] = ",".join(job.gpus)
        try:
            ended = await run_process(
                job.command,
                workspace=job.workspace,
                environment={**own, **job.environment},
                seconds=max(0.0, job.deadline - time.time()),
                log=job.log,
                limits=self._given,
            )
        except OSError as error:
            raise SystemFault("start", f"the agent could not be started: {error}.") from None
        ledger.write("end", **ended.facts(self.limits))
        return ended


async def run_process(
    command: Sequence[str],
    *,
    workspace: Path,
    environment: Mapping[str, str],
    seconds: float,
    log: Path,
    limits: Limits | None = None,
) -> Ended:
    """Run *command* in *workspace* until it exits, or *seconds* or one of *limits* are passed.

    Standard output and error go to *log*. When the call returns, or is cancelled, no process of
    the case is left (see :mod:`pytest_mlrbench.sandbox.supervise`).

    :param environment: replaces the environment; :data:`MARK` is added.
    :raises OSError: the command cannot be started.
    :raises SystemFault: its output cannot be kept.
    """
    start = time.monotonic()
    output = Output(log, (limits or Limits()).log)
    reading, writing = os.pipe()
    failing, failed = os.pipe()
    copying = asyncio.create_task(_copy(reading, output))
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
    try:
        reason, size = await _first(
            process.wait(), passed(process.pid, workspace, limits) if limits else None, seconds
        )
    finally:
        code = await _end(process)
        reap(workspace)
        await asyncio.wait({copying}, timeout=GRACE)
        copying.cancel()
        with os.fdopen(failing, "rb") as status:
            why = status.read().decode()
    if why:
        raise OSError(why)
    if copying.done() and (error := copying.exception()):
        raise SystemFault("host_disk", f"the agent's output could not be kept: {error}.")
    disk = None
    if reason == "disk":  # it went on writing until it was ended
        size = max(size, await asyncio.to_thread(size_of, [workspace]))
        disk = size if size < ENDLESS else None
    return Ended(reason, code, time.monotonic() - start, output.tail, disk)


async def _first(
    exit: Awaitable[int], passing: Awaitable[tuple[Reason, int]] | None, seconds: float
) -> tuple[Reason, int]:
    """Return what comes first: the exit, a limit that is passed, or the end of the time.

    The number beside it is as in :func:`~pytest_mlrbench.sandbox.local_limits.passed`.
    """
    ending = asyncio.ensure_future(exit)
    watching = asyncio.ensure_future(passing) if passing else None
    waited = {future for future in (ending, watching) if future}
    try:
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            return "exit", 0
        return watching.result() if watching and watching.done() else ("timeout", 0)
    finally:
        for future in waited:
            future.cancel()


async def _end(process: asyncio.subprocess.Process) -> int:
    """Have the supervisor end what still runs; it has a moment more than it gives the agent."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        return await asyncio.wait_for(process.wait(), GRACE + 3)
    except TimeoutError:
        process.kill()
        return await process.wait()


async def _copy(reading: int, output: Output) -> None:
    """Keep what comes out of a pipe until it ends."""
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb", buffering=0)
    )
    try:
        while piece := await stream.read(2**16):
            output.feed(piece)
    finally:
        transport.close()
        output.close()


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
