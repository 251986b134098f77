"""From an agent spec the user wrote to the agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import InputError

if TYPE_CHECKING:
    from pytest_mlrbench.run.live import Live

FORMS = (
    "scaffold:PROVIDER/MODEL, claude-code[:MODEL], codex[:MODEL], gemini-cli[:MODEL], reference,"
    " null, parrot, fabricator, cmd:COMMAND, py:module:callable, replay:DIR[#SYSTEM],"
    " published:SYSTEM, fixture"
)


def make_agent(spec: str, base: Path, live: Live | None = None) -> Agent:
    """Return the agent *spec* stands for.

    :param base: the folder that relative paths in *spec* are relative to.
    :param live: gives the model of an agent that asks one.
    :raises InputError: a malformed spec, or an agent that is not there.
    """
    kind, _, rest = spec.partition(":")
    # Each kind is imported when it is used: every session pays for what is imported here.
    if spec in ("null", "parrot", "fabricator"):
        from pytest_mlrbench.agents.controls import ControlAgent

        return ControlAgent(spec)
    if spec == "reference":
        from pytest_mlrbench.agents.command import ReferenceAgent

        return ReferenceAgent(spec, base)
    if kind in ("claude-code", "codex", "gemini-cli"):
        from pytest_mlrbench.agents.coding import make_coding_agent

        return make_coding_agent(spec)
    if rest.strip() and kind == "scaffold" and live:
        return _scaffold(spec, base, live)
    if rest.strip() and kind in ("cmd", "py"):
        from pytest_mlrbench.agents.command import CommandAgent, PythonAgent

        return CommandAgent(spec, base) if kind == "cmd" else PythonAgent(spec, base)
    if rest.strip() and kind in ("replay", "published"):
        from pytest_mlrbench.agents.replay import PublishedAgent, ReplayAgent

        return ReplayAgent(spec, base) if kind == "replay" else PublishedAgent(spec)
    raise InputError(f"there is no agent {spec!r}: an agent is one of {FORMS}.")


def _scaffold(spec: str, base: Path, live: Live) -> Agent:
    from pytest_mlrbench.agents.scaffold import ScaffoldAgent, model_of

    coder = live.options.coder if live.runs_experiments else ""
    if not coder and "agent_max_cost" in live.options.sandbox.typed:
        raise InputError(
            f"--mlr-agent-max-cost is for commands that ask models, and agent {spec!r} runs none:"
            " use --mlr-max-cost, which bounds the whole run."
        )
    return ScaffoldAgent(
        spec,
        base,
        live.model(model_of(spec), images=live.shows_images),
        live.calls,
        search=live.options.search,
        coder=make_agent(coder, live.options.bases["coder"]) if coder else None,
        stops=live.options.evidence.stops,
    )
