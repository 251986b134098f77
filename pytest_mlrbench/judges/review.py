"""Reviews: one judge's answer to one submission, validated against the rubric."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.suites.rubrics import HIGHEST, LOWEST, Rubric
from pytest_mlrbench.values import Value

#: Cause of a fault that lies in the content of a review.
UNUSABLE = "review"


class Scored(Value):
    """A score 1..10 and why."""

    score: int = Field(ge=LOWEST, le=HIGHEST, strict=True)
    justification: str = ""


class OverallScored(Scored):
    """The overall score with what speaks for and against the work."""

    strengths: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()


class JudgeFault(SystemFault):
    """There is no usable review, though a model was asked; what it said and used is kept.

    :param said: the raw texts of its answers, in order.
    """

    def __init__(
        self, cause: str, message: str, *, said: tuple[str, ...] = (), spent: Spent | None = None
    ) -> None:
        super().__init__(cause, message)
        self.said = said
        self.spent = spent


class Hallucination(Value):
    """One thing in a work that is made up, as a judge sees it.

    :param kind: one of :data:`HALLUCINATIONS`.
    :param evidence: the words of the work it is about.
    """

    kind: str
    description: str
    evidence: str


#: The kinds that the paper's review of hallucinations asks for (arXiv 2505.19955).
HALLUCINATIONS = (
    "nonexistent_citation",
    "hallucinated_methodology",
    "mathematical_error",
    "faked_results",
)


class Answer(Value):
    """What a judge said: complete and in range, whatever its spelling was."""

    dimensions: dict[str, Scored]
    overall: OverallScored
    confidence: int | None = None
    hallucination: bool | None = None
    hallucination_details: str = ""
    #: Keys of the raw answer that the rubric does not know; they are not used.
    ignored: tuple[str, ...] = ()
    #: Null where it was not asked for.
    hallucinations: tuple[Hallucination, ...] | None = None
    #: What the judge was not shown, and parameters that could not be sent.
    notices: tuple[str, ...] = ()
    #: Null for a judge that asks no model.
    spent: Spent | None = None


class Origin(Value):
    """Who looked at what, by which rubric."""

    case: str
    judge: str
    spec: str
    judge_digest: str
    rubric: str
    rubric_digest: str
    #: Digest of the submission that was reviewed; null where no files exist (published results).
    submission_digest: str | None


class Review(Origin):
    """An answer with its origin: the content of ``reviews/<judge>.json``."""

    answer: Answer
    seconds: float | None = None


class UnusableReview(Origin):
    """What a judge said though it gave no review: the content of ``reviews/<judge>.unusable.json``.

    :param said: the raw texts of its answers, in order.
    """

    cause: str
    message: str
    said: tuple[str, ...]
    spent: Spent | None


def read_json(path: Path) -> Any:
    """Read one strict JSON document.

    :raises SystemFault: unreadable, not UTF-8, not JSON, NaN or infinity in it, a key there twice.
    """
    try:
        return decoder(strict=True).decode(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SystemFault(UNUSABLE, f"review {path} is not usable: {error}.") from None


def decoder(*, strict: bool) -> json.JSONDecoder:
    """Return a reader of JSON that refuses NaN, infinity and a key that is there twice.

    :param strict: whether line breaks must be escaped in texts.
    """
    return json.JSONDecoder(
        strict=strict, parse_constant=_refuse_constant, object_pairs_hook=_refuse_twice
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
        raise ValueError(f"key {twice!r} is there twice")
    return found


def snake(name: str) -> str:
    """``OverallAssessment`` → ``overall_assessment``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def parse_answer(raw: Any, rubric: Rubric, stage: str) -> Answer:
    """Turn a judge's JSON object into an :class:`Answer`.

    Accepts our own spelling and the published one (``OverallAssessment`` or ``Overall``,
    a bare ``Confidence``); keys the rubric does not know are kept by name and not used.

    :raises SystemFault: a score that is missing or is not a whole number in range.
    """
    if not isinstance(raw, dict):
        raise SystemFault(UNUSABLE, f"a review must be a JSON object, not {type(raw).__name__}.")
    given = {snake(key): value for key, value in raw.items()}
    if len(given) != len(raw):
        twice = next(key for key, n in Counter(map(snake, raw)).items() if n > 1)
        raise SystemFault(UNUSABLE, f"{twice} is there twice, in different spellings.")
    if "overall" not in given and "overall_assessment" in given:
        given["overall"] = given.pop("overall_assessment")
    known = {*rubric.names(stage), "overall"}
    known |= {name for name in ("confidence", "hallucination") if getattr(rubric, name)}
    overall = _part(given, "overall")
    claims = _part(given, "hallucination") if rubric.hallucination else {}
    if rubric.hallucination and not isinstance(claims.get("has_hallucination"), bool):
        raise SystemFault(UNUSABLE, "hallucination.has_hallucination must be true or false.")
    return Answer(
        dimensions={
            name: Scored(
                score=_score(name, _part(given, name).get("score")),
                justification=_text(given[name].get("justification")),
            )
            for name in rubric.names(stage)
        },
        overall=OverallScored(
            score=_score("overall", overall.get("score")),
            justification=_text(overall.get("justification")),
            strengths=_texts(overall.get("strengths")),
            weaknesses=_texts(overall.get("weaknesses")),
        ),
        confidence=_score("confidence", given.get("confidence"), 5) if rubric.confidence else None,
        hallucination=claims.get("has_hallucination"),
        hallucination_details=_text(claims.get("details")),
        ignored=tuple(sorted(set(given) - known)),
    )


def _part(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = given.get(name)
    if not isinstance(part, dict):
        state = "is missing" if name not in given else f"must be an object, not {part!r}"
        raise SystemFault(UNUSABLE, f"{name} {state}.")
    return part


def _score(name: str, value: object, highest: int = HIGHEST) -> int:
    # bool is an int in Python, and 8.0 is not what was asked for: both hide a careless judge.
    if type(value) is not int or not LOWEST <= value <= highest:
        raise SystemFault(
            UNUSABLE, f"{name} must be a whole number from {LOWEST} to {highest}, not {value!r}."
        )
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
