"""What each of the traced calls does to files and processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pytest_mlrbench.sandbox import folders
from pytest_mlrbench.sandbox.named import named, path_of
from pytest_mlrbench.sandbox.opens import OPENS, cut_short, opened
from pytest_mlrbench.sandbox.overlaps import Names
from pytest_mlrbench.sandbox.processes import Process
from pytest_mlrbench.sandbox.strace import Call
from pytest_mlrbench.sandbox.strace_arguments import (
    address,
    descriptor,
    string,
    strings,
    text,
    unescape,
)

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.events import Events

#: Bytes of a command line that are kept.
ARGV = 8192
#: Characters of it that are kept beside a file it wrote.
PROGRAM = 200
#: Calls that leave files as they are.
_KEEPING = ("execve", "execveat", "chdir", "fchdir", "memfd_create", "connect")
_RENAMES = ("rename", "renameat", "renameat2")


def follow(events: Events, process: Process, call: Call) -> None:
    """Put down what a call has done."""
    where = call.arguments[0] if call.arguments else b""
    if where.startswith(b"AT_FDCWD<") and where.endswith(b">"):
        process.cwd = unescape(where[9:-1])
    folders.follow(events, process, call)
    handle = _HANDLERS.get(call.name)
    if handle is None:
        return
    try:
        if call.result is None and call.name not in _KEEPING:
            cut_short(events, process, call)
        elif call.name == "connect" or (call.result is not None and call.result >= 0):
            handle(events, process, call)
    except IndexError:
        events.doubt(process, call, "strace tells too little of it")


def _execute(events: Events, process: Process, call: Call) -> None:
    at = call.name == "execveat"
    words, cut = strings(call.arguments[2 if at else 1])
    argv, room = [], ARGV
    for word in words:
        cut = cut or len(word) > room
        argv.append(text(word[:room]))
        room -= len(word)
        if room <= 0:
            break
    cut = cut or len(argv) < len(words)
    process.program = " ".join(argv)[:PROGRAM]
    exe = string(call.arguments[1 if at else 0])
    if at and not exe and (held := descriptor(call.arguments[0])):
        exe = held.path
    events.write(
        "process",
        proc=process.number,
        pid=process.pid,
        parent=process.parent,
        how="exec",
        at=call.time,
        exe=None if exe is None else text(exe),
        argv=argv,
        cut=cut,
        cwd=None if process.cwd is None else text(process.cwd),
    )


def _chdir(events: Events, process: Process, call: Call) -> None:
    names = Names()
    process.cwd = path_of(events, process, call, 0, last=True, names=names)
    names.via.update(names.uses)
    events.recent.check(events, process, call, names, process.where)


def _fchdir(events: Events, process: Process, call: Call) -> None:
    held = descriptor(call.arguments[0])
    process.cwd = held.path if held else None
    events.recent.check(events, process, call, Names(), process.where)


def _truncate(events: Events, process: Process, call: Call) -> None:
    names = Names(opens=True)
    if path := named(events, process, call, 0, names, last=True):
        # What is only made shorter, or longer, holds what it held.
        how = "truncate" if call.arguments[1] == b"0" else "open"
        events.written(process, path, how)
        events.recent.check(events, process, call, names, path)


def _make(events: Events, process: Process, call: Call) -> None:
    names = Names()
    if path := named(events, process, call, 1 if call.name == "mknodat" else 0, names):
        events.written(process, path, "make")
        events.recent.check(events, process, call, names, path)


def _rename(events: Events, process: Process, call: Call) -> None:
    at, names = call.name != "rename", Names()
    path = named(events, process, call, 1 if at else 0, names)
    to = named(events, process, call, 3 if at else 1, names)
    if path is None or to is None:
        return
    exchange = any(b"RENAME_EXCHANGE" in argument for argument in call.arguments[4:])
    for other in events.processes.living:
        other.moved(path, to, call, exchange=exchange)
    events.shadow.rename(path, to, exchange=exchange)
    events.write("rename", proc=process.number, path=text(path), to=text(to), exchange=exchange)
    events.recent.check(events, process, call, names, path, to)


def _link(events: Events, process: Process, call: Call) -> None:
    at, names = 1 if call.name == "linkat" else 0, Names()
    to = named(events, process, call, 2 * at + 1, names)
    if to is None:
        return
    follow_link, path = bool(at) and b"AT_SYMLINK_FOLLOW" in call.arguments[4], None
    if string(call.arguments[at]):
        path = path_of(events, process, call, at, last=follow_link, names=names)
    elif at and (held := descriptor(call.arguments[0])) and not held.deleted:
        path = held.path
    # A file without a name (of O_TMPFILE) is given one through /proc or its descriptor.
    events.wrote(process)
    events.shadow.link(path, to, process.number)
    events.write(
        "link", proc=process.number, path=None if path is None else text(path), to=text(to)
    )
    events.recent.check(events, process, call, names, to)


def _symlink(events: Events, process: Process, call: Call) -> None:
    target, names = string(call.arguments[0]), Names()
    to = named(events, process, call, len(call.arguments) - 1, names)
    if to is not None and target is not None:
        events.wrote(process)
        events.shadow.symlink(to, target, process.number)
        events.write("symlink", proc=process.number, path=text(target), to=text(to))
        events.recent.check(events, process, call, names, to)


def _unlink(events: Events, process: Process, call: Call) -> None:
    at, names = call.name == "unlinkat", Names()
    if at and b"AT_REMOVEDIR" in call.arguments[2]:
        return
    if path := named(events, process, call, 1 if at else 0, names):
        events.shadow.unlink(path)
        events.write("unlink", proc=process.number, path=text(path))
        events.recent.check(events, process, call, names, path)


def _memory(events: Events, process: Process, call: Call) -> None:
    name = string(call.arguments[0]) or b""
    events.write("memory", proc=process.number, name=text(name))


def _bind(events: Events, process: Process, call: Call) -> None:
    where = address(call.arguments[1])
    if where is not None and where.startswith("unix:") and not where.startswith("unix:@"):
        name = where.removeprefix("unix:").encode("utf-8", "surrogateescape")
        if path := events.shadow.resolve(process.cwd, name):
            events.written(process, path, "make")


def _connect(events: Events, process: Process, call: Call) -> None:
    where = address(call.arguments[1])
    waits = call.result is None or call.error == "EINPROGRESS"
    ok = None if waits else call.result == 0
    if where is not None and process.first_connection(f"{where} {ok}"):
        events.write("connect", proc=process.number, address=where, ok=ok)


_HANDLERS: Mapping[str, Callable[[Events, Process, Call], None]] = {
    **dict.fromkeys(("execve", "execveat"), _execute),
    **dict.fromkeys(OPENS, opened),
    **dict.fromkeys(_RENAMES, _rename),
    **dict.fromkeys(("link", "linkat"), _link),
    **dict.fromkeys(("symlink", "symlinkat"), _symlink),
    **dict.fromkeys(("unlink", "unlinkat"), _unlink),
    **dict.fromkeys(("mknod", "mknodat"), _make),
    "chdir": _chdir,
    "fchdir": _fchdir,
    "truncate": _truncate,
    "memfd_create": _memory,
    "bind": _bind,
    "connect": _connect,
}
#: The calls that are traced: those above, what gives descriptors or starts processes, and what the
#: kernel is to refuse.
TRACED = (*_HANDLERS, *folders.TRACED, "clone", "clone3", "fork", "vfork", "openat2")
