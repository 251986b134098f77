"""How much pytest-mlrbench adds to pytest: start-up, collecting and resuming.

    python ci/perf/spine.py [--pairs 15] [--rounds 5]

Run it with the interpreter of an environment in which the project is installed (not editable).
Prints medians beside the targets they are held to, and what as many trivial tests take in plain
pytest on the same machine; exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TASKS = 201
CASES = 5 * TASKS

IDEA = "--mlr-stage=idea"
PUBLISHED = [
    "--mlr-suite=mlrbench",
    IDEA,
    "--mlr-repeats=5",
    "--mlr-agent=published:o4-mini-2025-04-16",
    "--mlr-judge=published",
]
#: As many tests of plain pytest, with as many fixtures, for scale.
PLAIN = """
import pytest

@pytest.fixture(scope="session")
def folder():
    return 1

@pytest.fixture(scope="session")
def agent():
    return 1

@pytest.fixture(scope="session")
def judges():
    return 1

@pytest.fixture(scope="session")
def engine(folder, agent, judges):
    return 1

@pytest.fixture
def result(request, case, engine):
    return case

@pytest.mark.parametrize("case", range({cases}))
def test_case(result):
    assert {holds}
"""

CONFTEST = """
import pytest

TEXT = "# Title\\n\\nA text of an agent, long enough to be one. " * 20

@pytest.fixture(scope="session")
def mlr_agent():
    def answer(case):
        for name in ("idea.md", "proposal.md", "results/results.md", "results/paper.md"):
            path = case.workspace / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(TEXT)
    return answer
"""


def seconds(folder: Path, *words: str, expect: tuple[int, ...] = (0, 1)) -> float:
    """Run pytest once and return its wall time."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - start
    if done.returncode not in expect:
        sys.exit(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return took


def start_up(folder: Path, pairs: int) -> list[float]:
    """Differences of `pytest` on one trivial test with and without the plugin, in pairs."""
    (folder / "test_trivial.py").write_text("def test_trivial():\n    pass\n")
    differences = []
    for pair in range(pairs + 1):
        both = [["test_trivial.py"], ["test_trivial.py", "-p", "no:mlrbench"]]
        order = both if pair % 2 else both[::-1]  # so that neither is always the warmer one
        took = {len(words): seconds(folder, *words) for words in order}
        differences.append(took[1] - took[3])
    return differences[1:]


def make_suite(folder: Path) -> None:
    """Write a suite of 201 tasks with inputs for every stage."""
    (folder / "suite/tasks").mkdir(parents=True)
    (folder / "suite/suite.yaml").write_text("name: perf\n")
    ids = [f"task{number:03}" for number in range(TASKS)]
    rows = "".join(f"{task},Title of {task}\n" for task in ids)
    (folder / "suite/tasks.csv").write_text(f"id,title\n{rows}")
    for task in ids:
        (folder / f"suite/tasks/{task}.md").write_text(f"# {task}\n\nA task.\n" * 40)
        inputs = folder / "suite/inputs" / task
        (inputs / "results").mkdir(parents=True)
        for name in ("idea.md", "related_work.md", "proposal.md", "results/results.md"):
            (inputs / name).write_text(f"Input {name} of {task}.\n" * 40)


def resumed(folder: Path, rounds: int, *words: str) -> float:
    """Run once, then return the median time of resuming it."""
    seconds(folder, *words)
    return statistics.median(seconds(folder, *words, "--mlr-resume") for _ in range(rounds))


def measure(folder: Path, pairs: int, rounds: int) -> Iterator[tuple[str, float, float | None]]:
    """Yield what is measured, its median, and the target it is held to, if any."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    yield "start-up added, ms", statistics.median(start_up(folder, pairs)) * 1000, 15
    for word, holds in ("pass", True), ("fail", False):
        (folder / "test_plain.py").write_text(PLAIN.format(cases=CASES, holds=holds))
        took = [seconds(folder, "test_plain.py", "-p", "no:mlrbench") for _ in range(rounds)]
        label = f"for scale: plain pytest, {CASES:,} trivial tests that {word}, s"
        yield label, statistics.median(took), None
    yield f"resuming {CASES:,} published cases, s", resumed(folder, rounds, *PUBLISHED), 3.0
    make_suite(folder)
    (folder / "conftest.py").write_text(CONFTEST)
    ours = ["--mlr-suite=path:suite", "--mlr-agent=fixture"]
    collect = [*ours, "--mlr-stage=all", "--collect-only"]
    took = [seconds(folder, *collect) for _ in range(rounds)]
    yield f"collecting {CASES:,} cases, s", statistics.median(took), 1.5
    yield f"resuming {TASKS} cases that fail, s", resumed(folder, rounds, *ours, IDEA), 1.9
    ours += ["--mlr-stage=all"]
    passing = resumed(folder, rounds, *ours, "--mlr-threshold=overall>=1")
    yield f"resuming {CASES:,} cases with inputs and files that pass, s", passing, 3.0
    failing = resumed(folder, rounds, *ours)
    yield f"resuming {CASES:,} cases with inputs and files that fail, s", failing, 3.0


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        for label, value, target in measure(Path(name), arguments.pairs, arguments.rounds):
            goal = f"   target < {target:<5}" if target else ""
            mark = "" if target is None else "ok" if value < target else "MISSED"
            missed += mark == "MISSED"
            print(f"{label:62} {value:8.2f}{goal} {mark}".rstrip(), flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
