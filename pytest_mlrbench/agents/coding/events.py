"""What a coding agent did, as one list whatever CLI it was: the lines of ``transcript.jsonl``.

It is the agent's own account: the ledger says what was really run and written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

#: Characters of an output, a text or a file that are kept.
LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Start:
    """The CLI was started; *version* is as it says, and null if it does not."""

    kind: ClassVar[str] = "start"
    cli: str
    version: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """The agent said something."""

    kind: ClassVar[str] = "message"
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command was given to the shell.

    :param exit_code: null where the CLI does not tell, or the command had not ended.
    :param output: what the agent was shown of it.
    """

    kind: ClassVar[str] = "command"
    command: str
    exit_code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A file was written by a tool of the CLI, and not by a command.

    :param path: relative to the workspace if it lies in it.
    :param text: what was put into it; null where the CLI does not tell.
    """

    kind: ClassVar[str] = "edit"
    path: str
    change: Literal["write", "change", "delete"]
    text: str | None


@dataclass(frozen=True, slots=True)
class Tool:
    """Another tool was used.

    :param given: what it was given, as JSON.
    """

    kind: ClassVar[str] = "tool"
    name: str
    given: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """The CLI itself reported an error, mostly of the server it asks."""

    kind: ClassVar[str] = "trouble"
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What the calls to one model used.

    :param model: empty where the CLI does not tell.
    :param calls: null where the CLI does not tell.
    :param input: tokens, *cached_input* included.
    :param output: tokens, *reasoning* included.
    :param cost_usd: as the CLI itself reckons; null if it does not.
    """

    kind: ClassVar[str] = "usage"
    model: str
    calls: int | None
    input: int
    output: int
    cached_input: int
    reasoning: int
    cost_usd: float | None = None


Event = Start | Message | Command | Edit | Tool | Trouble | Usage


def cut(text: str) -> str:
    """Return *text* with its middle left out if it is too long to be kept."""
    if len(text) <= LIMIT:
        return text
    half = LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def lines(events: Iterable[Event]) -> Iterator[str]:
    """Yield the events as lines of JSON, without their ends."""
    for event in events:
        yield json.dumps({"kind": event.kind, **asdict(event)}, ensure_ascii=False)
