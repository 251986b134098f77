"""What a recorder makes of a trace, and of the workspace that it finds afterwards."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.sandbox import events, ledger, shadow
from pytest_mlrbench.sandbox.base import Ended, Job
from pytest_mlrbench.sandbox.ledger import Ledger
from pytest_mlrbench.sandbox.recorder import Recorder

MAIN = 9
LAUNCH = """\
9  1.0 execve("/bin/sh", ["/bin/sh"], 0x7f /* 9 vars */) = 0
9  1.0 vfork( <unfinished ...>
10 1.0 execve("/bin/chown", ["/bin/chown"], 0x7f /* 9 vars */) = 0
9  1.0 <... vfork resumed>) = 10
10 1.0 +++ exited with 0 +++
9  1.0 openat(AT_FDCWD</workspace>, "/proc/self/oom_score_adj", O_WRONLY) = 3</proc/9/oom_score_adj>
9  1.0 execve("/usr/bin/setpriv", ["/usr/bin/setpriv"], 0x7f /* 9 vars */) = 0
9  1.0 execve("/usr/bin/agent", ["agent", "go"], 0x7f /* 9 vars */) = 0
"""


class Case:
    """A job whose trace is written here, line by line; what it did is done to *workspace*."""

    def __init__(self, folder: Path, inputs: Mapping[str, str] | None = None) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True)
        for name, content in (inputs or {}).items():
            self.put(name, content)
        self.job = Job(
            run="run",
            case="case",
            command=["agent", "go"],
            workspace=self.workspace,
            files={},
            environment={},
            deadline=0.0,
            log=folder / "log",
            ledger=Ledger(folder / "ledger.jsonl"),
        )
        self.recorder = Recorder(self.job, uid=1000, gid=1000)
        self.trace(LAUNCH)

    def put(self, name: str, content: str = "x") -> None:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def trace(self, lines: str) -> None:
        """Feed lines; those that begin with a call are of the agent's first process."""
        for line in lines.strip().splitlines():
            line = line.strip()
            prefix = "" if line[0].isdigit() else f"{MAIN} 2.0 "
            self.recorder.feed(f"{prefix}{line}\n".encode())

    def write(self, name: str, task: int = MAIN, content: str | None = "x") -> None:
        """Have a process write a file; the trace alone, if *content* is null."""
        self.trace(
            f'{task} 2.0 openat(AT_FDCWD</workspace>, "{name}", O_WRONLY|O_CREAT, 0644)'
            f" = 3</workspace/{name}>"
        )
        if content is not None:
            self.put(name, content)

    def fork(self, task: int, parent: int = MAIN) -> None:
        self.trace(f"{parent} 2.0 fork() = {task}")

    def end(self, code: int = 0) -> list[dict[str, Any]]:
        self.trace(f"{MAIN} 3.0 +++ exited with {code} +++")
        return self.close(code)

    def close(self, code: int = 0) -> list[dict[str, Any]]:
        self.recorder.finish(Ended("exit", code, 1.0, ""))
        return list(ledger.read(self.job.ledger.path))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def of(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in found if event["e"] == kind]


def test_our_own_steps_are_not_the_agents(case: Case) -> None:
    assert case.recorder.main_exit is None
    found = case.end(3)
    assert [event["e"] for event in found] == ["begin", "process", "exit", "end"]
    assert (found[1]["proc"], found[1]["argv"]) == (1, ["agent", "go"])
    assert found[0]["command"] == ["agent", "go"]
    assert case.recorder.main_exit == 3
    assert found[-1]["whole"] is True


