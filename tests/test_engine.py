"""One case on an event loop: what runs at once, and what a cancellation leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from builders import make_answer

from pytest_mlrbench.agents.base import Agent, Assignment
from pytest_mlrbench.agents.command import CommandAgent
from pytest_mlrbench.agents.function import FunctionAgent
from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.judges.base import Reviewable
from pytest_mlrbench.judges.review import Answer
from pytest_mlrbench.run.engine import Engine
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.sandbox.local import MARK
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.rubrics import Rubric, rubric
from pytest_mlrbench.suites.select import Case, make_cases

SUITE = load_suite("mini")
CASES = make_cases(SUITE, ["idea"], SUITE.tasks)


async def writes(work: Assignment) -> None:
    (work.workspace / "idea.md").write_text("# An idea\n")


class Judge:
    """Waits, then gives one score to everything."""

    spec = "stub"
    digest = "stub"

    def __init__(self, name: str, gives: int | Exception, seconds: float = 0.0) -> None:
        self.id = name
        self.gives = gives
        self.seconds = seconds

    def rubric(self, stage: str) -> Rubric:
        return rubric(stage)

    def prepare(self, agent: Agent, cases: Sequence[Case]) -> None:
        pass

    async def review(self, work: Reviewable) -> Answer:
        await asyncio.sleep(self.seconds)
        if isinstance(self.gives, Exception):
            raise self.gives
        return make_answer(self.gives, work.case.stage)


def engine(out: Path, *judges: Judge, agent: Agent | None = None) -> Engine:
    return Engine(
        suite=SUITE,
        agent=agent or FunctionAgent(writes),
        judges=judges or (Judge("anna", 7),),
        thresholds=[Threshold.parse("overall>=6.0")],
        folder=RunFolder.create(out),
        timeout=30,
    )


@pytest.mark.asyncio
async def test_the_judges_of_a_case_work_at_once(tmp_path: Path) -> None:
    start = time.monotonic()
    result = await engine(tmp_path, *(Judge(name, 8, 0.3) for name in "abcd")).measure(CASES[0])
    assert time.monotonic() - start < 0.9
    assert list(result.judges) == ["a", "b", "c", "d"]
    assert (result.verdict, result.overall, result.spread) == ("pass", 8.0, 0.0)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "cause", "words"),
    [
        (SystemFault("review", "no JSON in it."), "review", "judge bert: no JSON in it."),
        (KeyError("overall"), "internal", "judge bert: KeyError: 'overall' (test_engine.py:"),
    ],
)
async def test_a_panel_with_a_judge_missing_is_not_a_smaller_panel(
    tmp_path: Path, fault: Exception, cause: str, words: str
) -> None:
    one = engine(tmp_path, Judge("anna", 9), Judge("bert", fault))
    result = await one.measure(CASES[0])
    assert result.verdict == "not_measured"
    assert result.overall is None
    assert result.fault is not None
    assert (result.fault.blame, result.fault.cause) == ("system", cause)
    assert words in result.fault.message
    # What was measured stays on disk, and is no score of the case.
    assert result.judges["anna"].overall == 9
    assert (one.folder.path / result.artifacts / "reviews" / "anna.json").is_file()


@pytest.mark.asyncio
async def test_cases_may_be_measured_at_once(tmp_path: Path) -> None:
    one = engine(tmp_path, Judge("anna", 7, 0.2))
    start = time.monotonic()
    results = await asyncio.gather(*(one.measure(case) for case in CASES))
    assert time.monotonic() - start < 1
    assert {result.case for result in results} == {case.name for case in CASES}
    assert len(list(one.folder.journal())) == len(CASES)


@pytest.mark.asyncio
async def test_a_cancelled_case_leaves_no_process_and_no_result(tmp_path: Path) -> None:
    agent = CommandAgent("cmd:sh -c 'echo started > began; sleep 600'", tmp_path)
    one = engine(tmp_path, agent=agent)
    task = asyncio.create_task(one.measure(CASES[0]))
    workspace = one.folder.case_folder("idea", CASES[0].task.id, 1) / "submission"
    while not (workspace / "began").exists():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not working_in(workspace)
    assert not (workspace.parent / "result.json").exists()
    assert list(one.folder.journal()) == []


def working_in(workspace: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(workspace.resolve()):
                found.append(process)
        except psutil.Error:
            continue
    return found
