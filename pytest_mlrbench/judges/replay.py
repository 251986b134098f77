"""Judges whose answers exist already: ``published`` and ``replay:DIR``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.judges.base import Judge, Reviewable
from pytest_mlrbench.judges.review import (
    UNUSABLE,
    Answer,
    OverallScored,
    Review,
    Scored,
    parse_answer,
    read_json,
)
from pytest_mlrbench.layout import PublishedLayout
from pytest_mlrbench.published import Published, PublishedJudge
from pytest_mlrbench.resources import no_folder, user_path
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.folder import CHECKPOINTS, RunFolder, read_model
from pytest_mlrbench.suites.rubrics import Rubric, rubric
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

#: Cause of a case nobody has reviewed in the replayed source.
MISSING = "no_review"


class _StoredJudge:
    """What the judges with stored answers share: they score by the rubric of the stage."""

    def __init__(self, judge_id: str, spec: str, digest: str, rubrics: Path | None) -> None:
        self.id = judge_id
        self.spec = spec
        self.digest = digest
        self._rubrics = rubrics

    def rubric(self, stage: str) -> Rubric:
        """The stage's own rubric."""
        return rubric(stage, self._rubrics)

    def _need_system(self, agent: Agent) -> None:
        if agent.system is None:
            raise InputError(
                f"judge {self.spec!r} has reviews of published systems only, and agent"
                f" {agent.spec!r} is none: use published:SYSTEM or replay:DIR#SYSTEM."
            )


class PublishedScores(_StoredJudge):
    """One of the two published judges: its scores, without its words."""

    of_parts = False

    def __init__(self, judge: PublishedJudge, judge_id: str, rubrics: Path | None) -> None:
        data = Published.load()
        files = digests.of_files((path.name, path) for path in data.folder.glob("*.csv"))
        super().__init__(judge_id, f"published:{judge.id}", files, rubrics)
        self._data = data
        self._judge = judge.id

    def prepare(self, agent: Agent, cases: Sequence[Case]) -> None:
        """Published scores exist for published systems only, and by the stage's own rubric."""
        self._need_system(agent)
        for stage in dict.fromkeys(case.stage for case in cases):
            if self.rubric(stage).digest != rubric(stage).digest:
                raise InputError(
                    f"judge 'published' scored {stage} by the shipped rubric: leave it out of"
                    " --mlr-rubrics."
                )

    async def review(self, work: Reviewable) -> Answer:
        """Look the scores up."""
        case = work.case
        reviews = self._data.scores(case.stage, work.system or "", case.task.id)
        if self._judge not in reviews:
            raise SystemFault(
                MISSING, f"no published review of {work.system} by {self._judge} for {case.name}."
            )
        _, scores = reviews[self._judge]
        return Answer(
            dimensions={
                name: Scored(score=scores[name])
                for name in self.rubric(case.stage).names(case.stage)
            },
            overall=OverallScored(score=scores["overall"]),
            confidence=scores.get("confidence"),
        )


class PublishedReviews(_StoredJudge):
    """One judge's review files in a folder of the published layout."""

    of_parts = False

    def __init__(
        self,
        layout: PublishedLayout,
        names: dict[str, list[str]],
        judge_id: str,
        spec: str,
        rubrics: Path | None,
    ) -> None:
        """*names* maps stage → the names the judge's reviews are stored under, which vary."""
        super().__init__(judge_id, spec, digests.of_json(names), rubrics)
        self._layout = layout
        self._names = names

    def prepare(self, agent: Agent, cases: Sequence[Case]) -> None:
        """Make sure that at least one of the cases is reviewed."""
        self._need_system(agent)
        if cases and not any(self._file(case, agent.system) for case in cases):
            raise InputError(
                f"judge {self.spec!r} has no review by {self.id} of {agent.system}"
                " for any selected case."
            )

    def _file(self, case: Case, system: str | None) -> Path | None:
        for name in self._names.get(case.stage, ()):
            path = self._layout.review(name, system or "", case.stage, case.task.id)
            if path is not None:
                return path
        return None

    async def review(self, work: Reviewable) -> Answer:
        """Read the review of the agent's system."""
        path = self._file(work.case, work.system)
        if path is None:
            raise SystemFault(MISSING, f"no review of {work.system} for {work.case.name}.")
        return _parse(path, self.rubric(work.case.stage), work.case.stage)


