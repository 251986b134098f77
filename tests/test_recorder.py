"""What a recorder makes of a trace, and of the workspace that it finds afterwards."""

from __future__ import annotations

import os
import subprocess
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.sandbox import events, folders, ledger, shadow
from pytest_mlrbench.sandbox.base import Ended, Job, Limits
from pytest_mlrbench.sandbox.classes import class_of
from pytest_mlrbench.sandbox.ledger import Ledger
from pytest_mlrbench.sandbox.overlaps import Recent
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

    def close(self, code: int = 0, *, is_read: bool = True) -> list[dict[str, Any]]:
        self.recorder.finish(Ended("exit", code, 1.0, "").facts(Limits()), is_read=is_read)
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


@pytest.mark.parametrize(
    ("calls", "how", "since"),
    [
        (["O_WRONLY|O_CREAT"], "open", 2),
        (["O_RDWR|O_APPEND"], "open", 2),
        (["O_WRONLY|O_CREAT|O_TRUNC"], "truncate", 1),
        (["O_WRONLY|O_CREAT|O_EXCL"], "make", 1),
        (["O_WRONLY", "O_WRONLY|O_TRUNC"], "truncate", 1),
        (["O_WRONLY|O_TRUNC", "O_WRONLY|O_APPEND"], "truncate", 1),
        (["truncate 0"], "truncate", 1),
        (["truncate 5"], "open", 2),
    ],
)
def test_what_was_in_a_file_is_known_to_be_gone(
    case: Case, calls: list[str], how: str, since: int
) -> None:
    case.write("a")
    case.fork(20)
    for flags in calls:
        if flags.startswith("truncate"):
            case.trace(f'20 2.5 truncate("a", {flags[-1]}) = 0')
        else:
            case.trace(f"20 2.5 {opened('a', flags)}")
    found = case.end()
    (file,) = of(found, "file")
    assert (file["writers"], file["how"], file["since"]) == ([1, 2], how, since)
    assert [event["how"] for event in of(found, "write")][-1] == how


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


SWAP_FOLDERS = 'renameat2(AT_FDCWD</workspace>, "c", AT_FDCWD</workspace>, "d", RENAME_EXCHANGE'
OPEN = "O_RDONLY|O_CLOEXEC|O_PATH|O_DIRECTORY"
RENAME = 'rename("/proc/self/fd/5/a", "/proc/self/fd/5/b") = 0'
THREAD = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FILES) = 30"


def folder(name: str = "d", number: int = 5) -> str:
    return f'openat(AT_FDCWD</workspace>, "{name}", {OPEN}) = {number}</workspace/{name}>'


@pytest.mark.parametrize(
    "way",
    [
        "/proc/self/fd/5",
        f"/proc/{MAIN}/fd/5",
        "/proc/thread-self/fd/5",
        "/dev/fd/5",
        "/proc/./self//fd/5/../d",
        "link",
    ],
)
def test_a_name_in_a_folder_that_is_held_open_is_followed(case: Case, way: str) -> None:
    case.trace(folder())
    case.trace('symlink("/proc/self/fd/5", "/tmp/w") = 0\nsymlink("/tmp/w", "link") = 0')
    (case.workspace / "link").symlink_to("/tmp/w")
    case.trace(
        f'openat(AT_FDCWD</workspace>, "{way}/a", O_WRONLY|O_CREAT, 0600) = 6</workspace/d/a>'
    )
    case.trace(f'rename("{way}/a", "{way}/b") = 0\nlink("{way}/b", "{way}/c") = 0')
    case.trace(f'unlink("{way}/c") = 0')
    case.put("d/b")
    found = case.end()
    assert (found[-1]["unclear"], found[-1]["unrecorded"]) == (0, [])
    assert [(event["path"], event["to"]) for event in of(found, "rename")] == [
        ("/workspace/d/a", "/workspace/d/b")
    ]


