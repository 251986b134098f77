"""Agents that misbehave: the case fails, the blame is theirs, and the run goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from xml.etree import ElementTree as ET

import psutil
import pytest
from builders import lay
from files import outside_variables

from pytest_mlrbench.agents.base import Agent, Assignment
from pytest_mlrbench.agents.function import FunctionAgent
from pytest_mlrbench.agents.specs import make_agent
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.base import Reviewable
from pytest_mlrbench.judges.offline import ChecklistJudge
from pytest_mlrbench.judges.review import Answer
from pytest_mlrbench.judges.specs import make_judges
from pytest_mlrbench.run.engine import Engine
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.sandbox.base import Limits
from pytest_mlrbench.sandbox.local import GRACE
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.select import Case, make_cases

TASKS = tuple(task.id for task in load_suite("mini").tasks)
#: Plugins that child sessions need not load, or that would shuffle them.
WITHOUT = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:asyncio")
INI = "[pytest]\n"
IDEA = "echo '# An idea' > idea.md\n"
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """A block that hangs is a failure, not a hanging test run."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"still busy after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure(
    folder: Path, agent: str | Agent, *, stage: str = "idea", timeout: float = 30
) -> CaseResult:
    """Measure the first case of suite mini; *agent* may be the text of a shell script."""
    if isinstance(agent, str) and not agent.startswith(("cmd:", "py:")):
        lay(folder, {"agent.sh": agent})
        agent = "cmd:sh agent.sh"
    suite = load_suite("mini")
    engine = Engine(
        suite=suite,
        agent=make_agent(agent, folder) if isinstance(agent, str) else agent,
        judges=make_judges(["checklist"], folder, [stage]),
        thresholds=[Threshold.parse("overall>=1")],
        folder=RunFolder.create(folder / "runs"),
        timeout=timeout,
    )
    (case,) = make_cases(suite, [stage], suite.tasks[:1])
    with within(min(timeout, 20) + 10):
        result = _measured(engine, case)
    assert engine.folder.selection() == {}
    assert [line.case for line in engine.folder.journal()] == [case.name]
    return result


def _measured(engine: Engine, case: Case) -> CaseResult:
    try:
        return asyncio.run(engine.measure(case))
    except BaseException as error:
        # Not chained: pytest could not show an exception that cannot be printed.
        told = type(error).__name__
    pytest.fail(f"the engine let {told} out")


def case_folder(folder: Path) -> Path:
    (found,) = folder.glob("runs/*/cases/*/*/r1")
    return found


def log_of(folder: Path) -> str:
    return (case_folder(folder) / "agent.log").read_text("utf-8", "replace")


def assert_fault(result: CaseResult, cause: str, *words: str, scored: bool = False) -> None:
    """The case has failed; *scored* says whether what was left was judged all the same."""
    assert result.fault is not None
    told = (result.verdict, result.fault.blame, result.fault.cause)
    assert told == ("fail", "agent", cause), result.fault.message
    for word in words:
        assert word in result.fault.message
    assert (result.overall is not None) == scored


def assert_scored(result: CaseResult) -> None:
    assert result.fault is None, result.fault
    assert result.verdict == "pass"
    assert result.overall is not None


