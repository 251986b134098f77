"""``run.json``: what a run was asked to do, by what, and with which versions."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

import pytest_mlrbench
from pytest_mlrbench.run.plan import Plan


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SuiteRecord(_Record):
    """The suite, and what part of it and of its benchmark was selected."""

    name: str
    digest: str
    tasks: int
    selected: int
    share: str
    benchmark: str | None
    benchmark_tasks: int | None


class Session(_Record):
    """One call of pytest on the run; a resumed run has several."""

    started: str
    command: tuple[str, ...]


class RunRecord(_Record):
    """The settings of a run; those of the newest session where it was resumed."""

    run: str
    suite: SuiteRecord
    stages: tuple[str, ...]
    repeats: int
    agent: str
    agent_version: str
    judges: dict[str, str]
    rubrics: dict[str, str]
    thresholds: tuple[str, ...]
    demo: bool
    versions: dict[str, str]
    sessions: tuple[Session, ...]

    @classmethod
    def of(cls, run_id: str, plan: Plan, earlier: RunRecord | None) -> RunRecord:
        """Describe *plan*; *earlier* is what the run folder said before, on resume."""
        benchmark, total = plan.suite.benchmark or (None, None)
        selected = len({case.task.id for case in plan.cases})
        session = Session(
            started=datetime.now(UTC).isoformat(timespec="seconds"), command=tuple(sys.argv)
        )
        return cls(
            run=run_id,
            suite=SuiteRecord(
                name=plan.suite.name,
                digest=plan.suite.digest,
                tasks=len(plan.suite.tasks),
                selected=selected,
                share=plan.share(selected),
                benchmark=benchmark,
                benchmark_tasks=total,
            ),
            stages=plan.stages,
            repeats=plan.options.repeats,
            agent=plan.options.agent,
            agent_version=plan.options.agent_version,
            judges={judge.id: judge.spec for judge in plan.judges},
            rubrics={stage: plan.rubrics[stage].digest for stage in plan.stages},
            thresholds=tuple(str(threshold) for threshold in plan.thresholds),
            demo=plan.demo,
            versions={
                "pytest-mlrbench": pytest_mlrbench.__version__,
                "python": platform.python_version(),
            },
            sessions=(*(earlier.sessions if earlier else ()), session),
        )