def test_an_open_folder_is_known_by_its_last_name_and_opener(case: Case) -> None:
    """Whatever other numbers, processes and threads do; another process has its own."""
    case.trace(folder())
    case.trace(THREAD)
    case.fork(20)
    case.trace(
        """
        20 2.1 rename("/workspace/d", "/workspace/e") = 0
        20 2.1 dup2(7</workspace/x>, 5</workspace/e>) = 5</workspace/x>
        20 2.1 recvmsg(3<socket:[1]>, {msg_namelen=0}, 0) = 1
        30 2.1 dup2(7</workspace/x>, 6</workspace/x>) = 6</workspace/x>
        30 2.1 recvmsg(3<socket:[1]>, {msg_namelen=0}, 0) = -1 EAGAIN (Resource unavailable)
        30 2.1 fcntl(8</workspace/x>, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)
        30 2.1 close_range(100, 200, 0) = 0
        """
    )
    case.trace(f"30 2.2 {RENAME}")
    case.trace(folder("z"))
    case.trace(RENAME)
    found = case.end()
    assert [event["to"] for event in of(found, "rename")[1:]] == [
        "/workspace/e/b",
        "/workspace/z/b",
    ]
    assert found[-1]["unclear"] == 0


@pytest.mark.parametrize(
    "between",
    [
        "dup2(6</workspace/c>, 5</workspace/d>) = 5</workspace/c>",
        "dup3(6</workspace/c>, 5</workspace/d>, O_CLOEXEC) = 5</workspace/c>",
        "dup(6</workspace/c>) = 5</workspace/c>",
        "fcntl(6</workspace/c>, F_DUPFD, 5) = 5</workspace/c>",
        "fcntl(6</workspace/c>, 0x100000000 /* F_??? */, 5) = 5",
        'openat(AT_FDCWD</workspace>, "c", O_RDONLY) = 5</workspace/c>',
        'openat(AT_FDCWD</workspace>, "c", O_RDONLY|O_DIRECTORY) = 5</workspace/c>(deleted)',
        'openat(AT_FDCWD</workspace>, "/proc", O_RDONLY|O_DIRECTORY) = 5</proc>',
        'openat(AT_FDCWD</workspace>, "c", O_RDONLY|O_DIRECTORY) = 5',
        "recvmsg(3<socket:[1]>, {msg_namelen=0}, 0) = 1",
        "recvmsg(3<socket:[1]>, 0x7f, 0) = -1 EFAULT (Bad address)",
        "recvmmsg(3<socket:[1]>, [{msg_hdr={}}], 1, 0, NULL) = 1",
        "clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD) = 40",
        "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FS) = 40",
        "close_range(100, 200, CLOSE_RANGE_UNSHARE) = 0",
        'execve("/bin/x", ["x"], 0x7f /* 9 vars */) = 0',
        '77 2.0 unlink("x") = 0',  # of a thread that may be one of it
    ],
)
def test_a_number_that_another_folder_may_have_got_is_not_followed(
    case: Case, between: str
) -> None:
    case.trace(folder())
    case.trace(between)
    case.trace(RENAME)
    found = case.end()
    assert of(found, "unclear")
    assert not of(found, "rename")