class Marked:
    """Processes with a command line of their own, so that a test can look for them."""

    def __init__(self) -> None:
        # No process of anyone else sleeps for just this long.
        self.seconds = str(10**6 + uuid.uuid4().int % 10**9)

    def alive(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if self.seconds in process.cmdline():
                    found.append(process)
            except psutil.Error:
                continue
        return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def assert_gone(self) -> None:
        end = time.monotonic() + 3
        while self.alive() and time.monotonic() < end:
            time.sleep(0.05)
        assert self.alive() == []


@pytest.fixture
def marked() -> Iterator[Marked]:
    found = Marked()
    yield found
    for process in found.alive():
        process.kill()


# What is left in place of an idea


@pytest.mark.parametrize(
    ("script", "cause", "words"),
    [
        pytest.param(":", "no_output", "left no idea.md", id="nothing"),
        pytest.param(": > idea.md", "unusable_output", "is empty", id="empty"),
        pytest.param("printf ' \\n\\t\\n' > idea.md", "unusable_output", "is empty", id="blank"),
        pytest.param(
            "printf 'a\\0b' > idea.md", "unusable_output", "holds binary data", id="with NUL"
        ),
        pytest.param("printf '\\0\\0' > idea.md", "unusable_output", "idea.md", id="NUL only"),
        pytest.param(
            "printf 'caf\\351' > idea.md", "unusable_output", "not UTF-8 text", id="latin-1"
        ),
        pytest.param(
            "head -c 4096 /bin/sh > idea.md", "unusable_output", "idea.md", id="a program"
        ),
        pytest.param("mkdir idea.md", "unusable_output", "not a regular file", id="a folder"),
        pytest.param("mkfifo idea.md", "unusable_output", "not a regular file", id="a FIFO"),
        pytest.param(
            "rm -f ../out; echo idea > ../out; ln -s ../out idea.md",
            "unusable_output",
            "leaves the workspace",
            id="a link out",
        ),
        pytest.param(
            "ln -s /etc/passwd idea.md", "unusable_output", "leaves the workspace", id="passwd"
        ),
        pytest.param(
            "ln -s /dev/zero idea.md", "unusable_output", "leaves the workspace", id="zeros"
        ),
        pytest.param("ln -s nowhere idea.md", "no_output", "idea.md", id="a dangling link"),
        pytest.param("ln -s idea.md idea.md", "no_output", "idea.md", id="a link to itself"),
        pytest.param("mkdir a; echo x > a/idea.md", "no_output", "idea.md", id="elsewhere"),
        pytest.param("echo x > IDEA.MD", "no_output", "idea.md", id="another name"),
        pytest.param(
            "head -c 20000000 /dev/zero | tr '\\0' x > idea.md",
            "unusable_output",
            "20000000 bytes",
            id="too long",
        ),
    ],
)
def test_an_idea_that_cannot_be_judged(tmp_path: Path, script: str, cause: str, words: str) -> None:
    result = measure(tmp_path, f"echo my words\n{script}\n")
    assert_fault(result, cause, words)
    assert log_of(tmp_path) == "my words\n"
    assert result.judges == {}


def test_a_folder_that_leads_out_of_the_workspace(tmp_path: Path) -> None:
    lay(tmp_path, {"outside/results.md": "# Results\n\n0.9\n"})
    script = f"rm -rf results; ln -s {tmp_path}/outside results"
    result = measure(tmp_path, script, stage="experiment")
    assert_fault(result, "unusable_output", "leaves the workspace")


def test_a_workspace_replaced_by_a_link_to_elsewhere(tmp_path: Path) -> None:
    lay(tmp_path, {"outside/idea.md": "# The idea of somebody else\n"})
    script = f'cd ..; rm -rf "$MLR_WORKSPACE"; ln -s {tmp_path}/outside "$MLR_WORKSPACE"'
    result = measure(tmp_path, script)
    assert result.verdict == "fail"
    assert result.fault is not None
    assert result.fault.blame == "agent"


def test_a_link_within_the_workspace_is_the_agents_own_business(tmp_path: Path) -> None:
    assert_scored(measure(tmp_path, "echo '# An idea' > final.md; ln -s final.md idea.md"))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param('cd ..; rm -rf "$MLR_WORKSPACE"', id="deleted"),
        pytest.param('cd ..; rm -rf "$MLR_WORKSPACE"; : > "$MLR_WORKSPACE"', id="now a file"),
        pytest.param('cd ..; mv "$MLR_WORKSPACE" "$MLR_WORKSPACE.away"', id="moved away"),
        pytest.param('rm -rf "$MLR_WORKSPACE/.."/* "$MLR_WORKSPACE/.."', id="all of the case"),
    ],
)
def test_a_workspace_that_is_gone(tmp_path: Path, script: str) -> None:
    assert_fault(measure(tmp_path, IDEA + script), "no_output", "left no idea.md")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("rm ../agent.log", id="deleted"),
        pytest.param("rm ../agent.log; mkdir ../agent.log", id="now a folder"),
        pytest.param("rm ../agent.log; mkfifo ../agent.log", id="now a FIFO"),
        pytest.param('rm -rf "$(dirname "$MLR_WORKSPACE")"', id="with all of the case"),
    ],
)
def test_a_crash_after_which_the_log_is_not_there_is_still_a_crash(
    tmp_path: Path, script: str
) -> None:
    assert_fault(measure(tmp_path, f"{script}; exit 3", timeout=2), "crash", "exit code 3")


def test_inputs_may_be_deleted(tmp_path: Path) -> None:
    assert_scored(measure(tmp_path, f"{IDEA} rm task.md"))
    assert (case_folder(tmp_path) / "inputs" / "task.md").read_text("utf-8").strip()


def test_inputs_may_be_changed_without_a_change_of_the_suite(tmp_path: Path) -> None:
    given = sorted((Path(__file__).parents[1] / "benchmarks/suites/mini").rglob("*.md"))
    texts = [path.read_bytes() for path in given]
    assert_scored(measure(tmp_path, f"{IDEA} echo changed > task.md"))
    assert [path.read_bytes() for path in given] == texts
    assert (case_folder(tmp_path) / "inputs" / "task.md").read_text("utf-8") != "changed\n"


