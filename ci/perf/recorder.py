"""What the recorder costs: the same programs in containers with it and without.

    python ci/perf/recorder.py --packages SITE_PACKAGES [--rounds 5] [--runs 2] [PROGRAM …]

SITE_PACKAGES has scikit-learn, scipy and matplotlib for the image's Python. Containers with and
without the recorder take turns; in each, every program is run several times, and times itself from
its start to its end. Said is the fastest run of each kind, and the least that one has used of the
processor, with the tracer and without what reads the trace outside: on a machine that has other
work, these are nearest to the truth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from docker_bench import IMAGE, Bench

from pytest_mlrbench.sandbox import ledger
from pytest_mlrbench.sandbox.base import Job, Limits
from pytest_mlrbench.sandbox.docker import DockerSandbox
from pytest_mlrbench.sandbox.recorder import Recorder

PROGRAMS = {
    "imports": "import sklearn.ensemble, scipy.stats, matplotlib.pyplot",
    "training": (
        "import numpy as np\n"
        "rng = np.random.default_rng(0)\n"
        "x, w = rng.normal(size=(2000, 64)), np.zeros(64)\n"
        "y = (x @ rng.normal(size=64) > 0).astype(float)\n"
        "for step in range(2000):\n"
        "    w += 0.01 * x.T @ (y - 1 / (1 + np.exp(-x @ w))) / len(x)\n"
        "    if step % 200 == 0:\n"
        "        with open('log.csv', 'a') as log: log.write(f'{step},{w.sum()}\\n')\n"
        "        np.save('checkpoint.npy', w)\n"
    ),
    "python": "total = 0\nfor i in range(5_000_000): total += i * i % 7",
    "files": (
        "import os\n"
        "for i in range(2000):\n"
        "    with open(f'f{i % 50}', 'w') as file: file.write('x')\n"
        "    os.rename(f'f{i % 50}', f'g{i % 50}')\n"
    ),
    "processes": "import os\nfor i in range(40): os.system('true')",
}
_MEASURE = """
import json, os, subprocess, sys, time
def used():  # processor seconds of the whole container, tracer included
    try:
        return int(open("/sys/fs/cgroup/cpuacct/cpuacct.usage").read()) / 1e9
    except OSError:
        return int(open("/sys/fs/cgroup/cpu.stat").read().split()[1]) / 1e6
runs, programs = json.loads(os.environ["PROGRAMS"])
times = {}
for name, program in programs.items():
    for _ in range(runs + 1):
        begin, before = time.perf_counter(), used()
        subprocess.run([sys.executable, "-c", program], check=True)
        found = time.perf_counter() - begin, used() - before
        times.setdefault(name, []).append(found)
print("times", json.dumps({name: found[1:] for name, found in times.items()}))
"""


class Unrecorded(DockerSandbox):
    """The same containers without a recorder."""

    def recorder(self, job: Job) -> Recorder | None:
        return None


def measure(sandbox: DockerSandbox, job: Job) -> dict[str, list[list[float]]]:
    asyncio.run(sandbox.run(job))
    said = job.log.read_text()
    (line,) = [line for line in said.splitlines() if line.startswith("times")] or [said]
    found: dict[str, list[list[float]]] = json.loads(line.removeprefix("times"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    given = parser.parse_args()
    programs = {name: PROGRAMS[name] for name in given.programs or PROGRAMS}
    limits = Limits(memory=4 * 2**30)
    kinds = {
        "without": Unrecorded(image=IMAGE, limits=limits),
        "with": DockerSandbox(image=IMAGE, limits=limits),
    }
    times: dict[str, dict[str, list[list[float]]]] = {name: {} for name in programs}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for _ in range(given.rounds):
            for kind, sandbox in kinds.items():
                job = bench.job(
                    "",
                    seconds=600.0,
                    command=["python3", "-c", _MEASURE],
                    data={"packages": given.packages},
                    environment={
                        "PROGRAMS": json.dumps([given.runs, programs]),
                        "PYTHONPATH": "/data/packages",
                        "PYTHONDONTWRITEBYTECODE": "1",
                        "OMP_NUM_THREADS": "1",
                        "OPENBLAS_NUM_THREADS": "1",
                    },
                )
                for name, runs in measure(sandbox, job).items():
                    times[name].setdefault(kind, []).extend(runs)
        begin = time.perf_counter()
        lines = sum(1 for _ in ledger.read(job.ledger.path))
        print(f"ledger of a container: {lines} events, {job.ledger.path.stat().st_size} bytes,")
        print(f"  read again in {time.perf_counter() - begin:.2f} s")
    for sandbox in kinds.values():
        sandbox.close()
    print(f"{'':12}{'seconds':>31}{'of the processor':>31}")
    for name, by_kind in times.items():
        row = f"{name:12}"
        for which in (0, 1):
            bare, recorded = (min(run[which] for run in by_kind[kind]) for kind in kinds)
            row += f"{bare:9.3f} ->{recorded:7.3f}  {100 * (recorded / bare - 1):+6.1f} %"
        print(row)


if __name__ == "__main__":
    main()
