"""Workers of one run share what they know, and one that is killed takes nothing of it along."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models.shared import FRESH, SharedState, is_alive, own_name
from pytest_mlrbench.models.shared_limits import SharedLimit, join, shared_limits
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.stub.wire import Received

COUNTING = """
import sys
from pathlib import Path
from pytest_mlrbench.models.shared import SharedState
state = SharedState(Path(sys.argv[1]))
while True:
    with state.change() as content:
        content[sys.argv[2]] = content.get(sys.argv[2], 0) + 1
        content["all"] = content.get("all", 0) + 1
    sys.stdout.write(".")
    sys.stdout.flush()
"""


def start(code: str, *args: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_kill_at_any_time_loses_nothing_and_damages_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shared.json"
    draw = random.Random(3)
    workers = [start(COUNTING, path, name) for name in "abcd"]
    while SharedState(path).look().get("all", 0) < 200:
        time.sleep(0.01)
    said = 0
    for worker in workers:
        time.sleep(draw.random() * 0.05)
        worker.send_signal(signal.SIGKILL)
        said += len(worker.communicate()[0])
    content = SharedState(path).look()
    # A change was made, and its maker killed before it could say so: at most one of each.
    assert said <= content["all"] <= said + 4
    assert content["all"] == sum(content[name] for name in "abcd")


def test_a_change_that_fails_is_none(tmp_path: Path) -> None:
    for state in (SharedState(tmp_path / "shared.json"), SharedState()):
        with state.change() as content:
            content["list"] = [1]
        with pytest.raises(IndexError), state.change() as content:
            content["list"].pop(content["list"].pop() + 7)
        assert state.look() == {"list": [1]}


def test_a_change_is_seen_by_others_a_little_later_and_by_oneself_at_once(tmp_path: Path) -> None:
    one, other = (SharedState(tmp_path / "shared.json") for _ in range(2))
    assert one.look() == other.look() == {}
    with one.change() as content:
        content["a"] = 1
    assert one.look() == {"a": 1}
    time.sleep(FRESH)
    assert other.look() == {"a": 1}


def test_looking_is_cheap(tmp_path: Path) -> None:
    state = SharedState(tmp_path / "shared.json")
    begin = time.process_time()
    for _ in range(10_000):
        state.look()
    assert time.process_time() - begin < 0.5


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "shared.json"
    for text in ("{", "[]", "\xff"):
        path.write_text(text, "latin-1")
        with pytest.raises(InputError, match=r"is damaged.*delete it"):
            SharedState(path).look()


def test_a_disk_that_takes_nothing_is_a_fault_of_the_system(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemFault, match="cannot be written") as caught,
        SharedState(tmp_path / "gone" / "shared.json").change(),
    ):
        pass
    assert caught.value.cause == "disk"


def test_the_dead_are_told_from_the_living() -> None:
    assert is_alive(own_name())
    number, _, began = own_name().partition(":")
    assert not is_alive(f"{number}:{float(began) - 60}"), "another one had the number before"
    for name in ("", "x:y", "1234567890:1.0"):
        assert not is_alive(name)
    child = start("import time; time.sleep(60)")
    name = f"{child.pid}:{time.time():.2f}"
    assert is_alive(name)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(name), "killed, and nobody has asked for its exit status yet"
    child.communicate()
    assert not is_alive(name)


def pair(path: Path, highest: int) -> list[SharedLimit]:
    return [SharedLimit(SharedState(path), "openai", seat, 2, highest) for seat in range(2)]


def test_the_whole_is_split_and_nobody_has_less_than_one(tmp_path: Path) -> None:
    limits = [
        SharedLimit(SharedState(tmp_path / "a"), "openai", seat, 4, highest=10) for seat in range(4)
    ]
    assert [limit.current for limit in limits] == [3, 3, 2, 2]
    for _ in range(4):
        limits[0].shrink(limits[0].window)
    time.sleep(FRESH)
    for limit in limits:
        limit.refresh()
    assert [limit.current for limit in limits] == [1, 1, 1, 1]


def test_a_refusal_halves_it_for_all_and_once_for_those_under_way(tmp_path: Path) -> None:
    one, other = pair(tmp_path / "shared.json", highest=32)

    async def story() -> None:
        async with one.slot() as early, other.slot() as late, other.slot() as later:
            early.refused()
            assert one.current == 8
            # They were under way when it was halved, and their worker has not heard of it yet.
            late.refused()
            later.refused()
            assert other.current == 8
        await asyncio.sleep(FRESH)
        async with other.slot() as next_one:
            next_one.refused()
        assert other.current == 4

    asyncio.run(story())


def test_successes_of_all_make_it_grow(tmp_path: Path) -> None:
    one, other = pair(tmp_path / "shared.json", highest=8)
    one.shrink(one.window)
    time.sleep(FRESH)
    for _ in range(200):
        for limit in (one, other):
            limit.refresh()
            limit.grow()
    assert (one.current, other.current) == (4, 4)


def test_while_all_goes_well_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "shared.json"
    limit = SharedLimit(SharedState(path), "openai", 0, 2)
    for _ in range(200):
        limit.grow()
    assert not path.exists()


def test_seats_of_the_dead_are_taken_and_a_new_session_begins_afresh(tmp_path: Path) -> None:
    state = SharedState(tmp_path / "shared.json")
    code = (
        "import sys; from pathlib import Path\n"
        "from pytest_mlrbench.models.shared import SharedState\n"
        "from pytest_mlrbench.models.shared_limits import join\n"
        "print(join(SharedState(Path(sys.argv[1])), 4), flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(state.path)]
    first, second = (
        subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) for _ in range(2)
    )
    assert first.stdout
    assert second.stdout
    assert {int(first.stdout.readline()), int(second.stdout.readline())} == {0, 1}
    assert join(state, 4) == join(state, 4) == 2
    with state.change() as content:
        assert len(content["session"]["seats"]) == 3
        content["session"]["breaker"] = {"openai": {}}
        content["budget"] = {"nano": 7}
        del content["session"]["seats"]["2"]
    first.kill()
    first.communicate()
    seat = join(state, 4)
    assert seat in (0, 1)
    assert "breaker" in state.look()["session"], "the second one is still there"
    second.kill()
    second.communicate()
    with state.change() as content:
        del content["session"]["seats"][str(seat)]
    assert join(state, 4) == 0
    assert state.look() == {"session": {"seats": {"0": own_name()}}, "budget": {"nano": 7}}


WORKER = """
import asyncio, json, sys
from pathlib import Path
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.models.shared_limits import shared_limits

