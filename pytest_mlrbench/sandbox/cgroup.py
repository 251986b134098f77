"""What the kernel knows of a container."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


class ControlGroup:
    """The processes of a container that runs, as this machine sees them.

    Where they are not to be seen (we are in a container ourselves, or the machine's control groups
    are elsewhere) nothing is known, and nothing of it is an error.

    :param pid: of the container's first process.
    :param container: its id, which tells its groups from those of whoever has that number here.
    """

    def __init__(self, pid: int, container: str) -> None:
        self._folders = tuple(_folders_of(pid, container))

    def forks_refused(self) -> int:
        """Return how often the limit of processes was in the way of a new one."""
        for folder in self._folders:
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = (folder / "pids.events").read_text().split()
                return int(words[words.index("max") + 1])
        return 0

    def hidden_bytes(self, devices: Collection[int]) -> int:
        """Return what files take on disk that are in no folder any more, but open or mapped.

        :param devices: numbers of the file systems that count.
        """
        found: dict[tuple[int, int], int] = {}
        for process in self._processes():
            for path in (*_open_files(process), *_removed_maps(process)):
                with contextlib.suppress(OSError):
                    status = os.stat(path)
                    is_hidden = stat.S_ISREG(status.st_mode) and status.st_nlink == 0
                    if is_hidden and status.st_dev in devices:
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
        return sum(found.values())

    def _processes(self) -> list[str]:
        for folder in self._folders:
            with contextlib.suppress(OSError):
                return (folder / "cgroup.procs").read_text().split()
        return []


def _open_files(process: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
        return [entry.path for entry in entries]
    return []


def _removed_maps(process: str) -> Iterator[str]:
    """Yield the files in a process's memory that are in no folder, and perhaps no longer open."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/maps", "rb") as lines:
        for line in lines:
            if line.endswith(b" (deleted)\n"):
                place = "-".join(
                    bound.lstrip("0") or "0" for bound in line.split()[0].decode().split("-")
                )
                yield f"/proc/{process}/map_files/{place}"


def _folders_of(pid: int, container: str) -> Iterator[Path]:
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "pids") and container in path:
            yield _ROOT / controllers / path.lstrip("/")
