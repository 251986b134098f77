"""What a container costs: time per case, and memory of the process over many of them.

    python ci/perf/containers.py [--image mlrbench-base:ci] [--repeats 34]

Runs the ideas of suite mini by a command that does nearly nothing, once and then *repeats* times
(34: 204 cases), in containers and as local processes. Needs an engine with the image. Prints what
was measured; the memory of the long run beside that of the short one says whether cases leave any.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = [
    *(sys.executable, "-m", "pytest", "-p", "no:randomly", "-q", "--no-header"),
    *("--mlr-stage=idea", "--mlr-agent=cmd:sh agent.sh", "--mlr-threshold=overall>=1"),
]
LIMITS = "--mlr-limits=memory=256m shm=1m tmp=16m"
TASKS = 6


def measure(folder: Path, *options: str) -> tuple[float, float]:
    """Return wall seconds and the most memory (MB) of a run in *folder*."""
    start = time.monotonic()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*COMMAND, *options], cwd=folder, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit((folder / "log").read_text())
    return time.monotonic() - start, used.ru_maxrss / 1024


def main() -> None:
    """Measure, and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default="mlrbench-base:ci")
    parser.add_argument("--repeats", type=int, default=34)
    given = parser.parse_args()
    places = {
        "containers": ["--mlr-sandbox=docker", f"--mlr-image={given.image}", LIMITS],
        "local": ["--mlr-sandbox=local"],
    }
    for place, options in places.items():
        for repeats in (1, given.repeats):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "agent.sh").write_text("echo '# An idea' > idea.md\n")
                (folder / "pytest.ini").write_text("[pytest]\n")
                seconds, memory = measure(folder, *options, f"--mlr-repeats={repeats}")
            cases = TASKS * repeats
            print(
                f"{place:11} {cases:4} cases {seconds:7.1f} s, {seconds / cases:5.2f} s a case,"
                f" at most {memory:4.0f} MB"
            )


if __name__ == "__main__":
    main()