@pytest.mark.parametrize(
    "beside",
    [
        "dup2(6</workspace/c>, 5</workspace/c>) = 5</workspace/c>",
        f'openat(AT_FDCWD</workspace>, "c", {OPEN}) = 5</workspace/c>',
        "recvmsg(3<socket:[1]>, {msg_namelen=0}, 0) = 1",
        "recvmsg(3<socket:[1]>, 0x7f, 0) = -1 EFAULT (Bad address)",
        "dup2(6</workspace/c>, 5</workspace/c>) = ?",
        "clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD) = 40",
    ],
)
@pytest.mark.parametrize("order", ["around", "within", "before", "after"])
def test_a_number_that_is_given_while_a_call_goes_by_it_makes_that_unclear(
    case: Case, beside: str, order: str
) -> None:
    case.trace(THREAD)
    case.trace(folder())

    def parts(task: int, call: str) -> tuple[str, str, str]:
        begun, _, result = call.rpartition(") = ")
        name = begun.partition("(")[0]
        first = f"{task} 2.0 {begun} <unfinished ...>"
        return first, f"{task} 2.0 <... {name} resumed>) = {result}", f"{task} 2.0 {call}"

    one, other = parts(MAIN, RENAME), parts(30, beside)
    if order == "around":
        lines = [one[0], other[2], one[1]]
    elif order == "within":
        lines = [other[0], one[2], other[1]]
    elif order == "before":
        lines = [one[0], other[0], one[1], other[1]]
    else:
        lines = [other[0], one[0], other[1], one[1]]
    case.trace("\n".join(lines))
    assert case.end()[-1]["unclear"] > 0


@pytest.mark.parametrize(
    "lines",
    [
        f"20 2.0 {SWAP_FOLDERS} <unfinished ...>\n{folder()}\n20 2.0 <... renameat2 resumed>) = 0",
        f"{folder()}\n20 2.0 {SWAP_FOLDERS} <unfinished ...>\nvfork() = 50\n"
        "20 2.0 <... renameat2 resumed>) = 0",
    ],
    ids=["while it is opened", "while something else is done"],
)
def test_a_folder_whose_name_is_uncertain_is_not_followed(case: Case, lines: str) -> None:
    case.fork(20)
    case.trace(lines)
    case.trace(RENAME)
    assert case.end()[-1]["unclear"] > 0


def test_what_a_process_remembers_of_its_folders_is_bounded(case: Case) -> None:
    for number in range(3, 2000):
        case.trace(folder(f"d{number}", number))
    kept = case.recorder._events.processes.of(MAIN)
    assert kept is not None
    assert len(kept.folders._paths) <= folders.FOLDERS
    assert len(kept.folders._given) <= folders.NUMBERS


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


@pytest.mark.parametrize("cut", [0, 40, -1])
def test_what_strace_says_within_a_line_does_not_break_it(case: Case, cut: int) -> None:
    case.fork(20)
    line = f"{MAIN} 2.0 {opened('a', 'O_WRONLY|O_CREAT')}"
    first, rest = line[:cut], line[cut:]
    case.recorder.feed(f"{first}/usr/bin/strace: Exit of unknown pid 20 ignored\n{rest}".encode())
    case.recorder.feed(b"\n")
    case.put("a")
    found = case.end()
    assert (found[-1]["unclear"], found[-1]["unrecorded"]) == (0, [])


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
        "/datasets/cifar/batch.npz",
        "/datasets/cifar/load.py",
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
        ("/datasets/cifar/batch.npz", "image"),
        (installed, "installed"),
        ("/workspace/model.pt", "own"),
    ]
    (exit_,) = of(found, "exit")
    assert exit_["packages"] == ["numpy", "sklearn", "torch"]
    assert exit_["reads"] == {
        "benchmark-input": 2,
        "image": 2,
        "installed": 1,
        "own": 1,
        "package": 4,
        "system": 1,
        "weights": 1,
    }


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        (
            "image",
            "/datasets/a.csv /opt/data/x.npz /mnt/share/x.parquet /srv/lib.csv /var/data/a.csv"
            " /root/.cache/huggingface/x.arrow /usr/share/nltk_data/corpora/a.txt /set.csv",
        ),
        (
            "system",
            "/ /opt /.dockerenv /etc/ssl/certs/a.pem /usr/share/zoneinfo/UTC /lib/x86_64/libc.so.6"
            " /lib64/ld.so /proc/meminfo /sys/fs /dev/null /run/a /var/lib/dpkg/status /var/log/a"
            " /opt/conda/lib/python3.11/LICENSE.txt /opt/conda/bin/python /opt/conda/ssl/cacert.pem"
            " /root/miniconda3/share/terminfo/x /usr/lib/R/library/datasets/data/Rdata.rdb"
            " /usr/local/cuda/version.json",
        ),
    ],
)
def test_what_an_image_brings_are_data_but_for_the_machines_own(kind: str, paths: str) -> None:
    for path in paths.split():
        assert class_of(path.encode(), None) == kind, path


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


