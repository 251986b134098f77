"""One request to a provider as the gate sees it, and what it is allowed to be."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_mlrbench.models.config import Provider
from pytest_mlrbench.models.exchange import Usage
from pytest_mlrbench.sandbox.gate_usage import UsageReader


@dataclass
class Call:
    """One request and what became of it, as it is recorded.

    :param error: empty, or a short fixed word, a colon and a sentence.
    :param whole: whether all of the answer came.
    """

    started: float = field(default_factory=time.monotonic)
    provider: Provider | None = None
    model: str = ""
    status: int = 0
    sent: int = 0
    received: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    error: str = ""
    reader: UsageReader | None = None
    whole: bool = False
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a case may ask of providers.

    :param models: patterns of the models; null for all.
    :param deadline: Unix time in seconds.
    :param web_tools: whether providers may reach into the network in the agent's place.
    """

    providers: Sequence[Provider]
    models: Sequence[str] | None
    deadline: float
    web_tools: bool
