"""What an agent is, and what it is given."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_mlrbench.suites.select import Case

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.room import Room


@dataclass(frozen=True, slots=True)
class Assignment:
    """One case as an agent sees it: inputs lie in the workspace, outputs must end up there."""

    stage: str
    task_id: str
    repeat: int
    #: Absolute path.
    workspace: Path
    #: Unix time in seconds at which the agent is stopped.
    deadline: float
    #: File for what the agent prints.
    log: Path
    #: Where commands are run; null for agents that run none.
    room: Room | None = None

    @property
    def seconds_left(self) -> float:
        """Time until the deadline, in seconds, not below 0."""
        return max(0.0, self.deadline - time.time())

    @property
    def environment(self) -> dict[str, str]:
        """The variables a command agent is given."""
        return {
            "MLR_STAGE": self.stage,
            "MLR_TASK_ID": self.task_id,
            "MLR_REPEAT": str(self.repeat),
            "MLR_WORKSPACE": str(self.workspace),
            "MLR_DEADLINE": f"{self.deadline:.0f}",
        }


class Agent(Protocol):
    """Whatever answers a case."""

    #: What the user wrote to get this agent; recorded with every result.
    spec: str
    #: Whether the agent reads its workspace, so that the suite must have the stage's inputs.
    needs_inputs: bool
    #: Whether it leaves files to judge; published results are numbers only.
    has_files: bool

    @property
    def system(self) -> str | None:
        """Name under which published reviews of the agent are filed, for replayed agents only."""

    def prepare(self, cases: Sequence[Case]) -> None:
        """Check, once per run and before the first case, that the agent can work at all.

        :raises InputError: it cannot.
        """

    def digest(self, case: Case) -> str | None:
        """Digest of the agent's content for *case*; null if unknown, which is never reused."""

    async def run(self, case: Case, work: Assignment) -> None:
        """Answer one case.

        :raises AgentFault: the agent crashed or did not end in time.
        :raises SystemFault: the agent could not be run, through no fault of its own.
        """
