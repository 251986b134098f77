"""Interrupted runs: finished cases are kept, agents are ended, the reports say what is missing."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import psutil
import pytest
from builders import lay
from files import outside_variables

from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.suites.loading import load_suite

TASKS = tuple(task.id for task in load_suite("mini").tasks)
#: Plugins that child sessions need not load, or that would shuffle them.
WITHOUT = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:asyncio")
VOLATILE = {"mlr.seconds.agent", "mlr.seconds.judge", "mlr.resumed", "mlr.artifacts"}
#: The first two cases end at once; the others wait until the file ``go`` is there.
AGENT = """
echo "start $MLR_TASK_ID $MLR_REPEAT $$" >> "$CALLS"
case $MLR_TASK_ID in
calibration_digits|conformal_diabetes) ;;
*) while [ ! -e "$CALLS.go" ]; do sleep 0.05; done ;;
esac
echo '# An idea' > idea.md
echo "end $MLR_TASK_ID $MLR_REPEAT $$" >> "$CALLS"
"""
WORKERS = pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["serial", "workers"]
)


class Session:
    """A session of pytest that can be interrupted, its workers and the agents it has started."""

    def __init__(self, path: Path, *options: str, ctrl_c: Any = signal.SIG_DFL) -> None:
        inherited = outside_variables(path, "MLR")
        self.path = path
        self._output = (path / "output").open("w+")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-X", "faulthandler", "-m", "pytest", *WITHOUT),
                *("test_mlr.py", "--mlr-stage=idea"),
                *("--mlr-threshold=overall>=1", "--junitxml=junit.xml", *options),
            ],
            cwd=path,
            env=inherited | {"CALLS": str(path / "calls")},
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, ctrl_c),
        )

    def wait(self, seconds: float = 60) -> int:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # has it print where each thread is
            self.process.wait(20)
            self._output.close()
            raise AssertionError(f"it did not end within {seconds} s:\n{self.output}") from None
        self._output.close()
        return code

    @property
    def output(self) -> str:
        return (self.path / "output").read_text()

    def workers(self) -> list[psutil.Process]:
        """The processes of xdist's workers: whatever the controller itself has started."""
        return psutil.Process(self.process.pid).children()

    def end(self) -> None:
        """End what is left of it."""
        kill_all(self.path)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self._output.close()


