"""What a sandbox is given, and how what ran in it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pytest_mlrbench.sandbox.ledger import Ledger

#: Where a container has the workspace, the files a command names, and the user's data.
WORKSPACE, FILES, DATA = "/workspace", "/agent", "/data"

#: How a command ended: by itself, or what ended it.
#:
#: ``exit`` by itself, whatever its code; ``timeout`` the deadline; ``memory``, ``pids``, ``disk``
#: its own limit; ``tracer`` what records it has died while the host was not short of memory. All of
#: these are the agent's doing. What is the system's is raised as a fault.
Reason = Literal["exit", "timeout", "memory", "pids", "disk", "tracer"]
Network = Literal["none", "models", "full"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one case may use. Bytes, but for processors and processes."""

    memory: int = 16 * 2**30
    cpus: float | None = None
    pids: int = 4096
    #: Shared memory, ``/dev/shm``: data loaders of PyTorch pass batches through it.
    shm: int = 2 * 2**30
    #: ``/tmp``, which lies in memory and counts as such.
    tmp: int = 2 * 2**30
    #: What the workspace may grow to. Looked at while the agent runs, so it may be passed for a
    #: moment.
    disk: int = 50 * 2**30
    #: Output that is kept.
    log: int = 100 * 2**20


@dataclass(frozen=True, slots=True)
class Job:
    """One command of one case."""

    run: str
    case: str
    command: Sequence[str]
    #: On this machine; the command finds it at :data:`WORKSPACE`, where it also starts.
    workspace: Path
    #: Name below :data:`FILES` → file or folder of this machine, readable only.
    files: Mapping[str, Path]
    environment: Mapping[str, str]
    #: Unix time in seconds.
    deadline: float
    log: Path
    ledger: Ledger
    #: Name below :data:`DATA` → folder of this machine, readable only.
    data: Mapping[str, Path] = field(default_factory=dict)
    #: File in the container, which has it already → file of this machine in its place.
    overlays: Mapping[str, Path] = field(default_factory=dict)
    #: UUIDs or indices, as the engine is told them.
    gpus: Sequence[str] = ()
    network: Network = "none"
    #: Unix socket of what answers for the models and hosts the case may reach; null without any.
    gate: Path | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    :param code: exit code; negative for a signal.
    :param tail: the end of its output.
    :param disk: the most bytes that were seen on disk, of one that passed that limit; null where
        they were not measured.
    """

    reason: Reason
    code: int
    seconds: float
    tail: str
    disk: int | None = None

    def facts(self, limits: Limits) -> dict[str, Any]:
        """Return what the ledger's ``end`` event says of it."""
        said: dict[str, Any] = {
            "reason": self.reason,
            "code": self.code,
            "seconds": round(self.seconds, 3),
        }
        if self.disk is not None:
            said |= {"disk": self.disk, "disk_limit": limits.disk}
        return said


class Sandbox(Protocol):
    """Where commands of agents are run."""

    #: As in ``--mlr-sandbox``: ``docker`` or ``local``.
    name: str
    limits: Limits

    def prepare(self) -> None:
        """Check, once per run, that all that was asked for can be given.

        :raises InputError: it cannot; one sentence with what to do.
        """

    async def run(self, job: Job) -> Ended:
        """Run a command until it ends or has to be ended; nothing of it is left afterwards.

        :raises SystemFault: it could not be run to its end, through no fault of the agent: the
            engine (cause ``engine``), the host's memory or disk (``host_memory``, ``host_disk``),
            or a start that failed (``start``).
        """
