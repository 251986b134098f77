"""The machine: its GPUs, git, the disk run folders go to, cores and memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path

from pytest_mlrbench.doctor.keys import environment_without_keys
from pytest_mlrbench.doctor.probe import Probe, Seen

#: Seconds a tool has: nvidia-smi wakes sleeping GPUs, one after the other.
PATIENCE = 10.0
GPU_QUERY = ("nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader")
_SAYS_NONE = "No devices were found"
_NO_GPU = Seen("missing", "nvidia-smi finds none")
#: A run folder of the embedded default is far smaller; below this, a disk is as good as full.
ENOUGH = 100_000_000


def probes(folder: Path | None = None) -> list[Probe]:
    """Return the looks at the machine.

    :param folder: where pytest would be started; without it, the current folder.
    """
    return [
        Probe(
            area="machine",
            name="GPUs",
            look=_look_at_gpus,
            enables="One is lent to each experiment.",
            remedy="Without any, experiments run on the CPU.",
        ),
        Probe(
            area="machine",
            name="git",
            look=_look_at_git,
            enables="The repository around an agent is compared on --mlr-resume.",
            remedy="Without it, only the files of an agent are compared on --mlr-resume.",
        ),
        Probe(
            area="machine",
            name="disk",
            look=partial(_look_at_disk, folder),
            enables="Run folders go there; --mlr-out=DIR names another place.",
            remedy="Make room there, or name another place: --mlr-out=DIR.",
            needed=True,
        ),
        Probe(
            area="machine",
            name="cores",
            look=_look_at_cores,
            enables="How many cases are worth running side by side: `pytest -n N`.",
        ),
        Probe(
            area="machine",
            name="memory",
            look=_look_at_memory,
            enables="Shared by the cases that run side by side.",
        ),
    ]


class _ToolError(Exception):
    """A tool that has failed, in words."""


def _lines_of(command: tuple[str, ...]) -> list[str]:
    """Return the lines *command* prints.

    :raises _ToolError: it could not be started, did not end in time, or failed.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            env=environment_without_keys(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _ToolError(f"{command[0]} did not end within {PATIENCE:g} s") from None
    except OSError as error:
        raise _ToolError(f"{command[0]} cannot be started: {error.strerror}") from None
    if done.returncode:
        words = [*_split(done.stdout), *_split(done.stderr), "it says nothing"][0]
        raise _ToolError(f"{command[0]} failed with exit code {done.returncode}: {words}")
    return _split(done.stdout)


def _split(output: bytes) -> list[str]:
    lines = output.decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _look_at_gpus() -> Seen:
    if shutil.which(GPU_QUERY[0]) is None:
        return Seen("missing", "there is no nvidia-smi")
    try:
        lines = _lines_of(GPU_QUERY)
    except _ToolError as error:
        # Some versions of the tool take a machine without GPUs for a failure, some do not.
        return _NO_GPU if _SAYS_NONE in str(error) else Seen("broken", str(error))
    if not lines or _SAYS_NONE in lines[0]:
        return _NO_GPU
    return _gpus(lines)


def _gpus(lines: list[str]) -> Seen:
    kinds: Counter[str] = Counter()
    for line in lines:
        index, _, rest = line.partition(",")
        name, _, memory = rest.rpartition(",")
        if not index.isdecimal() or not name:
            return Seen("broken", f"nvidia-smi says what is no list of GPUs: {line}")
        kinds[f"{name.strip()} ({memory.strip()})"] += 1
    named = ", ".join(f"{number} x {kind}" for kind, number in kinds.items())
    return Seen("ok", f"{len(lines)} found: {named}")


def _look_at_git() -> Seen:
    if shutil.which("git") is None:
        return Seen("missing", "not on the PATH")
    try:
        lines = _lines_of(("git", "--version"))
    except _ToolError as error:
        return Seen("broken", str(error))
    return Seen("ok", lines[0].removeprefix("git version ") if lines else "of unknown version")


def _look_at_disk(folder: Path | None) -> Seen:
    out = (folder or Path.cwd()) / ".mlrbench" / "runs"
    there = next(path for path in (out, *out.parents) if path.exists())
    if not there.is_dir():
        return Seen("broken", f"{there} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        return Seen("broken", f"{there} cannot be written")
    free = shutil.disk_usage(there).free
    return Seen("ok" if free >= ENOUGH else "broken", f"{free / 1e9:.1f} GB free for {out}")


def _look_at_cores() -> Seen:
    # The cores of this process: a container or a batch system may give it a part only.
    own = getattr(os, "sched_getaffinity", None)
    return Seen("ok", str(len(own(0)) if own else os.cpu_count() or "unknown"))


def _look_at_memory() -> Seen:
    import psutil

    memory = psutil.virtual_memory()
    return Seen("ok", f"{memory.total / 1e9:.1f} GB, of which {memory.available / 1e9:.1f} GB free")