def processes_of(path: Path) -> list[psutil.Process]:
    """Everything that runs for the repository at *path*: pytest, workers, agents."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("CALLS") == str(path / "calls")
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def kill_all(path: Path) -> None:
    for process in processes_of(path):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def agents_of(path: Path) -> list[psutil.Process]:
    """Those of them that an agent has started, or is."""
    found = []
    for process in processes_of(path):
        try:
            if "MLR_WORKSPACE" in process.environ():
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def until(condition: Callable[[], Any], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not happened in time"
        time.sleep(0.02)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    lay(
        tmp_path,
        {
            "pytest.ini": "[pytest]\n",
            "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n",
            "agent.sh": AGENT,
            "calls": "",
        },
    )
    yield tmp_path
    kill_all(tmp_path)


def start(path: Path, *options: str) -> Session:
    return Session(path, "--mlr-agent=cmd:sh agent.sh", *options)


def calls(path: Path, kind: str) -> list[str]:
    """Task ids of the agents that have started, or come to their end."""
    lines = [line.split() for line in (path / "calls").read_text().splitlines()]
    return [words[1] for words in lines if words[0] == kind]


def run_folder(path: Path) -> RunFolder:
    (run,) = path.glob(".mlrbench/runs/*/run.json")
    return RunFolder(run.parent)


def kept(path: Path) -> dict[str, str]:
    """Task → verdict, of the results on disk."""
    results = [
        read_model(found, CaseResult)
        for found in run_folder(path).path.glob("cases/*/*/*/result.json")
    ]
    return {result.task: result.verdict for result in results if result}


def junit(path: Path) -> tuple[dict[str, int], dict[str, Any]]:
    """The counts, and case → (kinds, properties) without what differs between sessions."""
    suite = ET.parse(path).find("testsuite")
    assert suite is not None
    cases = {}
    for case in suite.iter("testcase"):
        told = [c.tag for c in case if c.tag in ("failure", "error")]
        found = {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
        left = {name: value for name, value in found.items() if name not in VOLATILE}
        cases[case.attrib["name"]] = (told, left)
    return {k: int(suite.attrib[k]) for k in ("tests", "failures", "errors")}, cases


def go_on(path: Path, *options: str) -> Session:
    """Let agents end, and resume."""
    (path / "calls.go").touch()
    session = start(path, "--mlr-resume", *options)
    session.wait()
    return session


def assert_completed(path: Path, first: set[str]) -> None:
    """All cases are measured, and those of *first* have been run only once."""
    assert kept(path) == dict.fromkeys(TASKS, "pass")
    counts, _ = junit(path / "junit.xml")
    assert counts == {"tests": 6, "failures": 0, "errors": 0}
    started = Counter(calls(path, "start"))
    assert {task for task in first if started[task] != 1} == set()


def first_two_finished(path: Path) -> bool:
    """Whether the two quick cases are on disk and a third has begun."""
    if len(calls(path, "start")) < 3 or not list(path.glob(".mlrbench/runs/*/run.json")):
        return False
    if len(kept(path)) < 2:
        return False
    time.sleep(0.5)  # A result is on disk a moment before its report has reached the controller.
    return True


# Signals to pytest


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGINT, ()),
        (signal.SIGTERM, ()),
        pytest.param(signal.SIGINT, ("-n", "2"), marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, ("-n", "2"), marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_session_keeps_ends_and_reports(
    repository: Path, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    session = start(repository, *workers)
    try:
        until(lambda: first_two_finished(repository))
        session.process.send_signal(number)
        assert session.wait(90) == 2
    finally:
        session.end()
    assert agents_of(repository) == []
    assert kept(repository) == dict.fromkeys(TASKS[:2], "pass")
    counts, cases = junit(repository / "junit.xml")
    measured = [found["mlr.task"] for told, found in cases.values() if "mlr.task" in found]
    assert set(TASKS[:2]) <= set(measured)
    assert counts["failures"] == 0
    assert "2/6" in session.output
    assert "INTERNALERROR" not in session.output
    assert "Traceback" not in session.output
    again = go_on(repository, *workers)
    assert again.process.returncode == 0, again.output
    assert_completed(repository, set(TASKS[:2]))


def test_a_session_in_the_background_of_a_script_ends_on_sigterm(repository: Path) -> None:
    session = Session(repository, "--mlr-agent=cmd:sh agent.sh", ctrl_c=signal.SIG_IGN)
    try:
        until(lambda: first_two_finished(repository))
        session.process.send_signal(signal.SIGTERM)
        assert session.wait(90) == 2
    finally:
        session.end()
    assert agents_of(repository) == []
    assert kept(repository) == dict.fromkeys(TASKS[:2], "pass")


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_reaches_the_workers_too(repository: Path) -> None:
    session = start(repository, "-n", "2")
    try:
        until(lambda: first_two_finished(repository))
        os.killpg(session.process.pid, signal.SIGINT)
        assert session.wait(90) == 2
    finally:
        session.end()
    assert agents_of(repository) == []
    assert kept(repository) == dict.fromkeys(TASKS[:2], "pass")
    assert (repository / "junit.xml").is_file()
    assert go_on(repository).process.returncode == 0
    assert_completed(repository, set(TASKS[:2]))


def test_a_second_signal_does_not_leave_agents_behind(repository: Path) -> None:
    session = start(repository)
    try:
        until(lambda: first_two_finished(repository))
        session.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        session.process.send_signal(signal.SIGTERM)
        assert session.wait(90) == 2
    finally:
        left = agents_of(repository)
        session.end()
    assert left == []
    assert kept(repository) == dict.fromkeys(TASKS[:2], "pass")


@WORKERS
def test_a_killed_session_is_resumed_and_its_agents_are_ended(
    repository: Path, workers: tuple[str, ...]
) -> None:
    session = start(repository, *workers)
    try:
        until(lambda: first_two_finished(repository))
        os.killpg(session.process.pid, signal.SIGKILL)
        assert session.wait() == -signal.SIGKILL
        orphans = {p.pid for p in agents_of(repository)}
        again = start(repository, "--mlr-resume", *workers)
        try:
            # The cases that were cut off begin again while their first agents would still wait.
            until(lambda: len(calls(repository, "start")) >= 4)
            until(lambda: not orphans & {p.pid for p in agents_of(repository)}, 10)
            (repository / "calls.go").touch()
            assert again.wait() == 0, again.output
        finally:
            again.end()
    finally:
        session.end()
    assert_completed(repository, set(TASKS[:2]))
    assert agents_of(repository) == []


def test_workers_of_a_killed_controller_end_and_the_run_can_be_resumed(repository: Path) -> None:
    """Only the controller is killed: its workers must notice, or nobody could resume."""
    session = start(repository, "-n", "2")
    try:
        until(lambda: first_two_finished(repository))
        session.process.kill()
        assert session.wait() == -signal.SIGKILL
        again = start(repository, "--mlr-resume")
        try:
            until(lambda: len(agents_of(repository)) > 0 and again.process.poll() is None, 30)
            (repository / "calls.go").touch()
            assert again.wait() == 0, again.output
        finally:
            again.end()
        until(lambda: not processes_of(repository), 20)
    finally:
        session.end()
    assert_completed(repository, set(TASKS[:2]))


@WORKERS
def test_a_report_of_a_killed_session_has_every_case(
    repository: Path, workers: tuple[str, ...]
) -> None:
    session = start(repository, *workers)
    try:
        until(lambda: first_two_finished(repository))
        os.killpg(session.process.pid, signal.SIGKILL)
        session.wait()
    finally:
        session.end()
    assert not (repository / "junit.xml").exists()
    run = run_folder(repository).path
    done = subprocess.run(
        [sys.executable, "-m", "pytest_mlrbench.cli", "report", str(run), "--junit=rebuilt.xml"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts, cases = junit(repository / "rebuilt.xml")
    assert counts == {"tests": 6, "failures": 0, "errors": 4}
    for task in TASKS:
        told, found = cases[f"test_idea[{task}]"]
        if task in TASKS[:2]:
            assert (told, found["mlr.verdict"]) == ([], "pass")
        else:
            assert told == ["error"]
    assert "4 not run" in done.stdout
    assert "2/6" in done.stdout
    # Where the resumed session has all of them, both reports say the same.
    assert go_on(repository).process.returncode == 0
    subprocess.run(
        [sys.executable, "-m", "pytest_mlrbench.cli", "report", str(run), "--junit=rebuilt.xml"],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    assert junit(repository / "rebuilt.xml") == junit(repository / "junit.xml")


# Signals to one worker


@pytest.mark.slow
def test_a_worker_told_to_end_takes_its_agent_along(repository: Path) -> None:
    """The others may go on, as after a crash, or the session may end, as after Ctrl-C."""
    session = start(repository, "-n", "2")
    try:
        until(lambda: first_two_finished(repository) and len(calls(repository, "start")) == 4)
        running = {p.pid for p in agents_of(repository)}
        session.workers()[0].send_signal(signal.SIGTERM)
        until(lambda: len(running & {p.pid for p in agents_of(repository)}) < len(running), 15)
        (repository / "calls.go").touch()
        assert session.wait(30) in (1, 2)
    finally:
        session.end()
    assert agents_of(repository) == []
    assert {task: kept(repository)[task] for task in TASKS[:2]} == dict.fromkeys(TASKS[:2], "pass")
    assert "fail" not in kept(repository).values()
    assert (repository / "junit.xml").is_file()
    assert "INTERNALERROR" not in session.output
    assert go_on(repository, "-n", "2").process.returncode == 0
    assert_completed(repository, set(TASKS[:2]))


@pytest.mark.slow
def test_a_killed_worker_costs_one_case(repository: Path) -> None:
    session = start(repository, "-n", "2")
    try:
        until(lambda: first_two_finished(repository) and len(calls(repository, "start")) == 4)
        victim = session.workers()[0]
        running = {p.pid for p in agents_of(repository)}
        victim.kill()
        # Another worker takes its place, and no agent of the dead one is left.
        until(lambda: len(calls(repository, "start")) >= 5)
        until(lambda: len(running & {p.pid for p in agents_of(repository)}) < len(running), 10)
        (repository / "calls.go").touch()
        assert session.wait() == 1, session.output
    finally:
        session.end()
    assert_one_worker_crash(repository)
    assert "1 worker crash" in session.output
    again = go_on(repository, "-n", "2")
    assert again.process.returncode == 0, again.output
    assert "1 run again since it was not measured" in again.output
    assert kept(repository) == dict.fromkeys(TASKS, "pass")
    assert sorted(Counter(calls(repository, "start")).values()) == [1, 1, 1, 1, 1, 2]


def assert_one_worker_crash(path: Path) -> None:
    counts, cases = junit(path / "junit.xml")
    assert counts == {"tests": 6, "failures": 0, "errors": 1}
    ((told, found),) = [case for case in cases.values() if case[0]]
    assert told == ["error"]
    assert (found["mlr.verdict"], found["mlr.blame"]) == ("not_measured", "system")
    assert found["mlr.cause"] == "worker_crash"
    assert found["mlr.case"].startswith("mini/idea/")
    assert sorted(kept(path).values()) == ["not_measured", *["pass"] * 5]


CRASHING = """
import os
from pathlib import Path
import pytest

