"""What a running case tells of itself, and what the ledger has of its GPUs."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import fake_nvml
import pytest
from fake_nvml import GPUS, MIGS, set_state

from pytest_mlrbench.sandbox import gpu_usage
from pytest_mlrbench.sandbox.gpu_usage import GpuUse, watch
from pytest_mlrbench.sandbox.heartbeat import FILE, Beat, Heart, beating, last_line, running
from pytest_mlrbench.sandbox.ledger import Ledger, read
from pytest_mlrbench.sandbox.nvml import Sample

pytest_plugins = ["gpu_bench"]
#: Runs a case until it is killed.
CASE = """
import asyncio, sys
from pathlib import Path
from pytest_mlrbench.sandbox.heartbeat import Heart, beating

async def main():
    folder = Path(sys.argv[1])
    async with beating(folder, Heart("small/idea/alpha/r1", "local", folder / "agent.log")):
        await asyncio.sleep(0)
        print("begun", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


# Heartbeats


def test_a_running_case_says_what_it_is_doing(tmp_path: Path) -> None:
    folder = tmp_path / "cases/experiment/alpha/r1"
    log = folder / "agent.log"

    async def test() -> None:
        before = time.time()
        heart = Heart("small/experiment/alpha/r1", "docker", log, state="waits for a GPU")
        async with beating(folder, heart, every=0.02):
            await until(lambda: running(tmp_path))
            (first,) = running(tmp_path)
            assert (first.case, first.sandbox) == ("small/experiment/alpha/r1", "docker")
            assert (first.state, first.last_line) == ("waits for a GPU", "")
            assert first.host == socket.gethostname()
            assert before <= first.started <= time.time()
            assert first.gone == ""
            heart.state = "runs"
            log.write_text("epoch 1\nepoch 2\n")
            await until(lambda: running(tmp_path)[0].last_line == "epoch 2")
            (second,) = running(tmp_path)
            assert (second.state, second.started) == ("runs", first.started)
            assert second.elapsed > first.elapsed
        assert list(folder.iterdir()) == [log]
        assert running(tmp_path) == []

    run(test())


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_case_that_ends_badly_leaves_no_heartbeat(tmp_path: Path, how: str) -> None:
    async def case() -> None:
        async with beating(tmp_path, Heart("a/b/c/r1", "local", tmp_path / "log")):
            await until((tmp_path / FILE).exists)
            if how == "failed":
                raise ValueError
            await asyncio.sleep(60)

    async def test() -> None:
        task = asyncio.create_task(case())
        await until((tmp_path / FILE).exists)
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert list(tmp_path.iterdir()) == []

    run(test())


def test_a_reader_never_sees_half_a_beat(tmp_path: Path) -> None:
    async def test() -> None:
        folder = tmp_path / "cases/idea/alpha/r1"
        log = tmp_path / "log"
        log.write_text("x" * 100)
        async with beating(folder, Heart("s/idea/alpha/r1", "local", log), every=0):
            await until((folder / FILE).exists)
            for _ in range(200):
                await asyncio.sleep(0)
                assert len(running(tmp_path)) == 1

    run(test())


def test_a_case_goes_on_where_its_heartbeat_cannot_be_written(tmp_path: Path) -> None:
    """And tells of itself as soon as it can."""
    folder = tmp_path / "cases/idea/alpha/r1"
    folder.parent.mkdir(parents=True)
    folder.write_text("")

    async def test() -> None:
        async with beating(folder, Heart("s/idea/alpha/r1", "local", tmp_path / "log"), 0.01):
            await asyncio.sleep(0.05)
            assert running(tmp_path) == []
            folder.unlink()
            folder.mkdir()
            await until(lambda: running(tmp_path))

    run(test())


def test_the_heartbeat_of_a_killed_process_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "cases/idea/alpha/r1"
    command = [sys.executable, "-c", CASE, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        (beat,) = running(tmp_path)
        assert (beat.pid, beat.gone) == (process.pid, "")
        process.kill()
        process.wait()
    (beat,) = running(tmp_path)
    assert beat.gone == f"its process {process.pid} is gone"


def test_a_process_of_another_machine_is_believed_for_a_while() -> None:
    def beat(silent: float) -> Beat:
        return Beat(
            case="s/idea/alpha/r1",
            owner="elsewhere:boot:4026531836 1 7",
            pid=1,
            host="elsewhere",
            sandbox="docker",
            state="runs",
            started=time.time() - 1000,
            elapsed=1000 - silent,
        )

    assert beat(20).gone == ""
    assert beat(400).gone == "not heard of for 400 s from elsewhere"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (b"", ""),
        (b"\n \n", ""),
        (b"one\ntwo\n\n", "two"),
        (b"still typing", "still typing"),
        (b"10%\r20%\r30%", "30%"),
        (b"done\r\n", "done"),
        (b"\x1b[32mepoch 7\x1b[0m  of 20\x1b[K\n", "epoch 7 of 20"),
        (b"a\n\x1b[2J\x1b[H\n", "a"),
        (b"\x1b]0;owned\x07real\n", "real"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link"),
        (b"bell\x07 back\x08 null\x00 \x9bcsi\n", "bell back null \N{REPLACEMENT CHARACTER}csi"),
        ("turned \u202egpj.exe\u2069\n".encode(), "turned gpj.exe"),
        (b"\xff\xfe\n", "\N{REPLACEMENT CHARACTER}" * 2),
        (b"x" * 200, "x" * 99 + "…"),
        (b"y" * 100_000 + b"\nz\n", "z"),
    ],
)
def test_the_last_line_is_safe_to_print(tmp_path: Path, output: bytes, shown: str) -> None:
    (tmp_path / "log").write_bytes(output)
    assert last_line(tmp_path / "log") == shown


def test_keys_are_hidden_also_where_reading_begins(tmp_path: Path) -> None:
    log, key = tmp_path / "log", "sk-" + "s" * 40

    def hide(text: str) -> str:
        return text.replace(key, "[key]")

    log.write_text(f"my key is {key}\n")
    assert last_line(log, hide) == "my key is [key]"
    for length in (4000, 4090, 8150, 8180, 8192):
        log.write_text(f"before {key}" + " " * (length - 4) + "last")
        assert "sss" not in last_line(log, hide)


# GPUs


def events(ledger: Ledger) -> list[dict[str, Any]]:
    return list(read(ledger.path)) if ledger.path.exists() else []


@pytest.mark.usefixtures("four_gpus")
def test_what_gpus_do_is_in_the_ledger(tmp_path: Path) -> None:
    set_state(utilization={GPUS[1]: 50, GPUS[2]: 100}, memory={GPUS[1]: 7, GPUS[2]: 9})
    ledger = Ledger(tmp_path / "ledger.jsonl")

    async def test() -> None:
        async with watch([GPUS[1], GPUS[2]], ledger, sample=0.02, event=0.2) as uses:
            await until(lambda: uses[0].now.memory == 7)
            assert uses[0].now.utilization == 0.5
            await asyncio.sleep(0.3)
            set_state(utilization={GPUS[2]: 100})
            await until(lambda: uses[0].now.memory == 0)

    run(test())
    *samples, end = events(ledger)
    assert {event["e"] for event in samples} == {"gpu"}
    assert [event["gpu"] for event in samples[:2]] == [GPUS[1], GPUS[2]]
    assert [event["utilization"] for event in samples[:2]] == [0.5, 1.0]
    assert [event["memory"] for event in samples[:2]] == [7, 9]
    assert end["e"] == "gpus"
    assert end["gpus"] == [GPUS[1], GPUS[2]]
    assert end["peak"] == {GPUS[1]: 7, GPUS[2]: 9}
    # Two GPUs, of which one was busy all the time and the other half of it.
    assert 0.6 <= end["seconds"] <= 5
    assert 0.6 * end["seconds"] <= end["busy"] <= 0.76 * end["seconds"]
    assert end["busy"] <= 0.76 * end["watched"] <= 0.76 * end["seconds"]
    assert end["unseen"] is None


def test_an_event_says_what_was_seen_since_the_one_before(tmp_path: Path) -> None:
    ledger, use = Ledger(tmp_path / "ledger.jsonl"), GpuUse(GPUS[0])
    use.add(Sample(0.5, 7), seconds=3)
    use.add(Sample(1.0, 3), seconds=1)
    use.flush(ledger)
    use.add(Sample(0.0, 1), seconds=2)
    use.flush(ledger)
    use.add(Sample(None, None), seconds=4)
    use.flush(ledger)
    seen = [(event["utilization"], event["memory"]) for event in events(ledger)]
    assert seen == [(0.625, 7), (0.0, 1)]
    assert (use.busy, use.watched, use.peak) == (2.5, 6.0, 7)


@pytest.mark.usefixtures("four_gpus")
def test_a_part_of_a_gpu_does_not_say_how_busy_it_is(tmp_path: Path) -> None:
    set_state(memory={MIGS[0]: 5})
    ledger = Ledger(tmp_path / "ledger.jsonl")

    async def test() -> None:
        async with watch([MIGS[0]], ledger, sample=0.01) as (use,):
            await until(lambda: use.now.memory == 5)

    run(test())
    one, end = events(ledger)
    assert (one["utilization"], one["memory"]) == (None, 5)
    assert (end["busy"], end["watched"], end["peak"]) == (None, 0, {MIGS[0]: 5})


@pytest.mark.usefixtures("four_gpus")
@pytest.mark.parametrize("why", ["package", "driver"])
def test_without_nvml_the_ledger_says_what_was_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    set_state(fault=fake_nvml.NO_LIBRARY)
    if why == "package":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    ledger = Ledger(tmp_path / "ledger.jsonl")

    async def test() -> None:
        async with watch([GPUS[0]], ledger, sample=0.01):
            await asyncio.sleep(0.05)

    run(test())
    (end,) = events(ledger)
    assert end["seconds"] >= 0.05
    assert (end["busy"], end["peak"]) == (None, {GPUS[0]: None})
    words = {"package": "nvidia-ml-py is not installed", "driver": "there is no NVIDIA driver"}
    assert end["unseen"] == words[why]


@pytest.mark.usefixtures("four_gpus")
def test_a_driver_that_hangs_holds_up_no_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_usage, "PATIENCE", 0.1)
    hang = time.sleep
    monkeypatch.setattr(sys.modules["pynvml"], "nvmlDeviceGetMemoryInfo", lambda handle: hang(0.5))
    ledger = Ledger(tmp_path / "ledger.jsonl")

    async def test() -> None:
        async with watch([GPUS[0]], ledger, sample=0.01):
            await asyncio.sleep(0.05)
        assert [event["e"] for event in events(ledger)] == ["gpus"]
        assert events(ledger)[0]["unseen"] == "the NVIDIA driver does not answer"
        await asyncio.sleep(0.7)
        # What comes late is not written behind the end.
        assert len(events(ledger)) == 1

    run(test())


def test_a_case_without_gpus_has_no_such_events(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")

    async def test() -> None:
        async with watch([], ledger) as uses:
            assert uses == ()

    run(test())
    assert events(ledger) == []


@pytest.mark.usefixtures("four_gpus")
def test_a_heartbeat_tells_what_its_gpu_does(tmp_path: Path) -> None:
    set_state(utilization={GPUS[1]: 71}, memory={GPUS[1]: 12_300_000_000})
    folder = tmp_path / "cases/experiment/alpha/r1"

    async def test() -> None:
        heart = Heart("small/experiment/alpha/r1", "docker", folder / "agent.log")
        ledger = Ledger(tmp_path / "ledger.jsonl")
        async with (
            beating(folder, heart, every=0.02),
            watch([GPUS[1]], ledger, sample=0.01) as heart.gpus,
        ):
            await until(lambda: (folder / FILE).exists() and "0.71" in (folder / FILE).read_text())
            gpu = json.loads((folder / FILE).read_text())["gpus"][0]
            assert gpu == {"uuid": GPUS[1], "utilization": 0.71, "memory": 12_300_000_000}

    run(test())
