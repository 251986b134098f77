"""What a judge is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.judges.review import Answer
from pytest_mlrbench.suites.rubrics import Rubric
from pytest_mlrbench.suites.select import Case


@dataclass(frozen=True, slots=True)
class Reviewable:
    """A submission as a judge sees it."""

    case: Case
    workspace: Path
    #: Null for an agent that has no files.
    digest: str | None
    #: Name under which published reviews of the agent are filed, if it is a replayed one.
    system: str | None


class Judge(Protocol):
    """One scorer."""

    #: Slug ``[a-z0-9_-]+``; part of property names.
    id: str
    #: What the user wrote to get this judge.
    spec: str
    #: Digest of what its answers depend on beside rubric and submission.
    digest: str

    def rubric(self, stage: str) -> Rubric:
        """The rubric it scores *stage* by."""

    def prepare(self, agent: Agent, cases: Sequence[Case]) -> None:
        """Check, once per run and before the first case, that the judge can work at all.

        :raises InputError: it cannot.
        """

    async def review(self, work: Reviewable) -> Answer:
        """Score one submission.

        :raises SystemFault: no usable answer could be had.
        """