HERE = Path(__file__).parent

def agent(work):
    with open(HERE / "calls", "a") as file:
        file.write(f"start {work.task_id} {work.repeat} {os.getpid()}\\n")
    if work.task_id == "curriculum_digits" and not (HERE / "calls.go").exists():
        os._exit(7)
    (work.workspace / "idea.md").write_text("# An idea")

@pytest.fixture(scope="session")
def mlr_agent():
    return agent
"""


def test_an_agent_that_takes_its_worker_along(repository: Path) -> None:
    lay(repository, {"conftest.py": CRASHING})
    session = Session(repository, "-n", "2", "--mlr-agent=fixture")
    assert session.wait() == 1
    assert_one_worker_crash(repository)
    assert kept(repository)["curriculum_digits"] == "not_measured"
    (repository / "calls.go").touch()
    again = Session(repository, "-n", "2", "--mlr-agent=fixture", "--mlr-resume")
    assert again.wait() == 0, again.output
    assert_completed(repository, set(TASKS) - {"curriculum_digits"})
    assert Counter(calls(repository, "start"))["curriculum_digits"] == 2


# A storm of kills

STORM = """
import os, time
from pathlib import Path
import pytest

CALLS = Path(__file__).parent / "calls"

def note(kind, work):
    file = os.open(CALLS, os.O_WRONLY | os.O_APPEND)
    os.write(file, f"{kind} {work.task_id} {work.repeat} {os.getpid()}\\n".encode())
    os.close(file)

