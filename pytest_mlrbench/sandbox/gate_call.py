"""One request to a provider as the gate sees it."""

from __future__ import annotations

import time
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
