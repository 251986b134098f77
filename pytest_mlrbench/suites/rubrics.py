"""Rubrics: what a judge scores, read from YAML and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.values import Record

LOWEST, HIGHEST = 1, 10


def _covers_scale(bands: dict[str, str]) -> dict[str, str]:
    """Bands are written best first (``"9-10"``, ``"7-8"``, … or ``"10"``) and tile the scale."""
    covered: list[int] = []
    for band in bands:
        low, _, high = band.partition("-")
        if not (low.isdigit() and (high or low).isdigit()):
            raise ValueError(f"band {band!r} is neither a score nor a range like '7-8'")
        covered += range(int(high or low), int(low) - 1, -1)
    if covered != list(range(HIGHEST, LOWEST - 1, -1)):
        raise ValueError(f"bands must cover {HIGHEST} down to {LOWEST} once each, best first")
    return bands


def _text_keys(value: Any) -> Any:
    """YAML reads a band like ``10:`` as a number."""
    return {str(key): text for key, text in value.items()} if isinstance(value, dict) else value


def _known_stages(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in STAGES:
            raise ValueError(f"unknown stage {name!r}; stages are {', '.join(STAGES)}")
    return names


Bands = Annotated[dict[str, str], BeforeValidator(_text_keys), AfterValidator(_covers_scale)]
StageNames = Annotated[tuple[str, ...], AfterValidator(_known_stages)]


class Dimension(Record):
    """One thing that is scored 1..10, with an anchor text for each band of scores."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    question: str = Field(min_length=1)
    bands: Bands
    #: Stages in which the dimension is scored; empty means all stages of the rubric.
    stages: StageNames = ()
    #: For rubrics a program scores: check name → the sentence it checks.
    checks: dict[str, str] = Field(default_factory=dict)


class Overall(Record):
    """The overall score: a holistic judgement, not the mean of the dimensions."""

    question: str = Field(min_length=1)
    bands: Bands


class Rubric(Record):
    """One rubric file."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = Field(min_length=1)
    stages: StageNames = Field(min_length=1)
    instructions: str = Field(min_length=1)
    dimensions: tuple[Dimension, ...] = Field(min_length=1)
    overall: Overall
    #: Asks the judge how sure it is, 1..5.
    confidence: bool = False
    #: Asks the judge whether results were made up, with details.
    hallucination: bool = False

    @model_validator(mode="after")
    def _distinct_names(self) -> Rubric:
        names = [dimension.name for dimension in self.dimensions]
        clashes = {name for name in names if names.count(name) > 1 or name in RESERVED}
        if clashes:
            raise ValueError(
                f"dimension names used twice or reserved: {', '.join(sorted(clashes))}"
            )
        return self

    def dimensions_of(self, stage: str) -> tuple[Dimension, ...]:
        """Return the dimensions scored in *stage*, in the order of the file."""
        return tuple(d for d in self.dimensions if not d.stages or stage in d.stages)

    def names(self, stage: str) -> tuple[str, ...]:
        """Return the names of the dimensions scored in *stage*."""
        return tuple(dimension.name for dimension in self.dimensions_of(stage))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rubric's content (not of its layout), in hexadecimal."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


#: Names with a meaning of their own in thresholds and properties.
RESERVED = frozenset({"overall", "confidence", "evidence", "hallucination", "spec"})


def load_rubric(path: Path) -> Rubric:
    """Read one rubric file.

    :raises InputError: in one sentence: the file, the place in it, and what is wrong there.
    """
    try:
        document = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError:
        raise InputError(f"there is no rubric file {path}.") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"rubric {path} cannot be read: {reason}.") from None
    try:
        rubric = Rubric.model_validate(document)
    except ValidationError as error:
        raise InputError(f"rubric {path} is not usable: {_first_fault(error)}.") from None
    if rubric.name != path.stem:
        raise InputError(f"rubric {path} calls itself {rubric.name!r}: name it {path.stem!r}.")
    return rubric


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in fault["loc"]) or "the top level"
    more = error.error_count() - 1
    return f"{place}: {fault['msg']}" + (f" (and {more} more)" if more else "")


@cache
def rubric(name: str, folder: Path | None = None) -> Rubric:
    """Return the rubric *name*: the user's own from *folder* if it is there, else the shipped one.

    :raises InputError: the file is absent or unusable.
    """
    if folder is not None and (folder / f"{name}.yaml").exists():
        return load_rubric(folder / f"{name}.yaml")
    return load_rubric(shipped("rubrics") / f"{name}.yaml")


def stage_rubrics(folder: Path | None = None) -> Mapping[str, Rubric]:
    """Return stage → the rubric LLM judges and people score it by."""
    return {stage: rubric(stage, folder) for stage in STAGES}
