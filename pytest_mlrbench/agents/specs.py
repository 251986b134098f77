"""From an agent spec the user wrote to the agent."""

from __future__ import annotations

from pathlib import Path

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.agents.command import CommandAgent, PythonAgent, ReferenceAgent
from pytest_mlrbench.agents.controls import CONTROLS, ControlAgent
from pytest_mlrbench.agents.replay import PublishedAgent, ReplayAgent
from pytest_mlrbench.errors import InputError

FORMS = (
    f"reference, {', '.join(CONTROLS)}, cmd:COMMAND, py:module:callable, replay:DIR[#SYSTEM],"
    " published:SYSTEM"
)


def make_agent(spec: str, base: Path) -> Agent:
    """Return the agent *spec* stands for.

    :param base: the folder that relative paths in *spec* are relative to.
    :raises InputError: a malformed spec, or an agent that is not there.
    """
    kind, colon, rest = spec.partition(":")
    if spec == "reference":
        return ReferenceAgent(spec, base)
    if spec in CONTROLS:
        return ControlAgent(spec)
    if colon and rest.strip():
        if kind == "cmd":
            return CommandAgent(spec, base)
        if kind == "py":
            return PythonAgent(spec, base)
        if kind == "replay":
            return ReplayAgent(spec, base)
        if kind == "published":
            return PublishedAgent(spec)
    raise InputError(f"there is no agent {spec!r}: an agent is one of {FORMS}.")
