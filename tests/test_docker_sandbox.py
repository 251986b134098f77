"""An agent in a container: what it finds there, and what it does not."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from docker_bench import Bench, names

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.sandbox.base import Limits
from pytest_mlrbench.sandbox.docker import DockerSandbox

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine"]


def test_an_agent_works_in_its_workspace(boxes: Bench) -> None:
    job = boxes.job("pwd; echo found > results.md; cat idea.md; echo oh >&2; exit 3")
    (job.workspace / "idea.md").write_text("an idea\n")
    ended = boxes.run(job)
    assert (ended.reason, ended.code) == ("exit", 3)
    assert (job.workspace / "results.md").read_text() == "found\n"
    log = job.log.read_text()
    assert log.startswith("/workspace\n")
    assert "an idea" in log
    assert "an idea" in ended.tail
    assert 0 < ended.seconds < 30


def test_what_it_prints_on_either_stream_is_kept(boxes: Bench) -> None:
    said = boxes.say("echo out; echo err >&2; printf '\\377\\000end'")
    assert "out\n" in said
    assert "err\n" in said
    assert said.endswith("\x00end")


def test_what_it_leaves_is_ours(boxes: Bench) -> None:
    """Nobody but the owner could judge it otherwise, or remove it."""
    job = boxes.job("mkdir a; umask 077; echo secret > a/b; id -u > uid")
    boxes.run(job)
    uid = os.getuid() or 1000
    assert (job.workspace / "uid").read_text() == f"{uid}\n"
    assert (job.workspace / "a/b").stat().st_uid == uid
    assert (job.workspace / "a/b").read_text() == "secret\n"


def test_it_is_given_files_and_data_to_read(boxes: Bench, tmp_path: Path) -> None:
    script, data = tmp_path / "run.sh", tmp_path / "corpus"
    script.write_text("cat /data/corpus/one; echo x > /data/corpus/one; echo x > /agent/run.sh")
    data.mkdir()
    (data / "one").write_text("datum")
    job = boxes.job("sh /agent/run.sh", files={"run.sh": script}, data={"corpus": data})
    boxes.run(job)
    assert job.log.read_text().startswith("datum")
    assert job.log.read_text().count("Read-only file system") == 2
    assert (data / "one").read_text() == "datum"


def test_its_environment_is_the_one_it_is_given(
    boxes: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ours")
    said = boxes.say("env", environment={"MLR_STAGE": "idea"})
    assert "MLR_STAGE=idea" in said
    assert "HOME=/home/agent" in said
    assert "PATH=/home/agent/.local/bin:/usr/" in said
    assert "sk-ours" not in said


def test_its_home_is_outside_of_the_submission(boxes: Bench) -> None:
    job = boxes.job("echo cached > ~/.cached && python3 -m venv --without-pip ~/venv && ls -A")
    boxes.run(job)
    assert job.log.read_text() == ""
    assert not list(job.workspace.iterdir())
    assert (job.workspace.parent / "home/.cached").read_text() == "cached\n"


def test_it_has_no_rights(boxes: Bench) -> None:
    said = boxes.say("id -u; grep -E 'CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status")
    assert said.startswith(f"{os.getuid() or 1000}\n")
    assert "CapPrm:\t0000000000000000" in said
    assert "CapEff:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said
    assert "Seccomp:\t2" in said


def test_a_program_with_the_setuid_bit_gives_it_none(boxes: Bench) -> None:
    """``su`` and ``mount`` are in the image, and belong to root."""
    said = boxes.say(
        'ls -l /bin/mount; python3 -c "import os; os.setuid(0)" 2>&1 | tail -n 1;'
        " cp /bin/sh sh; chmod u+s sh; ./sh -c 'id -u'; mount -t tmpfs none /tmp; su -c id"
    )
    assert "-rws" in said
    assert "PermissionError" in said
    assert "uid=0" not in said
    assert f"\n{os.getuid() or 1000}\n" in said


def test_it_changes_nothing_of_the_image(boxes: Bench) -> None:
    said = boxes.say("for d in / /usr/bin /etc /var/tmp /run /root /agent; do echo x > $d/x; done")
    assert "Read-only file system" in said or "Permission denied" in said
    assert boxes.say("ls /x /usr/bin/x /etc/x /var/tmp/x /run/x; true").count("No such file") == 5


def test_it_can_compile_and_run_in_tmp(boxes: Bench) -> None:
    said = boxes.say("printf '#!/bin/sh\\necho ran' > /tmp/a; chmod +x /tmp/a; /tmp/a; df -h /tmp")
    assert said.startswith("ran\n")
    assert "16M" in said


def test_it_finds_no_engine_no_devices_and_no_network(boxes: Bench) -> None:
    said = boxes.say(
        "ls /var/run/docker.sock /run/docker.sock /dev/sda /dev/vda /dev/mem /dev/kmsg;"
        " mknod /tmp/disk b 8 0; ls /sys/class/net;"
        " python3 -c \"import socket; socket.create_connection(('1.1.1.1', 53), 2)\""
    )
    assert said.count("No such file") == 6
    assert "Operation not permitted" in said
    assert "Network is unreachable" in said
    assert "\nlo\n" in said
    assert "eth" not in said


def test_it_sees_no_processes_but_its_own(boxes: Bench) -> None:
    said = boxes.say("ls /proc | grep -E '^[0-9]+$' | wc -l; hostname")
    assert int(said.split()[0]) < 12
    assert os.uname().nodename not in said


def test_a_cpu_case_sees_no_gpu_and_a_gpu_case_its_own(boxes: Bench) -> None:
    assert boxes.say("echo $NVIDIA_VISIBLE_DEVICES") == "void\n"
    said = boxes.say("echo $NVIDIA_VISIBLE_DEVICES", gpus=["GPU-aaaa", "GPU-bbbb"])
    assert said == "GPU-aaaa,GPU-bbbb\n"


def test_nothing_of_it_runs_on(boxes: Bench, engine: Any) -> None:
    """A daemon of its own session, which has let go of every stream."""
    job = boxes.job(
        "setsid sh -c 'sleep 3; echo late > late' </dev/null >/dev/null 2>&1 & echo done"
    )
    start = time.monotonic()
    ended = boxes.run(job)
    assert (ended.reason, ended.code) == ("exit", 0)
    assert time.monotonic() - start < 3
    assert names(engine, boxes.run_id) == []
    time.sleep(3)
    assert not (job.workspace / "late").exists()


def test_cancelled_it_is_gone(boxes: Bench, engine: Any) -> None:
    """As by Ctrl-C, at any moment."""

    async def cancel_after(seconds: float) -> None:
        run = asyncio.ensure_future(boxes.sandbox().run(boxes.job("sleep 60")))
        await asyncio.sleep(seconds)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    for seconds in (0.0, 0.05, 0.2, 0.4, 1.0):
        asyncio.run(cancel_after(seconds))
        assert names(engine, boxes.run_id) == []


def test_a_program_that_is_not_there_says_so(boxes: Bench) -> None:
    job = boxes.job("", command=["no-such-program"])
    with pytest.raises(SystemFault, match="no-such-program") as raised:
        boxes.run(job)
    assert raised.value.cause == "start"


def test_several_at_once(boxes: Bench) -> None:
    sandbox = boxes.sandbox()
    jobs = [boxes.job(f"sleep 1; echo {n}; exit {n}") for n in range(4)]

    async def together() -> list[int]:
        return [ended.code for ended in await asyncio.gather(*map(sandbox.run, jobs))]

    assert asyncio.run(together()) == [0, 1, 2, 3]
    assert [job.log.read_text() for job in jobs] == [f"{n}\n" for n in range(4)]


class Rootless(DockerSandbox):
    """To root, the usual engine is what a rootless one is to others: root inside is us outside."""

    is_rootless = True


@pytest.mark.skipif(os.getuid() != 0, reason="root in the usual engine is not us")
def test_under_a_rootless_engine_the_work_comes_back(boxes: Bench) -> None:
    job = boxes.job("cat idea.md; umask 077; mkdir a; echo mine > a/b; id -u; exit 4")
    (job.workspace / "idea.md").write_text("an idea\n")
    ended = boxes.run(job, boxes.sandbox(Rootless))
    assert (ended.reason, ended.code) == ("exit", 4)
    assert job.log.read_text() == "an idea\n1000\n"
    assert (job.workspace / "a/b").stat().st_uid == 0
    assert (job.workspace / "a/b").read_text() == "mine\n"
    assert (job.workspace.parent / "home").stat().st_uid == 0


def test_an_engine_that_is_not_there_is_said_before_the_first_case(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(InputError, match=r"no Docker engine answers.*--mlr-sandbox=local"):
        DockerSandbox(image="any", limits=Limits()).prepare()


def test_an_engine_elsewhere_is_of_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    with pytest.raises(InputError, match="names no socket of this machine"):
        DockerSandbox(image="any", limits=Limits()).prepare()


def test_an_image_that_is_not_there_is_said_before_the_first_case(boxes: Bench) -> None:
    with pytest.raises(InputError, match=r"no image 'no-such:image'.*docker build.*--mlr-image"):
        boxes.sandbox(image="no-such:image").prepare()


def test_too_much_memory_is_said_before_the_first_case(boxes: Bench) -> None:
    with pytest.raises(InputError, match="this machine has"):
        boxes.sandbox(memory=2**50).prepare()


def test_prepared_it_knows_the_image(boxes: Bench) -> None:
    sandbox = boxes.sandbox()
    sandbox.prepare()
    assert sandbox.digest.startswith("sha256:")
    assert sandbox.examined.tools == {"tracer", "doorway"}