def test_thousands_of_files(tmp_path: Path) -> None:
    start = time.monotonic()
    script = f"{IDEA} i=0; while [ $i -lt 2000 ]; do : > file$i; i=$((i+1)); done"
    assert_scored(measure(tmp_path, script))
    assert time.monotonic() - start < 15
    record = json.loads((case_folder(tmp_path) / "submission.json").read_text("utf-8"))
    assert record["files"] == 2002


NAMES = (b"caf\xe9.txt", b"two\nlines.txt", b"\x1b[31mred.txt", b" ", b"-rf", b"q'\"`$.txt")


@pytest.mark.parametrize("stage", ["idea", "experiment"])
def test_names_that_are_no_text(tmp_path: Path, stage: str) -> None:
    """A judge that lists files must be able to write their names down."""
    lay(
        tmp_path,
        {
            "agent.py": f"""
import os, pathlib
os.makedirs("results", exist_ok=True)
pathlib.Path("idea.md").write_text("# Idea")
pathlib.Path("results/results.md").write_text("# Results\\n\\n![a](caf%E9.png) accuracy 0.9\\n")
for name in {NAMES!r}:
    for end in (b"", b".png", b".py", b".json", b".csv"):
        for folder in (b".", b"results"):
            with open(os.path.join(folder, name + end), "w") as file:
                file.write("import numpy")
"""
        },
    )
    result = measure(tmp_path, f"cmd:{sys.executable} agent.py", stage=stage)
    assert_scored(result)


HOSTILE = {
    "FIFOs": "for f in $all; do rm -f $f; mkfifo $f; done",
    "endless links": "for f in $all; do ln -sf /dev/zero $f; done",
    "folders": "for f in $all; do rm -f $f; mkdir $f; done",
    "loops": "for f in $all; do ln -sf $f $f; done; ln -s . here; ln -s .. there",
}


@pytest.mark.parametrize(
    "script",
    [
        *(
            pytest.param(
                script, id=name, marks=[pytest.mark.slow] if name in ("folders", "loops") else []
            )
            for name, script in HOSTILE.items()
        ),
        pytest.param(
            "for f in $all; do truncate -s 1G $f; done", id="huge", marks=pytest.mark.slow
        ),
    ],
)
def test_files_that_are_not_required_cannot_stop_the_judge(tmp_path: Path, script: str) -> None:
    """A FIFO would block its reader, and a link to endless zeros would eat all memory."""
    begin = """
    mkdir -p results; echo '# Results: accuracy 0.9, see fig.png' > results/results.md
    all='results/log.txt results/claims.json results/fig.png results/m.json results/t.csv
         train.py requirements.txt README.md'
    """
    lay(tmp_path, {"agent.sh": begin + script})
    # In a process of its own, with an end to the memory it can take.
    code = (
        "import resource, sys; from pathlib import Path;"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "sys.path.insert(0, sys.argv[2]); import test_agents_misbehave as t;"
        "r = t.measure(Path(sys.argv[1]), 'cmd:sh agent.sh', stage='experiment');"
        "print(r.verdict, r.fault, r.overall)"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("pass None ")


def test_a_review_the_agent_has_written_itself_does_not_count(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "cheat.py": """
from pathlib import Path
from pytest_mlrbench.judges.review import Answer, OverallScored, Review, Scored
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.specs import make_judges
from pytest_mlrbench.run.folder import write_json
from pytest_mlrbench.run.submission import digest_of

def agent(work):
    (work.workspace / "idea.md").write_text("bad")
    (judge,) = make_judges(["checklist"], Path("."), ["idea"])
    rubric = judge.rubric("idea")
    scored = Scored(score=10, justification="splendid")
    review = Review(
        case=f"mini/idea/{work.task_id}/r1", judge="checklist", spec="checklist",
        judge_digest=judge.digest, rubric=rubric.name, rubric_digest=rubric.digest,
        submission_digest=digest_of(work.workspace)[0], seconds=1.0,
        answer=Answer(dimensions={n: scored for n in rubric.names("idea")},
                      overall=OverallScored(score=10)),
    )
    write_json(work.workspace.parent / "reviews" / "checklist.json", review)
"""
        },
    )
    result = measure(tmp_path, "py:cheat:agent")
    assert result.overall != 10


# Files that cannot be read

