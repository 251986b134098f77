"""Runs the command that a submission declares again: once as it was, once with another seed, and
with inputs that were made wrong.

Each time it begins with the inputs and the code alone, in a fresh container without a network, and
has a ledger and a log of its own in the case's folder, below ``replays``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.errors import AgentFault, Fault, InputError, is_interrupt
from pytest_mlrbench.evidence.base import Evidence, Replay
from pytest_mlrbench.evidence.replays.subject import subject_of
from pytest_mlrbench.evidence.replays.verdict import undeclared, verdict, weigh_again
from pytest_mlrbench.run.faults import internal_fault, plain
from pytest_mlrbench.run.repetitions import FOLDER, Repetitions
from pytest_mlrbench.sandbox.rooms import Rooms
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

#: Seconds that a repetition may take at least, and how many times as long as the agent took.
_LEAST, _TIMES = 60.0, 2.0


@dataclass(frozen=True)
class Replayer:
    """Runs cases of one run again.

    :param run: id of the run.
    :param timeout: seconds an agent may take; null for the stage's own limit.
    """

    rooms: Rooms
    run: str
    timeout: float | None = None

    async def replay(self, case: Case, folder: Path, took: float, before: Evidence) -> Evidence:
        """Run the case in *folder* again, if its results may rest on what it did.

        :param took: seconds that the agent took.
        :returns: the evidence with what came of it.
        """
        try:
            folders.remove(folder / FOLDER)
            subject = await asyncio.to_thread(subject_of, folder, before)
            if subject is None:
                return before
            if isinstance(subject, str):
                return weigh_again(before, _not_run(subject), [undeclared(subject)])
            limit = self.timeout or STAGES[case.stage].timeout
            seconds = min(max(_LEAST, _TIMES * took), limit)
            once = Repetitions(self.rooms, self.run, case, folder, subject, seconds)
            trial = await once.all()
            return weigh_again(before, *verdict(trial))
        except (Fault, InputError) as fault:
            is_open = not isinstance(fault, AgentFault)
            return weigh_again(before, _not_run(str(fault), is_open=is_open), [])
        except BaseException as error:
            if is_interrupt(error):
                raise
            unforeseen = internal_fault("replay", error)
            return weigh_again(before, _not_run(unforeseen.message, is_open=True), [])


def _not_run(why: str, *, is_open: bool = False) -> Replay:
    return Replay(because=f"it was not run again: {plain(why).rstrip('.')}", is_open=is_open)
