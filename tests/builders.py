"""Small valid objects for tests: each builder takes only what a test wants to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from files import lay

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.panel import combine
from pytest_mlrbench.judges.review import Answer, OverallScored, Review, Scored
from pytest_mlrbench.run.folder import RunFolder, write_json
from pytest_mlrbench.run.record import RunRecord, Session, SuiteRecord
from pytest_mlrbench.run.result import CaseResult, FaultRecord, JudgeRecord
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.suites.choice import Choice
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.tasks import Suite, Task

__all__ = ["lay"]

NO_OUTPUT = FaultRecord(blame="agent", cause="no_output", message="the agent left no idea.md.")
NO_REVIEW = FaultRecord(blame="system", cause="no_review", message="judge anna: no review.")


@contextmanager
def one_sentence(*words: str) -> Iterator[None]:
    """The block must raise an InputError whose message is one line that holds all *words*."""
    with pytest.raises(InputError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    for word in words:
        assert word in message


# Suites


def make_suite(*ids: str, name: str = "small") -> Suite:
    """A suite that exists in memory only."""
    tasks = tuple(Task(task_id, task_id.title()) for task_id in ids)
    return Suite(name, name.title(), "", Path("nowhere"), tasks)


def write_suite(
    folder: Path, about: str = "name: small\n", tasks: str = "id,title\nalpha,Alpha\n"
) -> Path:
    """A suite's two files."""
    return lay(folder, {"suite.yaml": about, "tasks.csv": tasks})


def read_suite(folder: Path, *files: str) -> Suite:
    """Write a suite (see :func:`write_suite`) and load it."""
    return load_suite(f"path:{write_suite(folder, *files)}")


# Reviews


def make_answer(overall: int = 7, stage: str = "idea", **scores: int) -> Answer:
    """A complete answer; dimensions not in *scores* get the overall score."""
    return Answer(
        dimensions={
            name: Scored(score=scores.get(name, overall)) for name in rubric(stage).names(stage)
        },
        overall=OverallScored(score=overall),
    )


def make_review(
    overall: int = 7, stage: str = "idea", judge: str = "anna", **changes: Any
) -> Review:
    """A review of files with the digest ``files`` by the shipped rubric of *stage*."""
    values: dict[str, Any] = {
        "case": f"small/{stage}/alpha/r1",
        "judge": judge,
        "spec": f"stub:{judge}",
        "judge_digest": "judge",
        "rubric": stage,
        "rubric_digest": rubric(stage).digest,
        "submission_digest": "files",
        "answer": make_answer(overall, stage),
    }
    return Review(**(values | changes))


# Results


def make_result(
    task: str = "alpha",
    stage: str = "idea",
    *,
    repeat: int = 1,
    judges: Mapping[str, int] | None = None,
    fault: FaultRecord | None = None,
    thresholds: Iterable[str] = ("overall>=6.0",),
    **changes: Any,
) -> CaseResult:
    """A finished case with its verdict; *judges* maps judge → the score it gives to everything.

    With a *fault* there are no scores but those that are given.
    """
    given = judges or ({} if fault else {"anna": 7})
    panel = combine([make_review(n, stage, name) for name, n in given.items()]) if given else None
    names = rubric(stage).names(stage)
    values: dict[str, Any] = {
        "case": f"small/{stage}/{task}/r{repeat}",
        "suite": "small",
        "stage": stage,
        "task": task,
        "repeat": repeat,
        "suite_digest": "suite",
        "agent": "cmd:./agent.sh",
        "agent_digest": "agent",
        "submission_digest": None,
        "submission_stamp": None,
        "rubric": stage,
        "verdict": "not_measured",
        "fault": fault,
        "overall": panel.overall if panel else None,
        "scores": panel.scores if panel else {},
        "spread": panel.spread if panel else None,
        "judges": {
            name: JudgeRecord(spec=f"stub:{name}", overall=n, scores=dict.fromkeys(names, n))
            for name, n in given.items()
        },
        "seconds_agent": 2.0,
        "seconds_judge": 0.5 if panel else None,
        "artifacts": f"cases/{stage}/{task}/r{repeat}",
        "key": {"rubric": rubric(stage).digest},
    }
    result = CaseResult(**(values | changes))
    return result.judged_by([Threshold.parse(text) for text in thresholds], names)


# Runs


def make_run_record(run: str = "run", stages: tuple[str, ...] = ("idea",)) -> RunRecord:
    """What ``run.json`` holds."""
    return RunRecord(
        run=run,
        suite=SuiteRecord(name="small", digest="suite", tasks=3, benchmark=None),
        selection=Choice(),
        stages=stages,
        repeats=1,
        agent="cmd:./agent.sh",
        agent_version="",
        judges={"anna": "stub:anna"},
        rubrics={stage: rubric(stage).digest for stage in stages},
        thresholds=("overall>=6.0",),
        demo=False,
        versions={"pytest-mlrbench": "0", "python": "3"},
        sessions=(Session(started="2025-01-01T00:00:00+00:00", command=("pytest",)),),
    )


def make_run(out: Path, *results: CaseResult, not_run: Iterable[str] = ()) -> RunFolder:
    """A run folder whose newest session has selected *results* and, after them, *not_run*."""
    folder = RunFolder.create(out)
    write_json(folder.path / "run.json", make_run_record(folder.run_id))
    names = [*(result.case for result in results), *not_run]
    folder.select({name: node_id(name) for name in names})
    for result in results:
        folder.record(result)
    return RunFolder(folder.path)  # which knows nothing but what is on disk


def node_id(case: str) -> str:
    """The id of the test of a case."""
    _, stage, task, repeat = case.split("/")
    return f"benchmarks/test_mlr_{stage}.py::test_{stage}[{task}" + (
        "]" if repeat == "r1" else f"-{repeat}]"
    )
