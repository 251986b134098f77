"""Who is to blame: every error of the project is one of these three."""

from __future__ import annotations

import asyncio
from typing import Literal

Blame = Literal["agent", "system"]


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence saying what to do instead."""


class Fault(Exception):
    """Something went wrong in one case.

    :param cause: a short fixed word for counting, e.g. ``timeout``.
    :param message: a sentence for a person.
    """

    blame: Blame

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message

    def __reduce__(self) -> tuple[type[Fault], tuple[str, str]]:
        return type(self), (self.cause, self.message)


def describe(error: BaseException) -> str:
    """``ValueError: what it says``, also for an exception that cannot be printed."""
    try:
        words = str(error)
    except Exception:
        words = "(its words cannot be printed)"
    return f"{type(error).__name__}: {words}"


def is_interrupt(error: BaseException) -> bool:
    """Whether *error* ends the session or the task it is in, rather than being somebody's fault.

    SystemExit and pytest's own skip and exit are not among them: whoever raises one in an agent or
    a judge must not get past the verdict with it.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


class AgentFault(Fault):
    """The agent's own fault: the case fails."""

    blame: Blame = "agent"


class SystemFault(Fault):
    """Not the agent's fault: the case is *not measured*."""

    blame: Blame = "system"