class RunReviews(_StoredJudge):
    """One judge's reviews in a run folder of ours."""

    def __init__(
        self, folder: RunFolder, judge_id: str, stored: str, spec: str, rubrics: Path | None
    ) -> None:
        super().__init__(judge_id, spec, digests.of_json([str(folder.path), stored]), rubrics)
        self._folder = folder
        self._stored = stored
        self._by = {stage: self._stored_rubric(stage) for stage in STAGES}

    def _stored_rubric(self, stage: str) -> str:
        """The name of the rubric the stored reviews score *stage* by: the checklist has its own."""
        for place in (f"{stage}/*/*", f"*/*/*/{CHECKPOINTS}/{stage}"):
            for path in self._folder.path.glob(f"cases/{place}/reviews/{self._stored}.json"):
                if review := read_model(path, Review):
                    return review.rubric
        return stage

    def rubric(self, stage: str) -> Rubric:
        """The rubric of the stored reviews."""
        return rubric(self._by[stage], self._rubrics)

    def prepare(self, agent: Agent, cases: Sequence[Case]) -> None:
        """Make sure that at least one of the cases is reviewed."""
        if cases and not any(self._file(case).is_file() for case in cases):
            raise InputError(
                f"judge {self.spec!r} has no review by {self._stored} of a selected case."
            )

    def _file(self, case: Case) -> Path:
        folder = self._folder.case_folder(case.chain or case.stage, case.task.id, case.repeat)
        if case.chain:
            folder = folder / CHECKPOINTS / case.stage
        return folder / "reviews" / f"{self._stored}.json"

    async def review(self, work: Reviewable) -> Answer:
        """Read the review, if it is one of this very submission by this very rubric."""
        path = self._file(work.case)
        if not path.is_file():
            raise SystemFault(MISSING, f"no review by {self._stored} for {work.case.name}.")
        if (review := read_model(path, Review)) is None:
            raise SystemFault(UNUSABLE, f"review {path} is not one this version has written.")
        for what, theirs, ours in (
            ("submission", review.submission_digest, work.digest),
            ("rubric", review.rubric_digest, self.rubric(work.case.stage).digest),
        ):
            # Two published systems have no digest each: that makes them no one submission.
            if theirs is None or theirs != ours:
                raise SystemFault(UNUSABLE, f"review {path} is of another {what}.")
        return review.answer


def _parse(path: Path, by: Rubric, stage: str) -> Answer:
    raw = read_json(path)
    try:
        return parse_answer(raw, by, stage)
    except SystemFault as fault:
        raise SystemFault(fault.cause, f"review {path} is not usable: {fault.message}") from None


def published_judges(name: str, rubrics: Path | None) -> list[Judge]:
    """Return both published judges; *name* is put in front of their ids if it is given."""
    prefix = f"{name}-" if name else ""
    return [
        PublishedScores(judge, prefix + judge.id, rubrics)
        for judge in Published.load().judges.values()
    ]


def replayed_judges(
    spec: str, name: str, base: Path, stages: Sequence[str], rubrics: Path | None
) -> list[Judge]:
    """Return a judge for each one whose reviews lie in the folder of *spec*.

    :raises InputError: no folder, or no reviews of *stages* in it.
    """
    folder = user_path(base, spec.removeprefix("replay:")).resolve()
    if not folder.is_dir():
        raise InputError(f"judge {spec!r}: {no_folder(folder)}.")
    if (folder / "run.json").is_file():
        stored = sorted({path.stem for path in folder.glob("cases/*/*/*/reviews/*.json")})
        judges: list[Judge] = [
            RunReviews(RunFolder(folder), _judge_id(name, one, len(stored)), one, spec, rubrics)
            for one in stored
        ]
    else:
        layout = PublishedLayout(folder)
        names: dict[str, dict[str, list[str]]] = {}
        for stage in stages:
            for raw in layout.judges(stage):
                names.setdefault(_known_id(raw, stage), {}).setdefault(stage, []).append(raw)
        judges = [
            PublishedReviews(layout, names[one], _judge_id(name, one, len(names)), spec, rubrics)
            for one in sorted(names)
        ]
    if not judges:
        raise InputError(
            f"judge {spec!r}: there are no reviews of {', '.join(stages)} in {folder}."
        )
    return judges


def _judge_id(name: str, stored: str, many: int) -> str:
    if not name:
        return stored
    return name if many == 1 else f"{name}-{stored}"


def _known_id(raw: str, stage: str) -> str:
    """One judge keeps one id, though its stored name changes between stages."""
    for judge in Published.load().judges.values():
        if raw in judge.raw.get(stage, ()):
            return judge.id
    return re.sub(r"[^a-z0-9_-]+", "-", raw.lower()).strip("-")