# Calls whose order is not known

HERE = "AT_FDCWD</workspace>"
AT = 'linkat(AT_FDCWD</workspace>, "evil", AT_FDCWD</workspace>, "hard", 0)'
SWAP = f'renameat2({HERE}, "result", {HERE}, "evil", RENAME_EXCHANGE)'


def opened(name: str, flags: str) -> str:
    return f'openat({HERE}, "{name}", {flags}, 0600) = 3</workspace/{name}>'


def side_by_side(case: Case, first: str, second: str) -> dict[str, Any]:
    """Have two tasks make calls that overlap; return the end, with what is said to be unsure.

    Task 9 has written *result* and *other*, 20 *evil* and 21 *late*; *dir* and *link* are folders.
    """
    for name, task in {"result": 9, "other": 9, "dir/result": 9, "evil": 20, "late": 21}.items():
        if task != MAIN:
            case.fork(task)
        case.write(name, task)
    case.trace('symlink("dir", "link") = 0')
    (case.workspace / "link").symlink_to("dir")
    begun, _, result = first.rpartition(") = ")
    name = begun.partition("(")[0]
    case.trace(
        f"20 2.5 {begun} <unfinished ...>\n21 2.6 {second}\n20 2.7 <... {name} resumed>) = {result}"
    )
    found = case.end()
    unsure = {event["path"] for event in of(found, "file") if event["unsure"]}
    assert unsure <= set(found[-1]["unrecorded"])
    return {**found[-1], "unsure": unsure}


@pytest.mark.parametrize(
    ("first", "second", "unsure"),
    [
        ('rename("evil", "result") = 0', 'rename("late", "result") = 0', {"result"}),
        ('rename("evil", "result") = 0', 'rename("result", "late") = 0', {"result", "late"}),
        (f"{SWAP} = 0", opened("result", "O_WRONLY"), {"result", "evil"}),
        (opened("evil", "O_RDWR|O_APPEND"), f"{SWAP} = 0", {"result", "evil"}),
        (f"{SWAP} = 0", 'truncate("result", 0) = 0', {"result", "evil"}),
        ('rename("evil", "result") = 0', 'unlink("result") = 0', {"result"}),
        ('unlink("result") = 0', 'link("late", "result") = 0', {"late"}),  # the other has no writer
        (f"{SWAP} = 0", f"{AT} = 0", {"result", "evil"}),
        (opened("result", "O_WRONLY|O_TRUNC"), 'creat("result", 0600) = 3</workspace/result>', ()),
    ],
)
def test_a_file_whose_last_writer_is_not_known_for_certain_is_a_finding(
    case: Case, first: str, second: str, unsure: set[str]
) -> None:
    end = side_by_side(case, first, second)
    assert end["unsure"] == set(unsure or {"result"})
    assert end["unclear"] == 0


def test_all_that_lies_in_folders_can_be_unsure(case: Case) -> None:
    for task, name in ((20, "d/deep/a"), (21, "e/deep/a")):
        case.fork(task)
        case.write(name, task)
    swap = f'renameat2({HERE}, "d", {HERE}, "e", RENAME_EXCHANGE'
    case.trace(f"20 2.5 {swap} <unfinished ...>\n{swap}) = 0\n20 2.6 <... renameat2 resumed>) = 0")
    assert case.end()[-1]["unrecorded"] == ["d/deep/a", "e/deep/a"]


