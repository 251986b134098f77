"""Under a real engine: a container has the GPUs that were lent to its case, and no others.

The engine must accept requests for GPUs: ``ci/docker/engine.sh`` has one accept them on machines
without any.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from docker_bench import Bench
from fake_nvml import GPUS, MIGS
from test_leases import assert_never_shared, makespan

from pytest_mlrbench.sandbox import reaper
from pytest_mlrbench.sandbox.leases import Leases

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine"]
FOUR = (*GPUS[:3], MIGS[0])
#: Others may use the engine.
RUN = f"gpus-{os.getpid()}"
#: Runs a container on a GPU until it is killed.
CASE = """
import asyncio, sys
from pathlib import Path
from docker_bench import Bench
from pytest_mlrbench.sandbox.leases import Leases

async def main():
    boxes = Bench(Path(sys.argv[2]))
    sandbox = boxes.sandbox()
    async with Leases(Path(sys.argv[1]), [sys.argv[3]], lambda uuid: None).take() as uuids:
        print("has it", flush=True)
        await sandbox.run(boxes.job("sleep 600", gpus=uuids, run=sys.argv[4]))

asyncio.run(main())
"""


def lend(folder: Path, client: Any, uuids: tuple[str, ...] = FOUR) -> Leases:
    leases = Leases(folder / "locks", uuids, lambda uuid: reaper.sweep(client, uuid))
    leases.prepare()
    return leases


def test_containers_have_the_gpus_that_were_lent_and_no_others(
    engine: Any, boxes: Bench, tmp_path: Path
) -> None:
    """Two long cases and six short ones on four GPUs, one of them a part of a split one."""
    long, short = 12, 4
    sandbox = boxes.sandbox(cpus=None)
    sandbox.prepare()
    leases = lend(tmp_path, engine)
    had: list[tuple[str, float, float]] = []

    async def case(seconds: int) -> None:
        async with leases.take() as uuids:
            begin = time.monotonic()
            job = boxes.job(f"echo $NVIDIA_VISIBLE_DEVICES; sleep {seconds}", gpus=uuids, run=RUN)
            ended = await sandbox.run(job)
            had.append((uuids[0], begin, time.monotonic()))
        assert (ended.reason, ended.code) == ("exit", 0)
        assert job.log.read_text().split() == [*uuids]
        # Its container is gone by the time that another case may have the GPU.
        label = [f"mlrbench.run={RUN}", f"mlrbench.case={job.case}"]
        assert not engine.api.containers(all=True, filters={"label": label})

    async def all_of_them() -> None:
        await asyncio.gather(*map(case, [long] * 2 + [short] * 6))

    asyncio.run(all_of_them())
    assert {uuid for uuid, _, _ in had} == set(FOUR)
    assert_never_shared(had)
    print(f"makespan {makespan(had):.2f} s of {long} s")


def test_what_a_killed_process_left_on_a_gpu_is_gone_before_the_next_case(
    engine: Any, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", CASE, str(tmp_path / "locks"), str(tmp_path), GPUS[0], RUN]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    leases = lend(tmp_path, engine)
    label = {"label": [f"mlrbench.gpu={GPUS[0]}", f"mlrbench.run={RUN}"]}

    def running() -> list[Any]:
        return list(engine.containers.list(filters=label))

    async def next_case() -> None:
        async with leases.take() as uuids:
            assert uuids == (GPUS[0],)
            assert not engine.api.containers(all=True, filters=label)

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "has it\n"
        end = time.monotonic() + 60
        while not running():
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert running()  # it does not know that nobody waits for it any more
    asyncio.run(next_case())
