"""Agents whose output exists already: ``published:SYSTEM`` and ``replay:DIR[#SYSTEM]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.errors import AgentFault, InputError, SystemFault
from pytest_mlrbench.evidence.base import Evidence, Replay
from pytest_mlrbench.layout import PublishedLayout
from pytest_mlrbench.published import Published
from pytest_mlrbench.resources import no_folder, user_path
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.submission import SubmissionRecord, can_be_judged, is_unchanged
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

#: Cause of a case that the replayed source does not have.
MISSING = "not_in_replay"
#: What lies beside a submission of ours and says how it came about.
RECORDS = ("ledger.jsonl", "agent.log", "coder.log", "transcript.jsonl")
#: What came of running it again, which is not done for a copy.
EVIDENCE = "evidence.json"


class PublishedAgent:
    """``published:SYSTEM``: a system whose scores are published; there are no files."""

    needs_inputs = False
    has_files = False
    waits = True

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.system = spec.removeprefix("published:")
        systems = Published.load().systems.values()
        self._found = [system for system in systems if self.system == system.name]
        if not self._found:
            known = ", ".join(system.name for system in systems)
            raise InputError(
                f"agent {spec!r}: there is no such published system; there are {known}."
            )

    def prepare(self, cases: Sequence[Case]) -> None:
        """Make sure that the system took part in every selected stage, with one of the tasks."""
        stages = list(dict.fromkeys(stage for system in self._found for stage in system.raw))
        for stage in dict.fromkeys(case.stage for case in cases):
            if stage not in stages:
                raise InputError(
                    f"agent {self.spec!r} has no published results in stage {stage!r};"
                    f" it has them in {', '.join(stages)}."
                )
        _need_one(self.spec, cases, [case for case in cases if self._has(case)])

    def _has(self, case: Case) -> bool:
        return bool(Published.load().scores(case.stage, self.system, case.task.id))

    def digest(self, case: Case) -> str | None:
        """The numbers themselves are digested with the judge."""
        return digests.of_json(self.system)

    async def run(self, case: Case, work: Assignment) -> None:
        """Nothing to run; a case outside the published ones is not measured."""
        if not self._has(case):
            raise SystemFault(MISSING, f"{self.spec} has no published result for {case.name}.")


class ReplayAgent:
    """``replay:DIR[#SYSTEM]``: stored output, of one of our runs or in the published layout."""

    needs_inputs = False
    has_files = True
    waits = True

    def __init__(self, spec: str, base: Path) -> None:
        self.spec = spec
        folder, _, system = spec.removeprefix("replay:").partition("#")
        self.folder = user_path(base, folder).resolve()
        self.system: str | None = system or None
        if not self.folder.is_dir():
            raise InputError(f"agent {spec!r}: {no_folder(self.folder)}.")
        self.run_folder = RunFolder(self.folder) if (self.folder / "run.json").is_file() else None
        if self.run_folder and system:
            raise InputError(f"agent {spec!r}: a run folder holds one agent; leave #{system} out.")
        self.layout = None if self.run_folder else PublishedLayout(self.folder)
        #: Who made what is stored.
        self.author = spec
        #: The thresholds of the run that is stored.
        self.rules: tuple[str, ...] = ()
        if self.run_folder:
            self.author, self.rules = self._said_of_run()
        if self.layout:
            if not self.layout.recognised:
                raise InputError(
                    f"agent {spec!r}: {self.folder} is neither a run folder nor a folder in the"
                    " published layout (ideas_and_proposals/, experiments/, end2end/)."
                )
            if not system:
                raise InputError(
                    f"agent {spec!r}: say which system: {spec}#SYSTEM, with SYSTEM one of"
                    f" {', '.join(self.layout.systems())}."
                )

    def _said_of_run(self) -> tuple[str, tuple[str, ...]]:
        from pytest_mlrbench.run.record import RunRecord

        record = read_model(self.folder / "run.json", RunRecord)
        if record is None:
            raise InputError(f"agent {self.spec!r}: this version cannot read the run's run.json.")
        return record.agent, record.thresholds

    def prepare(self, cases: Sequence[Case]) -> None:
        """Make sure that the folder has at least one of the cases."""
        found = [case for case in cases if self._files(case) or self._record(case)]
        _need_one(self.spec, cases, found)

    def _files(self, case: Case) -> Mapping[str, Path]:
        """Path in the workspace → stored file."""
        if self.layout:
            return self.layout.submission(self.system or "", case.stage, case.task.id)
        workspace = self._workspace(case)
        return dict(digests.shown(workspace)) if workspace else {}

    def _workspace(self, case: Case) -> Path | None:
        """Where a run of ours has what can be judged."""
        # Without a record the agent had not ended: what lies there is no submission.
        if (record := self._record(case)) is None:
            return None
        workspace = self._stored(case) / "submission"
        return workspace if can_be_judged(workspace, STAGES[case.stage], record.fault) else None

    def _stored(self, case: Case) -> Path:
        assert self.run_folder is not None
        return self.run_folder.case_folder(case.stage, case.task.id, case.repeat)

    def _record(self, case: Case) -> SubmissionRecord | None:
        if self.run_folder is None:
            return None
        return read_model(self._stored(case) / "submission.json", SubmissionRecord)

    def digest(self, case: Case) -> str | None:
        """Digest of the stored files of *case*, or of what went wrong."""
        record = self._record(case)
        fault = record.fault.model_dump() if record and record.fault else None
        workspace = self._workspace(case)
        links = folders.links(workspace) if workspace else {}
        content = [digests.of_files(self._files(case).items()), fault, *self._recorded(case)]
        return digests.of_json([*content, links] if links else content)

    def _recorded(self, case: Case) -> list[str]:
        """Digest of what was recorded of the run, if anything was: evidence depends on it."""
        if self.run_folder is None:
            return []
        found = [(n, path) for n in RECORDS if (path := self._stored(case) / n).is_file()]
        again = self._repetitions(case)
        return [
            *([digests.of_files(found)] if found else []),
            *([digests.of_json(again.model_dump(mode="json"))] if again else []),
        ]

    def _repetitions(self, case: Case) -> Replay | None:
        """What came of running the stored case again; null if it was not."""
        found = read_model(self._stored(case) / EVIDENCE, Evidence)
        return found.replay if found and found.replay and found.replay.runs else None

    async def run(self, case: Case, work: Assignment) -> None:
        """Lay the stored files into the workspace; a stored agent's fault happens again."""
        stored = record.fault if (record := self._record(case)) else None
        fault = AgentFault(stored.cause, stored.message) if stored else None
        try:
            self._lay(case, work.workspace)
        except SystemFault as error:
            raise fault or error from None
        if fault:
            raise fault

    def _lay(self, case: Case, workspace: Path) -> None:
        files, record = self._files(case), self._record(case)
        if not files:
            raise SystemFault(MISSING, f"{self.spec} has no finished output for {case.name}.")
        if record and not is_unchanged(
            self._stored(case) / "submission", record.digest, record.stamp
        ):
            raise SystemFault(MISSING, f"the output stored for {case.name} was changed since.")
        if not self.run_folder:
            _copy(files, workspace)
            return
        stored = self._stored(case)
        _copy(dict(digests.walk(stored / "submission")), workspace)
        folders.copy_links(stored / "submission", workspace)
        # Judges take the inputs from where no agent could rewrite them.
        _copy(dict(digests.walk(stored / "inputs")), workspace.with_name("inputs"))
        # What was recorded of the run says the same of its copy.
        names = [*RECORDS, *([EVIDENCE] if self._repetitions(case) else [])]
        records = {name: stored / name for name in names if (stored / name).is_file()}
        _copy(records, workspace.parent)


def _copy(files: Mapping[str, Path], folder: Path) -> None:
    for name, source in files.items():
        target = folder / name
        folders.make(target.parent)
        folders.copy(source, target)


def _need_one(spec: str, cases: Sequence[Case], found: Sequence[Case]) -> None:
    if cases and not found:
        some = ", ".join(case.name for case in cases[:3])
        more = f" and {len(cases) - 3} more" if len(cases) > 3 else ""
        raise InputError(f"agent {spec!r} has none of the selected cases ({some}{more}).")