def agent(work):
    note("start", work)
    time.sleep(0.05)
    (work.workspace / "idea.md").write_text(f"# An idea for {work.task_id}, {work.repeat}")
    note("end", work)

@pytest.fixture(scope="session")
def mlr_agent():
    return agent
"""
STORM_SHELL = """
echo "start $MLR_TASK_ID $MLR_REPEAT $$" >> "$CALLS"
sleep 0.05
echo "# An idea for $MLR_TASK_ID, $MLR_REPEAT" > idea.md
echo "end $MLR_TASK_ID $MLR_REPEAT $$" >> "$CALLS"
"""
REPEATS = 10
KILLS = 20


def begun(path: Path) -> Counter[tuple[str, str]]:
    """(task, repeat) → how often its agent has started."""
    lines = [line.split() for line in (path / "calls").read_text().splitlines()]
    return Counter((words[1], words[2]) for words in lines if words[0] == "start")


def finished(path: Path) -> set[tuple[str, str]]:
    """(task, repeat) of the cases with a result on disk."""
    found = path.glob(".mlrbench/runs/*/cases/idea/*/r*/result.json")
    return {(p.parts[-3], p.parts[-2][1:]) for p in found if read_model(p, CaseResult)}


def _has_begun(path: Path, number: int, session: Session) -> bool:
    return sum(begun(path).values()) >= number or session.process.poll() is not None


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["fixture", "cmd:sh agent.sh"], ids=["fixture", "command"])
def test_a_storm_of_kills(tmp_path: Path, agent: str) -> None:
    """Killed at 20 random moments, a run ends as one that was left in peace."""
    files = {
        "pytest.ini": "[pytest]\n",
        "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n",
        "conftest.py": STORM,
        "agent.sh": STORM_SHELL,
        "calls": "",
    }
    if agent != "fixture":
        del files["conftest.py"]
    options = (f"--mlr-agent={agent}", f"--mlr-repeats={REPEATS}", "-n", "2")
    calm, storm = lay(tmp_path / "calm", files), lay(tmp_path / "storm", files)
    begin = time.monotonic()
    session = Session(calm, *options)
    assert session.wait(120) == 0, session.output
    whole = time.monotonic() - begin

    # One kill in five hits before the first case begins; the others after a few more have begun.
    moments = random.Random(20250525)
    done: set[tuple[str, str]] = set()
    progress = []
    resume: tuple[str, ...] = ()
    for number in range(KILLS):
        before = begun(storm)
        session = Session(storm, *options, *resume)
        more = moments.randint(1, 6)
        if number % 5 == 4:
            time.sleep(moments.uniform(0.1, 0.25 * whole))
        else:
            until(partial(_has_begun, storm, sum(before.values()) + more, session))
        time.sleep(moments.uniform(0, 0.08))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session.process.pid, signal.SIGKILL)
        assert session.wait() in (-signal.SIGKILL, 0), session.output
        if list(storm.glob(".mlrbench/runs/*/run.json")):
            resume = ("--mlr-resume",)
        assert set(begun(storm) - before) & done == set(), "a finished case was run again"
        now = finished(storm)
        assert done <= now, "a finished case was lost"
        done = now
        progress.append(len(done))
    before = begun(storm)
    session = Session(storm, *options, "--mlr-resume")
    assert session.wait(120) == 0, session.output
    assert set(begun(storm) - before) & done == set()

    assert agents_of(storm) == []
    assert len(list(storm.glob(".mlrbench/runs/*/run.json"))) == 1
    assert junit(storm / "junit.xml") == junit(calm / "junit.xml")
    assert junit(storm / "junit.xml")[0]["tests"] == len(TASKS) * REPEATS
    starts = begun(storm)
    assert set(starts) == set(begun(calm))
    superseded = list(storm.glob(".mlrbench/runs/*/superseded/idea/*/r*/*"))
    print(
        f"\n{agent}: {KILLS} kills, {len(starts)} cases, {sum(starts.values())} agents started,"
        f" {len(superseded)} attempts cut off; one session undisturbed {whole:.1f} s;"
        f" finished after each kill: {progress}"
    )
