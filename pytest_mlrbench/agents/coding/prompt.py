"""What a coding agent is told: a text for each stage, filled with what the place is like."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.agents.templates import Templates
from pytest_mlrbench.sandbox.base import DATA, Network

TEMPLATES = Templates(Path(__file__).with_name("prompts"))

_NETWORKS = {
    "none": "There is no network.",
    "models": "There is no network, but for the models that you and your programs ask at the"
    " addresses in the environment: nothing can be downloaded or installed from elsewhere.",
    "full": "The network can be used.",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an agent is told of the place it works in.

    :param deadline: Unix time in seconds.
    :param gpus: how many it has.
    :param data: names of the user's folders below ``/data``.
    :param hosts: other hosts that it reaches.
    """

    deadline: float
    gpus: int = 0
    network: Network = "models"
    data: Sequence[str] = ()
    hosts: Sequence[str] = ()


def prompt(stage: str, where: Surroundings) -> str:
    """Return what the agent is told in *stage*."""
    place = {
        "time": _time(where.deadline),
        "gpus": _gpus(where.gpus),
        "network": _network(where),
        "data": _data(where.data),
    }
    texts = {
        "place": TEMPLATES.fill("place", place),
        "rules": TEMPLATES.text("rules"),
        "report": TEMPLATES.text("report"),
    }
    return TEMPLATES.fill(stage, texts) + "\n"


def is_known(stage: str) -> bool:
    """Whether there is something to tell an agent in *stage*."""
    return (TEMPLATES.folder / f"{stage}.md").is_file()


def _time(deadline: float) -> str:
    minutes = max(0, round((deadline - time.time()) / 60))
    hours = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"about {hours}, until {time.strftime('%Y-%m-%d %H:%M', time.gmtime(deadline))} UTC."


def _gpus(number: int) -> str:
    if not number:
        return "There is no GPU: choose experiments that a processor can do."
    amount = "one GPU" if number == 1 else f"{number} GPUs"
    return f"You have {amount} to yourself (`nvidia-smi` shows more)."


def _network(where: Surroundings) -> str:
    words = _NETWORKS[where.network]
    if where.hosts and where.network != "full":
        words += f" These hosts can be reached besides: {', '.join(where.hosts)}."
    return words


def _data(names: Sequence[str]) -> str:
    if not names:
        return "No data were given beside what is in the workspace."
    folders = ", ".join(f"`{DATA}/{name}`" for name in names)
    return f"Data were given, readable only: {folders}."