#: Runs the rest of the command line without root's power to read what is forbidden.
POWERLESS = """
import ctypes, os, sys
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        if libc.prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
            sys.exit(77)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@linux
@pytest.mark.parametrize(
    "script",
    [
        "chmod 000 idea.md",
        "chmod 000 .",
        *(
            pytest.param(f"chmod 000 {name}", marks=pytest.mark.slow)
            for name in ("other", "d", "task.md")
        ),
    ],
)
def test_files_made_unreadable_are_the_agents_fault_if_anyones(tmp_path: Path, script: str) -> None:
    """As root everything can be read, so these sessions run with less power."""
    begin = f"{IDEA} echo x > other; mkdir d; echo x > d/f\n"
    lay(tmp_path, {"powerless.py": POWERLESS, "agent.sh": begin + script, "pytest.ini": INI})
    options = ["--mlr-limit=1", "--mlr-agent=cmd:sh agent.sh", "--mlr-threshold=overall>=1"]
    try:
        done = session(tmp_path, *options, start=[sys.executable, "powerless.py"])
        if done.returncode == 77:
            pytest.skip("capabilities cannot be dropped here")
        (found,) = properties_of(tmp_path).values()
        told = (found["mlr.verdict"], found.get("mlr.blame"))
        if script == "chmod 000 idea.md":
            assert (*told, found["mlr.cause"]) == ("fail", "agent", "unusable_output")
        assert told in {("pass", None), ("fail", "agent")}, done.stdout
        start = [sys.executable, "powerless.py"]
        again = session(tmp_path, *options, "--mlr-resume", start=start)
        assert "1 of the 1 cases of this session were reused" in again.stdout
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", str(tmp_path)], check=False)


# How it ends


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo out; echo the last words >&2; exit 3", ["exit code 3", "the last words"]),
        ("exit 255", ["exit code 255", "printed nothing"]),
        ("kill -KILL $$", ["signal SIGKILL"]),
        ("kill -SEGV $$", ["signal SIGSEGV"]),
        ("kill -TERM $$", ["signal SIGTERM"]),
        ("kill -40 $$", ["signal"]),
        ("kill -KILL 0", ["signal SIGKILL"]),
        ("printf '\\377\\0\\033[31mred ]]> <x/> \\353'; exit 1", ["exit code 1", "red ]]> <x/>"]),
        ("no-such-program", ["exit code 127", "no-such-program"]),
    ],
    ids=["3", "255", "KILL", "SEGV", "TERM", "real-time", "own group", "words", "127"],
)
def test_a_crash_fails_whatever_was_left(tmp_path: Path, script: str, words: list[str]) -> None:
    result = measure(tmp_path, IDEA + script + "\n")
    assert_fault(result, "crash", *words, scored=True)
    assert_fault(measure(tmp_path / "nothing", script + "\n"), "crash", *words)


def test_only_the_last_words_are_quoted(tmp_path: Path) -> None:
    result = measure(tmp_path, "seq 100000; exit 1")
    assert_fault(result, "crash", "100000")
    assert result.fault is not None
    assert len(result.fault.message) < 500
    assert log_of(tmp_path).splitlines() == [str(n) for n in range(1, 100001)]


def test_an_agent_that_never_ends(tmp_path: Path, marked: Marked) -> None:
    start = time.monotonic()
    script = f"{IDEA} echo begun; sleep {marked.seconds} & sleep {marked.seconds}"
    result = measure(tmp_path, script, timeout=0.5)
    assert_fault(result, "timeout", "did not end", scored=True)
    assert time.monotonic() - start < 0.5 + GRACE + 5
    marked.assert_gone()
    assert log_of(tmp_path) == "begun\n"


@pytest.mark.slow
def test_a_missing_judge_leaves_the_fault_with_the_agent(tmp_path: Path) -> None:
    """And the score can be had later, without the agent."""
    lay(
        tmp_path,
        {
            "pytest.ini": INI,
            "agent.sh": f"echo run >> {tmp_path}/runs\n{IDEA}exit 3\n",
            "conftest.py": DOWN_ONCE,
        },
    )
    tried = ("--mlr-agent=cmd:sh agent.sh", "--mlr-limit=1")
    for options, overall in (((), None), (("--mlr-resume",), None), (RERUN, 2.0)):
        session(tmp_path, *tried, *options)
        (path,) = tmp_path.glob(".mlrbench/runs/*/cases/*/*/r1/result.json")
        result = CaseResult.model_validate_json(path.read_text())
        assert_fault(result, "crash", "exit code 3", scored=overall is not None)
        assert result.overall == overall
    assert (tmp_path / "runs").read_text() == "run\n"


def test_an_agent_that_ignores_sigterm(tmp_path: Path, marked: Marked) -> None:
    start = time.monotonic()
    script = f"trap '' TERM INT HUP; while :; do sleep {marked.seconds}; done"
    # The time that was given is the time that is told, not the grace that follows.
    assert_fault(measure(tmp_path, script, timeout=0.7), "timeout", "within 1 s")
    assert time.monotonic() - start < 0.7 + GRACE + 5
    marked.assert_gone()


def test_an_agent_may_tidy_up_at_its_deadline(tmp_path: Path) -> None:
    script = "trap 'echo tidied; exit 0' TERM; while :; do sleep 0.1 2> /dev/null; done"
    assert_fault(measure(tmp_path, script, timeout=0.5), "timeout")
    assert log_of(tmp_path).endswith("tidied\n")  # some shells say that sleep was terminated


RERUN = ("--mlr-resume", "--mlr-rerun=errors")
#: A judge that is down in the first of several sessions.
DOWN_ONCE = """
from pathlib import Path
import pytest
from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.judges.offline import ChecklistJudge

