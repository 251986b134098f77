"""A GPU is one case's at a time, whatever becomes of processes, and none is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from builders import one_sentence

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox import leases as leases_module
from pytest_mlrbench.sandbox.leases import FOLDER, POLL, Leases, lock_folder

FOUR = tuple(f"GPU-{n}" for n in range(4))
#: Takes a GPU of FOLDER, says so, and goes on as its arguments say.
HOLDER = """
import asyncio, os, subprocess, sys, time
from pathlib import Path
from pytest_mlrbench.sandbox.leases import Leases

folder, uuids, what = Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]

async def main():
    async with Leases(folder, uuids, lambda uuid: None).take(case="a case") as got:
        if what == "child":
            subprocess.Popen(["sleep", "60"])
        if what == "fork" and not os.fork():
            time.sleep(60)
        print(*got, flush=True)
        await asyncio.sleep(60 if what in ("hold", "child") else 0)
    print("over", flush=True)
    time.sleep(60)

asyncio.run(main())
"""
#: Has cases of some length one after the other, and notes when each had which GPU.
WORKER = """
import asyncio, os, sys, time
from pathlib import Path
from pytest_mlrbench.sandbox.leases import Leases

folder, uuids, begin = Path(sys.argv[1]), sys.argv[2].split(","), float(sys.argv[3])

async def main():
    leases = Leases(folder, uuids, lambda uuid: None)
    await asyncio.sleep(begin - time.time())
    for seconds in map(float, sys.argv[4:]):
        async with leases.take() as (uuid,):
            start = time.time()
            await asyncio.sleep(seconds)
            print(uuid, start, time.time(), flush=True)

asyncio.run(main())
"""


def nothing(uuid: str) -> None:
    """There is nothing to clean up."""


def lend(
    folder: Path, uuids: Sequence[str] = FOUR, cleanup: Callable[[str], object] = nothing
) -> Leases:
    leases = Leases(folder, uuids, cleanup)
    leases.prepare()
    return leases


def run(test: Awaitable[None]) -> None:
    async def main() -> None:
        await asyncio.wait_for(test, 60)

    asyncio.run(main())


def start(script: str, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.fixture
def holders() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ended with all of their children when the test is over."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout
        process.stdout.close()


async def is_free(folder: Path, uuid: str) -> bool:
    try:
        async with asyncio.timeout(0.2), lend(folder, [uuid]).take():
            return True
    except TimeoutError:
        return False


# One at a time


def test_two_cases_of_a_process_have_different_gpus(tmp_path: Path) -> None:
    async def test() -> None:
        leases = lend(tmp_path)
        async with leases.take() as first, leases.take() as second:
            assert (first, second) == (("GPU-0",), ("GPU-1",))
            assert not await is_free(tmp_path, "GPU-0")
            assert await is_free(tmp_path, "GPU-2")
        assert await is_free(tmp_path, "GPU-0")

    run(test())


def test_who_comes_first_is_served_first(tmp_path: Path) -> None:
    async def test() -> None:
        leases, served = lend(tmp_path, ["GPU-0"]), []

        async def case(number: int) -> None:
            async with leases.take():
                served.append(number)
                await asyncio.sleep(0.01)

        await asyncio.gather(*map(case, range(10)))
        assert served == list(range(10))

    run(test())


@pytest.mark.parametrize("waits", [True, False])
def test_a_case_that_is_cancelled_leaves_nothing(tmp_path: Path, waits: bool) -> None:
    async def test() -> None:
        leases = lend(tmp_path, ["GPU-0"])

        async def case() -> None:
            async with leases.take():
                await asyncio.sleep(60)

        if waits:
            async with leases.take():
                tasks = [asyncio.create_task(case()) for _ in range(2)]
                await asyncio.sleep(0.05)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
        else:
            task = asyncio.create_task(case())
            await asyncio.sleep(0.05)
            assert not await is_free(tmp_path, "GPU-0")
            task.cancel()
            await asyncio.wait([task])
        assert await is_free(tmp_path, "GPU-0")
        async with leases.take():
            pass

    run(test())


# Who dies


@pytest.mark.parametrize("what", ["hold", "child"])
def test_a_lease_dies_with_its_process(
    tmp_path: Path, holders: list[subprocess.Popen[str]], what: str
) -> None:
    """By SIGKILL, even if a program it has started lives on; who is next cleans up first."""

    async def test() -> None:
        cleaned: list[str] = []
        leases = lend(tmp_path, ["GPU-0"], cleaned.append)
        holders.append(holder := start(HOLDER, tmp_path, "GPU-0", what))
        assert said(holder) == "GPU-0"
        note = (tmp_path / "GPU-0.lock").read_text()
        assert note == f"a case (process {holder.pid})\n"
        waiting = asyncio.create_task(asyncio.wait_for(anext(_taken(leases)), 30))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        assert not cleaned  # the holder's containers are its own
        os.kill(holder.pid, signal.SIGKILL)
        assert await waiting == ("GPU-0",)
        assert cleaned == ["GPU-0"]

    async def _taken(leases: Leases):  # type: ignore[no-untyped-def]
        async with leases.take() as uuids:
            yield uuids

    run(test())


def test_a_fork_that_lives_on_does_not_keep_what_its_parent_gave_back(
    tmp_path: Path, holders: list[subprocess.Popen[str]]
) -> None:
    holders.append(holder := start(HOLDER, tmp_path, "GPU-0", "fork"))
    lend(tmp_path)
    assert [said(holder), said(holder)] == ["GPU-0", "over"]

    async def test() -> None:
        assert await is_free(tmp_path, "GPU-0")

    run(test())


def test_a_gpu_is_cleaned_up_before_a_case_and_after(tmp_path: Path) -> None:
    async def test() -> None:
        calls: list[str] = []
        leases = lend(tmp_path, ["GPU-0"], calls.append)
        async with leases.take():
            assert calls == ["GPU-0"]
        assert calls == ["GPU-0", "GPU-0"]

    run(test())


def test_a_gpu_on_which_something_may_be_running_is_nobodys(tmp_path: Path) -> None:
    """Until the process that knows of it has removed it, or has ended itself."""

    async def test() -> None:
        works = True

        def cleanup(uuid: str) -> None:
            if not works:
                raise SystemFault("engine", "the engine does not answer.")

        leases = lend(tmp_path, ["GPU-0"], cleanup)
        async with leases.take():
            works = False  # the engine is lost while a container runs
        assert not await is_free(tmp_path, "GPU-0")
        for _ in range(2):  # each case says what is wrong; none waits for ever
            with pytest.raises(SystemFault, match="does not answer"):
                async with asyncio.timeout(5), leases.take():
                    pytest.fail("it was used as it was")
            assert not await is_free(tmp_path, "GPU-0")
        works = True
        async with leases.take() as uuids:
            assert uuids == ("GPU-0",)
        assert await is_free(tmp_path, "GPU-0")

    run(test())


def test_a_slow_cleanup_holds_up_nobody_else(tmp_path: Path) -> None:
    async def test() -> None:
        leases = lend(tmp_path, FOUR, lambda uuid: time.sleep(0.3))
        begin = time.monotonic()

        async def case() -> None:
            async with leases.take():
                pass

        await asyncio.gather(*(case() for _ in range(4)))
        assert time.monotonic() - begin < 0.9

    run(test())


# The files


def test_where_the_files_are() -> None:
    """Not in $TMPDIR: two users, or two jobs of one, would not see each other's locks."""
    assert lock_folder({"TMPDIR": "/elsewhere"}) == FOLDER
    assert lock_folder({"MLR_GPU_LOCKS": "/shared/locks"}) == Path("/shared/locks")


