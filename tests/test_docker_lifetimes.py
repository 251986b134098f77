"""Nothing is left: whoever is killed, and whatever becomes of the engine."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker_bench import IMAGE, Bench, OwnEngine, names

from pytest_mlrbench import cli_clean
from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.sandbox import labels, reaper
from pytest_mlrbench.sandbox.base import Limits
from pytest_mlrbench.sandbox.docker import DockerSandbox
from pytest_mlrbench.sandbox.threads import in_thread

pytest_plugins = ["docker_engine"]
container = [pytest.mark.docker, pytest.mark.slow]
#: What a worker does: it runs a case, until it is killed.
WORKER = """
import sys
from pathlib import Path
from docker_bench import Bench
boxes = Bench(Path(sys.argv[1]))
boxes.run_id = sys.argv[2]
boxes.run(boxes.job("sleep 600", seconds=600, network=sys.argv[3]))
"""


class TestKilledOwners:
    pytestmark = container

    @pytest.fixture
    def killed(self, boxes: Bench, engine: Any, tmp_path: Path) -> str:
        """Run id of a worker that was killed while its agent ran; its container runs on."""
        run = f"{boxes.run_id}-killed"
        command = [sys.executable, "-c", WORKER, str(tmp_path), run, "full"]
        worker = subprocess.Popen(command, cwd=Path(__file__).parent)
        end = time.monotonic() + 60
        while not engine.api.containers(filters={"label": [f"mlrbench.run={run}"]}):
            assert worker.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        worker.kill()
        worker.wait()
        assert len(names(engine, run)) == 2  # a container and a network
        return run

    @pytest.fixture
    def foreign(self, engine: Any, boxes: Bench) -> Iterator[list[str]]:
        """Containers and a network that are not left by anybody."""
        live = labels.labels(boxes.run_id + "-live", "case")
        other_host = {**live, labels.OWNER: f"other:{'0' * 36}:1 1 1"}
        nonsense = {**live, labels.OWNER: "nobody"}
        made = [
            engine.containers.create(IMAGE, ["sleep", "60"], labels=marks, network_mode="none")
            for marks in ({}, {"mlrbench.run": "mine"}, live, other_host, nonsense)
        ]
        made.append(engine.networks.create(f"{boxes.run_id}-foreign"))
        made.append(engine.networks.create(f"{boxes.run_id}-live", labels=live))
        yield [it.id for it in made]
        for it in made:
            it.remove(**({"force": True} if hasattr(it, "exec_run") else {}))

    def test_the_next_start_removes_what_is_left_and_nothing_else(
        self, boxes: Bench, engine: Any, killed: str, foreign: list[str]
    ) -> None:
        boxes.sandbox().prepare()
        assert names(engine, killed) == []
        there = {it["Id"] for it in engine.api.containers(all=True)}
        there |= {it["Id"] for it in engine.api.networks()}
        assert there >= set(foreign)

    def test_so_does_clean_which_first_says_what_it_would_do(
        self, engine: Any, killed: str, foreign: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert clean("--dry-run") == 0
        said = capsys.readouterr().out
        assert said.count(f"of run {killed}, case case-1") == 2
        assert "would be removed: container mlrbench-" in said
        assert "kept, as its owner may be running:" in said
        assert len(names(engine, killed)) == 2
        assert clean() == 0
        assert "removed: network mlrbench-" in capsys.readouterr().out
        assert names(engine, killed) == []
        there = {it["Id"] for it in engine.api.containers(all=True)}
        assert there >= set(foreign[:5])

    def test_whoever_takes_a_gpu_removes_what_holds_it(
        self, boxes: Bench, engine: Any, killed: str
    ) -> None:
        assert reaper.sweep(engine, gpu="GPU-nobody-has") == []
        assert len(names(engine, killed)) == 2
        reaper.sweep(engine)
        assert names(engine, killed) == []

    def test_several_may_sweep_at_once(self, engine: Any, killed: str) -> None:
        failures: list[BaseException] = []

        def sweep() -> None:
            try:
                reaper.sweep(engine)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=sweep) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert names(engine, killed) == []


def clean(*words: str) -> int:
    """Run ``mlrbench clean``."""
    import argparse

    parser = argparse.ArgumentParser()
    cli_clean.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["clean", *words])
    code: int = arguments.run(arguments)
    return code


class TestEngines:
    """On an engine of the test's own."""

    pytestmark = container

    @pytest.fixture
    def own(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
        if os.getuid() != 0:
            pytest.skip("only root can start an engine")
        # Not pytest's own folder, which is kept; nor a long name, as sockets take none.
        made = OwnEngine(Path(tempfile.mkdtemp(prefix="mlr-")), {"MLR_GPU_STAND_IN": "0"})
        made.do("start")
        try:
            made.load(IMAGE)
            monkeypatch.setenv("DOCKER_HOST", made.address)
            yield made
        finally:
            made.do("remove")
            with warnings.catch_warnings():
                # The SDK leaves a socket open when it cannot connect.
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    @pytest.mark.parametrize("way", ["stop", "kill"])
    def test_an_engine_that_goes_away_is_not_the_agents_fault(
        self, own: OwnEngine, tmp_path: Path, way: str
    ) -> None:
        boxes = Bench(tmp_path)
        sandbox = boxes.sandbox()
        sandbox.prepare()
        job = boxes.job("echo begun; touch begun; sleep 600")

        def go() -> None:
            while not (job.workspace / "begun").exists():
                time.sleep(0.05)
            own.do(way)

        ending = threading.Thread(target=go)
        ending.start()
        with pytest.raises(SystemFault) as told:
            boxes.run(job, sandbox)
        assert told.value.cause == "engine"
        assert job.log.read_text() == "begun\n"
        with pytest.raises(SystemFault) as told:
            boxes.run(boxes.job("true"), sandbox)
        assert told.value.cause == "engine"
        ending.join()
        own.do("start")
        # The same process goes on with its next case, and what could not be removed then goes now.
        assert boxes.run(boxes.job("true"), sandbox).code == 0
        assert sandbox.client.api.containers(all=True) == []
        boxes.close()

    def test_an_engine_without_gpus_says_what_to_do(self, own: OwnEngine, tmp_path: Path) -> None:
        boxes = Bench(tmp_path)
        sandbox = boxes.sandbox()
        with pytest.raises(SystemFault, match=r"NVIDIA Container Toolkit.*--mlr-gpus=0"):
            boxes.run(boxes.job("true", gpus=["GPU-1"]), sandbox)
        sandbox.gpus = ("GPU-1",)
        del sandbox.examined
        with pytest.raises(InputError, match=r"NVIDIA Container Toolkit.*--mlr-gpus=0"):
            sandbox.prepare()
        assert sandbox.client.api.containers(all=True) == []
        boxes.close()


@pytest.mark.parametrize("step", ["_signal", "_kill"])
def test_an_engine_that_goes_away_as_an_agent_is_ended_is_named(step: str) -> None:
    pytest.importorskip("docker")
    from requests.exceptions import ConnectionError as Gone

    def gone(*_: object, **__: object) -> None:
        raise Gone("Connection refused")

    container = SimpleNamespace(exec_run=gone, kill=gone)
    stay: Any = SimpleNamespace(container=container, recorder=object())
    with pytest.raises(SystemFault) as told:
        getattr(DockerSandbox("image", Limits()), step)(stay)
    assert told.value.cause == "engine"


class TestOwners:
    def test_this_process_lives(self) -> None:
        mine = labels.owner(os.getpid())
        assert mine
        assert not labels.is_dead(mine)

    def test_a_process_that_has_ended_is_dead(self) -> None:
        process = subprocess.Popen(["sleep", "60"])
        label = labels.owner(process.pid)
        assert label
        assert not labels.is_dead(label)
        process.send_signal(signal.SIGKILL)
        while not labels.is_dead(label):  # also before anybody has waited for it
            time.sleep(0.01)
        process.wait()
        assert labels.is_dead(label)
        assert labels.owner(process.pid) is None

    def test_a_number_used_again_is_another_process(self) -> None:
        place, pid, start = (labels.owner(os.getpid()) or "").split()
        assert labels.is_dead(f"{place} {pid} {int(start) - 1}")

    def test_a_machine_started_anew_has_none_of_its_processes(self) -> None:
        place, pid, start = (labels.owner(os.getpid()) or "").split()
        host, _, namespace = place.split(":")
        assert labels.is_dead(f"{host}:{'0' * 36}:{namespace} {pid} {start}")

    @pytest.mark.parametrize("change", ["host", "namespace"])
    def test_of_other_machines_and_namespaces_nothing_is_known(self, change: str) -> None:
        host, boot, namespace = (labels.owner(os.getpid()) or "").split()[0].split(":")
        host = "elsewhere" if change == "host" else host
        namespace = "1" if change == "namespace" else namespace
        assert not labels.is_dead(f"{host}:{boot}:{namespace} 1 1")

    @pytest.mark.parametrize("label", ["", "me", "a b c", "a:b 1 2", ":: 1 2 3", "a:b:c x y"])
    def test_what_is_no_owner_is_not_dead(self, label: str) -> None:
        assert not labels.is_dead(label)


def test_work_in_a_thread_is_waited_for_however_often_it_is_cancelled() -> None:
    """Or what it is about to make would be removed before it is there."""
    going_on, done = threading.Event(), threading.Event()

    def make() -> None:
        assert going_on.wait(30)
        done.set()

    async def cancel_twice() -> None:
        making = asyncio.ensure_future(in_thread(make))
        for _ in range(2):
            await asyncio.sleep(0.05)
            making.cancel()
        await asyncio.sleep(0.05)
        assert not making.done()
        going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await making
        assert done.is_set()

    try:
        asyncio.run(cancel_twice())
    finally:
        going_on.set()


class TestCancelled:
    pytestmark = container

    def test_a_second_signal_leaves_nothing_either(self, boxes: Bench, engine: Any) -> None:
        """Impatient users press Ctrl-C again while the container is being removed."""

        async def cancel_twice() -> None:
            run = asyncio.ensure_future(boxes.sandbox().run(boxes.job("sleep 60")))
            await asyncio.sleep(1.0)
            run.cancel()
            await asyncio.sleep(0.01)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

        asyncio.run(cancel_twice())
        assert names(engine, boxes.run_id) == []
