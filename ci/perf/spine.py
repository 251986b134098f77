"""How much pytest-mlrbench adds to pytest: start-up, collecting and resuming 1,005 cases.

    python ci/perf/spine.py [--pairs 15] [--rounds 3]

Run it with the interpreter of an environment in which the project is installed (not editable).
Prints the median of each figure beside the target it is held to; exits with 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = 201

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


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        added = statistics.median(start_up(folder, arguments.pairs))
        rows.append((f"start-up added, ms (median of {arguments.pairs} pairs)", added * 1000, 15))
        make_suite(folder)
        (folder / "conftest.py").write_text(CONFTEST)
        ours = ["--mlr-suite=path:suite", "--mlr-agent=fixture"]
        collect = [*ours, "--mlr-stage=all", "--collect-only"]
        for label, words, target in (
            (f"collecting {5 * TASKS} cases, s", collect, 1.5),
            (f"resuming {5 * TASKS} finished cases, s", [*ours, "--mlr-stage=all"], 3.0),
            (f"resuming {TASKS} finished cases, s", [*ours, "--mlr-stage=idea"], 1.9),
        ):
            if "resuming" in label:
                seconds(folder, *words)
                words = [*words, "--mlr-resume"]
            took = [seconds(folder, *words) for _ in range(arguments.rounds)]
            rows.append(
                (f"{label} (median of {arguments.rounds})", statistics.median(took), target)
            )
    for label, value, target in rows:
        mark = "ok" if value < target else "MISSED"
        print(f"{label:52} {value:8.2f}   target < {target:<5} {mark}")
    return int(any(value >= target for _, value, target in rows))


if __name__ == "__main__":
    sys.exit(main())