@pytest.mark.parametrize("further", ["c", "d/c"])
def test_what_is_unsure_stays_so_under_its_further_names(case: Case, further: str) -> None:
    """The first call may have been made before any of those that are told before it."""
    for task, name in ((20, "a"), (21, "e")):
        case.fork(task)
        case.write(name, task)
    case.trace(
        f"""
        21 2.4 renameat2({HERE}, "a", {HERE}, "e", RENAME_EXCHANGE <unfinished ...>
        20 2.5 rename("a", "b") = 0
        20 2.5 rename("b", "{further}") = 0
        21 2.6 <... renameat2 resumed>) = 0
        """
    )
    for old, new in (("a", "x"), ("e", further), ("x", "e")):
        (case.workspace / new).parent.mkdir(exist_ok=True)
        (case.workspace / old).rename(case.workspace / new)
    case.write("e")
    case.trace('unlink("a") = 0')
    found = case.end()
    assert found[-1]["unrecorded"] == [further]
    assert {event["path"]: event["unsure"] for event in of(found, "file")} == {
        further: True,
        "e": False,
    }


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_threads_of_one_process_can_be_at_odds(case: Case, threads: bool) -> None:
    """Which content lies where is not known, though one process has done all of it."""
    flags = "CLONE_VM|CLONE_THREAD" if threads else "SIGCHLD"
    case.trace(f"clone(child_stack=NULL, flags={flags}) = 30")
    for name, task in (("a", MAIN), ("b", 30)):
        case.write(name, task)
    case.trace(
        """
        30 2.5 rename("a", "c" <unfinished ...>
        rename("b", "c") = 0
        30 2.6 <... rename resumed>) = 0
        """
    )
    (case.workspace / "a").unlink()
    (case.workspace / "b").rename(case.workspace / "c")
    assert case.end()[-1]["unrecorded"] == ["c"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('rename("dir", "folder") = 0', 'rename("late", "dir/result") = 0'),
        ('rename("late", "link/result") = 0', 'unlink("link") = 0'),
        ('link("link/result", "new") = 0', 'rename("late", "link") = 0'),
        ('symlink("elsewhere", "link") = 0', 'rename("late", "link/result") = 0'),
        (f'linkat({HERE}, "link/result", {HERE}, "new", 0) = 0', 'symlink("x", "link") = 0'),
        (opened("dir/result", "O_WRONLY"), 'rename("dir", "folder") = 0'),
        ('chdir("dir") = 0', 'rename("dir", "folder") = 0'),
    ],
)
def test_a_way_that_changes_under_a_call_makes_it_unclear(
    case: Case, first: str, second: str
) -> None:
    assert side_by_side(case, first, second)["unclear"] == 1


def test_a_working_directory_that_changes_under_a_call_makes_it_unclear(case: Case) -> None:
    case.trace("clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FS) = 30")
    case.write("d/a")
    case.trace('30 2.5 chdir("d" <unfinished ...>\nunlink("/workspace/x") = 0')
    assert case.recorder._events.unclear == 0
    case.trace('rename("a", "b") = 0\n30 2.6 <... chdir resumed>) = 0')
    assert case.end()[-1]["unclear"] == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('rename("evil", "e") = 0', 'rename("late", "l") = 0'),
        ('rename("evil", "dir/e") = 0', 'rename("late", "link/l") = 0'),
        ('rename("evil", "result") = -1 ENOENT (No such file)', 'rename("late", "result") = 0'),
        ('rename("evil", "result") = 0', 'rename("late", "result") = -1 EPERM (Not permitted)'),
        (opened("result", "O_WRONLY|O_CREAT|O_APPEND"), opened("result", "O_WRONLY|O_APPEND")),
        (opened("evil", "O_WRONLY|O_TRUNC"), opened("late", "O_WRONLY|O_TRUNC")),
        (opened("link", "O_RDONLY"), 'rename("late", "link") = 0'),
        (f'unlinkat({HERE}, "dir", AT_REMOVEDIR) = 0', 'rename("late", "dir/l") = 0'),
        ('connect(3, {sa_family=AF_UNIX, sun_path="result"}, 4) = 0', 'unlink("result") = 0'),
        ("vfork() = 40", 'rename("late", "result") = 0'),
    ],
)
def test_what_goes_on_beside_something_else_is_no_finding(
    case: Case, first: str, second: str
) -> None:
    end = side_by_side(case, first, second)
    assert end["unsure"] == set()
    assert end["unclear"] == 0


