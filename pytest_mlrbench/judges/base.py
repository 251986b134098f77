"""What a judge is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import InputError
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
    #: What the judges of one submission may leave for each other.
    shared: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)


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


def as_judges(given: object) -> Sequence[Judge]:
    """Return what a user's ``mlr_judges`` fixture gave as judges.

    :raises InputError: it is no list of judges.
    """
    wanted = ("id", "spec", "digest", "rubric", "prepare", "review")
    for judge in given if isinstance(given, Sequence) and given else [given]:
        if missing := [name for name in wanted if not hasattr(judge, name)]:
            raise InputError(
                f"the fixture mlr_judges gave {judge!r}, which has no {', '.join(missing)}:"
                " give a list of judges, see pytest_mlrbench.judges.base.Judge."
            )
    names = [judge.id for judge in given] if isinstance(given, Sequence) else [given.id]  # type: ignore[attr-defined]
    for name in names:
        if names.count(name) > 1 or not re.fullmatch(r"[a-z0-9_-]+", name):
            raise InputError(
                f"the fixture mlr_judges gave a judge with the id {name!r}: ids are small letters,"
                " digits, '_' or '-', and there must not be two of one."
            )
    judges: Sequence[Judge] = given if isinstance(given, Sequence) else [given]  # type: ignore[list-item]
    return judges
