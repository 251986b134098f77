"""Under xdist: a free worker gets the next case, every case exactly once, the longest first."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from builders import lay
from files import outside_variables

#: Plugins that child sessions need not load.
WITHOUT = ("-p", "no:hypothesispytest", "-p", "no:asyncio")
#: Sleeps as long as the task's title says, notes when, and does badly or worse if it says so.
CONFTEST = """
import os, time
from pathlib import Path
import pytest

HERE = Path(__file__).parent

def note(*words):
    file = os.open(HERE / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (" ".join(map(str, words)) + "\\n").encode())
    os.close(file)

def agent(work):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    note("start", work.task_id, time.time(), worker)
    words = (work.workspace / "task.md").read_text().split()
    time.sleep(float(words[0]))
    if "exits" in words and not (HERE / "go").exists():
        os._exit(7)
    if "fails" not in words or (HERE / "go").exists():
        (work.workspace / "idea.md").write_text("# An idea")
    note("end", work.task_id, time.time(), worker)

@pytest.fixture(scope="session")
def mlr_agent():
    return agent

def pytest_sessionfinish(session):
    scheduler = getattr(session.config.pluginmanager.get_plugin("dsession"), "sched", None)
    if scheduler is not None:
        (HERE / "scheduler").write_text(type(scheduler).__name__)
