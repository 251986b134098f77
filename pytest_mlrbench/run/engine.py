"""One case from start to result: the agent, then the judges, each step kept as it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.evidence.options import EvidenceOptions
from pytest_mlrbench.judges.base import Judge
from pytest_mlrbench.judges.kinship import author_of
from pytest_mlrbench.run import checkpoints, digests
from pytest_mlrbench.run.answering import answer, lay, spent_by_agent
from pytest_mlrbench.run.assessing import Assessment, Assessor
from pytest_mlrbench.run.examining import is_examined, rules
from pytest_mlrbench.run.faults import fault_record
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.judging import judge_record, slowest
from pytest_mlrbench.run.result import CaseResult, EvidenceRecord
from pytest_mlrbench.run.submission import SubmissionRecord, is_unchanged
from pytest_mlrbench.run.thresholds import REPLAYED, Threshold
from pytest_mlrbench.sandbox.local import reap
from pytest_mlrbench.sandbox.rooms import Rooms
from pytest_mlrbench.suites.rubrics import Rubric
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Input, Suite

if TYPE_CHECKING:
    from pytest_mlrbench.run.replaying import Replayer

#: Causes of results that say nothing about the case, only that it did not come to its end.
UNFINISHED = frozenset({"interrupted", "worker_crash", "budget", "not_started"})


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
    #: Says why no further case may be started; null while one may.
    stopped: Callable[[], SystemFault | None] = lambda: None
    #: Where commands of the agent run; null for an agent that runs none.
    rooms: Rooms | None = None
    #: What is made of evidence.
    evidence: EvidenceOptions = field(default_factory=EvidenceOptions)
    #: Case name → why a recorded result was not reused.
    _stale: dict[str, str] = field(default_factory=dict)

    def look_back(self, cases: Iterable[Case]) -> None:
        """Read what stands on disk of *cases* at once, which takes half as long as in between."""
        for case in cases:
            recorded = self._read(case)
            if recorded and not self._why_not(case, recorded, self._key(case)):
                self._accept(case, recorded)

    def recall(self, case: Case) -> CaseResult | None:
        """Return the result of *case* that is on disk and may stand, with its verdict of today.

        Where there is none, the case's folder is left in a state that :meth:`measure` goes on from.
        """
        # A plugin that runs a test again does not roll the dice again.
        if (done := self.folder.known(case.name)) is not None:
            return done
        if not self.resuming or not (folder := self._case_folder(case)).exists():
            return None
        key = self._key(case)
        recorded = self._read(case)
        if recorded is None:
            if (folder / "result.json").exists():
                self._stale[case.name] = "its record cannot be read"
        elif why := self._why_not(case, recorded, key):
            self._stale[case.name] = why
        else:
            return self._accept(case, recorded)
        self._clear(case, recorded, key)
        return None

    async def measure(self, case: Case) -> CaseResult:
        """Run the agent, have the judges score what it left, and record the result."""
        try:
            key = self._key(case)
            submission = self.stopped() or await self._submission(case, key)
        except InputError as error:  # the engine was there when the run began
            key = dict.fromkeys(("task", "inputs", "agent", "rubric", "judges"))
            submission = SystemFault("engine", str(error))
        result = self._verdict(case, await self._judged(case, key, submission))
        self.folder.record(result)
        return result

    def set_aside(self, case: Case) -> None:
        """Make room for *case* to be begun again after its measuring was cancelled."""
        folder = self._case_folder(case)
        if folder.exists():
            reap(folder / "submission")
            self.folder.supersede(folder, keeping="steps")

    def rubric(self, stage: str) -> Rubric:
        """The one rubric all judges of the run score *stage* by."""
        return self.judges[0].rubric(stage)

    def _case_folder(self, case: Case) -> Path:
        return self.folder.case_folder(case.stage, case.task.id, case.repeat)

    def _key(self, case: Case) -> dict[str, str | None]:
        stage = STAGES[case.stage]
        # A version the user gives stands for the agent's content: they vouch for it.
        agent = self.agent_version or self.agent.digest(case)
        return {
            "task": digests.of_json([case.name, case.task.title]),
            "inputs": self.suite.inputs_digest(case.task, stage) if self.agent.needs_inputs else "",
            "agent": agent and digests.of_json([self.agent.spec, agent, *self._image(case)]),
            "rubric": self.rubric(case.stage).digest,
            "judges": self._panel,
            **self._examining(case),
        }

    def _examining(self, case: Case) -> dict[str, str]:
        """Digest of how evidence is examined, and of what is made of it."""
        if not is_examined(self.agent, case.stage):
            return {}
        chained = [asdict(self.evidence)] if case.stage == "end_to_end" else []
        again = ["replayed"] * (self.evidence.replays and case.stage in REPLAYED)
        return {"evidence": digests.of_json([rules(), self.evidence.asks, *again, *chained])}

    def _image(self, case: Case) -> list[str]:
        """Digest of the image that commands run in, if they run in one."""
        digest = self.rooms.digest(case.stage) if self.rooms else ""
        return [digest] if digest else []

    @cached_property
    def _panel(self) -> str:
        return digests.of_json({judge.id: [judge.spec, judge.digest] for judge in self.judges})

    @cached_property
    def _replayer(self) -> Replayer | None:
        """What runs cases again, where that is asked for."""
        if not self.evidence.replays or self.rooms is None:
            return None
        from pytest_mlrbench.run.replaying import Replayer

        return Replayer(self.rooms, self.folder.run_id, self.timeout)

    # What is on disk already

    def _read(self, case: Case) -> CaseResult | None:
        return read_model(self._case_folder(case) / "result.json", CaseResult)

    def _accept(self, case: Case, recorded: CaseResult) -> CaseResult:
        result = self._verdict(case, recorded)
        if result.suite_digest != self.suite.digest:  # the case is the same in the suite of today
            result = result.model_copy(update={"suite_digest": self.suite.digest})
        self.folder.reuse(result, changed=result is not recorded)
        return result

    def _why_not(self, case: Case, result: CaseResult, key: Mapping[str, str | None]) -> str:
        """Why a recorded result may not stand; empty if it may."""
        parts = [part.fault for part in result.checkpoints.values()]
        unfinished = any(fault and fault.cause in UNFINISHED for fault in (result.fault, *parts))
        unscored = any(parts) or any(judge.fault for judge in result.judges.values())
        if unfinished or (self.rerun and (unscored or result.verdict == "not_measured")):
            return "it was not measured"
        if self.rerun == "failed" and result.verdict == "fail":
            return "it failed"
        for name, digest in key.items():
            if digest is None:
                return f"the {name} has no digest, so it may have changed"
            if result.key.get(name) != digest:
                return f"the {name} changed"
        workspace = self._case_folder(case) / "submission"
        if not is_unchanged(workspace, result.submission_digest, result.submission_stamp):
            return "the submission changed"
        return ""

    def _clear(self, case: Case, result: CaseResult | None, key: Mapping[str, str | None]) -> None:
        """Make room for a new result, and for a new submission where the old one is not kept."""
        folder = self._case_folder(case)
        workspace = folder / "submission"
        # An agent that a killed session left behind must not write into what comes next.
        reap(workspace)
        if self._keeps(workspace, result, key):
            (folder / "result.json").unlink(missing_ok=True)
        else:
            # Steps of an agent that did not come to its end are gone on from; where a case has
            # failed, whoever runs it again wants another answer.
            unmeasured = result is None or result.verdict == "not_measured"
            self.folder.supersede(folder, keeping="steps" if unmeasured else "")

    def _keeps(
        self, workspace: Path, result: CaseResult | None, key: Mapping[str, str | None]
    ) -> bool:
        """Whether what the agent left may stand, and only its judging is to be done again."""
        stored = read_model(workspace.with_name("submission.json"), SubmissionRecord)
        if stored is None or (self.rerun == "failed" and result and result.verdict == "fail"):
            return False
        known = stored.key == self._submission_key(key) and None not in stored.key.values()
        return known and is_unchanged(workspace, stored.digest, stored.stamp)

    @staticmethod
    def _submission_key(key: Mapping[str, str | None]) -> dict[str, str | None]:
        return {name: key[name] for name in ("task", "inputs", "agent")}

    # The steps

    async def _submission(
        self, case: Case, key: Mapping[str, str | None]
    ) -> SubmissionRecord | SystemFault:
        folder = self._case_folder(case)
        if self.resuming and (kept := read_model(folder / "submission.json", SubmissionRecord)):
            return kept
        inputs: Mapping[str, Input] = {}
        if self.agent.needs_inputs:
            if missing := self.suite.missing_inputs(case.task, STAGES[case.stage]):
                return SystemFault("no_inputs", f"there is no {', '.join(missing)} to start from.")
            inputs = self.suite.inputs(case.task, STAGES[case.stage])
        elif self.agent.has_files:
            # Stored work comes without the task it is about, which judges read.
            lay(self.suite.inputs(case.task, STAGES["idea"]), folder / "inputs")
        run = self.folder.run_id
        try:
            async with self.rooms.open(run, case, folder) if self.rooms else nullcontext() as room:
                return await answer(
                    self.agent, case, inputs, folder, self.timeout, self._submission_key(key), room
                )
        except SystemFault as fault:  # of the place itself
            return fault

    async def _judged(
        self, case: Case, key: dict[str, str | None], submission: SubmissionRecord | SystemFault
    ) -> CaseResult:
        folder = self._case_folder(case)
        author = author_of(self.agent)
        left: SubmissionRecord | None = None
        if isinstance(submission, SystemFault):
            found, used = Assessment(fault_record(submission)), spent_by_agent(self.agent, case)
        else:
            left, used = submission, submission.spent
            assessor = Assessor(self.agent, self.judges, self.evidence, self._replayer)
            found = await assessor.assess(case, submission, folder)
        reviews, panel = found.reviews, found.panel
        return CaseResult(
            case=case.name,
            suite=case.suite,
            stage=case.stage,
            task=case.task.id,
            repeat=case.repeat,
            suite_digest=self.suite.digest,
            agent=self.agent.spec,
            agent_digest=key["agent"],
            rubric=self.rubric(case.stage).name,
            verdict="not_measured",  # until the thresholds are applied
            fault=found.fault,
            overall=panel.overall if panel else None,
            scores=panel.scores if panel else {},
            spread=panel.spread if panel else None,
            judges={
                j.id: judge_record(j, reviews[j.id], author) for j in self.judges if j.id in reviews
            },
            evidence=EvidenceRecord.of(found.evidence) if found.evidence else None,
            checkpoints={
                stage: checkpoints.record(self.rubric(stage).name, part)
                for stage, part in found.parts.items()
            },
            reached=found.reached,
            stopped_by=found.stopped_by,
            seconds_agent=left.seconds if left else None,
            seconds_judge=slowest(reviews),
            spent_agent=used,
            spent_judge=found.spent,
            sandbox=left.sandbox if left else None,
            gpus=left.gpus if left else (),
            author=None if author == self.agent.spec else author,
            artifacts=folder.relative_to(self.folder.path).as_posix(),
            attempts=self.folder.attempts(folder),
            rerun_because=self._stale.get(case.name),
            submission_digest=left.digest if left else None,
            submission_stamp=left.stamp if left else None,
            key=key,
        )

    def _verdict(self, case: Case, result: CaseResult) -> CaseResult:
        return result.judged_by(self.thresholds, self.rubric(case.stage).names(case.stage))
