"""``run.json``: what a run was asked to do, by what, and with which versions."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from pydantic import Field

import pytest_mlrbench
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.kinship import Kinship
from pytest_mlrbench.models.settings import command
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.plan import Plan
from pytest_mlrbench.suites.choice import Choice
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.values import Record


class SuiteRecord(Record):
    """The suite, and the benchmark it is a part of, if it is."""

    name: str
    digest: str
    #: Number of tasks of the suite.
    tasks: int
    #: Name and number of tasks of the benchmark.
    benchmark: tuple[str, int] | None
    #: What gets it again, if that is not the name.
    spec: str = ""


class Session(Record):
    """One call of pytest on the run; a resumed run has several."""

    started: str
    command: tuple[str, ...]


class RunRecord(Record):
    """The settings of a run; those of the newest session where it was resumed."""

    run: str
    suite: SuiteRecord
    #: How tasks were chosen from the suite.
    selection: Choice
    stages: tuple[str, ...]
    repeats: int
    agent: str
    agent_version: str
    judges: dict[str, str]
    #: Judge → how its model is related to the agent's: ``model`` or ``family``.
    kin: dict[str, Kinship] = Field(default_factory=dict)
    #: Who runs the experiments of a scaffold agent, and where it looks for literature.
    coder: str = ""
    search: str = ""
    #: Model → its settings, without keys and values of headers; empty where none is asked.
    models: dict[str, dict[str, str]] = Field(default_factory=dict)
    #: Whether they were answered from a recording, so that nothing was spent.
    replayed: bool = False
    #: What containers of agents are given; empty where there are none.
    containers: dict[str, str] = Field(default_factory=dict)
    #: What is made of evidence: ``checkpoints``, ``stops``, ``is_shown``.
    evidence: dict[str, bool] = Field(default_factory=dict)
    rubrics: dict[str, str]
    thresholds: tuple[str, ...]
    demo: bool
    versions: dict[str, str]
    sessions: tuple[Session, ...]

    def asks_as(self, earlier: RunRecord | None) -> bool:
        """Whether the same models are asked in the same way as in an earlier session."""
        return earlier is not None and (self.agent, self.judges, self.models) == (
            earlier.agent,
            earlier.judges,
            earlier.models,
        )

    @classmethod
    def of(cls, run_id: str, plan: Plan, earlier: RunRecord | None) -> RunRecord:
        """Describe *plan*; *earlier* is what the run folder said before, on resume."""
        options = plan.options
        stages = {*plan.stages, *(earlier.stages if earlier else ())}
        rubrics = {stage: plan.rubrics[stage].digest for stage in plan.stages}
        session = Session(
            started=datetime.now(UTC).isoformat(timespec="milliseconds"),
            command=command(sys.argv),
        )
        return cls(
            run=run_id,
            suite=SuiteRecord(
                name=plan.suite.name,
                digest=plan.suite.digest,
                tasks=len(plan.suite.tasks),
                benchmark=plan.suite.benchmark,
                # A path is to lead there from any folder.
                spec=f"path:{plan.suite.folder.resolve()}" if ":" in plan.suite.spec else "",
            ),
            selection=options.choice,
            stages=tuple(stage for stage in STAGES if stage in stages),
            repeats=max(options.repeats, earlier.repeats if earlier else 1),
            agent=options.agent,
            agent_version=options.agent_version,
            judges=_judges(plan),
            kin=dict(plan.kin),
            coder=options.coder,
            search=options.search,
            models=plan.live.settings(),
            replayed=plan.live.replays,
            containers=plan.rooms.settings(),
            evidence=asdict(options.evidence),
            rubrics=(earlier.rubrics if earlier else {}) | rubrics,
            thresholds=tuple(str(threshold) for threshold in plan.thresholds),
            demo=plan.demo,
            versions={
                "pytest-mlrbench": pytest_mlrbench.__version__,
                "python": platform.python_version(),
                **plan.live.versions(),
            },
            sessions=(*(earlier.sessions if earlier else ()), session),
        )


def earlier_record(folder: RunFolder, plan: Plan) -> RunRecord:
    """Return what the run in *folder*, which *plan* goes on with, was asked to do.

    :raises InputError: nobody knows, or it is something that *plan* is not.
    """
    earlier, options = read_model(folder.path / "run.json", RunRecord), plan.options
    if earlier is None:
        raise InputError(
            f"run {folder.run_id} was not written by this version: leave out --mlr-resume."
        )
    if earlier.suite.name != plan.suite.name:
        raise InputError(
            f"run {earlier.run} is of suite {earlier.suite.name!r}, not {plan.suite.name!r}:"
            " resume it with the same suite, or leave out --mlr-resume."
        )
    if earlier.replayed != plan.live.replays:
        raise InputError(
            f"run {earlier.run} {'was' if earlier.replayed else 'was not'} answered from a"
            " recording, and a run is either as a whole: leave out --mlr-resume."
        )
    # Whoever names others wants them; the default is what stands there where they are forgotten.
    for option, now, then in (
        ("agent", options.agent, earlier.agent),
        ("judge", _panel(_judges(plan)), _panel(earlier.judges)),
    ):
        if option in options.unsaid and now != then:
            raise InputError(
                f"run {earlier.run} has {option} {then!r}, and this session names none, so that it"
                f" would have {now!r}: say which with --mlr-{option}."
            )
    return earlier


def _judges(plan: Plan) -> dict[str, str]:
    return {judge.id: judge.spec for judge in plan.judges}


def _panel(judges: dict[str, str]) -> str:
    said = (spec if id == spec else f"{id}={spec}" for id, spec in judges.items())
    return ", ".join(said) or "fixture"
