"""NVIDIA's management library: which GPUs there are, and how busy each is.

``pynvml`` (of the distribution ``nvidia-ml-py``) is imported when a session is opened, and never
before: most runs need no GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

#: Why the library cannot be asked: it is not installed here, there is no driver, or it failed.
Missing = Literal["package", "driver", "fault"]
#: NVML's codes for a machine without an NVIDIA driver: it is not loaded; its library is not there.
_NO_DRIVER = (9, 12)


@dataclass(frozen=True, slots=True)
class Device:
    """What can be given to one case: a whole GPU, or one MIG device of a split one.

    :param index: of the GPU, as ``nvidia-smi`` counts.
    :param part: of the MIG device on its GPU; null for a whole GPU.
    """

    index: int
    part: int | None
    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Sample:
    """How busy a device is now; null what it does not say.

    :param utilization: share of the last moment in which it computed, from 0 to 1. MIG devices do
        not say.
    :param memory: bytes in use.
    """

    utilization: float | None
    memory: int | None


class NvmlError(Exception):
    """The library cannot be asked; the message has no full stop."""

    def __init__(self, missing: Missing, message: str) -> None:
        super().__init__(message)
        self.missing = missing


class Nvml:
    """An open session of the library.

    :param devices: what is usable: of a GPU that is split into MIG devices, only those.
    :param lost: what is wrong with each GPU that is there and does not answer.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handles: dict[str, Any] = {}
        self.lost: list[str] = []
        self.devices = tuple(self._find())

    def sample(self, uuid: str) -> Sample:
        """Return how busy a device is; all null for one that is unknown or does not answer."""
        handle = self._handles.get(uuid)
        if handle is None:
            return Sample(None, None)
        rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        return Sample(
            None if rates is None else rates.gpu / 100, None if memory is None else memory.used
        )

    def _find(self) -> Iterator[Device]:
        for index in range(self._library.nvmlDeviceGetCount()):
            try:
                yield from self._devices_of(index)
            except self._library.NVMLError as error:
                self.lost.append(f"GPU {index}: {error}")

    def _devices_of(self, index: int) -> list[Device]:
        gpu = self._library.nvmlDeviceGetHandleByIndex(index)
        mode = self._ask("nvmlDeviceGetMigMode", gpu)
        if not mode or not mode[0]:
            return [self._device(index, None, gpu)]
        found = []
        for part in range(self._library.nvmlDeviceGetMaxMigDeviceCount(gpu)):
            # Places of MIG devices may be free.
            handle = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", gpu, part)
            if handle is not None:
                found.append(self._device(index, part, handle))
        return found

    def _device(self, index: int, part: int | None, handle: Any) -> Device:
        uuid = str(self._library.nvmlDeviceGetUUID(handle))
        self._handles[uuid] = handle
        return Device(index, part, uuid, str(self._library.nvmlDeviceGetName(handle)))

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Call the library; null where a device has no answer."""
        try:
            return getattr(self._library, name)(*arguments)
        except self._library.NVMLError:
            return None


@contextmanager
def nvml() -> Iterator[Nvml]:
    """Open a session. This may take seconds, where the driver has to wake the GPUs.

    :raises NvmlError: the library cannot be asked.
    """
    try:
        import pynvml
    except ImportError:
        raise NvmlError("package", "nvidia-ml-py is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value in _NO_DRIVER:
            raise NvmlError("driver", "there is no NVIDIA driver") from None
        raise NvmlError("fault", f"the NVIDIA driver says {str(error)!r}") from None
    try:
        try:
            session = Nvml(pynvml)
        except pynvml.NVMLError as error:
            raise NvmlError("fault", f"the NVIDIA driver says {str(error)!r}") from None
        yield session
    finally:
        pynvml.nvmlShutdown()