def test_threads_that_write_one_file_are_its_one_writer(case: Case) -> None:
    case.trace("clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FS) = 30")
    both = opened("a", "O_WRONLY|O_CREAT|O_TRUNC")
    begun, _, result = both.rpartition(") = ")
    case.trace(f"30 2.5 {begun} <unfinished ...>\n{both}\n30 2.6 <... openat resumed>) = {result}")
    case.put("a")
    assert case.end()[-1]["unrecorded"] == []


def test_what_one_does_after_another_is_in_order(case: Case) -> None:
    """Though a third is in a call all the time, and strace splits the lines of all of them."""
    case.fork(20)
    case.fork(21)
    case.write("a", 20)
    case.trace(
        """
        vfork( <unfinished ...>
        20 2.5 rename("a", "b" <unfinished ...>
        20 2.5 <... rename resumed>) = 0
        21 2.6 rename("b", "c" <unfinished ...>
        21 2.6 <... rename resumed>) = 0
        <... vfork resumed>) = 22
        """
    )
    (case.workspace / "a").rename(case.workspace / "c")
    found = case.end()
    assert (found[-1]["unrecorded"], found[-1]["unclear"]) == ([], 0)


def test_modules_that_two_processes_compile_at_once_are_no_finding(case: Case) -> None:
    for task in (20, 21):
        case.fork(task)
        case.write(f"d/__pycache__/m.pyc.{task}", task)
    case.trace(
        """
        20 2.5 rename("d/__pycache__/m.pyc.20", "d/__pycache__/m.pyc" <unfinished ...>
        21 2.5 rename("d/__pycache__/m.pyc.21", "d/__pycache__/m.pyc") = 0
        20 2.6 <... rename resumed>) = 0
        """
    )
    folder = case.workspace / "d/__pycache__"
    for task in (20, 21):
        (folder / f"m.pyc.{task}").rename(folder / "m.pyc")
    found = case.end()
    assert [event["unsure"] for event in of(found, "file")] == [True]
    assert found[-1]["unrecorded"] == []


def test_a_lock_that_two_processes_open_at_once_is_no_finding(case: Case) -> None:
    case.fork(20)
    lock = opened("lock", "O_RDWR|O_CREAT|O_TRUNC")
    begun, _, result = lock.rpartition(") = ")
    case.trace(f"20 2.5 {begun} <unfinished ...>\n{lock}\n20 2.6 <... openat resumed>) = {result}")
    case.put("lock", "")
    found = case.end()
    assert [event["unsure"] for event in of(found, "file")] == [True]
    assert found[-1]["unrecorded"] == []


def test_a_file_that_is_made_anew_is_certain_again(case: Case) -> None:
    for task, name in ((20, "a"), (21, "b")):
        case.fork(task)
        case.write(name, task, content=None)
    case.trace(
        """
        20 2.5 rename("a", "c" <unfinished ...>
        21 2.5 rename("b", "c") = 0
        20 2.6 <... rename resumed>) = 0
        """
    )
    case.write("c")
    case.write("d")
    assert case.recorder._shadow.names(b"/workspace")[b"c"].unsure
    case.trace('rename("d", "c") = 0')
    (case.workspace / "d").rename(case.workspace / "c")
    found = case.end()
    assert found[-1]["unrecorded"] == []
    assert [event["unsure"] for event in of(found, "file")] == [False]


