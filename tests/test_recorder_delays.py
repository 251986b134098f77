"""What an agent gains by keeping the recorder busy: nothing, neither time nor a verdict."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from docker_bench import Bench

from pytest_mlrbench.sandbox import docker, ledger
from pytest_mlrbench.sandbox.backlog import Backlog
from pytest_mlrbench.sandbox.base import Job
from pytest_mlrbench.sandbox.docker import DockerSandbox
from pytest_mlrbench.sandbox.ending import lasted
from pytest_mlrbench.sandbox.recorder import Recorder

pytest_plugins = ["docker_engine"]


class Followed:
    """What a backlog has passed on, one piece at each word of ours."""

    def __init__(self, room: int = 100) -> None:
        self.pieces: list[bytes] = []
        self.may = threading.Semaphore(0)
        self.woken = threading.Event()
        self.backlog = Backlog(self._follow, self.woken.set, room)

    def _follow(self, piece: bytes) -> None:
        assert self.may.acquire(timeout=10)
        if piece == b"bad":
            raise OSError("no room")
        self.pieces.append(piece)

    def let(self, pieces: int) -> None:
        for _ in range(pieces):
            self.may.release()


def test_a_backlog_passes_on_everything_in_its_order_after_its_end() -> None:
    followed = Followed()
    for piece in (b"1", b"2", b"3"):
        followed.backlog.put(piece)
    followed.backlog.end()
    followed.backlog.put(b"too late")
    assert not followed.backlog.ended.wait(0.05)
    followed.let(3)
    assert followed.backlog.ended.wait(10)
    assert followed.woken.wait(10)
    assert followed.pieces == [b"1", b"2", b"3"]
    followed.backlog.close()


@pytest.mark.parametrize("relief", ["followed", "closed", "broken"])
def test_who_fills_a_backlog_waits_until_there_is_room_or_it_ends(relief: str) -> None:
    followed = Followed(room=5)
    for piece in (b"bad" if relief == "broken" else b"...", b"...", b"..."):
        followed.backlog.put(piece)
    filling = threading.Thread(target=followed.backlog.put, args=(b"last",))
    filling.start()
    filling.join(0.05)
    assert filling.is_alive()
    if relief == "closed":
        threading.Timer(0.1, followed.let, [1]).start()
        followed.backlog.close()
    else:
        followed.let(4)
    filling.join(10)
    assert not filling.is_alive()
    followed.backlog.end()
    assert followed.backlog.ended.wait(10)
    followed.backlog.close()
    assert (
        followed.pieces
        == {
            "followed": [b"...", b"...", b"...", b"last"],
            "closed": [b"..."],
            "broken": [],
        }[relief]
    )
    assert isinstance(followed.backlog.error, OSError) == (relief == "broken")


def test_a_command_lasts_as_long_as_the_engine_says_or_the_trace() -> None:
    state = {
        "StartedAt": "2026-01-01T00:00:00.123456789Z",
        "FinishedAt": "2026-01-01T01:00:09.5+01:00",
    }
    began, ended = lasted(state, None)
    assert ended - began == pytest.approx(9.5 - 0.123456)
    assert lasted(state, began + 2) == (began, began + 2)


class SlowRecorder(Recorder):
    """Takes its time for each line of the trace of an agent."""

    pause = 0.02

    def feed(self, data: bytes) -> None:
        super().feed(data)
        time.sleep(self.pause * data.count(b"\n") if self.has_begun else 0.0)


class SlowlyRecorded(DockerSandbox):
    """Records an agent slower than it acts."""

    def recorder(self, job: Job) -> Recorder | None:
        return SlowRecorder(job, uid=self.account.uid, gid=self.account.gid)


def python(boxes: Bench, program: str, seconds: float) -> Job:
    return boxes.job("", command=["python3", "-c", program], seconds=seconds)


def events(job: Job) -> list[dict[str, Any]]:
    return list(ledger.read(job.ledger.path))


BUSY = "for i in range(300):\n    open(f'f{i % 9}', 'w').close()\n"


@pytest.mark.docker
@pytest.mark.slow
class TestContainers:
    def test_an_agent_that_goes_deep_has_its_own_time_and_end(self, boxes: Bench) -> None:
        deep = "import os, time\nbegin = time.time()\nos.chdir('/tmp')\n"
        deep += "for i in range(3000):\n    os.mkdir('d'); os.chdir('d')\n"
        job = python(boxes, deep + "print(time.time() - begin)", 15)
        ended = boxes.run(job)
        assert (ended.reason, ended.code) == ("exit", 0)
        assert float(ended.tail) <= ended.seconds < float(ended.tail) + 2
        found = events(job)
        assert [event["e"] for event in found].index("end") == len(found) - 1
        assert (found[-1]["whole"], found[-1]["unclear"]) == (True, 0)

    def test_an_agent_that_ends_in_time_has_done_so_though_it_is_seen_later(
        self, boxes: Bench
    ) -> None:
        job = python(boxes, BUSY + "raise SystemExit(3)", 5)
        begin = time.time()
        ended = boxes.run(job, boxes.sandbox(SlowlyRecorded))
        assert time.time() > job.deadline, "the recorder was not slow enough for this test"
        assert (ended.reason, ended.code) == ("exit", 3)
        assert ended.seconds < job.deadline - begin
        assert events(job)[-1]["whole"] is True

    def test_what_goes_on_after_such_an_agent_does_not_make_it_late(self, boxes: Bench) -> None:
        """The container then is ended by us, and the engine does not know of the agent's end."""
        left = "import os, time\nif os.fork() == 0:\n    time.sleep(60)\n"
        job = python(boxes, BUSY + left, 5)
        ended = boxes.run(job, boxes.sandbox(SlowlyRecorded))
        assert time.time() > job.deadline, "the recorder was not slow enough for this test"
        assert (ended.reason, ended.code) == ("exit", 0)
        assert ended.seconds < 5

    def test_the_deadline_is_kept_and_the_end_the_last_word_whatever_is_to_be_read(
        self, boxes: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(docker, "DRAIN", 3.0)
        monkeypatch.setattr(SlowRecorder, "pause", 0.1)
        job = python(boxes, "while True:\n    open('f', 'w').close()", 4)
        begin = time.time()
        ended = boxes.run(job, boxes.sandbox(SlowlyRecorded))
        assert ended.reason == "timeout"
        assert ended.seconds < 4 + docker.GRACE + 2
        assert time.time() - begin < 4 + docker.GRACE + 3 + 8
        found = events(job)
        assert [event["e"] for event in found].index("end") == len(found) - 1
        assert found[-1]["whole"] is False
        assert [it for it in found if it["e"] == "unclear" and "not read in time" in it["why"]]
