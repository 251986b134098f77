"""Several cases at once in one process, reported in order as if they had come one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from test_engine import CASES, Judge, engine

from conftest import Repository
from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.function import FunctionAgent
from pytest_mlrbench.run.ahead import Ahead

#: Notes when a case begins and ends; the first one is slow.
CONFTEST = """
import asyncio, threading, time
import pytest

LOCK = threading.Lock()

def note(word, case):
    with LOCK, open("calls", "a") as calls:
        print(word, case.task_id, time.monotonic(), file=calls)

def plain(case):
    note("begin", case)
    time.sleep(0.9 if case.task_id == "calibration_digits" else 0.3)
    (case.workspace / "idea.md").write_text("# An idea of " + case.task_id)
    note("end", case)

async def awaited(case):
    note("begin", case)
    await asyncio.sleep(0.9 if case.task_id == "calibration_digits" else 0.3)
    (case.workspace / "idea.md").write_text("# An idea of " + case.task_id)
    note("end", case)

@pytest.fixture(scope="session")
def mlr_agent():
    return {function}
"""
IDEA = ("--mlr-stage=idea", "--mlr-agent=fixture", "--mlr-threshold=overall>=1", "test_mlr.py")


def lay(repo: Repository, function: str = "plain", more: str = "") -> None:
    repo.lay(
        {
            "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n",
            "conftest.py": CONFTEST.replace("{function}", function) + more,
        }
    )


def calls(repo: Repository) -> list[tuple[str, ...]]:
    return [tuple(line.split()) for line in (repo.path / "calls").read_text().splitlines()]


def most_at_once(repo: Repository) -> int:
    now = most = 0
    for word, *_ in calls(repo):
        now += 1 if word == "begin" else -1
        most = max(most, now)
    return most


def spans(repo: Repository) -> list[tuple[float, float]]:
    """Begin and end of each case, in seconds."""
    at: dict[str, list[float]] = {}
    for _, task, moment in calls(repo):
        at.setdefault(task, []).append(float(moment))
    return [(begin, end) for begin, end in at.values()]


@pytest.mark.parametrize("function", ["plain", "awaited"])
def test_cases_are_under_way_at_once_and_reported_in_order(repo: Repository, function: str) -> None:
    lay(repo, function)
    result = repo.run(*IDEA, "-v", "--mlr-concurrency=6")
    result.assert_outcomes(passed=6)
    assert most_at_once(repo) == 6
    begins, ends = zip(*spans(repo), strict=True)
    # By their own clocks, so that a busy machine makes no difference.
    one_after_the_other = sum(ends) - sum(begins)
    assert one_after_the_other >= 0.9 + 5 * 0.3
    assert max(ends) - min(begins) < one_after_the_other
    tasks = [line.split("[")[1].split("]")[0] for line in result.outlines if "PASSED" in line]
    assert tasks == sorted(tasks)
    journal = [line.case.split("/")[2] for line in repo.runs[-1].journal()]
    assert journal[-1] == "calibration_digits"  # durable the moment they end, and not in order


def test_no_more_are_under_way_than_asked_for_and_a_slow_one_holds_nobody_up(
    repo: Repository,
) -> None:
    lay(repo, "awaited")
    repo.run(*IDEA, "--mlr-concurrency=2").assert_outcomes(passed=6)
    assert most_at_once(repo) == 2
    # While the slow first one went on, others began and ended beside it, though none could be
    # reported before it.
    ended = [task for word, task, _ in calls(repo) if word == "end"]
    assert ended.index("calibration_digits") >= 2


def test_the_results_are_those_of_one_after_the_other(repo: Repository) -> None:
    lay(repo)
    repo.run(*IDEA, "--mlr-concurrency=6")
    repo.run(*IDEA)
    varying = {"seconds_agent", "seconds_judge", "submission_stamp"}
    at_once, alone = (
        [result.model_dump(exclude=varying) for _, result in sorted(run.results().items())]
        for run in repo.runs
    )
    assert at_once == alone


def test_by_default_agents_that_work_on_this_machine_run_one_by_one(repo: Repository) -> None:
    lay(repo)
    repo.run(*IDEA).assert_outcomes(passed=6)
    assert most_at_once(repo) == 1


@pytest.mark.parametrize("word", ["skip", "xfail(run=False)"])
def test_a_case_whose_test_is_not_run_is_not_begun(repo: Repository, word: str) -> None:
    lay(
        repo,
        more=f"""
def pytest_collection_modifyitems(items):
    for item in items:
        if "feature" in item.nodeid or "wine" in item.nodeid:
            item.add_marker(pytest.mark.{word})
""",
    )
    repo.run(*IDEA, "--mlr-concurrency=6")
    assert len({task for _, task, _ in calls(repo)}) == 4


def test_a_case_with_a_result_fixture_of_the_users_is_not_begun_early(repo: Repository) -> None:
    lay(
        repo,
        more="""
@pytest.fixture
def mlr_result(mlr_result):
    return mlr_result
""",
    )
    repo.run(*IDEA, "--mlr-concurrency=6").assert_outcomes(passed=6)
    assert most_at_once(repo) == 1


@pytest.mark.parametrize("options", [("-x",), ("--maxfail=2",)])
def test_where_a_failure_ends_the_session_none_is_begun_early(
    repo: Repository, options: tuple[str, ...]
) -> None:
    lay(repo)
    result = repo.run(*IDEA, "--mlr-concurrency=6", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--mlr-concurrency=6 does not go with -x*"])
    repo.run(*IDEA, *options).assert_outcomes(passed=6)
    assert most_at_once(repo) == 1


def test_workers_have_one_case_each(repo: Repository) -> None:
    lay(repo)
    result = repo.spawn(*IDEA, "--mlr-concurrency=6", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--mlr-concurrency=6 does not go with -n*"])


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_concurrency_that_is_none(repo: Repository, number: str) -> None:
    lay(repo)
    assert repo.run(*IDEA, f"--mlr-concurrency={number}").ret == pytest.ExitCode.USAGE_ERROR


def test_a_resumed_run_begins_only_what_is_missing(repo: Repository) -> None:
    lay(repo)
    repo.run(*IDEA, "-k", "digits")
    repo.run(*IDEA, "--mlr-concurrency=6", "--mlr-resume").assert_outcomes(passed=6)
    begun = [task for word, task, _ in calls(repo) if word == "begin"]
    assert sorted(begun) == sorted(set(begun))
    assert len(begun) == 6


@pytest.mark.asyncio
async def test_what_was_cancelled_with_another_test_is_begun_again(tmp_path: Path) -> None:
    begun = []

    async def answer(case: Assignment) -> None:
        begun.append(case.task_id)
        await asyncio.sleep(0.2)
        (case.workspace / "idea.md").write_text("# An idea")

    ahead = Ahead(engine(tmp_path, Judge("anna", 7), agent=FunctionAgent(answer)), CASES, 3)
    waiting = asyncio.create_task(ahead.measure(CASES[0]))
    await asyncio.sleep(0.1)
    cancelled = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in cancelled:  # what the fixture does when a plugin ends the test
        task.cancel()
    await asyncio.wait(cancelled)
    assert waiting.cancelled()
    results = [await ahead.measure(case) for case in CASES[1:]]
    assert [result.verdict for result in results] == ["pass"] * len(results)
    assert [result.attempts for result in results][:2] == [2, 2]
    assert len(begun) == len(CASES) + 2