was = ChecklistJudge.review

async def review(self, work):
    if Path("was_down").exists():
        return await was(self, work)
    Path("was_down").touch()
    raise SystemFault("provider", "nobody answers.")

ChecklistJudge.review = review
"""
DAEMONS = {
    "child": "sleep {} > /dev/null 2>&1 &",
    "child keeping stdout": "sleep {} &",
    "session": "setsid sleep {} > /dev/null 2>&1 &",
    "session keeping stdout": "setsid sleep {} &",
    "double fork": "(setsid sh -c 'sleep {} &' &) > /dev/null 2>&1",
    "double fork keeping stdout": "(setsid sh -c 'sleep {} &' &)",
    "stopped": "setsid sh -c 'kill -STOP $$; sleep {}' {} & sleep 0.3",
    "no mark": "env -i setsid $(command -v sleep) {} > /dev/null 2>&1 &",
    "no mark keeping stdout": "env -i setsid $(command -v sleep) {} &",
    "no mark, elsewhere": "cd /; env -i setsid $(command -v sleep) {} > /dev/null 2>&1 &",
}


@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS)
def test_a_daemon_does_not_outlive_its_agent(tmp_path: Path, marked: Marked, daemon: str) -> None:
    """The agent has ended well: what it left running is ended too, and not waited for."""
    start = time.monotonic()
    script = IDEA + daemon.replace("{}", marked.seconds) + "\nsleep 0.2\nexit 0\n"
    result = measure(tmp_path, script, timeout=4)
    assert_scored(result)
    assert time.monotonic() - start < 4
    marked.assert_gone()


@pytest.mark.parametrize(
    "daemon",
    [
        pytest.param(
            daemon, id=name, marks=[] if name == "no mark keeping stdout" else pytest.mark.slow
        )
        for name, daemon in DAEMONS.items()
    ],
)
def test_a_daemon_does_not_outlive_the_deadline(
    tmp_path: Path, marked: Marked, daemon: str
) -> None:
    start = time.monotonic()
    script = daemon.replace("{}", marked.seconds) + "\nsleep 1000\n"
    assert_fault(measure(tmp_path, script, timeout=0.7), "timeout")
    assert time.monotonic() - start < 0.7 + GRACE + 5
    marked.assert_gone()


def test_a_process_that_keeps_forking_is_ended(tmp_path: Path, marked: Marked) -> None:
    """Each one forks the next and ends, so none is there for long."""
    script = f"""{IDEA}
    cat > next.sh <<'END'
    sleep 0.05; [ $1 -gt 0 ] && setsid sh next.sh $(($1 - 1)) {marked.seconds} &
END
    setsid sh next.sh 200 {marked.seconds} > /dev/null 2>&1 &
    sleep 0.2
    """
    measure(tmp_path, script, timeout=5)
    marked.assert_gone()
    time.sleep(0.3)
    marked.assert_gone()


# Much output


@linux
@pytest.mark.parametrize(
    ("size", "place", "cause"),
    [
        (400 * 2**20, "stdout", None),
        (400 * 2**20, "file", "unusable_output"),
        pytest.param(2 * 2**30, "stdout", None, marks=pytest.mark.slow),
        pytest.param(2 * 2**30, "file", "unusable_output", marks=pytest.mark.slow),
    ],
)
def test_much_output_takes_little_memory_and_time(
    tmp_path: Path, size: int, place: str, cause: str | None
) -> None:
    peak = """
def pytest_sessionfinish():
    text = open("/proc/self/status").read().partition("VmHWM:")[2]
    open("peak", "w").write(text.split()[0])
