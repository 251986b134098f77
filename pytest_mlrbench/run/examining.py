"""The evidence of a case: examined when the agent has ended, kept as ``evidence.json``."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

import pytest_mlrbench.evidence
from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import SystemFault, is_interrupt
from pytest_mlrbench.evidence.base import Evidence
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.faults import internal_fault
from pytest_mlrbench.run.folder import write_json
from pytest_mlrbench.run.thresholds import EXAMINED


def is_examined(agent: Agent, stage: str) -> bool:
    """Whether there is something to examine: results that are reported, in files."""
    return stage in EXAMINED and agent.has_files


@cache
def rules() -> str:
    """Digest of what the evidence is examined by: other rules may find something else."""
    folder = Path(pytest_mlrbench.evidence.__file__).parent
    return digests.of_files(
        (path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py")
    )


async def examine(
    folder: Path, stage: str, *, asks: bool, is_copy: bool = False
) -> Evidence | SystemFault:
    """Examine what lies in the *folder* of a case, and keep what was found.

    In a thread: it may take seconds, and other cases share this loop.

    :param asks: whether catalogues are asked for the works that are cited.
    :param is_copy: whether it is stored work, beside which lies what repetitions of it gave.
    """
    try:
        # With the readers and parsers it needs, which most stages do without.
        from pytest_mlrbench.evidence.examine import examine_case

        found = await asyncio.to_thread(examine_case, folder, stage, asks=asks)
        if is_copy:
            from pytest_mlrbench.evidence.replays.subject import with_recorded

            found = await asyncio.to_thread(with_recorded, folder, found)
        keep(folder, found)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return internal_fault("evidence", error)
    return found


def keep(folder: Path, evidence: Evidence) -> None:
    """Write down what was found of the case in *folder*."""
    write_json(folder / "evidence.json", evidence)
