"""A case in which an xdist worker died: recorded by the controller, since nobody else is left."""

from __future__ import annotations

from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.plan import Plan
from pytest_mlrbench.run.result import CaseResult, FaultRecord
from pytest_mlrbench.sandbox.local import reap


def crashed(folder: RunFolder, plan: Plan, name: str) -> CaseResult:
    """Return the result of case *name*, in which a worker died: its own, or that it has none."""
    case = next(case for case in plan.cases if case.name == name)
    path = folder.case_folder(case.stage, case.task.id, case.repeat)
    reap(path / "submission")
    if (finished := read_model(path / "result.json", CaseResult)) is not None:
        return finished
    result = CaseResult(
        case=name,
        suite=case.suite,
        stage=case.stage,
        task=case.task.id,
        repeat=case.repeat,
        suite_digest=plan.suite.digest,
        agent=plan.options.agent,
        agent_digest=None,
        rubric=plan.rubrics[case.stage].name,
        verdict="not_measured",
        fault=FaultRecord(
            blame="system",
            cause="worker_crash",
            message="the worker process died in this case.",
        ),
        artifacts=path.relative_to(folder.path).as_posix(),
        attempts=folder.attempts(path),
        submission_digest=None,
        submission_stamp=None,
        key={},
    )
    folder.record(result)
    return result