def test_an_agent_that_could_not_be_started_has_ended_too(tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.recorder = Recorder(case.job, uid=1, gid=1)
    case.trace(LAUNCH.rpartition("9  1.0 execve")[0])
    case.trace("9 2.0 +++ exited with 127 +++")
    assert case.recorder.main_exit == 127
    assert not case.recorder.has_begun


def test_a_tracer_that_may_not_trace_says_so(tmp_path: Path) -> None:
    case = Case(tmp_path)
    assert case.recorder.has_begun
    case.recorder = Recorder(case.job, uid=1, gid=1)
    case.recorder.feed(b"strace: PTRACE_SEIZE: Operation not permitted\nstrace: more\n")
    assert not case.recorder.has_begun
    assert case.recorder.complaint == "strace: PTRACE_SEIZE: Operation not permitted"
    assert case.close()[-1]["whole"] is False


def test_a_tracer_that_is_gone_leaves_no_end(case: Case) -> None:
    assert case.close()[-1]["whole"] is False
    assert case.recorder.main_exit is None


def test_a_file_has_the_writers_it_had_in_their_order(case: Case) -> None:
    case.write("a")
    case.fork(20)
    case.write("a", 20)
    case.write("a", 20)
    case.write("a")
    case.trace("20 2.5 +++ killed by SIGTERM +++")
    found = case.end(4)
    (file,) = of(found, "file")
    assert file["writers"] == [1, 2, 1]
    assert (file["code"], file["by"], file["was"]) == (4, "agent go", None)
    assert [event["proc"] for event in of(found, "write")] == [1, 2, 1]
    assert found[-1]["unrecorded"] == []


def test_changes_that_nobody_made_are_findings(tmp_path: Path) -> None:
    case = Case(tmp_path, {"input": "1", "lost": "1", "same": "1"})
    case.put("input", "2")
    case.put("new")
    (case.workspace / "lost").unlink()
    case.write("never", content=None)
    (case.workspace / "link").symlink_to("input")
    found = case.end()
    assert sorted(found[-1]["unrecorded"]) == ["input", "link", "lost", "never", "new"]
    assert [event["path"] for event in of(found, "gone")] == ["lost"]


def test_a_file_that_nobody_wrote_gets_no_writer_by_a_new_name(case: Case) -> None:
    case.write("good")
    case.put("bad")
    case.trace('rename("bad", "good") = 0')
    (case.workspace / "bad").rename(case.workspace / "good")
    found = case.end()
    assert of(found, "file")[0]["writers"] == []
    assert found[-1]["unrecorded"] == ["good"]


def test_two_names_of_one_file_are_not_moved(case: Case) -> None:
    case.write("a")
    case.trace('link("a", "b") = 0\nrename("a", "b") = 0')
    (case.workspace / "b").hardlink_to(case.workspace / "a")
    assert case.end()[-1]["unrecorded"] == []


def test_links_lead_to_what_is_behind_them(tmp_path: Path) -> None:
    case = Case(tmp_path, {"d/x": "1"})
    case.trace(
        """
        symlink("d", "e") = 0
        symlink("/workspace/e/../e", "/tmp/w") = 0
        rename("/tmp/w/x", "e/y") = 0
        chdir("/tmp/w") = 0
        truncate("y", 0) = 0
        unlink("y") = 0
        mknod("p", S_IFIFO|0600) = 0
        symlink("loop", "loop") = 0
        openat(AT_FDCWD</workspace/old>(deleted), "/etc/x", O_RDONLY) = 3</etc/x>
        """
    )
    (case.workspace / "e").symlink_to("d")
    (case.workspace / "d/x").unlink()
    os.mkfifo(case.workspace / "d/p")
    (case.workspace / "d/loop").symlink_to("loop")
    found = case.end()
    assert found[-1]["unrecorded"] == []
    assert [event["path"] for event in of(found, "unlink")] == ["/workspace/d/y"]
    assert {event["path"]: event["kind"] for event in of(found, "file")} == {
        "e": "link",
        "d/p": "other",
        "d/loop": "link",
    }


def test_names_that_are_exchanged_take_their_writers_along(case: Case) -> None:
    case.fork(20)
    case.write("a")
    case.write("b", 20)
    case.trace(
        'renameat2(AT_FDCWD</workspace>, "a", AT_FDCWD</workspace>, "b", RENAME_EXCHANGE) = 0'
    )
    files = {event["path"]: event["writers"] for event in of(case.end(), "file")}
    assert files == {"a": [2], "b": [1]}


def test_a_folder_is_known_by_its_new_name_to_who_works_in_it(tmp_path: Path) -> None:
    case = Case(tmp_path, {"d/x": "1"})
    case.fork(20)
    case.trace(
        """
        chdir("d") = 0
        20 2.0 rename("/workspace/d", "/workspace/e") = 0
        truncate("x", 0) = 0
        """
    )
    (case.workspace / "d").rename(case.workspace / "e")
    case.put("e/x", "")
    found = case.end()
    assert [event["writers"] for event in of(found, "file")] == [[1]]
    assert found[-1]["unrecorded"] == []


@pytest.mark.parametrize(
    "call",
    [
        'rename("/proc/self/cwd/a", "b") = 0',
        'rename("/dev/fd/3/a", "b") = 0',
        'renameat(3, "a", 3, "b") = 0',
        'unlink("loop/a") = 0',
        'symlink("x", 0x7fff) = 0',
        'openat(AT_FDCWD</workspace>, "a", O_WRONLY) = 3</workspace/b>',
    ],
)
def test_names_that_cannot_be_followed_are_said_to_be_so(case: Case, call: str) -> None:
    case.trace('symlink("loop", "loop") = 0')
    case.trace(call)
    assert case.end()[-1]["unclear"] > 0


def test_files_without_a_name_belong_to_who_names_them(case: Case) -> None:
    here, opened = "AT_FDCWD</workspace>", "3</workspace/#12>(deleted)"
    case.trace(
        f"""
        openat({here}, ".", O_RDWR|O_TMPFILE, 0600) = {opened}
        linkat({here}, "/proc/self/fd/3", {here}, "a", AT_SYMLINK_FOLLOW) = 0
        linkat({opened}, "", {here}, "b", AT_EMPTY_PATH) = 0
        """
    )
    case.put("a")
    case.put("b")
    found = case.end()
    assert [event["writers"] for event in of(found, "file")] == [[1], [1]]
    assert found[-1]["unrecorded"] == []


def test_who_is_killed_in_a_call_may_have_made_it(case: Case) -> None:
    case.fork(20)
    case.fork(21)
    case.write("old", 20)
    case.trace(
        """
        20 2.0 openat(AT_FDCWD</workspace>, "new", O_WRONLY|O_CREAT <unfinished ...>
        21 2.0 rename("old", "gone" <unfinished ...>
        20 3.0 +++ killed by SIGKILL +++
        21 3.0 +++ killed by SIGKILL +++
        """
    )
    case.put("new")
    case.write("away", content=None)
    case.fork(22)
    case.trace('22 2.0 unlink("away" <unfinished ...>\n22 3.0 +++ killed by SIGKILL +++')
    found = case.end()
    assert found[-1]["unrecorded"] == []
    files = {event["path"]: event for event in of(found, "file")}
    assert files["new"]["writers"] == [2]
    assert files["new"]["code"] == -9
    assert files["old"]["writers"] == [2, 3]


def test_a_child_that_is_seen_before_its_birth(case: Case) -> None:
    case.trace(
        """
        9 2.0 vfork( <unfinished ...>
        20 2.1 execve("/bin/cp", ["cp", "x", "y"], 0x7f /* 9 vars */ <unfinished ...>
        20 2.2 <... execve resumed>) = 0
        20 2.2 openat(AT_FDCWD</workspace>, "y", O_WRONLY|O_CREAT, 0600) = 3</workspace/y>
        20 2.5 +++ exited with 1 +++
        9 2.6 <... vfork resumed>) = 20
        """
    )
    case.put("y")
    found = case.end()
    assert [event["how"] for event in of(found, "process")] == ["exec", "fork", "exec"]
    assert {event["parent"] for event in of(found, "process")[1:]} == {1}
    (file,) = of(found, "file")
    assert (file["writers"], file["by"], file["code"]) == ([2], "cp x y", 1)


def test_a_number_that_is_given_again_is_another_process(case: Case) -> None:
    for name in ("a", "b"):
        case.fork(20)
        case.write(name, 20)
        case.trace("20 2.0 +++ exited with 0 +++")
    assert [event["writers"] for event in of(case.end(), "file")] == [[2], [3]]


def test_threads_are_their_process(case: Case) -> None:
    case.trace("clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FS) = 30")
    case.write("a", 30)
    case.trace("30 2.0 +++ exited with 0 +++")
    found = case.end()
    assert len(of(found, "exit")) == 1
    assert of(found, "file")[0]["writers"] == [1]


def test_a_thread_that_executes_gives_its_number_back(case: Case) -> None:
    case.trace(
        """
        clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FS) = 30
        30 2.0 execve("/bin/sh", ["sh", "x"], 0x7f /* 9 vars */ <pid changed to 9 ...>
        9 2.0 +++ superseded by execve in pid 30 +++
        9 2.0 <... execve resumed>) = -1 (errno 18446744073709551359)
        """
    )
    case.fork(30)
    case.write("a", 30)
    found = case.end()
    assert of(found, "process")[1]["argv"] == ["sh", "x"]
    (file,) = of(found, "file")
    assert (file["writers"], file["by"]) == ([2], "sh x")


def test_a_process_that_was_not_traced_shows_at_its_end(case: Case) -> None:
    case.fork(20)
    case.trace("20 2.0 +++ exited with 0 +++")
    case.recorder.feed(b"strace: Exit of unknown pid 20 ignored\n")
    assert case.recorder._events.unclear == 0
    case.recorder.feed(b"strace: Exit of unknown pid 77 ignored\n")
    assert case.end()[-1]["unclear"] == 1


def test_reads_have_a_class_and_are_told_once(tmp_path: Path) -> None:
    case = Case(tmp_path, {"task.md": "1"})
    for path in (
        *["/workspace/task.md"] * 2,
        "/data/set/a.csv",
        "/usr/lib/python3.11/os.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/venv/lib/python3.11/site-packages/sklearn/__init__.py",
        "/venv/lib/python3.11/site-packages/sklearn/datasets/data/iris.csv",
        "/opt/models/bert/model.safetensors",
        "/etc/passwd",
    ):
        case.trace(f'openat(AT_FDCWD</workspace>, "{path}", O_RDONLY) = 3<{path}>')
    installed = "/home/agent/.local/lib/python3.11/site-packages/torch/data.bin"
    for flags in ("O_WRONLY|O_CREAT", "O_RDONLY", "O_RDWR"):
        case.trace(f'openat(AT_FDCWD</workspace>, "{installed}", {flags}) = 3<{installed}>')
    case.write("model.pt")
    case.trace('openat(AT_FDCWD</workspace>, "model.pt", O_RDONLY) = 3</workspace/model.pt>')
    found = case.end()
    assert [(event["path"], event["class"]) for event in of(found, "read")] == [
        ("/workspace/task.md", "benchmark-input"),
        ("/data/set/a.csv", "benchmark-input"),
        ("/venv/lib/python3.11/site-packages/sklearn/datasets/data/iris.csv", "package"),
        ("/opt/models/bert/model.safetensors", "weights"),
        (installed, "installed"),
        ("/workspace/model.pt", "own"),
    ]
    (exit_,) = of(found, "exit")
    assert exit_["packages"] == ["numpy", "sklearn", "torch"]
    assert exit_["reads"] == {
        "benchmark-input": 2,
        "installed": 1,
        "own": 1,
        "package": 4,
        "system": 1,
        "weights": 1,
    }


def test_an_input_that_was_changed_is_read_as_another_one(tmp_path: Path) -> None:
    case = Case(tmp_path, {"data": "1"})
    read = 'openat(AT_FDCWD</workspace>, "data", O_RDONLY) = 3</workspace/data>'
    case.trace(read)
    case.write("data")
    case.trace(read)
    assert [event["class"] for event in of(case.end(), "read")] == ["benchmark-input", "own"]


def test_more_events_than_a_ledger_takes_are_counted(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "EVENTS", 3)
    for number in range(5):
        case.write(f"f{number}")
    found = case.end()
    assert found[-1]["dropped"] == {"write": 3, "exit": 1}
    assert found[-1]["whole"] is False
    assert found[-1]["unrecorded"] == []


def test_more_names_than_are_kept_are_not_taken_for_recorded(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.write("a")
    monkeypatch.setattr(shadow, "NAMES", case.recorder._shadow._names)
    case.write("b")
    assert case.end()[-1]["unrecorded"] == ["b"]


def test_what_an_agent_locks_or_buries_is_looked_at(case: Case) -> None:
    case.write("locked/a")
    (case.workspace / "locked/a").chmod(0)
    (case.workspace / "locked").chmod(0)
    deep = os.open(case.workspace, os.O_RDONLY)
    for _ in range(1500):  # deeper than recursion goes, and longer than a path may be
        os.mkdir("deep", dir_fd=deep)
        below = os.open("deep", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    found = case.end()
    files = {event["path"].count("/"): event for event in of(found, "file")}
    assert files[1]["kind"] == "file"
    assert files[1]["writers"] == [1]
    assert max(files) > 500
    assert files[max(files)]["kind"] == "unreadable"
    assert len(found[-1]["unrecorded"]) == 1
    # Python would remove it by recursion.
    subprocess.run(["rm", "-rf", case.workspace / "deep"], check=True)


NAME = st.sampled_from(["a", "b", "d/a", "d/e/b", "d", "d/e", "f"])
STEP = st.tuples(st.sampled_from(["write", "rename", "link", "unlink", "symlink"]), NAME, NAME)


@given(steps=st.lists(STEP, max_size=25))
def test_whatever_was_done_and_recorded_leaves_nothing_unrecorded(
    steps: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The picture kept from the trace is the one that the real file system gives."""
    case = Case(tmp_path_factory.mktemp("case"), {"a": "1", "d/e/b": "2"})
    top = os.fspath(case.workspace)
    for number, (step, one, two) in enumerate(steps):
        a, b = f"{top}/{one}", f"{top}/{two}"
        try:
            if step == "write":
                with open(a, "w") as file:
                    file.write(str(number))
                real = os.path.relpath(os.path.realpath(a), os.path.realpath(top))
                case.trace(
                    f'openat(AT_FDCWD</workspace>, "{one}", O_WRONLY|O_CREAT, 0600)'
                    f" = 3</workspace/{real}>"
                )
            elif step == "rename":
                os.rename(a, b)
                case.trace(f'rename("{one}", "{two}") = 0')
            elif step == "link":
                os.link(a, b, follow_symlinks=False)
                case.trace(f'link("{one}", "{two}") = 0')
            elif step == "unlink":
                os.unlink(a)
                case.trace(f'unlink("/workspace/{one}") = 0')
            elif step == "symlink":
                os.symlink(one.rpartition("/")[2], b)
                case.trace(f'symlink("{one.rpartition("/")[2]}", "{two}") = 0')
        except OSError:
            continue  # the trace has nothing of calls that failed
    end = case.end()[-1]
    assert end["unrecorded"] == []
    assert end["unclear"] == 0
