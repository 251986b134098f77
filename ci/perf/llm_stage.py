"""201 ideas, each judged by two models: ours beside others, against one scripted provider.

    python ci/perf/llm_stage.py [--rounds 3] [--inspect PYTHON] [--sequential]

Run it with the interpreter of an environment in which the project is installed with the extra
``models``. The provider is a process of this machine that takes 1 s for an answer; 64 cases are
under way at once, so no runner can be faster than 8 s. In the second row it takes a random time
(log-normal, mean 1 s, standard deviation 1 s), which depends on task and model only, so that all
runners have the same. ``--inspect`` names the interpreter of an environment with Inspect AI.
Prints medians beside their targets, and exits with 1 if one is missed.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import Received, StubProvider

TASKS, CONCURRENCY = 201, 64
WRITER, JUDGES = "idea-model", ("judge-a", "judge-b")
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Took:
    """Seconds of wall and of CPU, MB of the largest process, and requests the provider saw."""

    wall: float
    cpu: float
    megabytes: float
    calls: int


def run(stub: StubProvider, folder: Path, *command: str) -> Took:
    """Run *command* to its end."""
    stub.requests.clear()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=(folder / "output").open("wb"),
        stderr=subprocess.STDOUT,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    # 1: cases below the threshold are an answer as well.
    if process.returncode not in (0, 1):
        sys.exit(
            f"{command[:3]} ended with {process.returncode}:\n{(folder / 'output').read_text()}"
        )
    cpu = used.ru_utime + used.ru_stime
    return Took(wall, cpu, used.ru_maxrss / 1024, len(stub.requests))


def ours(url: str, *more: str) -> list[str]:
    """Return the command of this project."""
    judges = [f"--mlr-judge={name}=openai:{name}" for name in JUDGES]
    return [
        *(sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"),
        *("--mlr-suite=path:suite", "--mlr-stage=idea", f"--mlr-agent=scaffold:openai/{WRITER}"),
        *(*judges, f"--mlr-model=openai:* base_url={url} max_tokens=4000", "--mlr-no-preflight"),
        *more,
    ]


def make_suite(folder: Path) -> None:
    """Write 201 tasks as long as the published ones."""
    (folder / "suite/tasks").mkdir(parents=True)
    for number in range(TASKS):
        text = f"# Task {number:03}\n\n" + "Find out how and why small networks forget. " * 55
        (folder / f"suite/tasks/task{number:03}.md").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")


def task_of(asked: Received) -> str:
    """Which task a request is about."""
    text = str(asked.body)
    at = text.index("# Task ") + len("# Task ")
    return text[at : at + 3]


def random_delay(task: str, model: str) -> float:
    """Log-normal with mean 1 and standard deviation 1, the same for the same task and model."""
    sigma = math.sqrt(math.log(2))
    return random.Random(f"{task} {model}").lognormvariate(-(sigma**2) / 2, sigma)


def shortest(delay: Callable[[str, str], float]) -> float:
    """The larger of the work divided by 64 and the longest case: no runner can be faster."""
    cases = [
        delay(f"{number:03}", WRITER) + max(delay(f"{number:03}", judge) for judge in JUDGES)
        for number in range(TASKS)
    ]
    return max(sum(cases) / CONCURRENCY, *cases)


def in_order(delay: Callable[[str, str], float]) -> float:
    """What 64 at once take that begin the cases in order and lose no time."""
    free = [0.0] * CONCURRENCY
    for number in range(TASKS):
        task = f"{number:03}"
        case = delay(task, WRITER) + max(delay(task, judge) for judge in JUDGES)
        heapq.heapreplace(free, free[0] + case)
    return max(free)


def others(url: str, inspect: str, sequential: bool) -> dict[str, tuple[list[str], float]]:
    """Label → command and by how much its time is to be multiplied, of those beside us."""
    peers = HERE / "peers"
    found = {"plain asyncio + openai SDK": ([sys.executable, str(peers / "plain.py"), url], 1.0)}
    if inspect:
        command = [inspect, str(peers / "inspect_run.py"), url, str(CONCURRENCY)]
        found["Inspect AI, same concurrency"] = (command, 1.0)
    if sequential:
        command = [sys.executable, str(peers / "plain.py"), url, "10", "1"]
        found["one after the other (from 10)"] = (command, TASKS / 10)
    return found


def median(rounds: list[Took]) -> Took:
    """The medians of several runs."""
    values = zip(*((r.wall, r.cpu, r.megabytes, r.calls) for r in rounds), strict=True)
    wall, cpu, megabytes, calls = (statistics.median(column) for column in values)
    return Took(wall, cpu, megabytes, int(calls))


def rows(stub: StubProvider, folder: Path, options: argparse.Namespace) -> Iterator[bool]:
    """Print the rows one by one, and yield whether each target is met."""
    url = stub.base_url("openai")
    at_once = f"--mlr-concurrency={CONCURRENCY}"
    beside = others(url, options.inspect, options.sequential)
    for title, delay in (("1 s", lambda task, model: 1.0), ("log-normal", random_delay)):
        stub.script = lambda asked, delay=delay: Reply(delay=delay(task_of(asked), asked.model))
        best = 8.0 if title == "1 s" else shortest(delay)
        print(f"latency {title}: at best {best:.2f} s; in order {in_order(delay):.2f} s")
        goals = Took(1.16 * 8, 4.0, 150.0, 3 * TASKS) if title == "1 s" else None
        runs: dict[str, list[Took]] = {"ours": [], **{label: [] for label in beside}}
        for _ in range(options.rounds):
            runs["ours"].append(run(stub, folder, *ours(url, at_once)))
            for label, (command, _times) in beside.items():
                runs[label].append(run(stub, folder, *command))
        for label, (_, times) in {"ours": ([], 1.0), **beside}.items():
            took = median(runs[label])
            print(
                f"  {label:32} {took.wall * times:7.2f} s wall ({took.wall * times / best:.2f} x),"
                f" {took.cpu * times:5.2f} s CPU, {took.megabytes:4.0f} MB, {took.calls} calls"
            )
        took = median(runs["ours"])
        if goals:
            yield took.wall <= goals.wall and took.cpu <= goals.cpu
            yield took.megabytes <= goals.megabytes and took.calls == goals.calls
        else:
            yield took.wall <= 1.2 * best
    again = median([run(stub, folder, *ours(url, at_once, "--mlr-resume")) for _ in range(3)])
    print(f"  the complete run resumed: {again.wall:.2f} s, {again.calls} calls (target 1.9 s, 0)")
    yield again.wall <= 1.9 and again.calls == 0


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inspect", default="", metavar="PYTHON")
    parser.add_argument("--sequential", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, StubProvider() as stub:
        make_suite(Path(name))
        met = list(rows(stub, Path(name), options))
    print("all targets met" if all(met) else "MISSED a target")
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
