"""A person at a terminal sees how far a run is; the log of a CI job stays quiet."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Repository
from pytest_mlrbench.report import progress
from pytest_mlrbench.report.progress import Progress

MEASURED = {"mlr.case": "a", "mlr.resumed": False}
PAID = {
    **MEASURED,
    "mlr.tokens.agent.input": 1000,
    "mlr.tokens.agent.output": 500,
    "mlr.cost_usd.agent": 0.25,
    "mlr.tokens.judge.input": 10_000,
    "mlr.tokens.judge.output": 1000,
    "mlr.cost_usd.judge": 1.0,
}


def test_the_line_says_how_far_it_is() -> None:
    line = Progress(4, lambda: 2)
    assert line.line() == "mlrbench: 0/4 done, 2 in flight"
    line.count(MEASURED)
    assert line.line().startswith("mlrbench: 1/4 done, 2 in flight, about ")
    line.count(PAID)
    assert "2/4 done, 2 in flight, 12,500 tokens, $1.25, about" in line.line()


def test_what_is_not_known_is_said() -> None:
    line = Progress(4, lambda: 2)
    line.count(PAID)
    line.count({**PAID, "mlr.cost_usd.judge": None})
    assert "25,000 tokens, at least $1.50" in line.line()


def test_the_time_left_is_not_guessed_from_cases_that_were_reused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    line = Progress(100, lambda: 1)
    for _ in range(90):
        line.count({**MEASURED, "mlr.resumed": True})
    now[0] = 600
    assert "left" not in line.line()
    line.count(MEASURED)
    assert line.line().endswith("about 90 min left")


AGENT = """
import time, pytest
from pytest_mlrbench.report import progress

progress.EVERY = 0.2

@pytest.fixture(scope="session")
def mlr_agent():
    def answer(case):
        time.sleep(0.7)
        (case.workspace / "idea.md").write_text("# An idea")
    return answer
"""


def run_in_terminal(folder: Path, *options: str, **variables: str) -> str:
    """Run pytest in a terminal and return all it shows."""
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "BUILD_NUMBER")}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "--mlr-stage=idea", "--mlr-agent=fixture"),
            *("-p", "no:randomly", "-p", "no:asyncio", "--mlr-limit=3"),
            *("--mlr-threshold=overall>=1", "test_mlr.py", *options),
        ],
        cwd=folder,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.5)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
    os.close(ours)
    assert process.wait(30) == 0, shown.decode()
    return shown.decode()


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n1",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_a_terminal_shows_it_also_while_one_case_goes_on(
    repo: Repository, options: tuple[str, ...]
) -> None:
    repo.lay({"conftest.py": AGENT, "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n"})
    shown = run_in_terminal(repo.path, *options)
    assert "mlrbench: 0/3 done, 1 in flight" in shown
    assert "mlrbench: 2/3 done, 1 in flight, about" in shown
    assert "3 passed" in shown


@pytest.mark.parametrize(
    ("options", "variables"), [(("-q",), {}), ((), {"CI": "true"})], ids=["quiet", "CI"]
)
@pytest.mark.slow
def test_where_nobody_looks_nothing_is_shown(
    repo: Repository, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    repo.lay({"conftest.py": AGENT, "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n"})
    assert "in flight" not in run_in_terminal(repo.path, *options, **variables)
