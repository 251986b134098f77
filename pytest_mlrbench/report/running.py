"""The cases that are running, as a table."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pytest_mlrbench.report.table import columns
from pytest_mlrbench.sandbox.heartbeat import Beat, GpuBeat

_HEAD = ("case", "for", "in", "GPU", "last line of output")
#: Characters of a UUID that are shown: enough to tell the GPUs of a machine apart.
_UUID = 12


def table(beats: Sequence[Beat]) -> list[str]:
    """Return a line for each case, and one above them."""
    return columns([_HEAD, *map(_row, beats)])


def _row(beat: Beat) -> tuple[str, ...]:
    name = beat.case.partition("/")[2]
    said = f"({beat.state})" if beat.state != "runs" else beat.last_line and f'"{beat.last_line}"'
    gpus = ", ".join(map(_gpu, beat.gpus)) or "-"
    return (name, _clock(time.time() - beat.started), beat.sandbox, gpus, said)


def _gpu(gpu: GpuBeat) -> str:
    parts = [gpu.uuid[:_UUID]]
    if gpu.utilization is not None:
        parts.append(f"{gpu.utilization:.0%}")
    if gpu.memory is not None:
        parts.append(f"{gpu.memory / 1e9:.1f} GB")
    return " ".join(parts)


def _clock(seconds: float) -> str:
    minutes, second = divmod(max(0, int(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
