"""What a case does with its GPUs: seen by NVML, written into its ledger.

Events are ``gpu``, one a minute for each GPU, and ``gpus`` at the end. Null is what was not seen:
in ``gpus``, ``busy`` are seconds out of those in ``watched``, which may be fewer than ``seconds``.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pytest_mlrbench.sandbox.ledger import Ledger
from pytest_mlrbench.sandbox.nvml import NvmlError, Sample, nvml

#: Seconds between two samples, and between two events of a GPU.
SAMPLE, EVENT = 2.0, 60.0
#: Seconds the driver has for an answer when a case ends: one that hangs holds up no run.
PATIENCE = 5.0


@dataclass
class GpuUse:
    """What one GPU has done so far.

    :param now: the newest sample.
    :param busy: seconds in which it computed; null if it never said.
    :param watched: seconds of which it said so.
    :param peak: most bytes in use at once; null if it never said.
    """

    uuid: str
    now: Sample = field(default_factory=lambda: Sample(None, None))
    busy: float | None = None
    watched: float = 0.0
    peak: int | None = None
    _seen: list[tuple[float, Sample]] = field(default_factory=list, repr=False)

    def add(self, sample: Sample, seconds: float) -> None:
        """Count a sample that stands for the last *seconds*."""
        self.now = sample
        self._seen.append((seconds, sample))
        if sample.utilization is not None:
            self.busy = (self.busy or 0.0) + sample.utilization * seconds
            self.watched += seconds
        if sample.memory is not None:
            self.peak = max(self.peak or 0, sample.memory)

    def flush(self, ledger: Ledger) -> None:
        """Write an event of what was seen since the last one, if anything was."""
        rates = [(s, x.utilization) for s, x in self._seen if x.utilization is not None]
        memory = [x.memory for _, x in self._seen if x.memory is not None]
        self._seen.clear()
        if not rates and not memory:
            return
        whole = sum(seconds for seconds, _ in rates)
        busy = sum(seconds * rate for seconds, rate in rates)
        ledger.write(
            "gpu",
            gpu=self.uuid,
            utilization=round(busy / whole, 3) if whole else None,
            memory=max(memory, default=None),
        )


@asynccontextmanager
async def watch(
    uuids: Sequence[str], ledger: Ledger, sample: float = SAMPLE, event: float = EVENT
) -> AsyncIterator[tuple[GpuUse, ...]]:
    """Watch the GPUs of a case until the block ends, and write what was seen into its ledger.

    :param sample: seconds between two samples.
    :param event: seconds between two events of a GPU.
    """
    if not uuids:
        yield ()
        return
    watcher = _Watcher(uuids, ledger, sample, event)
    watcher.start()
    try:
        yield watcher.uses
    finally:
        watcher.over.set()
        await asyncio.to_thread(watcher.join, PATIENCE)
        watcher.conclude()


class _Watcher(threading.Thread):
    """Asks NVML in a thread of its own: the driver may take its time."""

    def __init__(self, uuids: Sequence[str], ledger: Ledger, sample: float, event: float) -> None:
        super().__init__(name="mlr-gpus", daemon=True)
        self.uses = tuple(GpuUse(uuid) for uuid in uuids)
        self.over = threading.Event()
        self._ledger = ledger
        self._sample = sample
        self._event = event
        self._start = time.monotonic()
        self._unseen: str | None = None

    def run(self) -> None:
        """Sample until it is over."""
        try:
            with nvml() as session:
                said = last = self._start
                while not self.over.wait(self._sample):
                    now = time.monotonic()
                    for use in self.uses:
                        use.add(session.sample(use.uuid), now - last)
                    last = now
                    if now - said >= self._event:
                        said = now
                        self._flush()
        except NvmlError as error:
            self._unseen = str(error)

    def conclude(self) -> None:
        """Write what is left to say."""
        if self.is_alive():
            self._unseen = "the NVIDIA driver does not answer"
        self._flush()
        busy = [use.busy for use in self.uses if use.busy is not None]
        self._ledger.write(
            "gpus",
            gpus=[use.uuid for use in self.uses],
            # All the time in which nobody else could have them.
            seconds=round((time.monotonic() - self._start) * len(self.uses), 3),
            busy=round(sum(busy), 3) if len(busy) == len(self.uses) else None,
            watched=round(sum(use.watched for use in self.uses), 3),
            peak={use.uuid: use.peak for use in self.uses},
            unseen=self._unseen,
        )

    def _flush(self) -> None:
        for use in self.uses:
            use.flush(self._ledger)