def test_the_files_are_for_all_users_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        lend(tmp_path / "locks", ["GPU-0", "MIG-GPU-12/7/0"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o1777
    modes = {
        file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "locks").iterdir()
    }
    names = ("GPU-0.lock", "GPU-0.wait", "MIG-GPU-12_7_0.lock", "MIG-GPU-12_7_0.wait")
    assert modes == dict.fromkeys(names, 0o666)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_two_users_share_the_gpus(holders: list[subprocess.Popen[str]]) -> None:
    """Kernels may refuse to create over a file of another user in a folder like /tmp."""

    def user(number: int, wanted: str) -> int:
        """Have a process of a user take *wanted*; return what it exits with."""
        if child := os.fork():
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            os.setgid(number)
            os.setuid(number)
            os.umask(0o077)
            os._exit(0 if asyncio.run(is_free(folder, wanted)) else 1)
        finally:
            os._exit(9)

    with tempfile.TemporaryDirectory(dir="/tmp") as place:  # those of pytest are for one user
        Path(place).chmod(0o755)
        folder = Path(place) / "locks"
        lend(folder, [])
        assert [user(number, "GPU-0") for number in (65533, 65534, 65533)] == [0, 0, 0]
        holders.append(holder := start(HOLDER, folder, "GPU-0", "hold"))
        assert said(holder) == "GPU-0"
        assert [user(65533, "GPU-0"), user(65534, "GPU-1"), user(65533, "GPU-1")] == [1, 0, 0]


def test_a_file_that_was_deleted_meanwhile_is_made_again(tmp_path: Path) -> None:
    async def test() -> None:
        leases = lend(tmp_path, ["GPU-0"])
        (tmp_path / "GPU-0.lock").unlink()
        async with leases.take():
            assert not await is_free(tmp_path, "GPU-0")

    run(test())


def test_a_lock_on_a_file_that_was_just_deleted_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cleans /tmp may come between opening and locking: two cases would have two files."""
    real = leases_module._open
    deleted: list[Path] = []

    def open_late(path: Path) -> int:
        file = real(path)
        if path.name == "GPU-0.lock" and not deleted:
            path.unlink()
            deleted.append(path)
        return file

    async def test() -> None:
        leases = lend(tmp_path, ["GPU-0"])
        monkeypatch.setattr(leases_module, "_open", open_late)
        async with leases.take():
            assert deleted
            assert not await is_free(tmp_path, "GPU-0")

    run(test())


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with one_sentence(f"{tmp_path}/file/locks", "MLR_GPU_LOCKS=DIR"):
        lend(tmp_path / "file" / "locks")


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "GPU-0.lock").symlink_to(precious)
    with one_sentence(str(locks)):
        lend(locks)

    async def test() -> None:
        with pytest.raises(SystemFault, match=r"lock file .*GPU-0"):
            async with Leases(locks, ["GPU-0"], nothing).take():
                pass

    run(test())
    assert precious.read_text() == "keep me"


# How long it takes


def intervals(lines: Sequence[str]) -> list[tuple[str, float, float]]:
    split = [line.split() for line in lines]
    return [(uuid, float(start), float(end)) for uuid, start, end in split]


def assert_never_shared(had: Sequence[tuple[str, float, float]]) -> None:
    for uuid in {uuid for uuid, _, _ in had}:
        times = sorted((start, end) for gpu, start, end in had if gpu == uuid)
        for (_, end), (start, _) in pairwise(times):
            assert end <= start


def makespan(had: Sequence[tuple[str, float, float]]) -> float:
    return max(end for *_, end in had) - min(start for _, start, _ in had)


def test_two_long_and_six_short_cases_take_hardly_longer_than_they_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longest first, as the scheduler hands them out: two GPUs for the long, two for the short.

    A second stands for an hour, also of those between two looks at a GPU.
    """
    monkeypatch.setattr(leases_module, "POLL", POLL / 20)
    long, short = 4.5, 1.5

    async def test() -> None:
        leases, had = lend(tmp_path), []

        async def case(seconds: float) -> None:
            async with leases.take() as (uuid,):
                begin = time.monotonic()
                await asyncio.sleep(seconds)
                had.append((uuid, begin, time.monotonic()))

        await asyncio.gather(*map(case, [long] * 2 + [short] * 6))
        assert len(had) == 8
        assert_never_shared(had)
        # The better bound of two: the longest case; all the work on four GPUs.
        assert makespan(had) <= 1.05 * max(long, (2 * long + 6 * short) / 4)

    run(test())


@pytest.mark.slow
def test_processes_never_share_a_gpu_and_leave_none_idle(tmp_path: Path) -> None:
    """Eight processes for four GPUs, with cases of all lengths, and none is left behind."""
    lend(tmp_path)
    dice = random.Random(5)
    work = [[dice.uniform(0.1, 0.4) for _ in range(10)] for _ in range(8)]
    begin = time.time() + 3
    processes = [start(WORKER, tmp_path, ",".join(FOUR), begin, *cases) for cases in work]
    had, ends = [], []
    for process in processes:
        output, _ = process.communicate(timeout=90)
        assert process.returncode == 0
        had.append(intervals(output.splitlines()))
        ends.append(max(end for *_, end in had[-1]))
    everything = [one for own in had for one in own]
    assert len(everything) == 80
    assert_never_shared(everything)
    # While there are more processes than GPUs, a GPU waits for a look at it and no longer.
    crowded = sorted(ends)[3]
    for uuid in FOUR:
        times = sorted((start, end) for gpu, start, end in everything if gpu == uuid)
        gaps = [start - end for (_, end), (start, _) in pairwise(times) if start < crowded]
        assert len(gaps) >= 5
        assert fmean(gaps) < POLL
    # Who gives a GPU back does not take it again while others wait.
    first = min(ends)
    assert min(sum(end <= first for *_, end in own) for own in had) >= 2


@pytest.mark.slow
def test_a_storm_of_kills_loses_no_gpu(
    tmp_path: Path, holders: list[subprocess.Popen[str]]
) -> None:
    lend(tmp_path)
    dice = random.Random(7)
    for _ in range(3):
        holders += [start(HOLDER, tmp_path, ",".join(FOUR), "hold") for _ in range(6)]
        time.sleep(dice.uniform(0.3, 1.5))
        for holder in holders:
            holder.kill()
            holder.wait()

    async def test() -> None:
        assert all([await is_free(tmp_path, uuid) for uuid in FOUR])

    run(test())