limit = shared_limits(SharedState(Path(sys.argv[1])), 3, 30)("openai")
BODY = json.dumps({"model": "m", "messages": []}).encode()
HEAD = b"POST /v1/chat/completions HTTP/1.1\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(BODY)

async def once():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    writer.write(HEAD + BODY)
    status = (await reader.readline()).split()[1]
    writer.close()
    return status == b"200"

async def one():
    while True:
        async with limit.slot() as slot:
            if await once():
                slot.succeeded()
                return
            slot.refused()
        await asyncio.sleep(0.02)

async def story():
    await asyncio.gather(*(one() for _ in range(100)))

asyncio.run(story())
print(limit._whole)
"""


def test_three_workers_find_out_together_how_many_a_provider_takes(
    tmp_path: Path, mlr_stub_provider: StubProvider
) -> None:
    def at_most_six(asked: Received) -> Reply:
        if mlr_stub_provider.in_flight > 6:
            return replies.rate_limited()
        return Reply(delay=0.02)

    mlr_stub_provider.script = at_most_six
    path = tmp_path / "shared.json"
    workers = [start(WORKER, path, mlr_stub_provider.port) for _ in range(3)]
    for worker in workers:
        out, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err.decode()
        assert 1 <= int(out) <= 15
    limit = json.loads(path.read_text())["session"]["limits"]["openai"]
    assert 1 <= limit["whole"] <= 15
    assert len(mlr_stub_provider.requests) < 600


def test_a_process_alone_has_the_whole(tmp_path: Path) -> None:
    assert shared_limits(SharedState(), 1, 9)("openai").current == 9