"""
    script = (
        f"{IDEA} head -c {size} /dev/zero" if place == "stdout" else f"truncate -s {size} idea.md"
    )
    lay(tmp_path, {"agent.sh": script, "peak.py": peak, "pytest.ini": INI})
    start = time.monotonic()
    options = ["--mlr-limit=1", "--mlr-agent=cmd:sh agent.sh", "--mlr-threshold=overall>=1"]
    session(tmp_path, "-p", "peak", *options)
    assert time.monotonic() - start < 40
    (found,) = properties_of(tmp_path).values()
    assert found.get("mlr.cause") == cause
    assert int((tmp_path / "peak").read_text()) / 1024 < 300
    if place == "stdout":
        (log,) = tmp_path.glob(".mlrbench/runs/*/cases/*/*/r1/agent.log")
        assert Limits().log <= log.stat().st_size < Limits().log + 200
        assert log.read_bytes()[-100:].endswith(b" more bytes of output were not kept]\n")


# Python agents

PYTHON = """
import asyncio, os, sys
from pathlib import Path

calls = 0
Path(os.environ.get("MLR_WORKSPACE", "."), "imported").touch()

def write(work, text="# An idea"):
    (work.workspace / "idea.md").write_text(text)

def plain(work):
    global calls
    calls += 1
    write(work, f"call {calls}")

async def coroutine(work):
    await asyncio.sleep(0)
    write(work)

class Callable:
    def __call__(self, work):
        write(work)

    async def later(self, work):
        write(work)

instance = Callable()

def raises(work):
    write(work)
    raise ValueError("my last words")

async def raises_later(work):
    write(work)
    raise ValueError("my last words")

def exits(work):
    write(work)
    sys.exit(4)

def exits_with_words(work):
    sys.exit("my last words")

def exits_well(work):
    write(work)
    sys.exit(0)

def exits_hard(work):
    write(work)
    os._exit(5)

def interrupts(work):
    raise KeyboardInterrupt

def cancels(work):
    raise asyncio.CancelledError

async def cancels_later(work):
    raise asyncio.CancelledError

def aborts(work):
    os.abort()

def deep(work):
    deep(work)

def unprintable(work):
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no words")
    raise Odd

def surrogates(work):
    raise ValueError("caf\\udce9")

def no_idea(work):
    return 3

def waits(work):
    import time
    time.sleep(1000)

async def waits_later(work):
    await asyncio.sleep(1000)

async def ignores_cancelling(work):
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            write(work)
            return
