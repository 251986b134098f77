"""The agent's part of a case: a workspace with the inputs, a run, a record of what it left."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench import folders
from pytest_mlrbench.agents.base import Agent, Assignment
from pytest_mlrbench.errors import AgentFault, SystemFault, is_interrupt
from pytest_mlrbench.run.faults import fault_record, internal_fault
from pytest_mlrbench.run.folder import CHECKPOINTS, write_json
from pytest_mlrbench.run.submission import SubmissionRecord, check_contract, digest_of, stamp_of
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Input

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.room import Room


async def answer(
    agent: Agent,
    case: Case,
    inputs: Mapping[str, Input],
    folder: Path,
    seconds: float | None,
    key: dict[str, str | None],
    room: Room | None = None,
) -> SubmissionRecord | SystemFault:
    """Have *agent* answer *case* in *folder*, and keep a record of how it ended.

    :param inputs: path in the workspace → file or text.
    :param seconds: how long it may take; null for the stage's own limit.
    :param key: digests of what the submission depends on.
    :param room: where it runs commands; null for agents that run none.
    """
    workspace = folder / "submission"
    start = time.monotonic()
    digest, files, stamp = None, 0, None
    fault = await _fault_of(agent, case, inputs, folder, seconds, room)
    if isinstance(fault, SystemFault):
        return fault
    took = time.monotonic() - start
    # Reviews come after the submission: one that is there already was put there by the agent.
    for name in ("reviews", CHECKPOINTS):
        folders.remove(folder / name)
    if agent.has_files and not workspace.is_symlink():
        try:
            # In a thread: an agent may leave gigabytes, and other cases share this loop.
            digest, files = await asyncio.to_thread(digest_of, workspace)
            stamp = await asyncio.to_thread(stamp_of, workspace)
        except OSError as error:
            fault = fault or AgentFault("unusable_output", f"the workspace is unreadable: {error}.")
    record = SubmissionRecord(
        digest=digest,
        files=files,
        stamp=stamp,
        seconds=took,
        fault=None if fault is None else fault_record(fault),
        spent=spent_by_agent(agent, case) or (room.spent if room else None),
        sandbox=room.sandbox.name if room else None,
        gpus=tuple(room.gpus) if room else (),
        key=key,
    )
    write_json(folder / "submission.json", record)
    return record


async def _fault_of(
    agent: Agent,
    case: Case,
    inputs: Mapping[str, Input],
    folder: Path,
    seconds: float | None,
    room: Room | None,
) -> AgentFault | SystemFault | None:
    """Run *agent* to its end, and return what went wrong."""
    stage, workspace = STAGES[case.stage], folder / "submission"
    try:
        workspace.mkdir(parents=True)
        lay(inputs, folder / "inputs")  # for judges, whatever becomes of those in the workspace
        lay(inputs, workspace)
        work = Assignment(
            stage=case.stage,
            task_id=case.task.id,
            repeat=case.repeat,
            workspace=workspace.resolve(),
            deadline=time.time() + (seconds or stage.timeout),
            log=folder / "agent.log",
            room=room,
        )
        await agent.run(case, work)
        if agent.has_files:
            check_contract(workspace, stage)
    except (AgentFault, SystemFault) as error:
        return error
    except BaseException as error:
        if is_interrupt(error):
            raise
        return internal_fault("agent", error)
    return None


def spent_by_agent(agent: Agent, case: Case) -> Spent | None:
    """What the agent's calls to models used, if it is one that says so."""
    spent: Callable[[Case], Spent | None] | None = getattr(agent, "spent", None)
    return spent(case) if spent else None


def lay(inputs: Mapping[str, Input], folder: Path) -> None:
    """Put *inputs*, path → file or text, into *folder*."""
    for name, source in inputs.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, str):
            target.write_text(source, "utf-8")
        else:
            shutil.copyfile(source, target)
