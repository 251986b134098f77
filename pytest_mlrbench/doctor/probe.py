"""One look at one thing: whatever goes wrong in it, it ends as a finding and in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from pytest_mlrbench.errors import InputError, describe

State = Literal["ok", "missing", "broken"]

#: Seconds after which a look that has no shorter limit of its own is given up.
PATIENCE = 15.0
#: Characters of a detail that are shown; what a tool or a server says may be of any length.
_LONGEST = 300

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing.

    *enables* is one sentence: what can be done with it, or what to do to get it. Without a *needed*
    one the embedded default cannot run.
    """

    area: str
    name: str
    state: State
    detail: str
    enables: str
    needed: bool


class Seen(NamedTuple):
    """What a look saw, with the *advice* that depends on it, if any does."""

    state: State
    detail: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """How to look at one thing.

    :param enables: what can be done with it.
    :param remedy: how to get it.
    """

    area: str
    name: str
    look: Callable[[], Seen]
    enables: str = ""
    remedy: str = ""
    needed: bool = False

    def find(self) -> Finding:
        """Look; an error, also one nobody has thought of, makes the thing *broken*."""
        try:
            seen = within(PATIENCE, self.look)
        except TimeoutError as error:
            seen = Seen("broken", str(error) or "looking at it took too long")
        except Exception as error:
            seen = Seen("broken", str(error) if isinstance(error, InputError) else describe(error))
        return Finding(
            self.area,
            self.name,
            seen.state,
            one_line(seen.detail),
            one_line(seen.advice or (self.enables if seen.state == "ok" else self.remedy)),
            self.needed,
        )


def within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """Return what *ask* returns.

    It runs in a thread of its own, which is left behind if it hangs: a name server, a network drive
    and the driver of a GPU can each keep a call for good, whatever time limit it is given.

    :raises TimeoutError: it has not returned within *seconds*.
    """
    answer: Future[_Answer] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no answer within {seconds:g} s") from None


def one_line(text: str) -> str:
    """Return *text* as one line that is safe to print, cut where it is too long."""
    safe = "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)
    words = " ".join(safe.split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."