"""


class Bench:
    """A repository whose tasks take the time they say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lay(
            path,
            {
                "pytest.ini": "[pytest]\n",
                "conftest.py": CONFTEST,
                "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n",
            },
        )

    def tasks(self, what: Mapping[str, str]) -> None:
        """Lay a suite: task id → its text, which says what the agent does."""
        rows = "".join(f"{task},{task}\n" for task in what)
        files = {f"suite/tasks/{task}.md": f"{text}\n" for task, text in what.items()}
        lay(self.path, files)
        lay(self.path, {"suite/suite.yaml": "name: own\n", "suite/tasks.csv": f"id,title\n{rows}"})

    def run(
        self, *options: str, code: int = 0, shuffled: bool = False, tests: Sequence[str] = ()
    ) -> str:
        """Run pytest; *code* is the exit code it must have. Return what it printed."""
        (self.path / "calls").write_text("")
        inherited = outside_variables(self.path, "MLR")
        command = [
            *(sys.executable, "-m", "pytest", *WITHOUT, "--mlr-stage=idea"),
            *("--mlr-suite=path:suite", "--mlr-agent=fixture", "--mlr-threshold=overall>=1"),
            *(() if shuffled else ("-p", "no:randomly")),
            *("--junitxml=junit.xml", *options, *(tests or ["test_mlr.py"])),
        ]
        done = subprocess.run(
            command,
            cwd=self.path,
            env=inherited,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "INTERNALERROR" not in done.stdout
        return done.stdout + done.stderr

    @property
    def calls(self) -> list[list[str]]:
        return [line.split() for line in (self.path / "calls").read_text().splitlines()]

    @property
    def started(self) -> list[str]:
        """Ids of the tasks, in the order their agents have started."""
        begun = [(float(when), task) for kind, task, when, _ in self.calls if kind == "start"]
        return [task for _, task in sorted(begun)]

    @property
    def makespan(self) -> float:
        """Seconds from the first start of an agent to the last end of one."""
        times = [float(words[2]) for words in self.calls]
        return max(times) - min(times)

    @property
    def reported(self) -> Counter[str]:
        """How often each test is in the JUnit report."""
        cases = ET.parse(self.path / "junit.xml").iter("testcase")
        return Counter(case.attrib["name"] for case in cases)

    @property
    def scheduler(self) -> str:
        return (self.path / "scheduler").read_text()

    def assert_once(self, tasks: Sequence[str], tests: Sequence[str] = ()) -> None:
        """Every case was run once and reported once, and so was each of the other *tests*."""
        assert Counter(self.started) == Counter(tasks)
        assert self.reported == Counter([*(f"test_idea[{task}]" for task in tasks), *tests])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def short(number: int) -> dict[str, str]:
    return {f"s{n}": "0.01" for n in range(number)}


# How long it takes


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_no_worker_holds_a_case_while_another_is_free(bench: Bench, workers: int) -> None:
    """xdist alone gives both long cases to one worker: 2 s and more."""
    tasks = {"a1": "1.0", "a2": "1.0"} | {f"b{n}": "0.1" for n in range(6)}
    bench.tasks(tasks)
    bench.run("-n", str(workers))
    bench.assert_once(list(tasks))
    # Two workers: a long case and three short ones each. Three: the short ones beside both.
    ideal = 1.3 if workers == 2 else 1.0
    assert bench.makespan < ideal + 0.6


@pytest.mark.slow
def test_a_case_in_hand_is_the_only_one_a_worker_has(bench: Bench) -> None:
    """While one worker is busy, the other does all the rest."""
    tasks = {"a": "1.2"} | {f"b{n}": "0.01" for n in range(8)}
    bench.tasks(tasks)
    bench.run("-n", "2")
    bench.assert_once(list(tasks))
    by_worker: dict[str, list[str]] = {}
    for kind, task, _, worker in bench.calls:
        if kind == "start":
            by_worker.setdefault(worker, []).append(task)
    assert ["a"] in by_worker.values()


@pytest.mark.slow
def test_the_longest_are_first_once_their_times_are_known(bench: Bench) -> None:
    tasks = {f"b{n}": "0.05" for n in range(4)} | {"a1": "0.5", "a2": "0.7"}
    bench.tasks(tasks)
    bench.run("-n", "2")
    assert sorted(bench.started[-2:]) == ["a1", "a2"]
    bench.run("-n", "2")  # another run
    bench.assert_once(list(tasks))
    assert sorted(bench.started[:2]) == ["a1", "a2"]
    assert bench.makespan < 0.7 + 0.6


@pytest.mark.slow
def test_the_longest_are_first_when_cases_are_run_again(bench: Bench) -> None:
    tasks = {f"b{n}": "0.05" for n in range(3)} | {"a1": "0.5 fails", "a2": "0.7 fails"}
    bench.tasks(tasks)
    bench.run("-n", "2", code=1)
    (bench.path / "go").touch()
    bench.run("-n", "2", "--mlr-resume", "--mlr-agent-version=2")
    assert Counter(bench.started) == Counter(list(tasks))
    assert sorted(bench.started[:2]) == ["a1", "a2"]


# Each case once


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_few_cases(bench: Bench, number: int) -> None:
    bench.tasks(short(number))
    out = bench.run("-n", "2", "-v")
    bench.assert_once(list(short(number)))
    assert f"{number} passed" in out
    assert "idle" not in out


@pytest.mark.slow
def test_no_case(bench: Bench) -> None:
    bench.tasks(short(2))
    out = bench.run("-n", "2", "-k", "nothing", code=4)
    assert "has collected no" in out
    assert bench.started == []
    assert list(bench.path.glob(".mlrbench/runs/*/run.json")) == []


@pytest.mark.slow
def test_only_tests_are_counted(bench: Bench) -> None:
    bench.tasks(short(5))
    out = bench.run("-n", "2")
    assert "2 workers [5 items]" in out
    assert "[100%]" in out
    assert "idle" not in out
    assert "5/5" in out


@pytest.mark.slow
def test_failed_first(bench: Bench) -> None:
    tasks = short(5) | {"bad": "0.01 fails", "s6": "0.01"}
    bench.tasks(tasks)
    bench.run("-n", "2", code=1)
    bench.assert_once(list(tasks))
    out = bench.run("-n", "2", "--ff", code=1)
    bench.assert_once(list(tasks))
    assert "bad" in bench.started[:2]
    assert "2 workers [7 items]" in out


@pytest.mark.slow
def test_only_what_failed(bench: Bench) -> None:
    tasks = short(4) | {"bad": "0.01 fails", "worse": "0.01 fails"}
    bench.tasks(tasks)
    bench.run("-n", "2", code=1)
    out = bench.run("-n", "2", "--lf", code=1)
    bench.assert_once(["bad", "worse"])
    assert "2 workers [2 items]" in out


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_shuffled(bench: Bench, seed: int) -> None:
    pytest.importorskip("pytest_randomly")
    bench.tasks(short(8))
    bench.run("-n", "2", f"--randomly-seed={seed}", shuffled=True)
    bench.assert_once(list(short(8)))


@pytest.mark.slow
def test_shuffled_by_a_plugin_of_ones_own(bench: Bench) -> None:
    """Whatever the order, the idle slot stays out of it."""
    seeds = random.Random(3)
    shuffle = f"""
import random, pytest
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    random.Random({seeds.random()}).shuffle(items)
"""
    lay(bench.path, {"conftest.py": CONFTEST + shuffle})
    bench.tasks(short(8))
    out = bench.run("-n", "3")
    bench.assert_once(list(short(8)))
    assert "3 workers [8 items]" in out


def test_stopping_at_the_first_failure(bench: Bench) -> None:
    tasks = {"bad": "0.01 fails"} | {f"b{n}": "0.4" for n in range(8)}
    bench.tasks(tasks)
    out = bench.run("-n", "2", "-x", code=2)
    assert max(Counter(bench.started).values()) == 1
    assert len(bench.started) < 6
    assert "not run" in out


@pytest.mark.slow
def test_after_a_worker_crash_the_rest_is_run_once(bench: Bench) -> None:
    tasks = short(3) | {"bad": "0.05 exits"} | {f"b{n}": "0.05" for n in range(5)}
    bench.tasks(tasks)
    out = bench.run("-n", "2", code=1)
    assert Counter(bench.started) == Counter(list(tasks))
    assert bench.reported == Counter(f"test_idea[{task}]" for task in tasks)
    assert "8 passed" in out
    assert "1 worker crash" in out


@pytest.mark.slow
def test_every_worker_crashes(bench: Bench) -> None:
    tasks = {f"bad{n}": "0.01 exits" for n in range(3)}
    bench.tasks(tasks)
    bench.run("-n", "2", "--max-worker-restart=10", code=1)
    bench.assert_once(list(tasks))


# What stays with xdist


@pytest.mark.parametrize(
    ("option", "scheduler"),
    [
        pytest.param("--dist=load", "OnDemandScheduling", marks=pytest.mark.slow),
        ("--dist=worksteal", "WorkStealingScheduling"),
        pytest.param("--dist=loadscope", "LoadScopeScheduling", marks=pytest.mark.slow),
        pytest.param("--dist=loadfile", "LoadFileScheduling", marks=pytest.mark.slow),
        pytest.param("--dist=loadgroup", "LoadGroupScheduling", marks=pytest.mark.slow),
    ],
)
def test_another_choice_of_the_user_stands(bench: Bench, option: str, scheduler: str) -> None:
    bench.tasks(short(5))
    bench.run("-n", "2", option)
    assert bench.scheduler == scheduler
    bench.assert_once(list(short(5)))


@pytest.mark.parametrize(
    "options", [(), pytest.param(("--dist=worksteal",), marks=pytest.mark.slow)], ids=str
)
def test_tests_of_ones_own_beside_the_cases(bench: Bench, options: tuple[str, ...]) -> None:
    own = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_own(n): pass\n"
    lay(bench.path, {"test_own.py": own})
    bench.tasks(short(4))
    out = bench.run("-n", "2", *options, tests=["test_own.py", "test_mlr.py"])
    bench.assert_once(list(short(4)), [f"test_own[{n}]" for n in range(4)])
    assert "2 workers [8 items]" in out


def test_each_worker_may_run_them_all(bench: Bench) -> None:
    """``--dist=each`` asks for every test in every worker, which no run folder can hold."""
    bench.tasks(short(2))
    out = bench.run("-n", "2", "--dist=each", code=4)
    assert "--dist=each" in out
    assert bench.started == []


@pytest.mark.slow
def test_without_workers_the_order_of_the_suite_stands(bench: Bench) -> None:
    tasks = {"b1": "0.01", "a1": "0.1", "c1": "0.05"}
    bench.tasks(tasks)
    for _ in range(2):
        bench.run()
        assert bench.started == list(tasks)