def test_a_thread_that_is_seen_before_its_birth_is_at_odds_too(case: Case) -> None:
    for name in ("a", "b"):
        case.write(name, content=None)
    case.trace(
        """
        clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD <unfinished ...>
        30 2.1 rename("a", "c" <unfinished ...>
        20 2.1 rename("b", "c") = 0
        30 2.2 <... rename resumed>) = 0
        <... clone resumed>) = 30
        clone(child_stack=NULL, flags=SIGCHLD) = 20
        """
    )
    case.put("c")
    assert case.end()[-1]["unrecorded"] == ["c"]


def test_a_call_during_which_too_much_happens_is_unclear(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case.recorder._events, "recent", Recent(kept=3))
    case.fork(20)
    case.write("a", 20)
    for number, unclear in ((1, 0), (2, 0), (3, 1)):
        case.trace('20 2.5 rename("a", "b" <unfinished ...>')
        for index in range(number):
            case.write(f"f{number}{index}")
        case.trace("20 2.6 <... rename resumed>) = 0")
        assert case.recorder._events.unclear == unclear


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


# How deep an agent goes


def seconds_for(folder: Path, calls: str, depth: int) -> float:
    """Processor time that *calls*, made often, take of us in a folder so deep."""
    case = Case(folder)
    below = "/d" * depth
    case.trace(f'chdir("/workspace{below}") = 0')
    case.write(f"{below[1:]}/kept".lstrip("/"), content=None)
    lines = "".join(f"{MAIN} 2.0 {line.strip()}\n" for line in calls.strip().splitlines()).encode()
    taken = []
    for _ in range(5):
        begin = time.process_time()
        case.recorder.feed(lines * 40)
        taken.append(time.process_time() - begin)
    assert case.recorder._events.unclear == 0
    return min(taken)


@pytest.mark.parametrize(
    "calls",
    [
        'chdir(".") = 0',
        'symlink("x", "a") = 0\nrename("a", "b") = 0\nlink("b", "c") = 0\nunlink("c") = 0',
        'truncate("kept", 0) = 0\ntruncate("x/../kept", 0) = 0',
    ],
    ids=["chdir", "names", "truncate"],
)
def test_a_call_costs_no_more_in_a_deep_folder(tmp_path: Path, calls: str) -> None:
    """But for what is written down of it, where the whole path is, of 3800 bytes in the deep one.

    It would be 100 times as much if the way there were gone name by name, and more if that again
    were done for each of the names.
    """
    shallow = seconds_for(tmp_path / "shallow", calls, 1)
    assert seconds_for(tmp_path / "deep", calls, 1900) < 8 * shallow


def test_who_goes_too_deep_keeps_nobody_busy_and_is_lost_sight_of(case: Case) -> None:
    depth = 6000
    begin = time.process_time()
    case.recorder.feed(f'{MAIN} 2.0 chdir("d") = 0\n'.encode() * 100)
    few = time.process_time() - begin
    begin = time.process_time()
    case.recorder.feed(f'{MAIN} 2.0 chdir("d") = 0\n'.encode() * depth)
    assert time.process_time() - begin < 5 * few * depth / 100
    assert case.recorder._events.unclear == 0
    case.trace('rename("a", "b") = 0')
    case.trace('openat(AT_FDCWD, "a", O_WRONLY) = 3')  # the kernel does not say where it is either
    case.trace('openat(AT_FDCWD, "a", O_RDONLY) = 3')
    case.trace('openat(AT_FDCWD</workspace>, "a", O_RDONLY) = 3</workspace/a>')
    case.trace('rename("a", "b") = 0')
    found = case.end()
    assert [event["call"] for event in of(found, "unclear")] == ["rename", "rename", "openat"]
    assert [event["path"] for event in of(found, "rename")] == ["/workspace/a"]


