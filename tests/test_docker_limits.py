"""What a container may use, how long it may run, and how its end is told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker_bench import Bench

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox import docker, ledger, ownership, workspace_watch
from pytest_mlrbench.sandbox.base import Job
from pytest_mlrbench.sandbox.docker import DockerSandbox
from pytest_mlrbench.sandbox.ending import Seen, reason_of
from pytest_mlrbench.sandbox.output import Output
from pytest_mlrbench.sandbox.stay import Stay
from pytest_mlrbench.sandbox.workspace_watch import WorkspaceWatch

pytest_plugins = ["docker_engine"]
container = [pytest.mark.docker, pytest.mark.slow]
FORK = (
    "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        {then}"
)


class Blind(DockerSandbox):
    """As with an image that has no tracer."""

    def recorder(self, job: Job) -> None:
        return None


@pytest.fixture(params=[DockerSandbox, Blind], ids=["traced", "blind"])
def sandbox(request: pytest.FixtureRequest, boxes: Bench) -> DockerSandbox:
    return boxes.sandbox(request.param)


def python(script: str) -> str:
    """A shell's command that runs a script of Python."""
    return f"python3 - <<'END'\n{script}\nEND\n"


def last_event(job: Job) -> dict[str, Any]:
    """The end of the job as its ledger has it."""
    *_, last = ledger.read(job.ledger.path)
    assert last["e"] == "end"
    return last


