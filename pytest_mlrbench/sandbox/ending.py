"""How a container's end is read: by itself, its limits, its tracer, or this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox.base import Reason

#: What this side saw and ended it for; ``exit`` if it saw nothing.
Cause = Literal["exit", "timeout", "disk"]
#: Free bytes of memory below which this machine counts as short of it.
MEMORY_RESERVE = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a container that has ended.

    :param cause: why this side ended it, if it did.
    :param state: the engine's own words, ``State`` of its inspection.
    :param recorded: whether a recorder was to see the agent's end.
    :param main_exit: the end that it saw, negative for a signal; null for none.
    :param forks_refused: how often the limit of processes was reached.
    :param free_memory: of this machine, in bytes, the least that was seen.
    """

    cause: Cause
    state: Mapping[str, Any]
    recorded: bool
    main_exit: int | None
    forks_refused: int
    free_memory: int


def reason_of(seen: Seen) -> tuple[Reason, int]:
    """Return why the container ended, and the exit code, negative for a signal.

    :raises SystemFault: this machine had too little memory.
    """
    code = seen.main_exit
    if code is None:
        code = _signed(int(seen.state["ExitCode"]))
    if seen.cause != "exit":
        return seen.cause, code
    # Also with exit code 0: a child may have been killed, and its parent gone on.
    out_of_memory = bool(seen.state.get("OOMKilled"))
    if out_of_memory or (seen.recorded and seen.main_exit is None):
        if seen.free_memory < MEMORY_RESERVE:
            raise SystemFault("host_memory", "this machine ran out of memory.")
        return "memory" if out_of_memory else "tracer", code
    if code != 0 and seen.forks_refused:
        return "pids", code
    return "exit", code


def lasted(state: Mapping[str, Any], main_ended: float | None) -> tuple[float, float]:
    """Return from when until when the command ran, in Unix time.

    :param state: the engine's own words of its container, which may have gone on.
    :param main_ended: when the command itself was seen to end; null if that was not seen.
    """
    began, ended = (datetime.fromisoformat(state[it]) for it in ("StartedAt", "FinishedAt"))
    return began.timestamp(), ended.timestamp() if main_ended is None else main_ended


def _signed(code: int) -> int:
    """Engines say 128 more than the signal; so do shells of their children, to the same effect."""
    return 128 - code if 128 < code <= 128 + 64 else code