"""
CRASHES = (
    ("raises", ["my last words"]),
    ("raises_later", ["my last words"]),
    ("exits", []),
    ("exits_with_words", ["my last words"]),
    ("interrupts", []),
    ("cancels", []),
    ("cancels_later", []),
    ("deep", ["RecursionError"]),
    ("unprintable", []),
    ("surrogates", ["ValueError"]),
)
#: Those that leave an idea before they crash.
LEAVE_IDEA = {"raises", "raises_later", "exits", "exits_hard"}


@pytest.mark.parametrize("name", ["plain", "coroutine", "instance", "instance.later", "exits_well"])
def test_python_agents(tmp_path: Path, name: str) -> None:
    lay(tmp_path, {"mine.py": PYTHON})
    assert_scored(measure(tmp_path, f"py:mine:{name}"))


@pytest.mark.parametrize(
    ("name", "words"), [*CRASHES, ("exits_hard", ["exit code 5"]), ("aborts", ["signal SIGABRT"])]
)
def test_a_python_agent_that_crashes(tmp_path: Path, name: str, words: list[str]) -> None:
    lay(tmp_path, {"mine.py": PYTHON})
    result = measure(tmp_path, f"py:mine:{name}")
    assert_fault(result, "crash", *words, scored=name in LEAVE_IDEA)


@pytest.mark.parametrize("name", ["waits", "waits_later"])
def test_a_python_agent_that_never_ends(tmp_path: Path, name: str) -> None:
    lay(tmp_path, {"mine.py": PYTHON})
    assert_fault(measure(tmp_path, f"py:mine:{name}", timeout=1), "timeout")


def test_a_python_agent_that_writes_nothing(tmp_path: Path) -> None:
    lay(tmp_path, {"mine.py": PYTHON})
    assert_fault(measure(tmp_path, "py:mine:no_idea"), "no_output")


def test_a_python_agent_starts_afresh_in_every_case(tmp_path: Path) -> None:
    lay(tmp_path, {"mine.py": PYTHON, "pytest.ini": INI})
    session(tmp_path, "--mlr-agent=py:mine:plain", "--mlr-limit=2")
    ideas = list(tmp_path.glob(".mlrbench/runs/*/cases/*/*/r1/submission/idea.md"))
    assert [path.read_text() for path in ideas] == ["call 1"] * 2


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("raise ValueError('not today')", ["cannot be loaded", "not today"]),
        ("import no_such_module_of_mine", ["no_such_module_of_mine"]),
        ("agent = 3", ["not callable"]),
        ("", ["agent"]),
        ("def agent(:", ["SyntaxError"]),
        ("import os; os._exit(3)", ["cannot be loaded"]),
    ],
    ids=["raises", "needs a module", "a number", "empty", "no Python", "exits"],
)
def test_a_python_agent_that_cannot_be_imported_is_refused_before_the_first_case(
    tmp_path: Path, module: str, words: list[str]
) -> None:
    lay(tmp_path, {"mine.py": module})
    with pytest.raises(InputError) as caught:
        make_agent("py:mine:agent", tmp_path).prepare([])
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


# Functions in this process


def mine(tmp_path: Path, name: str) -> FunctionAgent:
    namespace: dict[str, Any] = {"__name__": "mine", "__file__": str(tmp_path / "mine.py")}
    exec(compile(PYTHON, "mine.py", "exec"), namespace)
    function = namespace[name.partition(".")[0]]
    return FunctionAgent(function.later if "." in name else function)


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize("name", ["plain", "coroutine", "instance", "instance.later", "exits_well"])
def test_functions(tmp_path: Path, name: str) -> None:
    result = measure(tmp_path, mine(tmp_path, name))
    if name == "exits_well":
        # A function cannot end a process that is not its own.
        assert_fault(result, "crash", "SystemExit", scored=True)
    else:
        assert_scored(result)


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(("name", "words"), CRASHES)
def test_a_function_that_crashes(tmp_path: Path, name: str, words: list[str]) -> None:
    result = measure(tmp_path, mine(tmp_path, name))
    assert_fault(result, "crash", *words, scored=name in LEAVE_IDEA)


@pytest.mark.usefixtures("_here")
def test_a_coroutine_that_exits(tmp_path: Path) -> None:
    async def exits(work: Assignment) -> None:
        sys.exit("my last words")

    assert_fault(measure(tmp_path, FunctionAgent(exits)), "crash", "my last words")


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize("name", ["waits_later", "ignores_cancelling"])
def test_a_coroutine_that_never_ends(tmp_path: Path, name: str) -> None:
    start = time.monotonic()
    result = measure(tmp_path, mine(tmp_path, name), timeout=0.5)
    assert_fault(result, "timeout", scored=name == "ignores_cancelling")
    assert time.monotonic() - start < 5


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize("cause", ["timeout", "unusable_output"])
def test_what_a_function_goes_on_writing_after_its_end_is_not_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """Neither after its deadline nor from a thread that it left; times and size are no proof."""
    judging, written = threading.Event(), threading.Event()

    def writes_on(work: Assignment) -> None:
        idea = work.workspace / "idea.md"
        idea.write_text("# An idea")
        before = idea.stat()

        def later() -> None:
            judging.wait(60)
            idea.write_text("# No idea")
            os.utime(idea, ns=(before.st_atime_ns, before.st_mtime_ns))
            written.set()

        thread = threading.Thread(target=later)
        thread.start()
        if cause == "timeout":
            thread.join()

    was = ChecklistJudge.review

    async def review(judge: ChecklistJudge, work: Reviewable) -> Answer:
        judging.set()
        assert written.wait(60)
        return await was(judge, work)

    monkeypatch.setattr(ChecklistJudge, "review", review)
    assert_fault(measure(tmp_path, FunctionAgent(writes_on), timeout=0.5), cause)
    assert written.is_set()


@pytest.mark.usefixtures("_here")
def test_a_function_that_never_ends_is_no_longer_waited_for(tmp_path: Path) -> None:
    over = threading.Event()

    def waits(work: Assignment) -> None:
        over.wait(60)

    start = time.monotonic()
    try:
        assert_fault(measure(tmp_path, FunctionAgent(waits), timeout=0.5), "timeout")
        assert time.monotonic() - start < 5
    finally:
        over.set()


# In a session


def session(
    folder: Path, *options: str, start: list[str] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest in *folder* on stage idea; it must come to its end by itself."""
    inherited = outside_variables(folder)
    return subprocess.run(
        [
            *(start or [sys.executable]),
            *("-m", "pytest", *WITHOUT, "--mlr-stage=idea", "--junitxml=junit.xml"),
            *options,
        ],
        cwd=folder,
        env=inherited | variables,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )


