"""What calls that open a file do, and those in which a process was killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_mlrbench.sandbox.named import named, path_of
from pytest_mlrbench.sandbox.overlaps import Names
from pytest_mlrbench.sandbox.processes import Process
from pytest_mlrbench.sandbox.strace import Call
from pytest_mlrbench.sandbox.strace_arguments import text

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.events import Events

OPENS = ("open", "openat", "creat")
_WRITING = frozenset((b"O_WRONLY", b"O_RDWR", b"O_CREAT", b"O_TRUNC", b"O_TMPFILE"))
#: In the numbers of calls for which the process is killed; strace has the number as the result.
_X32 = 1 << 30


def cut_short(events: Events, process: Process, call: Call) -> None:
    """The process was killed in the call, which may have had its effect."""
    if call.name in OPENS and not flags_of(call) & _WRITING:
        return
    events.wrote(process)
    for index in range(len(call.arguments)):
        for last in (False, True):
            if path := path_of(events, process, call, index, last=last):
                events.cut_short[path] = process.number


def flags_of(call: Call) -> set[bytes]:
    """Names of the flags with which a file is opened."""
    if call.name == "creat":
        return {b"O_WRONLY", b"O_CREAT", b"O_TRUNC"}
    return set(call.arguments[2 if call.name == "openat" else 1].split(b"|"))


def opened(events: Events, process: Process, call: Call) -> None:
    """A file was opened, or made."""
    flags = flags_of(call)
    path = call.path
    if path is None and flags & _WRITING:
        _open_untold(events, process, call)
    if path is None or not path.startswith(b"/") or call.deleted or flags & {b"O_PATH"}:
        return  # O_TMPFILE, among others: it shows when it is linked to a name
    if flags & _WRITING:
        _open_to_write(events, process, call, path)
    # What is overwritten as a whole, or made, is not read.
    if b"O_WRONLY" not in flags and not flags & {b"O_TRUNC", b"O_DIRECTORY"}:
        events.read(process, path)


def _open_to_write(events: Events, process: Process, call: Call, path: bytes) -> None:
    if path.startswith((b"/dev/", b"/sys/")) and not path.startswith(b"/dev/shm/"):
        return
    if path.startswith(b"/proc/"):  # among them the memory of a process
        events.write("write", proc=process.number, path=text(path), how="open")
        return
    at = 1 if call.name == "openat" else 0
    asked = path_of(events, process, call, at, last=True)
    differs = asked is not None and asked != path
    if asked and differs and (asked.startswith(events.root) or path.startswith(events.root)):
        # Two threads can play such tricks, and so neither of the names is to be believed.
        events.doubt(process, call, f"asked for {text(asked)}, got {text(path)}")
        events.written(process, asked, "open")
    how = _how(flags_of(call))
    events.written(process, path, how)
    emptied = (path,) if how == "truncate" else ()
    events.recent.check(events, process, call, Names([path], opens=True), *emptied)


def _how(flags: set[bytes]) -> str:
    """What is in a file then: what was, or nothing yet."""
    if b"O_TRUNC" in flags:
        return "truncate"
    return "make" if {b"O_CREAT", b"O_EXCL"} <= flags else "open"


def _open_untold(events: Events, process: Process, call: Call) -> None:
    """Of what was opened no path was told.

    It may lie too deep, have been closed by another thread at once, or not have been opened: the
    process is then killed for the call.
    """
    if call.result is not None and call.result & _X32:
        return
    at = 1 if call.name == "openat" else 0
    if named(events, process, call, at, Names(), last=True) is not None:
        cut_short(events, process, call)
