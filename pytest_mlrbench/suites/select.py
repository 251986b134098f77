"""Cases: what they are, and from stages and tasks to the list of them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite, Task

#: Beyond it, it is a slip: the list of cases would fill the memory.
MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class Case:
    """One (task, stage, repeat): exactly one pytest item. Repeats count from 1.

    Or, within one: a stage that it went through, and that is looked at by itself.
    """

    suite: str
    stage: str
    task: Task
    repeat: int = 1
    #: The stage of the case that this is a checkpoint of; empty for a case.
    chain: str = ""

    @property
    def name(self) -> str:
        """``suite/stage/task/rN``: the identity of the case in every record and report."""
        name = f"{self.suite}/{self.chain or self.stage}/{self.task.id}/r{self.repeat}"
        return f"{name}#{self.stage}" if self.chain else name

    @property
    def test_id(self) -> str:
        """What stands in the brackets of the test's id."""
        return self.task.id if self.repeat == 1 else f"{self.task.id}-r{self.repeat}"


def parse_stages(text: str) -> tuple[str, ...]:
    """Parse ``one``, ``several,by,comma`` or ``all`` into stages in the order of research.

    :raises InputError: for a name that is no stage.
    """
    names = {part.strip() for part in text.split(",") if part.strip()}
    if "all" in names:
        names = set(STAGES) | (names - {"all"})
    for name in sorted(names - set(STAGES)):
        close = difflib.get_close_matches(name, STAGES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(
            f"there is no stage {name!r}: stages are {', '.join(STAGES)}, or all.{hint}"
        )
    if not names:
        raise InputError(f"--mlr-stage names no stage: stages are {', '.join(STAGES)}, or all.")
    return tuple(stage for stage in STAGES if stage in names)


def make_cases(
    suite: Suite, stages: Sequence[str], tasks: Sequence[Task], repeats: int = 1
) -> tuple[Case, ...]:
    """Return the cases, stage by stage, the repeats of a task beside each other."""
    if not 1 <= repeats <= MOST_REPEATS:
        bound = "at least 1" if repeats < 1 else f"at most {MOST_REPEATS}"
        raise InputError(f"--mlr-repeats must be {bound}, not {repeats}.")
    return tuple(
        Case(suite.name, stage, task, repeat)
        for stage in stages
        for task in tasks
        for repeat in range(1, repeats + 1)
    )
