"""Thresholds: ``[stage:]NAME OP NUMBER``, the line a case must reach."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.evidence.base import LEVELS
from pytest_mlrbench.suites.rubrics import HIGHEST, LOWEST, Rubric, rubric
from pytest_mlrbench.suites.stages import STAGES

#: The acceptance line of the paper (arXiv 2505.19955).
DEFAULT = "overall>=6.0"
#: What is asserted besides where the sandbox records what ran.
RECORDED = "experiment:evidence>=executed"
#: The name whose values are levels of evidence.
EVIDENCE = "evidence"
#: Stages of which evidence is examined: those that report results.
EXAMINED = ("experiment", "paper", "end_to_end")
#: Those in which something was run that can be run again.
REPLAYED = ("experiment", "end_to_end")

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}
_GRAMMAR = re.compile(
    r"\s*(?:(?P<stage>\w+)\s*:)?\s*(?P<name>[a-z][a-z0-9_.]*)\s*"
    r"(?P<op>>=|<=|==|>|<)\s*(?P<value>\d+(?:\.\d+)?|[a-z]+)\s*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Threshold:
    """One condition on one number; *stage* is empty where it holds in every stage that has it.

    The number of ``evidence`` is that of a level.
    """

    stage: str
    name: str
    op: str
    value: float

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Parse one threshold.

        :raises InputError: not of the grammar, an unknown stage, or a value no score can have.
        """
        match = _GRAMMAR.fullmatch(text)
        if not match or not (match["value"][0].isdigit() or match["name"] == EVIDENCE):
            raise InputError(
                f"threshold {text!r} is not of the form [stage:]NAME OP NUMBER, e.g. {DEFAULT}"
                " or experiment:soundness>=5 (OP is one of >= > <= < ==)."
            )
        stage, name = match["stage"] or "", match["name"]
        if stage and stage not in STAGES:
            raise InputError(
                f"threshold {text!r}: there is no stage {stage!r}: stages are {', '.join(STAGES)}."
            )
        value = _level(text, match["value"]) if name == EVIDENCE else _score(text, match["value"])
        return cls(stage, name, match["op"], value)

    def __str__(self) -> str:
        return f"{self.stage}:{self.rule}" if self.stage else self.rule

    @property
    def rule(self) -> str:
        """The threshold without its stage."""
        value = LEVELS[int(self.value)] if self.name == EVIDENCE else repr(self.value)
        return f"{self.name}{self.op}{value}"

    def applies(self, stage: str, names: Sequence[str]) -> bool:
        """Whether the threshold is asserted in *stage*, whose rubric scores *names*."""
        if self.stage not in ("", stage):
            return False
        if self.name == EVIDENCE:
            return stage in EXAMINED
        return self.name == "overall" or self.name in names

    def met(self, score: float) -> bool:
        """Whether *score* satisfies the condition."""
        return _OPERATORS[self.op](score, self.value)


def _score(text: str, value: str) -> float:
    if not LOWEST <= float(value) <= HIGHEST:
        raise InputError(f"threshold {text!r}: scores go from {LOWEST} to {HIGHEST}.")
    return float(value)


def _level(text: str, value: str) -> float:
    levels = {name: number for number, name in enumerate(LEVELS)}
    known = levels | {str(number): number for number in levels.values()}
    if value not in known:
        names = ", ".join(LEVELS)
        raise InputError(f"threshold {text!r}: levels of evidence are {names} (0 to 4).")
    return float(known[value])


def check_names(
    thresholds: Sequence[Threshold], rubrics: Mapping[str, Rubric], selected: Sequence[str]
) -> None:
    """Make sure that every threshold can apply somewhere.

    :param rubrics: stage → its rubric, for all stages.
    :param selected: the stages of this run; an unqualified name must exist in one of them.
    :raises InputError: for the first that cannot.
    """
    for threshold in thresholds:
        stages = [threshold.stage] if threshold.stage else list(selected)
        if not any(threshold.applies(stage, rubrics[stage].names(stage)) for stage in stages):
            known = ["overall", *(name for stage in stages for name in rubrics[stage].names(stage))]
            known += [EVIDENCE] if set(stages) & set(EXAMINED) else []
            raise InputError(
                f"threshold {str(threshold)!r}: {threshold.name!r} is not scored in"
                f" {', '.join(stages)} by {_names(rubrics[stage] for stage in stages)};"
                f" scored there: {', '.join(dict.fromkeys(known))}"
                f"{_elsewhere(threshold.name, stages, rubrics)}."
            )


def _names(rubrics: Iterable[Rubric]) -> str:
    names = list(dict.fromkeys(rubric.name for rubric in rubrics))
    return f"the rubric{'s' * (len(names) > 1)} {', '.join(names)}"


def _elsewhere(name: str, stages: Sequence[str], rubrics: Mapping[str, Rubric]) -> str:
    """Say that another rubric has *name*, if one does: which one is used, the judge decides."""
    checklist = rubric("checklist")
    for stage in stages:
        if name in checklist.names(stage) and rubrics[stage].name != checklist.name:
            return f" ({name} belongs to the rubric of --mlr-judge=checklist)"
        if name in rubric(stage).names(stage) and rubrics[stage].name != stage:
            return f" ({name} belongs to the rubric {stage}, which the checklist does not use)"
    return ""
