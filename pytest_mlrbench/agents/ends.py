"""How the command of an agent ended, and whose fault it is if it did not end well."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.errors import AgentFault, SystemFault
from pytest_mlrbench.models.redaction import of_environment
from pytest_mlrbench.sandbox.base import Ended
from pytest_mlrbench.sandbox.limits import words_apart, words_of
from pytest_mlrbench.sandbox.local import LocalSandbox
from pytest_mlrbench.sandbox.room import Environment, Room

#: How much of an agent's output is quoted when it crashes, in characters.
_TAIL = 300


async def run_command(
    command: Sequence[str],
    environment: Environment,
    work: Assignment,
    files: Mapping[str, Path] | None = None,
) -> None:
    """Run *command* for *work* and turn the way it ended into a fault, if it is one.

    :param files: name below ``/agent`` → file of this machine, for containers.
    :raises AgentFault: a non-zero exit, a signal, the deadline, or a limit.
    :raises SystemFault: it could not be run to its end, or its models did not answer.
    """
    room = work.room or Room(LocalSandbox(), run="", case=work.task_id, folder=work.log.parent)
    seconds = work.seconds_left
    ended = await room.execute(command, work, environment=environment, files=files or {})
    excused = ended.reason == "timeout" or (ended.reason == "exit" and ended.code != 0)
    if room.failing and excused:
        raise SystemFault("provider", f"the agent's models did not answer: {room.failing}")
    if ended.reason == "timeout":
        raise AgentFault("timeout", f"the agent did not end within {seconds:.0f} s.")
    if ended.reason == "tracer":
        raise AgentFault("tampering", "what records the agent was ended, and not by the machine.")
    # An agent that goes on after a program of its own had no memory left has done well. Of local
    # processes it is we who look, and end all of them.
    survived = room.is_container and ended.reason == "memory" and ended.code == 0
    if ended.reason != "exit" and not survived:
        raise AgentFault(ended.reason, _passed(ended, room))
    if ended.code != 0:
        raise AgentFault(
            "crash", f"the agent crashed with {_way_out(ended.code)}{_said(ended.tail)}"
        )


def _passed(ended: Ended, room: Room) -> str:
    """Say which limit the agent has passed."""
    limit = getattr(room.sandbox.limits, ended.reason)
    if ended.disk is not None:
        wrote, allowed = words_apart(ended.disk, limit)
        return f"the agent wrote {wrote}, more than its {allowed} (--mlr-limits disk=)."
    amount = f"{limit} processes" if ended.reason == "pids" else words_of(limit)
    what = {"pids": "had more than", "memory": "used more memory than", "disk": "wrote more than"}
    return f"the agent {what[ended.reason]} its {amount} (--mlr-limits {ended.reason}=)."


def _said(tail: str) -> str:
    """The last whole lines of the output, unless there is only one that is too long."""
    # What an agent prints goes into reports, and it may print its environment.
    words = of_environment()(tail.strip())
    if len(words) > _TAIL:
        words = words[-_TAIL:].partition("\n")[2] or words[-_TAIL:]
    return f"; its last words: {words}" if words else " and printed nothing."


def _way_out(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # real-time signals have no names
        return f"signal {-code}"
