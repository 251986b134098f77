"""The judges' part of a case: every review is kept as it comes, and a panel is whole or none."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_mlrbench.errors import SystemFault, is_interrupt
from pytest_mlrbench.judges.base import Judge, Reviewable
from pytest_mlrbench.judges.kinship import kinship
from pytest_mlrbench.judges.review import (
    HALLUCINATIONS,
    UNUSABLE,
    Answer,
    Hallucination,
    JudgeFault,
    Review,
    UnusableReview,
)
from pytest_mlrbench.run.faults import fault_record, internal_fault
from pytest_mlrbench.run.folder import read_model, write_json
from pytest_mlrbench.run.result import FaultRecord, JudgeRecord
from pytest_mlrbench.spent import Spent

#: Seconds a judge may take for one review: a live one may ask twice, and wait long for each answer.
PATIENCE = 5400.0
#: Judge id → its review, or why there is none.
Reviews = Mapping[str, Review | SystemFault]


async def review_all(judges: Sequence[Judge], work: Reviewable, folder: Path) -> Reviews:
    """Have all *judges* score a submission, at once; reviews are kept in *folder*."""
    reviews = await asyncio.gather(*(_review(judge, work, folder) for judge in judges))
    return dict(zip((judge.id for judge in judges), reviews, strict=True))


async def _review(judge: Judge, work: Reviewable, folder: Path) -> Review | SystemFault:
    path = folder / f"{judge.id}.json"
    rubric = judge.rubric(work.case.stage)
    origin: dict[str, Any] = {
        "case": work.case.name,
        "judge": judge.id,
        "spec": judge.spec,
        "judge_digest": judge.digest,
        "rubric": rubric.name,
        "rubric_digest": rubric.digest,
        "submission_digest": work.digest,
    }
    kept = read_model(path, Review)
    if kept and kept.model_dump(include=set(origin)) == origin:
        return kept
    start = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            said = await judge.review(work)
        answer = Answer.model_validate(said.model_dump())
        given, wanted = set(answer.dimensions), set(rubric.names(work.case.stage))
        if given != wanted:
            odd = ", ".join(sorted(given ^ wanted))
            raise SystemFault(UNUSABLE, f"the answer does not fit its rubric in {odd}.")
        review = Review(**origin, answer=answer, seconds=time.monotonic() - start)
        write_json(path, review)
    except SystemFault as error:
        if isinstance(error, JudgeFault):
            _keep_unusable(folder / f"{judge.id}.unusable.json", origin, error)
        return error
    except TimeoutError:
        return SystemFault("timeout", f"no answer within {PATIENCE:.0f} s.")
    except BaseException as error:
        if is_interrupt(error):
            raise
        return internal_fault(f"judge {judge.id}", error)
    return review


def _keep_unusable(path: Path, origin: Mapping[str, Any], error: JudgeFault) -> None:
    """Keep what a model said though no review came of it: somebody will want to see why."""
    write_json(
        path,
        UnusableReview(
            **origin, cause=error.cause, message=error.message, said=error.said, spent=error.spent
        ),
    )


def complete(reviews: Reviews) -> list[Review]:
    """Return the usable reviews."""
    return [review for review in reviews.values() if isinstance(review, Review)]


def panel_fault(reviews: Reviews) -> FaultRecord | None:
    """A panel with a judge missing is not a smaller panel: the case is not measured."""
    faults = {name: review for name, review in reviews.items() if isinstance(review, SystemFault)}
    if not faults:
        return None
    told = (f"judge {name}: {fault.message.removesuffix('.')}" for name, fault in faults.items())
    return fault_record(SystemFault(next(iter(faults.values())).cause, f"{'; '.join(told)}."))


def judge_record(judge: Judge, review: Review | SystemFault, author: str) -> JudgeRecord:
    """Return what the case's result says of one judge of work by *author*."""
    related = kinship(author, judge.spec)
    if isinstance(review, SystemFault):
        return JudgeRecord(spec=judge.spec, kin=related, fault=fault_record(review))
    answer = review.answer
    return JudgeRecord(
        spec=judge.spec,
        kin=related,
        overall=answer.overall.score,
        scores={name: scored.score for name, scored in answer.dimensions.items()},
        confidence=answer.confidence,
        hallucination=answer.hallucination,
        hallucinations=count(answer.hallucinations),
    )


def spent(panels: Iterable[Reviews]) -> Spent | None:
    """What the models used that were asked for the reviews, the unusable ones included."""
    found = [
        review.answer.spent if isinstance(review, Review) else getattr(review, "spent", None)
        for reviews in panels
        for review in reviews.values()
    ]
    known = [part for part in found if part is not None]
    return Spent.total(known) if known else None


def count(found: Sequence[Hallucination] | None) -> dict[str, int] | None:
    """Kind → how many of it were found, 0 included; null where nobody looked."""
    if found is None:
        return None
    counted = Counter(one.kind for one in found)
    return {kind: counted[kind] for kind in HALLUCINATIONS}


def slowest(reviews: Reviews) -> float | None:
    """Judges work side by side, so the panel took as long as its slowest judge, in seconds."""
    return max((r.seconds for r in complete(reviews) if r.seconds is not None), default=None)
