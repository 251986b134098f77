"""Processor time of the processes in a container, looked at from the machine it runs on."""

from __future__ import annotations

import contextlib
import os
import threading

#: Seconds between looks. What ends sooner may not be seen.
TICK = 1.0


class Cpu:
    """Remembers how much processor time each process of a container has used.

    :param pid: of the container's first process, on this machine; 0 if it is on another one.
    """

    def __init__(self, pid: int) -> None:
        self._first = pid
        self._seen: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="mlrbench-cpu", daemon=True)

    def start(self) -> None:
        """Begin to look; without effect where the container is on another machine."""
        if self._first > 0 and _pid_inside(self._first) == 1:
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def of(self, pid: int) -> float | None:
        """Seconds used by the process that the container numbers *pid*, then forgotten.

        They are those of the last look at it, so up to :data:`TICK` less than it used.
        """
        return self._seen.pop(pid, None)

    def _look_on(self) -> None:
        while not self._ended.wait(TICK):
            self._look()

    def _look(self) -> None:
        stats = _all()
        inside = {self._first}
        # Parents mostly have lower numbers; another round finds those that do not.
        grown = True
        while grown:
            found = {pid for pid, (parent, _) in stats.items() if parent in inside} - inside
            inside |= found
            grown = bool(found)
        for pid in inside - {self._first}:
            if pid in stats and (number := _pid_inside(pid)) is not None:
                self._seen[number] = stats[pid][1]


def _all() -> dict[int, tuple[int, float]]:
    """Every process of this machine: its parent, and the seconds that it has used."""
    tick = os.sysconf("SC_CLK_TCK")
    found: dict[int, tuple[int, float]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                found[int(name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / tick
    return found


def _pid_inside(pid: int) -> int | None:
    """How the container of a process numbers it; null if it is gone."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"NSpid:"):
                return int(line.split()[-1])
    return None
