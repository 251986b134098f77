"""A case's place: what is held for it before its clock begins, and whose fault its end is."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.ends import run_command
from pytest_mlrbench.agents.needs import Needs
from pytest_mlrbench.errors import AgentFault, Fault, SystemFault
from pytest_mlrbench.sandbox.base import Ended, Job, Limits, Reason
from pytest_mlrbench.sandbox.labels import is_dead, owner
from pytest_mlrbench.sandbox.options import SandboxOptions
from pytest_mlrbench.sandbox.room import Room
from pytest_mlrbench.sandbox.rooms import Rooms
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.select import make_cases

MINI = load_suite("mini")
(CASE,) = make_cases(MINI, ["experiment"], MINI.tasks[:1])


class Stage:
    """A sandbox that ends every command in the same way."""

    name = "docker"
    limits = Limits()

    def __init__(self, reason: Reason = "exit", code: int = 0, disk: int | None = None) -> None:
        self._ended = Ended(reason, code, 0.0, "", disk)

    def prepare(self) -> None:
        """Nothing to check."""

    async def run(self, job: Job) -> Ended:
        return self._ended


class Purse:
    """The money of a run, of which some is held for a case."""

    gated = False

    def __init__(self) -> None:
        self.said: list[str] = []

    async def hold(self, case: str) -> Any:
        self.said.append("held")
        return SimpleNamespace(answered=lambda *given, **more: self.said.append("counted"))


def test_money_is_held_before_a_case_has_its_place_and_counted_when_it_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    purse: Any = Purse()
    options = SandboxOptions(kind="docker", network="models", gpus="0")
    rooms = Rooms(options, "cmd:x", Needs("docker"), ["experiment"], purse)
    assert purse.gated  # in every process, though it prepares nothing
    rooms.container = Stage()

    async def stay() -> None:
        async with rooms.open("run", CASE, tmp_path / "case"):
            purse.said.append("begun")

    asyncio.run(stay())
    assert purse.said == ["held", "begun", "counted"]


def end_of(
    tmp_path: Path, reason: Reason, code: int, failing: str = "", disk: int | None = None
) -> Fault | None:
    """Return the fault that a command's end is."""
    room = Room(Stage(reason, code, disk), run="run", case="case", folder=tmp_path, failing=failing)
    work = Assignment(
        stage="experiment",
        task_id="task",
        repeat=1,
        workspace=tmp_path,
        deadline=time.time() + 60,
        log=tmp_path / "log",
        room=room,
    )
    try:
        asyncio.run(run_command(["x"], lambda gate: gate, work))
    except Fault as fault:
        return fault
    return None


@pytest.mark.parametrize(
    ("reason", "code", "failing", "kind", "cause"),
    [
        ("exit", 3, "", AgentFault, "crash"),
        ("timeout", -9, "", AgentFault, "timeout"),
        ("memory", -9, "", AgentFault, "memory"),
        ("pids", 1, "", AgentFault, "pids"),
        ("disk", -9, "", AgentFault, "disk"),
        ("tracer", -9, "", AgentFault, "tampering"),
        ("exit", 1, "it says 429", SystemFault, "provider"),
        ("timeout", -9, "it says 429", SystemFault, "provider"),
        # An agent can bring about the answer of a provider, and that excuses nothing else.
        ("disk", -9, "it says 429", AgentFault, "disk"),
        ("memory", -9, "it says 429", AgentFault, "memory"),
        ("tracer", -9, "it says 429", AgentFault, "tampering"),
    ],
)
def test_whose_fault_an_end_is(
    tmp_path: Path, reason: Reason, code: int, failing: str, kind: type[Fault], cause: str
) -> None:
    fault = end_of(tmp_path, reason, code, failing)
    assert type(fault) is kind
    assert fault.cause == cause


@pytest.mark.parametrize(
    ("disk", "words"),
    [
        (int(52.3 * 2**30), "the agent wrote 52.3 GiB, more than its 50 GiB (--mlr-limits disk=)."),
        (None, "the agent wrote more than its 50 GiB (--mlr-limits disk=)."),
    ],
)
def test_how_much_is_on_disk_is_said_where_it_was_measured(
    tmp_path: Path, disk: int | None, words: str
) -> None:
    fault = end_of(tmp_path, "disk", -9, disk=disk)
    assert fault is not None
    assert fault.message == words


@pytest.mark.parametrize(("reason", "failing"), [("exit", ""), ("exit", "429"), ("memory", "")])
def test_an_agent_that_ends_well_has_no_fault(tmp_path: Path, reason: Reason, failing: str) -> None:
    """Also where a program of its own had no memory left, and it went on."""
    assert end_of(tmp_path, reason, 0, failing) is None


def test_an_owner_whom_proc_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    label = owner(os.getpid())
    assert label is not None
    monkeypatch.setattr("pytest_mlrbench.sandbox.labels._start", lambda pid: None)

    def refused(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    assert not is_dead(label)
