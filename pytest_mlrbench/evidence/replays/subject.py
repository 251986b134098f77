"""What of a case is run again, and what is looked at afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pytest_mlrbench.evidence.base import Evidence, Rerun
from pytest_mlrbench.evidence.gathering import RESULTS, Gathered
from pytest_mlrbench.evidence.ledgers.declared import Declared, read_declared
from pytest_mlrbench.evidence.records import addressed
from pytest_mlrbench.evidence.records.data import read
from pytest_mlrbench.evidence.replays.declared import Declaration, read_declaration
from pytest_mlrbench.evidence.replays.numbers import Point, cover, look, points
from pytest_mlrbench.evidence.replays.tree import CleanTree
from pytest_mlrbench.evidence.replays.trial import Trial
from pytest_mlrbench.evidence.replays.verdict import verdict, weigh_again
from pytest_mlrbench.evidence.tracking import track

_MOST_BYTES = 16_000_000


@dataclass(frozen=True)
class Subject:
    """What is run again, and what is looked at afterwards.

    :param recorded: address → the number that stands there in the submission.
    :param is_covered: whether these are most of the numbers that are reported.
    :param said: what the report says of its data.
    """

    declared: Declaration
    points: Sequence[Point]
    recorded: dict[str, float]
    is_covered: bool
    tree: CleanTree
    said: Declared

    def trial(self, runs: Sequence[Rerun], left: Sequence[str] = ()) -> Trial:
        """Return what repetitions gave.

        :param left: what they read and nobody made wrong.
        """
        return Trial(
            declared=self.declared,
            points=self.points,
            recorded=self.recorded,
            runs=tuple(runs),
            left=left,
            is_covered=self.is_covered,
            is_made_up=self.said.is_made_up,
            has_examples=self.said.has_examples,
        )


def subject_of(folder: Path, before: Evidence) -> Subject | str | None:
    """Return what is to be run again of the case in *folder*.

    :returns: as text, why it cannot be; null if there is no reason to.
    """
    if before.level not in ("executed", "traced"):
        return None
    run = Gathered(folder / "submission", folder)
    if before.level == "executed" and not addressed.check(run.files, run.claims).held:
        return None
    declared = read_declaration(run.files)
    if isinstance(declared, str):
        return declared
    if run.view is None or not run.view.is_whole:
        return "nothing recorded who wrote its files"
    wanted = points(run, {*track(run).sources, *declared.outputs})
    if not wanted:
        return "no reported number leads to a file that a command wrote"
    there = look(run.files, wanted)
    recorded = {address: value for address, value in there.items() if value is not None}
    tree = CleanTree.of(run, {*(point.file for point in wanted), *declared.outputs})
    claims = run.reports[RESULTS].claims if RESULTS in run.reports else ()
    is_covered = cover(claims, recorded.values())
    return Subject(declared, wanted, recorded, is_covered, tree, read_declared(run.files))


def with_recorded(folder: Path, before: Evidence) -> Evidence:
    """Return the evidence of a case with what repetitions gave when it was measured.

    They are not made again, but weighed by the rules of today.
    """
    data = read(folder / "evidence.json", _MOST_BYTES)
    try:
        kept = Evidence.model_validate_json(data).replay if data else None
    except ValidationError:
        return before
    if kept is None or not kept.runs:
        return before
    subject = subject_of(folder, before)
    if not isinstance(subject, Subject):
        return before
    return weigh_again(before, *verdict(subject.trial(kept.runs, kept.left)))