class TestInContainers:
    pytestmark = container

    def test_too_much_memory(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        ended = boxes.run(boxes.job("exec python3 -c 'bytearray(2**30)'"), sandbox)
        assert ended.reason == "memory"
        assert ended.code != 0

    def test_the_log_says_nothing_of_memory_where_the_fault_does(self, boxes: Bench) -> None:
        job = boxes.job("echo on; exec python3 -c 'bytearray(2**30)'")
        boxes.run(job)
        assert job.log.read_text() == "on\n"

    def test_too_much_memory_of_a_child(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        """The parent ends well, and still memory was what ran out."""
        job = boxes.job("python3 -c 'bytearray(2**30)'; echo and on; exit 0")
        ended = boxes.run(job, sandbox)
        assert (ended.reason, ended.code) == ("memory", 0)
        assert "and on" in ended.tail
        end = last_event(job)
        assert (end["reason"], end["code"]) == ("memory", 0)
        assert job.log.read_text().endswith(
            "\n\n[a program was killed when the agent used more memory than its 256 MiB"
            " (--mlr-limits memory=); the agent went on]\n"
        )

    def test_what_lies_in_tmp_and_shm_is_limited(self, boxes: Bench) -> None:
        said = boxes.say(
            "head -c 64m /dev/zero > /tmp/a; head -c 64m /dev/zero > /dev/shm/a;"
            " stat -c %s /tmp/a /dev/shm/a"
        )
        assert said.count("No space left on device") == 2
        assert f"{16 * 2**20}\n{2**20}\n" in said

    def test_a_fork_bomb(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        """It stays in its container, and ends at the deadline at the latest."""
        job = boxes.job(python(FORK.format(then="time.sleep(0.1)")), seconds=4)
        start = time.monotonic()
        ended = boxes.run(job, sandbox)
        assert ended.reason in ("timeout", "memory")
        assert time.monotonic() - start < 4 + docker.GRACE + 15

    def test_too_many_processes(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        """Looks are taken every half second: a moment is needed to see what was in the way."""
        bomb = "import os, time, sys\nfor n in range(200):\n    if os.fork() == 0: time.sleep(60)"
        ended = boxes.run(boxes.job(f"{python(bomb)} sleep 2; exit 7"), sandbox)
        assert ended.reason == "pids"
        assert "Resource temporarily unavailable" in ended.tail

    def test_too_many_processes_of_an_agent_that_ends_at_once(self, boxes: Bench) -> None:
        """Its control group is there for a moment longer, with what was in its way."""
        bomb = "import os, time, sys\nfor n in range(200):\n    if os.fork() == 0: time.sleep(60)"
        assert boxes.run(boxes.job(f"{python(bomb)} exit 7")).reason == "pids"

    def test_it_is_not_looked_at_for_each_thing_it_does(
        self, boxes: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = []
        monkeypatch.setattr(Stay, "look", lambda stay: looks.append(stay))
        write = "for n in range(1000):\n    with open('a', 'w') as file: file.write('x')"
        ended = boxes.run(boxes.job(python(write)))
        assert (ended.reason, ended.code) == ("exit", 0)
        assert 1 <= len(looks) < ended.seconds / docker.TICK + 5

    def test_too_much_on_disk(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        job = boxes.job("head -c 50m /dev/zero > a; ls; sleep 30")
        ended = boxes.run(job, sandbox)
        assert ended.reason == "disk"
        assert ended.seconds < 15
        assert (job.workspace / "a").stat().st_size == 50 * 2**20  # what is there is kept
        assert ended.disk is not None
        assert 50 * 2**20 <= ended.disk < 51 * 2**20
        end = last_event(job)
        assert (end["disk"], end["disk_limit"]) == (ended.disk, 32 * 2**20)

    def test_disk_is_counted_until_the_agent_has_been_stopped(
        self, boxes: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What it writes after the look that was one too many is stated as well."""
        monkeypatch.setattr(workspace_watch, "PAUSE", 60.0)
        monkeypatch.setattr(workspace_watch, "LONGEST", 60.0)

        class Late(DockerSandbox):
            async def follow(self, stay: Stay) -> Any:
                while not stay.disk.look():
                    await stay.wait(0.05)
                while not (stay.job.workspace / "b").exists():
                    await stay.wait(0.05)
                return "disk"

        job = boxes.job(
            "head -c 40m /dev/zero > a; sleep 1; head -c 40m /dev/zero > c; mv c b; sleep 30"
        )
        ended = boxes.run(job, boxes.sandbox(Late))
        assert ended.reason == "disk"
        assert ended.disk is not None
        assert 80 * 2**20 <= ended.disk < 81 * 2**20

    def test_nothing_is_said_of_the_disk_where_its_limit_was_kept(self, boxes: Bench) -> None:
        job = boxes.job("head -c 1m /dev/zero > a")
        assert boxes.run(job).disk is None
        assert "disk" not in last_event(job)

    def test_too_much_in_the_home(self, boxes: Bench) -> None:
        assert boxes.run(boxes.job("head -c 50m /dev/zero > ~/a; sleep 30")).reason == "disk"

    def test_too_much_in_a_file_that_is_in_no_folder(self, boxes: Bench) -> None:
        """Removed, but held open: no list of files has it, and the disk is full all the same."""
        job = boxes.job("exec 3> a; rm a; head -c 50m /dev/zero >&3; sleep 30")
        ended = boxes.run(job)
        assert ended.reason == "disk"
        assert not list(job.workspace.iterdir())
        assert ended.disk is not None
        assert ended.disk >= 50 * 2**20

    def test_too_much_in_files_that_are_only_in_memory(self, boxes: Bench) -> None:
        """Removed, mapped and closed again: no list of open files has them either."""
        script = (
            "import mmap, os, time\nkept = []\n"
            "for _ in range(5):\n"
            "    file = os.open('a', os.O_RDWR | os.O_CREAT)\n"
            "    os.unlink('a')\n"
            "    os.write(file, bytes(10 * 2**20))\n"
            "    kept.append(libc.mmap(None, 4096, 1, 1, file, 0))\n"
            "    os.close(file)\n"
            "time.sleep(30)\n"
        )
        # Python's own mmap keeps the file open.
        libc = (
            "import ctypes\nlibc = ctypes.CDLL(None)\n"
            "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int]"
            " + [ctypes.c_long]\n"
        )
        (boxes.folder / "hide.py").write_text(libc + script)
        job = boxes.job("python3 /agent/hide.py", files={"hide.py": boxes.folder / "hide.py"})
        ended = boxes.run(job)
        assert ended.reason == "disk"
        assert ended.disk is not None
        assert ended.disk >= 50 * 2**20

    def test_endless_output(self, boxes: Bench) -> None:
        job = boxes.job("yes 0123456", seconds=3)
        ended = boxes.run(job)
        assert ended.reason == "timeout"
        log = job.log.read_bytes()
        assert log.startswith(b"0123456\n" * 1000)
        assert log.endswith(b" more bytes of output were not kept]\n")
        assert len(log) < 10_000 + 100
        assert ended.tail.count("0123456\n") > 200

    def test_much_output(self, boxes: Bench) -> None:
        """All of it is counted, none of it stays anywhere."""
        job = boxes.job("head -c 300000000 /dev/zero | tr '\\0' x; echo; echo end")
        ended = boxes.run(job)
        assert (ended.reason, ended.code) == ("exit", 0)
        assert ended.tail.endswith("x\nend\n")
        lost = 300_000_005 - 10_000
        assert (
            job.log.read_bytes()[10_000:]
            == f"\n[{lost} more bytes of output were not kept]\n".encode()
        )

    def test_at_the_deadline_it_may_finish(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        job = boxes.job(
            "trap 'echo finished > results; exit 0' TERM; while true; do sleep 0.1; done", seconds=2
        )
        ended = boxes.run(job, sandbox)
        assert (ended.reason, ended.code) == ("timeout", 0)
        assert (job.workspace / "results").read_text() == "finished\n"
        assert ended.seconds < 2 + docker.GRACE

    def test_after_the_deadline_it_is_killed(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        job = boxes.job("trap '' TERM; while true; do date +%s > now; sleep 0.1; done", seconds=2)
        ended = boxes.run(job, sandbox)
        assert ended.reason == "timeout"
        assert docker.GRACE < ended.seconds < 2 + docker.GRACE + 5
        last = (job.workspace / "now").read_text()
        time.sleep(1)
        assert (job.workspace / "now").read_text() == last

    def test_a_process_of_its_own_session_is_warned_too(self, boxes: Bench) -> None:
        job = boxes.job(
            "setsid sh -c 'trap \"echo told > told; exit\" TERM; while true; do sleep 0.1; done' &"
            " while true; do sleep 0.1; done",
            seconds=2,
        )
        boxes.run(job)
        assert (job.workspace / "told").read_text() == "told\n"

    def test_before_the_deadline_a_file_says_so(
        self, boxes: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(docker, "WARNING_SHARE", 0.5)
        job = boxes.job("until cat ~/DEADLINE; do sleep 0.1; done; date +%s > at; ls", seconds=8)
        ended = boxes.run(job)
        assert ended.reason == "exit"
        assert "s are left" in job.log.read_text()
        left = job.deadline - int((job.workspace / "at").read_text())
        assert 2 < left < 5
        assert [path.name for path in job.workspace.iterdir()] == ["at"]

    def test_a_signal_is_told_from_an_exit(self, boxes: Bench, sandbox: DockerSandbox) -> None:
        assert boxes.run(boxes.job("kill -SEGV $$"), sandbox).code == -11
        assert boxes.run(boxes.job("exit 9"), sandbox).code == 9

    def test_a_full_disk_is_not_the_agents_fault(self, boxes: Bench, small_disk: Path) -> None:
        """Neither for what it writes nor for what it prints: its own limits are not reached."""
        boxes.folder = small_disk
        with pytest.raises(SystemFault) as told:
            boxes.run(boxes.job("head -c 20m /dev/zero > a; head -c 20m /dev/zero > b; sleep 30"))
        assert told.value.cause == "host_disk"

    def test_a_log_that_cannot_be_written_is_not_the_agents_fault(
        self, boxes: Bench, small_disk: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(workspace_watch, "RESERVE", 0)
        job = boxes.job("yes | head -c 50000000; sleep 30")
        (small_disk / "log").touch()
        moved = Job(
            **{name: getattr(job, name) for name in Job.__slots__} | {"log": small_disk / "log"}
        )
        with pytest.raises(SystemFault) as told:
            boxes.run(moved, boxes.sandbox(log=2**30))
        assert told.value.cause == "host_disk"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB; only root can make one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", place], check=False)
    if made.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


STATE = {"ExitCode": 137, "OOMKilled": False}
PLENTY = 2**34


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (Seen("exit", {"ExitCode": 0, "OOMKilled": False}, True, 0, 0, PLENTY), ("exit", 0)),
        (Seen("exit", STATE, True, 0, 0, PLENTY), ("exit", 0)),
        (Seen("exit", STATE, False, None, 0, PLENTY), ("exit", -9)),
        (Seen("exit", STATE, True, None, 0, PLENTY), ("tracer", -9)),
        (Seen("exit", {**STATE, "OOMKilled": True}, True, None, 0, PLENTY), ("memory", -9)),
        (Seen("timeout", {**STATE, "OOMKilled": True}, True, None, 0, PLENTY), ("timeout", -9)),
        (Seen("exit", STATE, True, 1, 5, PLENTY), ("pids", 1)),
        (Seen("exit", STATE, True, 0, 5, PLENTY), ("exit", 0)),
        (Seen("exit", {"ExitCode": 255, "OOMKilled": False}, False, None, 0, 0), ("exit", 255)),
    ],
)
def test_how_an_end_is_read(seen: Seen, expected: tuple[str, int]) -> None:
    assert reason_of(seen) == expected


@pytest.mark.parametrize("out_of_memory", [True, False])
def test_where_the_machine_had_no_memory_left_it_is_blamed(out_of_memory: bool) -> None:
    with pytest.raises(SystemFault, match="out of memory"):
        reason_of(Seen("exit", {**STATE, "OOMKilled": out_of_memory}, True, None, 0, 2**20))


def test_a_folder_is_as_large_as_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(b"x" * 100_000)
    (tmp_path / "again").hardlink_to(tmp_path / "a/b/c")
    (tmp_path / "hole").touch()
    with (tmp_path / "hole").open("r+b") as file:
        file.truncate(2**40)
    (tmp_path / "elsewhere").symlink_to("/usr")
    assert 100_000 < workspace_watch.size_of([tmp_path]) < 150_000


@pytest.fixture
def watch(tmp_path: Path) -> WorkspaceWatch:
    """Looks when it is told to, at a folder that may have 10,000 bytes."""
    made = WorkspaceWatch([tmp_path], 10_000, lambda: None)
    made.close()
    return made


def test_the_most_that_was_on_disk_counts(watch: WorkspaceWatch, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    assert watch.look()
    most = watch.measured
    assert most is not None
    assert 100_000 <= most < 150_000
    (tmp_path / "a").unlink()
    assert not watch.look()
    assert watch.measured == most


def test_what_lies_deeper_than_a_path_can_be_is_over_every_limit(tmp_path: Path) -> None:
    """Nobody works there but to hide something."""
    script = "import os\nfor _ in range(2200):\n    os.mkdir('d')\n    os.chdir('d')\n"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    try:
        assert workspace_watch.size_of([tmp_path]) == workspace_watch.ENDLESS
    finally:
        subprocess.run(["rm", "-rf", "d"], cwd=tmp_path, check=True)


def test_what_lies_too_deep_is_over_the_limit_but_was_not_measured(
    watch: WorkspaceWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_watch, "size_of", lambda *folders: workspace_watch.ENDLESS)
    assert watch.look()
    assert watch.measured is None


def test_a_remark_is_the_last_line_of_the_log_whatever_its_limit(tmp_path: Path) -> None:
    output = Output(tmp_path / "log", 4)
    output.feed(b"much more")
    output.remark("so it is")
    output.close()
    assert (tmp_path / "log").read_text() == (
        "much\n[5 more bytes of output were not kept]\n\n[so it is]\n"
    )
    assert output.tail == "much more"


def test_the_warning_does_not_follow_a_link(tmp_path: Path) -> None:
    """The home is the agent's: it might put one where the file goes."""
    (tmp_path / "mine").write_text("untouched")
    home = tmp_path / "home"
    home.mkdir()
    (home / "DEADLINE").symlink_to(tmp_path / "mine")
    ownership.warn(home, 60)
    assert (tmp_path / "mine").read_text() == "untouched"
    assert "60 s are left" in (home / "DEADLINE").read_text()


def test_the_warning_bears_a_folder_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "DEADLINE").mkdir()
    (tmp_path / "DEADLINE/mine").write_text("untouched")
    ownership.warn(tmp_path, 60)
    assert (tmp_path / "DEADLINE/mine").read_text() == "untouched"


def test_a_home_is_removed_whatever_is_in_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    place = os.open(home, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=place)
        place, above = os.open("d", os.O_RDONLY, dir_fd=place), place
        os.close(above)
    os.close(place)
    (home / "kept").symlink_to(tmp_path / "mine")
    (tmp_path / "mine").write_text("untouched")
    (home / "closed").mkdir(mode=0o000)
    ownership.remove_home(home)
    assert not home.exists()
    assert (tmp_path / "mine").read_text() == "untouched"
    ownership.remove_home(home)  # no error if there is none