def properties_of(folder: Path) -> dict[str, dict[str, str]]:
    """Task id → properties, as JUnit has them."""
    tree = ET.parse(folder / "junit.xml")
    found = [
        {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
        for case in tree.iter("testcase")
    ]
    return {properties["mlr.task"]: properties for properties in found}


ASSORTED = f"""
case $MLR_TASK_ID in
{TASKS[0]}) ;;
{TASKS[1]}) mkfifo idea.md ;;
{TASKS[2]}) echo my last words; exit 3 ;;
{TASKS[3]}) kill -KILL $$ ;;
{TASKS[4]}) echo waiting; sleep 1000 ;;
*) {IDEA};;
esac
"""
EXPECTED = dict(
    zip(TASKS, ["no_output", "unusable_output", "crash", "crash", "timeout", None], strict=True)
)


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_the_remaining_cases_are_run(tmp_path: Path, workers: tuple[str, ...]) -> None:
    lay(tmp_path, {"agent.sh": ASSORTED, "pytest.ini": INI})
    done = session(
        tmp_path,
        *workers,
        "--mlr-agent=cmd:sh agent.sh",
        "--mlr-timeout=2",
        "--mlr-threshold=overall>=1",
    )
    assert done.returncode == 1
    found = properties_of(tmp_path)
    assert {task: p.get("mlr.cause") for task, p in found.items()} == EXPECTED
    assert {p["mlr.blame"] for p in found.values() if "mlr.blame" in p} == {"agent"}
    assert [p["mlr.verdict"] for p in found.values()].count("fail") == 5
    suite = ET.parse(tmp_path / "junit.xml").find("testsuite")
    assert suite is not None
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("5", "0")
    assert "INTERNALERROR" not in done.stdout
    for words in ("2 crash, 1 no output, 1 timeout, 1 unusable output", "my last words"):
        assert words in done.stdout
    logs = {
        path.parts[-3]: path.read_text()
        for path in tmp_path.glob(".mlrbench/runs/*/cases/idea/*/r1/agent.log")
    }
    assert sorted(logs) == sorted(TASKS)
    assert logs[TASKS[2]] == "my last words\n"
    assert logs[TASKS[4]] == "waiting\n"


# What a command is given


def test_the_variables_and_the_folder_of_a_command(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "tools/agent.sh": "env -0 > environment; pwd -P > where; cat > input; "
            'for word; do echo "$word"; done > words\n' + IDEA,
            "tools/more.txt": "",
            "pytest.ini": INI + "mlr_agent = cmd:sh tools/agent.sh tools/more.txt none.txt -x\n",
            "below/.keep": "",
        },
    )
    before = time.time()
    session(
        tmp_path / "below",
        f"--rootdir={tmp_path}",
        "-c",
        str(tmp_path / "pytest.ini"),
        "--mlr-limit=1",
        "--mlr-repeats=2",
        "--mlr-timeout=90",
        PYTEST_ADDOPTS="-q",
        PYTEST_DEBUG_TEMPROOT=str(tmp_path),
        MY_OWN="kept",
        MLR_TASK_ID="not this",
    )
    workspaces = sorted(tmp_path.rglob("cases/idea/*/r*/submission"))
    assert len(workspaces) == 2
    for repeat, workspace in enumerate(workspaces, 1):
        text = (workspace / "environment").read_bytes().decode()
        found = dict(line.partition("=")[::2] for line in text.split("\0") if line)
        assert {name: found[name] for name in found if name.startswith("MLR_")} == {
            "MLR_STAGE": "idea",
            "MLR_TASK_ID": TASKS[0],
            "MLR_REPEAT": str(repeat),
            "MLR_WORKSPACE": str(workspace),
            "MLR_DEADLINE": found["MLR_DEADLINE"],
        }
        assert before + 89 <= int(found["MLR_DEADLINE"]) <= time.time() + 91
        assert [name for name in found if name.startswith("PYTEST_")] == []
        assert found["MY_OWN"] == "kept"
        assert (workspace / "where").read_text() == f"{workspace.resolve()}\n"
        assert (workspace / "input").read_text() == ""
        words = [f"{tmp_path}/tools/more.txt", "none.txt", "-x"]
        assert (workspace / "words").read_text().splitlines() == words


def test_a_python_agent_is_given_the_same(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "mine.py": """
import json, os, time
from dataclasses import fields

def agent(work):
    told = {field.name: str(getattr(work, field.name)) for field in fields(work)}
    told |= {"left": work.seconds_left, "cwd": os.getcwd()}
    told["pytest"] = [name for name in os.environ if name.startswith("PYTEST_")]
    (work.workspace / "idea.md").write_text(json.dumps(told))
""",
        },
    )
    result = measure(tmp_path, "py:mine:agent", timeout=77)
    assert_scored(result)
    workspace = case_folder(tmp_path) / "submission"
    told = json.loads((workspace / "idea.md").read_text())
    assert (told["stage"], told["task_id"], told["repeat"]) == ("idea", TASKS[0], "1")
    assert told["workspace"] == told["cwd"] == str(workspace)
    assert told["log"] == str(workspace.parent / "agent.log")
    assert 60 < told["left"] < 78
    assert told["pytest"] == []
