"""Labels on everything we make in an engine: whose it is, and whether that owner still lives.

An owner is a process. Its number alone says little: numbers are used again, and the same engine may
serve other machines and other process namespaces, of whose processes nothing is known here.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from functools import cache
from pathlib import Path

RUN, CASE, OWNER, GPU = "mlrbench.run", "mlrbench.case", "mlrbench.owner", "mlrbench.gpu"


def labels(run: str, case: str, gpus: Sequence[str] = ()) -> dict[str, str]:
    """Return the labels of what this process makes for *case*."""
    return {RUN: run, CASE: case, OWNER: owner(os.getpid()) or "", GPU: ",".join(gpus)}


def owner(pid: int) -> str | None:
    """Return ``PLACE PID START`` of a process of this machine; null if there is no such process.

    START is in the kernel's ticks since the machine was started: no change of the clock moves it.
    """
    start = _start(pid)
    return None if start is None else f"{_place()} {pid} {start}"


def is_dead(label: str) -> bool:
    """Whether the owner in a label is known to have ended.

    One of another machine or process namespace never is: nothing is known of it here.
    """
    parts = label.split()
    if len(parts) != 3 or not parts[1].isdecimal():
        return False
    place, pid, _ = parts
    host, boot, namespace = place.split(":")[:3] if place.count(":") == 2 else ("", "", "")
    here = _place().split(":")
    if host != here[0]:
        return False
    if boot != here[1]:
        return True  # the machine has been started anew since
    if namespace != here[2]:
        return False
    now = owner(int(pid))
    # Where /proc hides the processes of others, those who live look as if they were gone.
    return now != label and (now is not None or not _is_hidden(int(pid)))


def _is_hidden(pid: int) -> bool:
    """Whether the kernel has a process of somebody else's by that number."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return False  # ours, which would have been seen


@cache
def _place() -> str:
    """``HOST:BOOT:NAMESPACE``: where the number of a process means something."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:  # not Linux
        boot = namespace = "-"
    return f"{socket.gethostname().replace(':', '-')}:{boot}:{namespace}"


def _start(pid: int) -> str | None:
    if os.path.exists("/proc/self/stat"):
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        # Field 20 behind the name; a zombie's work is done.
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    import psutil

    try:
        return f"{psutil.Process(pid).create_time():.0f}"
    except psutil.Error:
        return None
