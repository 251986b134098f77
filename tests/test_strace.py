"""What strace writes is read back as it was, however it is cut and whatever an agent is called."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.sandbox.strace import (
    LINE,
    Call,
    Event,
    Exit,
    Lines,
    Orphan,
    Replaced,
    Unread,
)
from pytest_mlrbench.sandbox.strace_arguments import (
    Descriptor,
    address,
    descriptor,
    string,
    strings,
)

NAMES = st.binary(min_size=1, max_size=40).map(lambda name: name.replace(b"\0", b"\n"))
FORGED = b'\n7  1.0 +++ exited with 0 +++\n7  1.0 openat(AT_FDCWD, "x", O_WRONLY) = 3</forged>\n'
ANY_NAME = NAMES | st.sampled_from(
    [FORGED, b") = 0", b'", O_RDONLY) = 3</x>', b"x <unfinished ...>", b") = -1 ENOENT (No)", b"\\"]
)
_SHORT = {10: b"\\n", 9: b"\\t", 13: b"\\r", 11: b"\\v", 12: b"\\f"}


def quoted(name: bytes, also: bytes = b"") -> bytes:
    """Escape a name as strace does."""
    out = b""
    for position, byte in enumerate(name):
        following = name[position + 1 : position + 2]
        if byte in _SHORT:
            out += _SHORT[byte]
        elif byte in b'"\\':
            out += b"\\" + bytes([byte])
        elif 32 <= byte < 127 and byte not in also:
            out += bytes([byte])
        else:
            out += b"\\%03o" % byte if following.isdigit() else b"\\%o" % byte
    return out


def path(name: bytes) -> bytes:
    return quoted(name, b"<>")


def read(*lines: bytes) -> list[Event]:
    return list(Lines().feed(b"".join(line + b"\n" for line in lines)))


def test_a_call_with_its_arguments() -> None:
    line = b'12    17.5 renameat2(3</a b>, "x", AT_FDCWD</w>, "y,z", RENAME_NOREPLACE) = 0'
    (call,) = read(line)
    assert isinstance(call, Call)
    assert (call.task, call.time, call.name, call.result) == (12, 17.5, "renameat2", 0)
    assert descriptor(call.arguments[0]) == Descriptor(3, b"/a b", False)
    assert descriptor(call.arguments[2]) == Descriptor(None, b"/w", False)
    assert string(call.arguments[3]) == b"y,z"
    assert call.arguments[4] == b"RENAME_NOREPLACE"


def test_ends_of_processes() -> None:
    assert read(
        b"1 2.0 +++ exited with 3 +++",
        b"1 2.0 +++ killed by SIGSEGV (core dumped) +++",
        b"1 2.0 +++ killed by SIGRT_2 +++",
        b"1 2.0 +++ killed by SIGNEW +++",
        b"1 2.0 +++ superseded by execve in pid 5 +++",
        b"/usr/bin/strace: Exit of unknown pid 13 ignored",
        b"1 2.0 --- SIGTERM {si_signo=SIGTERM} ---",
    ) == [
        Exit(1, 2.0, 3),
        Exit(1, 2.0, -11),
        Exit(1, 2.0, -34),
        Exit(1, 2.0, None),
        Replaced(1, 2.0, 5),
        Orphan(13),
    ]


def test_failures_are_left_out_but_of_connections() -> None:
    (call,) = read(
        b'1 2.0 openat(AT_FDCWD</>, "x", O_RDONLY) = -1 ENOENT (No such file or directory)',
        b'1 2.0 connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="s"}, 4) = -1 EAGAIN (Nope)',
        b"1 2.0 open(<unfinished ...>",
        b"1 2.0 <... open resumed>) = -1 EPERM (Operation not permitted)",
    )[:1]
    assert isinstance(call, Call)
    assert (call.name, call.result, call.error) == ("connect", -1, "EAGAIN")


def test_who_is_killed_before_a_call_has_not_made_it() -> None:
    assert read(
        b"1 2.0 ???( <unfinished ...>",
        b"1 2.0 <... ??? resumed>) = ?",
        b"2 2.0 ???()           = ?",
        b"1 2.0 +++ killed by SIGKILL +++",
    ) == [Exit(1, 2.0, -9)]


def test_a_call_that_is_made_again_has_not_been_made() -> None:
    (call,) = read(b'1 2.0 open("f", O_WRONLY) = ? ERESTARTSYS (To be restarted)')
    assert isinstance(call, Call)
    assert call.result == -1


def test_another_program_by_another_thread() -> None:
    events = read(
        b'11 1.0 execve("/bin/sh", ["sh"], 0x7f /* 9 vars */ <pid changed to 9 ...>',
        b"9 2.0 +++ superseded by execve in pid 11 +++",
        b"9 2.0 <... execve resumed>) = -1 (errno 18446744073709551359)",
    )
    assert events[0] == Replaced(9, 2.0, 11)
    assert isinstance(events[1], Call)
    assert (events[1].task, events[1].name, string(events[1].arguments[0])) == (
        9,
        "execve",
        b"/bin/sh",
    )


def test_killed_in_a_call() -> None:
    lines = Lines()
    begun = b'1 2.0 openat(AT_FDCWD</w>, "x", O_WRONLY|O_CREAT <unfinished ...>\n'
    assert not list(lines.feed(begun))
    call, end = lines.feed(b"1 3.0 +++ killed by SIGKILL +++\n")
    assert isinstance(call, Call)
    assert (call.name, call.result, string(call.arguments[1])) == ("openat", None, b"x")
    assert end == Exit(1, 3.0, -9)
    assert not list(lines.feed(begun))
    (call,) = lines.close()
    assert isinstance(call, Call)
    assert call.result is None


def test_lines_that_are_not_understood_are_said() -> None:
    assert read(b"what", b"1 2.0 what", b"1 2.0 open(", b"1 2.0 +++ odd +++") == [
        Unread(b"what"),
        Unread(b"1 2.0 what"),
        Unread(b"1 2.0 open("),
        Unread(b"+++ odd +++"),
    ]
    assert read(b"1 2.0 <... open resumed>) = 3") == [Unread(b"1 2.0 <... open resumed>) = 3")]
    lines = Lines()
    list(lines.feed(b"1 2.0 open("))
    assert list(lines.close()) == [Unread(b"1 2.0 open(")]


def test_a_line_without_an_end_takes_no_more_memory() -> None:
    lines = Lines()
    events = [event for _ in range(20) for event in lines.feed(b"x" * 2**20)]
    assert events == [Unread(b"x" * 200)]
    assert len(lines._rest) <= LINE
    assert list(lines.feed(b"\n1 2.0 +++ exited with 0 +++\n")) == [Exit(1, 2.0, 0)]


@given(ANY_NAME, ANY_NAME, st.booleans())
def test_any_name_comes_back_and_nothing_else(name: bytes, folder: bytes, writes: bool) -> None:
    flags = b"O_WRONLY|O_CREAT, 0644" if writes else b"O_RDONLY|O_CLOEXEC"
    line = b'7  1.5 openat(AT_FDCWD</%s>, "%s", %s) = 3</%s>' % (
        *(path(folder), quoted(name), flags),
        path(folder + b"/" + name),
    )
    (call,) = read(line)
    assert isinstance(call, Call)
    assert descriptor(call.arguments[0]) == Descriptor(None, b"/" + folder, False)
    assert string(call.arguments[1]) == name
    assert call.path == b"/" + folder + b"/" + name
    assert (call.task, call.result) == (7, 3)


@given(st.lists(ANY_NAME, max_size=5))
def test_any_command_line_comes_back(words: list[bytes]) -> None:
    listed = b", ".join(b'"%s"' % quoted(word) for word in words)
    (call,) = read(b'7  1.5 execve("/x", [%s], 0x7ffc /* 3 vars */) = 0' % listed)
    assert isinstance(call, Call)
    assert strings(call.arguments[1]) == (words, False)


def test_a_command_line_that_strace_cut_is_known_as_such() -> None:
    assert strings(b'["a", "b"...]') == ([b"a", b"b"], True)
    assert strings(b'["a", ...]') == ([b"a"], True)
    assert strings(b"NULL") == ([], True)


@given(st.lists(ANY_NAME, min_size=1, max_size=6), st.data())
def test_how_the_bytes_arrive_makes_no_difference(names: list[bytes], data: st.DataObject) -> None:
    whole, split = [], []
    for number, name in enumerate(names, 1):
        begin = b'unlink("%s"' % quoted(name)
        whole.append(b"%d 1.0 %s) = 0" % (number, begin))
        split.append(b"%d 1.0 %s <unfinished ...>" % (number, begin))
    split += [b"%d 2.0 <... unlink resumed>) = 0" % n for n in range(1, len(names) + 1)]
    text = b"".join(line + b"\n" for line in split)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8).map(sorted))
    lines = Lines()
    pieces = zip([0, *cuts], [*cuts, len(text)], strict=True)
    assert [e for a, b in pieces for e in lines.feed(text[a:b])] == read(*whole)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail_or_miss_what_comes_after_them(data: bytes) -> None:
    lines = Lines()
    after = b'\n77 2.0 unlink("a") = 0\n'
    events = [*lines.feed(data), *lines.feed(b"1 1.0 " + data + after)]
    assert events[-1:] == [Call(77, 2.0, "unlink", (b'"a"',), 0)]
    for event in [*events, *lines.close()]:
        if isinstance(event, Call):
            for argument in event.arguments:
                string(argument), strings(argument), descriptor(argument), address(argument)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b'{sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("1.2.3.4")}', "1.2.3.4:9"),
        (
            b"{sa_family=AF_INET6, sin6_port=htons(9), sin6_flowinfo=htonl(0),"
            b' inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}',
            "[::1]:9",
        ),
        (b'{sa_family=AF_UNIX, sun_path="/a\\n"}', "unix:/a\n"),
        (b'{sa_family=AF_UNIX, sun_path=@"sin_port=htons(9)"}', "unix:@sin_port=htons(9)"),
        (b"{sa_family=AF_NETLINK, nl_pid=0}", None),
        (b"NULL", None),
    ],
)
def test_addresses(written: bytes, said: str | None) -> None:
    assert address(written) == said


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_real_strace_writes_what_is_read_here(tmp_path: Path) -> None:
    name = b'a "<b>\\n\xff\n' + "é1".encode()
    program = f"import os; open({name!r}, 'w'); os.rename({name!r}, b'x'); os._exit(3)"
    trace = tmp_path / "trace"
    traced = "trace=openat,rename,execve"
    subprocess.run(
        [
            "strace",
            "-f",
            "-y",
            "-ttt",
            "-s",
            "999",
            "-e",
            traced,
            "-o",
            trace,
            sys.executable,
            "-c",
            program,
        ],
        cwd=tmp_path,
        check=False,
    )
    lines = Lines()
    events = [*lines.feed(trace.read_bytes()), *lines.close()]
    assert not [event for event in events if isinstance(event, Unread)]
    calls = [event for event in events if isinstance(event, Call)]
    assert strings(calls[0].arguments[1]) == (
        [sys.executable.encode(), b"-c", program.encode()],
        False,
    )
    opened, renamed = calls[-2:]
    assert opened.path == str(tmp_path).encode() + b"/" + name
    assert string(renamed.arguments[0]) == name
    assert isinstance(events[-1], Exit)
    assert events[-1].code == 3
