"""Whether an engine keeps the limits it is given; some take them and do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox.base import Limits
from pytest_mlrbench.sandbox.limits import words_of

_DELEGATE = "a rootless engine needs cgroup v2 with this controller delegated to your account"


def check(info: Mapping[str, Any], limits: Limits, swap: int) -> None:
    """Make sure that every limit will be kept.

    :param info: what the engine says of itself.
    :param swap: bytes of swap space of the machine.
    :raises InputError: one will not.
    """
    if info.get("OSType") not in (None, "linux"):
        raise InputError("the engine runs no Linux containers: switch it to them.")
    for limit, field in (("memory", "MemoryLimit"), ("pids", "PidsLimit")):
        if not info.get(field):
            raise InputError(f"the engine cannot limit {limit} of containers: {_DELEGATE}.")
    if swap and not info.get("SwapLimit"):
        raise InputError(
            "the engine cannot keep containers from swapping, so the limit of memory would not"
            " hold: start Linux with swapaccount=1, or turn swap off."
        )
    if limits.cpus is not None and not (info.get("CpuCfsQuota") or info.get("CPUCfsQuota")):
        raise InputError(f"the engine cannot limit processors of containers: {_DELEGATE}.")
    memory, cpus = info.get("MemTotal") or 0, info.get("NCPU") or 0
    if memory and limits.memory > memory:
        raise InputError(
            f"a case may use {words_of(limits.memory)} of memory and this machine has"
            f" {words_of(memory)}: add --mlr-limits memory={memory * 3 // 4 // 2**20}m."
        )
    if cpus and limits.cpus is not None and limits.cpus > cpus:
        raise InputError(
            f"--mlr-limits cpus={limits.cpus:g}: this machine has {cpus}; write {cpus} or less."
        )


def is_rootless(info: Mapping[str, Any]) -> bool:
    """Whether the engine is an ordinary account's: its root is that account outside."""
    return "name=rootless" in " ".join(info.get("SecurityOptions") or ())
