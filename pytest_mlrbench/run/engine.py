"""One case from start to result: the agent, then the judges, each step kept as it ends."""

from __future__ import annotations

import asyncio
import shutil
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_mlrbench.agents.base import Agent, Assignment
from pytest_mlrbench.errors import AgentFault, Fault, SystemFault
from pytest_mlrbench.judges.base import Judge, Reviewable
from pytest_mlrbench.judges.panel import combine
from pytest_mlrbench.judges.review import Review
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.folder import RunFolder, read_model, write_json
from pytest_mlrbench.run.result import CaseResult, FaultRecord, JudgeRecord
from pytest_mlrbench.run.submission import SubmissionRecord, check_contract, digest_of
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.sandbox.local import reap
from pytest_mlrbench.suites.rubrics import Rubric
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite

#: Causes of results that say nothing about the case, only that it did not come to its end.
UNFINISHED = frozenset({"interrupted", "worker_crash"})


@dataclass
class Engine:
    """Measures cases of one run.

    :param timeout: seconds an agent may take; null for the stage's own limit.
    :param resuming: whether results that are on disk are used.
    :param rerun: under *resuming*, which of them are not: ``errors`` or ``failed``.
    """

    suite: Suite
    agent: Agent
    judges: Sequence[Judge]
    thresholds: Sequence[Threshold]
    folder: RunFolder
    agent_version: str = ""
    timeout: float | None = None
    resuming: bool = False
    rerun: str = ""
    #: Case name → why a recorded result was not reused.
    _stale: dict[str, str] = field(default_factory=dict)

    def recall(self, case: Case) -> CaseResult | None:
        """Return the result of *case* that is on disk and may stand, with its verdict of today.

        Where there is none, the case's folder is left in a state that :meth:`measure` goes on from.
        """
        if not self.resuming or (recorded := self._recorded(case, self._key(case))) is None:
            return None
        result = self._verdict(case, recorded)
        if result != recorded:
            self.folder.record(result)
        return result

    async def measure(self, case: Case) -> CaseResult:
        """Run the agent, have the judges score what it left, and record the result."""
        key = self._key(case)
        submission = await self._submission(case, key)
        result = await self._judge(case, key, submission)
        self.folder.record(result)
        return result

    def rubric(self, stage: str) -> Rubric:
        """The one rubric all judges of the run score *stage* by."""
        return self.judges[0].rubric(stage)

    def _case_folder(self, case: Case) -> Path:
        return self.folder.case_folder(case.stage, case.task.id, case.repeat)

    def _key(self, case: Case) -> dict[str, str | None]:
        stage = STAGES[case.stage]
        agent = self.agent.digest(case)
        return {
            "task": digests.of_json([case.name, case.task.title]),
            "inputs": self.suite.inputs_digest(case.task, stage) if self.agent.needs_inputs else "",
            "agent": agent and digests.of_json([self.agent.spec, agent, self.agent_version]),
            "rubric": self.rubric(case.stage).digest,
            "judges": digests.of_json(
                {judge.id: [judge.spec, judge.digest] for judge in self.judges}
            ),
        }

    # What is on disk already

    def _recorded(self, case: Case, key: Mapping[str, str | None]) -> CaseResult | None:
        folder = self._case_folder(case)
        if not folder.exists():
            return None
        result = read_model(folder / "result.json", CaseResult)
        if result and not (why := self._why_not(result, key)):
            return result
        # An agent that a killed session left behind must not write into what comes next.
        reap(folder / "submission")
        if result:
            self._stale[case.name] = why
        if self._keeps_submission(folder, result, key):
            (folder / "result.json").unlink(missing_ok=True)
        else:
            self.folder.supersede(folder)
        return None

    def _why_not(self, result: CaseResult, key: Mapping[str, str | None]) -> str:
        unfinished = result.fault is not None and result.fault.cause in UNFINISHED
        if unfinished or (self.rerun and result.verdict == "not_measured"):
            return "it was not measured"
        if self.rerun == "failed" and result.verdict == "fail":
            return "it failed"
        for name, digest in key.items():
            if digest is None:
                return f"the {name} has no digest, so it may have changed"
            if result.key.get(name) != digest:
                return f"the {name} changed"
        return ""

    def _keeps_submission(
        self, folder: Path, result: CaseResult | None, key: Mapping[str, str | None]
    ) -> bool:
        submission = read_model(folder / "submission.json", SubmissionRecord)
        if submission is None or (self.rerun == "failed" and result and result.verdict == "fail"):
            return False
        return submission.key == self._submission_key(key) and None not in submission.key.values()

    # The agent

    @staticmethod
    def _submission_key(key: Mapping[str, str | None]) -> dict[str, str | None]:
        return {name: key[name] for name in ("task", "inputs", "agent")}

    async def _submission(
        self, case: Case, key: Mapping[str, str | None]
    ) -> SubmissionRecord | SystemFault:
        folder = self._case_folder(case)
        if record := read_model(folder / "submission.json", SubmissionRecord):
            return record
        fault: Fault | None = None
        start = time.monotonic()
        try:
            await self._run_agent(case, folder)
        except AgentFault as error:
            fault = error
        except SystemFault as error:
            return error
        except Exception as error:
            return _internal("agent", error)
        seconds = time.monotonic() - start
        digest, files = digest_of(folder / "submission") if self.agent.has_files else (None, 0)
        record = SubmissionRecord(
            digest=digest,
            files=files,
            seconds=seconds,
            fault=_fault_record(fault),
            key=self._submission_key(key),
        )
        write_json(folder / "submission.json", record)
        return record

    async def _run_agent(self, case: Case, folder: Path) -> None:
        stage = STAGES[case.stage]
        workspace = folder / "submission"
        workspace.mkdir(parents=True)
        if self.agent.needs_inputs:
            for name, source in self.suite.inputs(case.task, stage).items():
                for target in (folder / "inputs" / name, workspace / name):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
        work = Assignment(
            stage=case.stage,
            task_id=case.task.id,
            repeat=case.repeat,
            workspace=workspace.resolve(),
            deadline=time.time() + (self.timeout or stage.timeout),
            log=folder / "agent.log",
        )
        await self.agent.run(case, work)
        if self.agent.has_files:
            check_contract(workspace, stage)

    # The judges

    async def _judge(
        self, case: Case, key: dict[str, str | None], submission: SubmissionRecord | SystemFault
    ) -> CaseResult:
        folder = self._case_folder(case)
        reviews: list[Review | SystemFault] = []
        if isinstance(submission, SystemFault):
            fault: FaultRecord | None = _fault_record(submission)
        elif (fault := submission.fault) is None:
            work = Reviewable(case, folder / "submission", submission.digest, self.agent.system)
            reviews = await asyncio.gather(
                *(self._review(judge, work, folder) for judge in self.judges)
            )
            fault = _panel_fault(
                dict(zip((judge.id for judge in self.judges), reviews, strict=True))
            )
        complete = [review for review in reviews if isinstance(review, Review)]
        panel = combine(complete) if complete and fault is None else None
        result = CaseResult(
            case=case.name,
            suite=case.suite,
            stage=case.stage,
            task=case.task.id,
            repeat=case.repeat,
            suite_digest=self.suite.digest,
            agent=self.agent.spec,
            agent_digest=key["agent"],
            rubric=self.rubric(case.stage).name,
            verdict="not_measured",  # until the thresholds are applied, just below
            fault=fault,
            overall=panel.overall if panel else None,
            scores=panel.scores if panel else {},
            spread=panel.spread if panel else None,
            judges={
                judge.id: _judge_record(judge, review)
                for judge, review in zip(self.judges, reviews, strict=False)
            },
            seconds_agent=None if isinstance(submission, SystemFault) else submission.seconds,
            seconds_judge=_longest(complete),
            artifacts=folder.relative_to(self.folder.path).as_posix(),
            attempts=self.folder.attempts(folder),
            rerun_because=self._stale.get(case.name),
            key=key,
        )
        return self._verdict(case, result)

    def _verdict(self, case: Case, result: CaseResult) -> CaseResult:
        return result.judged_by(self.thresholds, self.rubric(case.stage).names(case.stage))

    async def _review(self, judge: Judge, work: Reviewable, folder: Path) -> Review | SystemFault:
        path = folder / "reviews" / f"{judge.id}.json"
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
            answer = await judge.review(work)
        except SystemFault as error:
            return error
        except Exception as error:
            return _internal(f"judge {judge.id}", error)
        review = Review(**origin, answer=answer, seconds=time.monotonic() - start)
        write_json(path, review)
        return review


