"""Stands in for ``pynvml`` on machines without a GPU: four GPUs, the last one split into two.

:func:`install` puts a copy of this file where ``import pynvml`` finds it. What the driver answers
is read from the JSON file that ``FAKE_NVML`` names, at every question, so that a test may change it
also for processes it has started: ``fault`` (a code that ``nvmlInit`` fails with), ``gpus`` (how
many there are), ``names`` (of each GPU), ``lost`` (indices of those that do not answer),
``utilization`` and ``memory`` (UUID → percent, bytes).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

#: As NVML numbers them.
NOT_SUPPORTED, NOT_FOUND, NO_DRIVER, NO_LIBRARY, LOST, MISMATCH = 3, 6, 9, 12, 15, 18

GPUS = tuple(f"GPU-{n}{n}{n}{n}aaaa-0000-4000-8000-00000000000{n}" for n in range(4))
#: The parts of GPU 3; the places 1 and 3 are free.
MIGS = {n: f"MIG-{n}{n}{n}{n}bbbb-0000-4000-8000-00000000000{n}" for n in (0, 2)}
#: What can be used, as a run takes it.
USABLE = (*GPUS[:3], *MIGS.values())
NAME = "NVIDIA H100 80GB HBM3"


class NVMLError(Exception):
    """What the library raises; *value* is its code."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        words = {NO_LIBRARY: "NVML Shared Library Not Found", LOST: "GPU is lost"}
        words[MISMATCH] = "RM has detected an NVML/RM version mismatch."
        return words.get(self.value, f"NVML Error with code {self.value}")


def set_state(**state: Any) -> None:
    """Have the driver answer otherwise, from now on."""
    path = Path(os.environ["FAKE_NVML"])
    part = path.with_suffix(".part")
    part.write_text(json.dumps(state))
    part.replace(path)


def install(folder: Path) -> None:
    """Write ``pynvml.py`` into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pynvml.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")


def _state() -> dict[str, Any]:
    path = os.environ.get("FAKE_NVML")
    state: dict[str, Any] = json.loads(Path(path).read_text()) if path else {}
    return state


_open = 0


def nvmlInit() -> None:  # noqa: N802
    global _open
    if fault := _state().get("fault"):
        raise NVMLError(fault)
    _open += 1


def nvmlShutdown() -> None:  # noqa: N802
    global _open
    _open -= 1


def nvmlDeviceGetCount() -> int:  # noqa: N802
    if _open < 1:
        raise NVMLError(1)  # not initialised
    return int(_state().get("gpus", len(GPUS)))


def nvmlDeviceGetHandleByIndex(index: int) -> str:  # noqa: N802
    if index in _state().get("lost", ()):
        raise NVMLError(LOST)
    return GPUS[index]


def nvmlDeviceGetMigMode(device: str) -> list[int]:  # noqa: N802
    if device == GPUS[0]:
        raise NVMLError(NOT_SUPPORTED)  # as older GPUs say
    split = device == GPUS[3]
    return [int(split), int(split)]


def nvmlDeviceGetMaxMigDeviceCount(device: str) -> int:  # noqa: N802
    return 4 if device == GPUS[3] else 0


def nvmlDeviceGetMigDeviceHandleByIndex(device: str, index: int) -> str:  # noqa: N802
    if device != GPUS[3] or index not in MIGS:
        raise NVMLError(NOT_FOUND)
    return MIGS[index]


def nvmlDeviceGetUUID(handle: str) -> str:  # noqa: N802
    return handle


def nvmlDeviceGetName(handle: str) -> str:  # noqa: N802
    if handle in MIGS.values():
        return f"{NAME} MIG 3g.40gb"
    names: list[str] = _state().get("names", [NAME] * len(GPUS))
    return names[GPUS.index(handle)]


def nvmlDeviceGetUtilizationRates(handle: str) -> SimpleNamespace:  # noqa: N802
    if handle in MIGS.values():
        raise NVMLError(NOT_SUPPORTED)
    return SimpleNamespace(gpu=_state().get("utilization", {}).get(handle, 0), memory=0)


def nvmlDeviceGetMemoryInfo(handle: str, version: int | None = None) -> SimpleNamespace:  # noqa: N802
    return SimpleNamespace(used=_state().get("memory", {}).get(handle, 0), total=80 * 2**30)
