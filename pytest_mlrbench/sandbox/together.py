"""Whether what was asked for of the places of a run goes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.run.thresholds import REPLAYED
from pytest_mlrbench.sandbox.base import Limits

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.rooms import Rooms


def check_places(rooms: Rooms, agent: str) -> None:
    """Make sure that commands run where the agent can work and the options have an effect.

    :param agent: its spec, for messages.
    :raises InputError: they do not.
    """
    options, needs = rooms.options, rooms.needs
    if needs and needs.only and options.kind not in ("auto", needs.only[0]):
        raise InputError(
            f"agent {agent!r} does not run with --mlr-sandbox={options.kind}: {needs.only[1]}."
        )
    if needs and options.network == "none" and needs.network != "none":
        raise InputError(
            f"agent {agent!r} asks models over the network: --mlr-network=none leaves it none."
        )
    kept = [n for n in ("network", "allow_host", "data") if getattr(options, n)]
    kept += options.typed & {"image"}
    if rooms.stages and kept and not rooms.uses("docker"):
        raise InputError(
            f"{_as_typed(kept[0])} is for containers, and no stage of this run has one:"
            f" leave it out{_or(rooms, 'add --mlr-sandbox=docker')}."
        )


def check_replay(rooms: Rooms, agent: str) -> None:
    """Make sure that there are cases that can be run again: in containers, which record what ran.

    :param agent: its spec, for messages.
    :raises InputError: there are none.
    """
    wanted = [stage for stage in REPLAYED if stage in rooms.stages]
    if any(rooms.place(stage) == "docker" for stage in wanted):
        return
    if not rooms.needs:
        why = f"agent {agent!r} runs no commands in them"
    elif not wanted:
        why = "no stage of this run has experiments"
    else:
        why = "no stage of this run has its experiments in one"
    raise InputError(
        f"--mlr-replay runs experiments again in containers, and {why}: leave it out"
        f"{_or(rooms, 'add --mlr-sandbox=docker') if wanted else ''}."
    )


def check_money(rooms: Rooms, *, gated: bool) -> None:
    """Make sure that a maximum for what commands spend bounds something.

    :param gated: whether some of them may ask models.
    :raises InputError: it bounds nothing.
    """
    if rooms.stages and not gated and "agent_max_cost" in rooms.options.typed:
        raise InputError(
            f"{_as_typed('agent_max_cost')} is for commands that ask models, and no stage of"
            f" this run has one that may: leave it out{_or(rooms, _way_to_models(rooms))}."
        )


def check_limits(rooms: Rooms) -> None:
    """Make sure that local processes can be held to the limits that were set.

    :raises InputError: they cannot.
    """
    usual = Limits()
    for name in ("cpus", "shm", "tmp"):
        if not rooms.uses("docker") and getattr(rooms.limits, name) != getattr(usual, name):
            raise InputError(
                f"--mlr-limits {name}= is for containers, and no stage of this run has one:"
                " leave it out, or add --mlr-sandbox=docker."
            )


def _way_to_models(rooms: Rooms) -> str:
    """What would let commands ask models."""
    if not rooms.uses("docker"):
        return "add --mlr-sandbox=docker"
    # With `full` it is only the keys that they lack.
    is_shut = rooms.network == "none"
    return "add --mlr-network=models" if is_shut else "set OPENAI_API_KEY or another key"


def _or(rooms: Rooms, what: str) -> str:
    """The other thing to do, if the agent can do with it."""
    return "" if rooms.needs and rooms.needs.only else f", or {what}"


def _as_typed(name: str) -> str:
    return f"--mlr-{name.replace('_', '-')}"
