"""``heartbeat.json``: what a running case is doing, for people who look at a run from outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_mlrbench.run.faults import ESCAPES
from pytest_mlrbench.run.folder import read_model, write_json
from pytest_mlrbench.sandbox.gpu_usage import GpuUse
from pytest_mlrbench.sandbox.labels import is_dead, owner
from pytest_mlrbench.values import Record

FILE = "heartbeat.json"
#: Seconds between two beats, and after which a case on another machine is not believed in.
EVERY, STALE = 15.0, 120.0
#: Bytes of the end of a log in which its last line is looked for, and characters of it shown.
_TAIL, _SHOWN = 4096, 100


class GpuBeat(Record):
    """What a GPU of the case does; null what is not known."""

    uuid: str
    #: From 0 to 1.
    utilization: float | None = None
    #: Bytes in use.
    memory: int | None = None


class Beat(Record):
    """The content of ``heartbeat.json``."""

    case: str
    #: The process that runs the case, as in labels of containers.
    owner: str
    pid: int
    host: str
    sandbox: str
    #: What it is doing: ``waits for a GPU``, ``runs``.
    state: str
    #: Unix time in seconds.
    started: float
    #: Seconds since then.
    elapsed: float
    #: The last line of its output, made safe for a terminal.
    last_line: str = ""
    gpus: tuple[GpuBeat, ...] = ()

    @property
    def gone(self) -> str:
        """Why the case is no longer running, in words; empty if it is, as far as can be known."""
        if is_dead(self.owner):
            return f"its process {self.pid} is gone"
        silent = time.time() - self.started - self.elapsed
        if silent < STALE or self.owner == owner(self.pid):
            return ""
        return f"not heard of for {silent:.0f} s from {self.host}"


@dataclass
class Heart:
    """What the next beat of a case will say; changed as the case goes on.

    :param log: the output of the case.
    :param hide: takes secrets out of what is shown of it.
    """

    case: str
    sandbox: str
    log: Path
    hide: Callable[[str], str] = str
    state: str = "runs"
    gpus: Sequence[GpuUse] = ()
    started: float = field(default_factory=time.time)

    def beat(self, folder: Path) -> None:
        """Write the file; a disk that is full is no fault of the case."""
        beat = Beat(
            case=self.case,
            owner=owner(os.getpid()) or "",
            pid=os.getpid(),
            host=socket.gethostname(),
            sandbox=self.sandbox,
            state=self.state,
            started=self.started,
            elapsed=time.time() - self.started,
            last_line=last_line(self.log, self.hide),
            gpus=tuple(
                GpuBeat(uuid=g.uuid, utilization=g.now.utilization, memory=g.now.memory)
                for g in self.gpus
            ),
        )
        with contextlib.suppress(OSError):
            write_json(folder / FILE, beat)


@asynccontextmanager
async def beating(folder: Path, heart: Heart, every: float = EVERY) -> AsyncIterator[Heart]:
    """Keep the file of the case in *folder* up to date until the block ends; then it is removed.

    :param every: seconds between two beats.
    """

    async def beat() -> None:
        while True:
            heart.beat(folder)
            await asyncio.sleep(every)

    task = asyncio.create_task(beat())
    try:
        yield heart
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        with contextlib.suppress(OSError):
            (folder / FILE).unlink()


def running(run: Path) -> list[Beat]:
    """Return the beats of the cases in a run folder, in the order in which the cases began."""
    beats = (read_model(path, Beat) for path in run.glob(f"cases/*/*/*/{FILE}"))
    return sorted((beat for beat in beats if beat), key=lambda beat: beat.started)


def last_line(log: Path, hide: Callable[[str], str] = str) -> str:
    """Return the last line with words in it, safe to print; empty if there is none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 2 * _TAIL))
            text = file.read(2 * _TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
    # What was cut in two where reading began, as a key, is not shown.
    text = ESCAPES.sub("", hide(text)[-_TAIL:])
    # Bars of progress go back to the start of their line.
    for line in reversed(re.split(r"[\r\n]", text)):
        if words := " ".join("".join(c if c.isprintable() else " " for c in line).split()):
            return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"
    return ""
