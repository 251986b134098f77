"""One case of a coding CLI: what it is given, its run, and the account it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.coding.events import Event, Trouble, lines
from pytest_mlrbench.agents.coding.prompt import Surroundings, prompt
from pytest_mlrbench.agents.ends import run_command
from pytest_mlrbench.errors import Fault, describe
from pytest_mlrbench.models.redaction import Redaction, of_environment
from pytest_mlrbench.sandbox.base import FILES, WORKSPACE
from pytest_mlrbench.sandbox.room import Room

if TYPE_CHECKING:
    from pytest_mlrbench.agents.coding.base import CodingAgent

#: Beside the log, what the agent did; and what it was told.
TRANSCRIPT, PROMPT = "transcript.jsonl", "prompt.md"


async def run(agent: CodingAgent, work: Assignment, room: Room) -> tuple[list[Event], Fault | None]:
    """Have *agent* answer, and return what it did and what went wrong.

    The transcript is written whatever that was.
    """
    told = work.log.with_name(PROMPT)
    told.write_text(prompt(work.stage, _surroundings(work, room)), "utf-8")
    told.chmod(0o644)  # in a container the agent is somebody else
    place = f"{FILES}/{PROMPT}" if room.is_container else str(told)
    keys: set[str] = set()

    def settle(gate: Mapping[str, str]) -> Mapping[str, str]:
        keys.update(value for name, value in gate.items() if name.endswith("_KEY"))
        lay(agent.files(gate), room.home)
        # A container has its own name for the home.
        home = {} if room.is_container else {"HOME": str(room.home)}
        return {**home, **agent.environment(gate)}

    fault: Fault | None = None
    try:
        await run_command(agent.command(place), settle, work, {PROMPT: told})
    except Fault as error:
        fault = error
    events = await asyncio.to_thread(_account, agent, work, room, Redaction(keys))
    return events, fault


def _account(agent: CodingAgent, work: Assignment, room: Room, hide: Redaction) -> list[Event]:
    """Write what the agent did beside its log, without keys, and return it."""
    seen = WORKSPACE if room.is_container else str(work.workspace)
    try:
        events = agent.transcript(work.log, room.home, seen)
    except Exception as error:  # what an agent leaves must not decide how its case ends
        events = [Trouble(f"what it left cannot be read: {describe(error)}")]
    hide_own = of_environment()
    with work.log.with_name(TRANSCRIPT).open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{hide_own(hide(line))}\n" for line in lines(events))
    return events


def lay(files: Mapping[str, str], home: Path) -> None:
    """Write *files*, path → text, into an agent's home; links in it are replaced, not followed."""
    home.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        target = home
        for part in Path(name).parts[:-1]:
            target /= part
            if target.is_symlink():
                target.unlink()
            target.mkdir(exist_ok=True)
        target = home / name
        target.unlink(missing_ok=True)
        target.write_text(text, "utf-8")


def _surroundings(work: Assignment, room: Room) -> Surroundings:
    return Surroundings(
        deadline=work.deadline,
        gpus=len(room.gpus),
        # Nothing keeps a process of this machine from the network.
        network=room.network if room.is_container else "full",
        data=sorted(room.data),
        hosts=room.hosts,
    )
