"""A job and its limits as what the engine is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlrbench.sandbox.base import DATA, FILES, WORKSPACE, Job, Limits

#: Home of the agent in the container: outside the submission, gone with the case.
HOME = "/home/agent"
#: Where the socket of what answers for models is in the container that owns the network.
GATE = "/gate"
#: Port on which an agent's container finds it.
GATE_PORT = 8080


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the agent runs as."""

    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


def agent_account() -> Account:
    """Ours, so that what the agent leaves is ours; never root."""
    return Account(os.getuid(), os.getgid()) if os.getuid() else Account(1000, 1000)


def options(job: Job, limits: Limits, path: str) -> dict[str, Any]:
    """Return arguments of the SDK's ``containers.create`` for *job*, but for image and command.

    :param path: ``PATH`` of the image.
    """
    return {
        **confined(limits),
        "working_dir": WORKSPACE,
        "environment": environment(job, path),
        "mounts": mounts(job),
        **devices(job.gpus),
    }


def confined(limits: Limits) -> dict[str, Any]:
    """What every container of ours is bound by."""
    bound: dict[str, Any] = {
        "mem_limit": limits.memory,
        "memswap_limit": limits.memory,  # memory and swap together: no swap
        "pids_limit": limits.pids,
        "shm_size": limits.shm,
        # Agents compile and run in /tmp, so it may hold programs.
        "tmpfs": {"/tmp": f"size={limits.tmp},mode=1777,exec,nosuid,nodev"},
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "ipc_mode": "private",
        # An engine may give containers other users by custom; folders of ours would be closed then.
        "userns_mode": "host",
        # Where the machine itself runs short of memory, agents go first, not what watches them.
        "oom_score_adj": 500,
        "log_config": {"Type": "none"},
        "stdin_open": False,
    }
    if limits.cpus is not None:
        bound["nano_cpus"] = int(limits.cpus * 10**9)
    return bound


def environment(job: Job, path: str) -> dict[str, str]:
    """Variables of the agent: the job's, with a home and a place for what it installs."""
    found = {
        "HOME": HOME,
        "PATH": f"{HOME}/.local/bin:{path}",
        # `pip install` goes to the home, also where the image's Python belongs to its packages.
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONUNBUFFERED": "1",
        **job.environment,
    }
    if not job.gpus:
        # An engine whose default runtime is NVIDIA's gives all GPUs to images that ask for them.
        found["NVIDIA_VISIBLE_DEVICES"] = "void"
    return found


def mounts(job: Job) -> list[Any]:
    """The folders of this machine that the container sees."""
    return [
        bind(WORKSPACE, job.workspace, read_only=False),
        bind(HOME, home_of(job), read_only=False),
        *(bind(f"{FILES}/{name}", path) for name, path in job.files.items()),
        *(bind(f"{DATA}/{name}", path) for name, path in job.data.items()),
        *(bind(target, path) for target, path in job.overlays.items()),
    ]


def bind(target: str, source: Path, *, read_only: bool = True) -> Any:
    """A folder or file of this machine, as the SDK takes it."""
    from docker.types import Mount

    return Mount(target, str(source.resolve()), type="bind", read_only=read_only)


def home_of(job: Job) -> Path:
    """Folder of this machine that is the agent's home."""
    return job.ledger.path.parent / "home"


def devices(gpus: Sequence[str]) -> Mapping[str, Any]:
    """Exactly these GPUs."""
    if not gpus:
        return {}
    from docker.types import DeviceRequest

    return {"device_requests": [DeviceRequest(device_ids=list(gpus), capabilities=[["gpu"]])]}