def test_who_opens_a_file_whose_path_is_not_told_may_have_written_it(case: Case) -> None:
    """Another thread can close it before strace looks, and have another descriptor of it."""
    case.write("a")
    case.fork(20)
    case.trace('20 2.5 openat(AT_FDCWD</workspace>, "a", O_WRONLY) = 3')
    case.trace('20 2.5 openat(AT_FDCWD</workspace>, "no", O_WRONLY|O_CREAT, 0600) = 257')
    case.trace("20 2.5 openat(AT_FDCWD</workspace>, 0x7f97, O_WRONLY|O_CREAT) = 1073742081")
    case.trace("20 2.6 +++ killed by SIGSYS +++")
    found = case.end()
    assert [(event["path"], event["writers"]) for event in of(found, "file")] == [("a", [1, 2])]
    assert (found[-1]["unrecorded"], found[-1]["unclear"]) == ([], 0)


def test_a_path_is_followed_up_to_the_length_that_the_kernel_takes(case: Case) -> None:
    case.trace(f'chdir("/workspace{"/d" * 2041}") = 0')
    case.trace('rename("a", "bb") = 0')
    case.trace('rename("a", "bbb") = 0')
    case.trace('rename("../a", "../bbb") = 0')
    found = case.end()
    assert max(len(event["to"]) for event in of(found, "rename")) == 4095
    assert len(of(found, "rename")) == 2
    assert found[-1]["unclear"] == 1


def test_folders_that_are_moved_into_each_other_take_no_endless_memory(case: Case) -> None:
    """Each one has a file, and the paths of all would be of 15 GB together."""
    long = "/d" * 2000
    for _ in range(120):
        case.trace(
            f'openat(AT_FDCWD</workspace>, "t{long}/f", O_WRONLY|O_CREAT, 0600)'
            f" = 3</workspace/t{long}/f>"
        )
        case.trace(f'rename("/workspace/x", "/workspace/t{long}/x") = 0')
        case.trace('rename("/workspace/t", "/workspace/x") = 0')
    tracemalloc.start()
    case.recorder._shadow.names(b"/workspace")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50 * 2**20


def test_a_folder_under_its_old_name_is_found_no_more(case: Case) -> None:
    """Also where it, or one above it, was at hand."""
    case.write("a/b/c/f", content=None)
    case.trace('chdir("a/b/c") = 0\nunlink("x") = 0\nrename("/workspace/a", "/workspace/z") = 0')
    case.fork(20)
    case.write("a/b/c/g", 20, content=None)
    case.trace('rename("f", "h") = 0\nrename("/workspace/a/b/c/g", "g") = 0')
    names = case.recorder._shadow.names(b"/workspace")
    assert {path: content.writers for path, content in names.items()} == {
        b"z/b/c/h": (1,),
        b"z/b/c/g": (2,),
    }
    case.trace('unlink("h") = 0\nunlink("g") = 0')
    assert case.recorder._shadow.names(b"/workspace") == {}


def test_the_end_is_the_last_word(case: Case) -> None:
    case.write("a")
    found = case.end()
    case.write("b", content=None)
    case.recorder.feed(b"something\n")
    assert list(ledger.read(case.job.ledger.path)) == found


def test_a_trace_that_was_not_read_to_its_end_is_not_whole(case: Case) -> None:
    case.trace(f"{MAIN} 3.0 +++ exited with 0 +++")
    found = case.close(is_read=False)
    assert [event["e"] for event in found[-2:]] == ["unclear", "end"]
    assert found[-1]["whole"] is False
    assert found[-1]["unclear"] == 1


def test_the_end_says_what_was_seen_of_it(case: Case) -> None:
    ended = Ended("disk", -9, 1.0, "", disk=7)
    case.recorder.finish(ended.facts(Limits(disk=5)))
    *_, end = ledger.read(case.job.ledger.path)
    said = {name: end[name] for name in ("reason", "code", "seconds", "disk", "disk_limit")}
    assert said == {"reason": "disk", "code": -9, "seconds": 1.0, "disk": 7, "disk_limit": 5}
