"""The judge ``checklist``: deterministic, offline, by a rubric a program can check."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.base import Reviewable
from pytest_mlrbench.judges.checklist import CheckResult, run_checks, score
from pytest_mlrbench.judges.review import Answer, OverallScored, Scored
from pytest_mlrbench.run import digests
from pytest_mlrbench.suites.rubrics import Rubric, rubric
from pytest_mlrbench.suites.select import Case


class ChecklistJudge:
    """Scores by the share of checks that hold; its scores compare with no other rubric's."""

    spec = "checklist"

    def __init__(self, judge_id: str, rubrics: Path | None) -> None:
        self.id = judge_id
        self._rubric = rubric("checklist", rubrics)
        here = Path(__file__).parent
        self.digest = digests.of_files((path.name, path) for path in here.glob("check*.py"))

    def rubric(self, stage: str) -> Rubric:
        """One rubric for all stages; which dimensions it scores depends on the stage."""
        return self._rubric

    def prepare(self, agent: Agent, cases: Sequence[Case]) -> None:
        """The checks read files, so the agent must leave some."""
        if not agent.has_files:
            raise InputError(
                f"judge 'checklist' reads files, and agent {agent.spec!r} has none: use"
                " --mlr-judge=published."
            )

    async def review(self, work: Reviewable) -> Answer:
        """Run the checks; each dimension's justification names those that failed, and why."""
        # In a thread: a report may take long to read, and other cases share this loop.
        results = await asyncio.to_thread(run_checks, work.case.stage, work.workspace, self._rubric)
        every = [result for found in results.values() for result in found]
        return Answer(
            dimensions={
                name: Scored(score=_score(found), justification=_explain(found))
                for name, found in results.items()
            },
            overall=OverallScored(
                score=_score(every),
                justification=_explain(every),
                strengths=tuple(result.detail for result in every if result.passed),
                weaknesses=tuple(result.detail for result in every if not result.passed),
            ),
        )


def _score(results: Sequence[CheckResult]) -> int:
    return score(sum(result.passed for result in results), len(results))


def _explain(results: Sequence[CheckResult]) -> str:
    failed = [f"{result.name}: {result.detail}" for result in results if not result.passed]
    held = f"{len(results) - len(failed)} of {len(results)} checks hold"
    return f"{held}. {'; '.join(failed)}" if failed else f"{held}."
