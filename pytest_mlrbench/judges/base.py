"""What a judge is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.evidence.base import Evidence
from pytest_mlrbench.judges.review import Answer
from pytest_mlrbench.suites.rubrics import Rubric
from pytest_mlrbench.suites.select import Case

_GAVE = "the fixture mlr_judges gave"
_SEE = "see pytest_mlrbench.judges.base.Judge"
_TEXTS = ("id", "spec", "digest")
_METHODS = ("rubric", "prepare", "review")


@dataclass(frozen=True, slots=True)
class Reviewable:
    """A submission as a judge sees it."""

    case: Case
    workspace: Path
    #: Null for an agent that has no files.
    digest: str | None
    #: Name under which published reviews of the agent are filed, if it is a replayed one.
    system: str | None
    #: What was found out about its results; null where it was not examined.
    evidence: Evidence | None = None
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
    if not isinstance(given, list | tuple):
        form = "[MyJudge()]" if _fault(given) else f"[{given!r}]"
        raise InputError(f"{_GAVE} {given!r}, which is no list: give a list of judges, as {form}.")
    if not given:
        raise InputError(f"{_GAVE} an empty list: give at least one judge, {_SEE}.")
    for judge in given:
        if fault := _fault(judge):
            raise InputError(f"{_GAVE} {judge!r}, {fault}.")
    names = [judge.id for judge in given]
    for name in names:
        if names.count(name) > 1 or not re.fullmatch(r"[a-z0-9_-]+", name):
            raise InputError(
                f"{_GAVE} a judge with the id {name!r}: ids are small letters,"
                " digits, '_' or '-', and there must not be two of one."
            )
    return given


def _fault(judge: object) -> str:
    """What keeps an object from being a judge: the end of a sentence, empty if nothing does."""
    if missing := [name for name in (*_TEXTS, *_METHODS) if not hasattr(judge, name)]:
        return f"which has no {', '.join(missing)}: give a list of judges, {_SEE}"
    if isinstance(judge, type):
        return f"which is a class: give an object of it, {judge.__name__}()"
    for name in _TEXTS:
        if not isinstance(value := getattr(judge, name), str):
            return f"whose {name} is {value!r} and no text: {_SEE}"
    for name in _METHODS:
        if not callable(getattr(judge, name)):
            return f"whose {name} is no method: {_SEE}"
    return ""
