"""Whether something was executed at all, and by what that is known."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pytest_mlrbench.evidence.gathering import Gathered
from pytest_mlrbench.evidence.history.effects import Ran
from pytest_mlrbench.evidence.ledgers.agent import hands
from pytest_mlrbench.evidence.ledgers.programs import is_keeping, is_passing, is_shell
from pytest_mlrbench.evidence.ledgers.view import LedgerView, Process
from pytest_mlrbench.sandbox import ledger

#: Events of a ledger without a recorder, which has a handful of each command.
_EVENTS = 10_000


def executed(run: Gathered) -> str:
    """Return how it is known that a program of the agent's was run; empty if it is not."""
    if run.view is not None:
        return _recorded(run.view, reports=bool(run.claims))
    if run.story is not None:
        ran = (event for event in run.story.events if isinstance(event.effect, Ran))
        if any(event.ok and event.program is not None for event in ran):
            return "the transcript shows a program that ended well"
        return ""
    return _ended_here(run)


def _recorded(view: LedgerView, *, reports: bool) -> str:
    """By the ledger. Who reports no number may have had nothing but failures: that is a result."""
    own = hands(view)
    programs = [it for it in view.processes.values() if it.key not in own and _computes(view, it)]
    if any(process.code == 0 for process in programs):
        return "a program was recorded that ended well"
    if programs and not reports:
        return "programs were recorded, which failed, as the report says"
    return ""


def _computes(view: LedgerView, process: Process) -> bool:
    """Whether a process is a program of the agent's: neither a shell nor what only passes on."""
    program = process.programs[-1] if process.programs else None
    return program is not None and not (
        is_shell(program) or is_passing(program) or is_keeping(program)
    )


def _ended_here(run: Gathered) -> str:
    """By the end of a local process, of which nothing else is recorded."""
    path = run.beside / "ledger.jsonl" if run.beside else None
    last: dict[str, Any] = {}
    if path is not None and path.is_file():
        with suppress(OSError, ValueError, RecursionError):
            for number, event in enumerate(ledger.read(path)):
                last = event
                if number > _EVENTS:
                    break
    is_well = last.get("e") == "end" and last.get("reason") == "exit" and last.get("code") == 0
    return "a local process ended well, of which no more is recorded" if is_well else ""