def _internal(who: str, error: Exception) -> SystemFault:
    """A fault nobody foresaw is a fault of the system, told with the place it happened."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return SystemFault(
        "internal",
        f"{who}: {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno}).",
    )


def _fault_record(fault: Fault | None) -> FaultRecord | None:
    if fault is None:
        return None
    # Reports cannot carry half a character, as in a file name that is not UTF-8.
    message = fault.message.encode("utf-8", "replace").decode()
    return FaultRecord(blame=fault.blame, cause=fault.cause, message=message)


def _panel_fault(reviews: Mapping[str, Review | SystemFault]) -> FaultRecord | None:
    """A panel with a judge missing is not a smaller panel: the case is not measured."""
    faults = {name: review for name, review in reviews.items() if isinstance(review, SystemFault)}
    if not faults:
        return None
    message = "; ".join(f"judge {name}: {fault.message}" for name, fault in faults.items())
    return FaultRecord(blame="system", cause=next(iter(faults.values())).cause, message=message)


def _judge_record(judge: Judge, review: Review | SystemFault) -> JudgeRecord:
    if isinstance(review, SystemFault):
        return JudgeRecord(spec=judge.spec, fault=_fault_record(review))
    answer = review.answer
    return JudgeRecord(
        spec=judge.spec,
        overall=answer.overall.score,
        scores={name: scored.score for name, scored in answer.dimensions.items()},
        confidence=answer.confidence,
        hallucination=answer.hallucination,
    )


def _longest(reviews: Sequence[Review]) -> float | None:
    """Judges work side by side, so the panel took as long as its slowest judge, in seconds."""
    return max((review.seconds for review in reviews if review.seconds is not None), default=None)
