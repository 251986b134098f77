"""What each of the traced calls does to files and processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

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
_WRITING = frozenset((b"O_WRONLY", b"O_RDWR", b"O_CREAT", b"O_TRUNC", b"O_TMPFILE"))
_OPENS = ("open", "openat", "creat")
#: In the numbers of calls for which the process is killed; strace has the number as the result.
_X32 = 1 << 30
#: Calls that leave files as they are.
_KEEPING = ("execve", "execveat", "chdir", "fchdir", "memfd_create", "connect")
_RENAMES = ("rename", "renameat", "renameat2")


def follow(events: Events, process: Process, call: Call) -> None:
    """Put down what a call has done."""
    where = call.arguments[0] if call.arguments else b""
    if where.startswith(b"AT_FDCWD<") and where.endswith(b">"):
        process.cwd = unescape(where[9:-1])
    handle = _HANDLERS.get(call.name)
    if handle is None:
        return
    try:
        if call.result is None and call.name not in _KEEPING:
            _cut_short(events, process, call)
        elif call.name == "connect" or (call.result is not None and call.result >= 0):
            handle(events, process, call)
    except IndexError:
        events.doubt(process, call, "strace tells too little of it")


def _cut_short(events: Events, process: Process, call: Call) -> None:
    """The process was killed in the call, which may have had its effect."""
    if call.name in _OPENS and not _flags(call) & _WRITING:
        return
    events.wrote(process)
    for index, argument in enumerate(call.arguments):
        if (name := string(argument)) is not None:
            before = call.arguments[max(index - 1, 0) : index]
            for last in (False, True):
                if path := _path(events, process, before, name, last=last):
                    events.cut_short[path] = process.number


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
    if at and not exe and (opened := descriptor(call.arguments[0])):
        exe = opened.path
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
    path, names = string(call.arguments[0]) or b"", Names()
    process.cwd = _path(events, process, (), path, last=True, names=names) if path else None
    names.via.update(names.uses)
    events.recent.check(events, process, call, names, process.where)


def _fchdir(events: Events, process: Process, call: Call) -> None:
    opened = descriptor(call.arguments[0])
    process.cwd = opened.path if opened else None
    events.recent.check(events, process, call, Names(), process.where)


def _flags(call: Call) -> set[bytes]:
    if call.name == "creat":
        return {b"O_WRONLY", b"O_CREAT", b"O_TRUNC"}
    return set(call.arguments[2 if call.name == "openat" else 1].split(b"|"))


def _open(events: Events, process: Process, call: Call) -> None:
    flags = _flags(call)
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
    name = string(call.arguments[at])
    asked = None
    if name is not None:
        asked = _path(events, process, call.arguments[:at], name, last=True)
    differs = asked is not None and asked != path
    if asked and differs and (asked.startswith(events.root) or path.startswith(events.root)):
        # Two threads can play such tricks, and so neither of the names is to be believed.
        events.doubt(process, call, f"asked for {text(asked)}, got {text(path)}")
        events.written(process, asked, "open")
    events.written(process, path, "open")
    emptied = (path,) if b"O_TRUNC" in _flags(call) else ()
    events.recent.check(events, process, call, Names([path], opens=True), *emptied)


def _open_untold(events: Events, process: Process, call: Call) -> None:
    """Of what was opened no path was told.

    It may lie too deep, have been closed by another thread at once, or not have been opened: the
    process is then killed for the call.
    """
    if call.result is not None and call.result & _X32:
        return
    at = 1 if call.name == "openat" else 0
    name = string(call.arguments[at])
    if name is None or _path(events, process, call.arguments[:at], name, last=True) is None:
        events.doubt(process, call, f"{text(name or b'')!r} cannot be followed")
    else:
        _cut_short(events, process, call)


def _truncate(events: Events, process: Process, call: Call) -> None:
    names = Names(opens=True)
    if path := _named(events, process, call, 0, names, last=True):
        events.written(process, path, "truncate")
        events.recent.check(events, process, call, names, path)


def _make(events: Events, process: Process, call: Call) -> None:
    names = Names()
    if path := _named(events, process, call, 1 if call.name == "mknodat" else 0, names):
        events.written(process, path, "make")
        events.recent.check(events, process, call, names, path)


def _rename(events: Events, process: Process, call: Call) -> None:
    at, names = call.name != "rename", Names()
    path = _named(events, process, call, 1 if at else 0, names)
    to = _named(events, process, call, 3 if at else 1, names)
    if path is None or to is None:
        return
    exchange = any(b"RENAME_EXCHANGE" in argument for argument in call.arguments[4:])
    for other in events.processes.living:
        other.moved(path, to, exchange=exchange)
    events.shadow.rename(path, to, exchange=exchange)
    events.write("rename", proc=process.number, path=text(path), to=text(to), exchange=exchange)
    events.recent.check(events, process, call, names, path, to)


def _link(events: Events, process: Process, call: Call) -> None:
    at, names = 1 if call.name == "linkat" else 0, Names()
    to = _named(events, process, call, 2 * at + 1, names)
    if to is None:
        return
    name = string(call.arguments[at])
    before = call.arguments[:at]
    opened = descriptor(before[0]) if before and not name else None
    follow_link = bool(at) and b"AT_SYMLINK_FOLLOW" in call.arguments[4]
    path = _path(events, process, before, name, last=follow_link, names=names) if name else None
    if opened is not None and opened.path is not None and not opened.deleted:
        path = opened.path
    # A file without a name (of O_TMPFILE) is given one through /proc or its descriptor.
    events.wrote(process)
    events.shadow.link(path, to, process.number)
    events.write(
        "link", proc=process.number, path=None if path is None else text(path), to=text(to)
    )
    events.recent.check(events, process, call, names, to)


def _symlink(events: Events, process: Process, call: Call) -> None:
    target, names = string(call.arguments[0]), Names()
    to = _named(events, process, call, len(call.arguments) - 1, names)
    if to is not None and target is not None:
        events.wrote(process)
        events.shadow.symlink(to, target, process.number)
        events.write("symlink", proc=process.number, path=text(target), to=text(to))
        events.recent.check(events, process, call, names, to)


def _unlink(events: Events, process: Process, call: Call) -> None:
    at, names = call.name == "unlinkat", Names()
    if at and b"AT_REMOVEDIR" in call.arguments[2]:
        return
    if path := _named(events, process, call, 1 if at else 0, names):
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


def _named(
    events: Events, process: Process, call: Call, index: int, names: Names, *, last: bool = False
) -> bytes | None:
    """The resolved path in an argument, below the folder in the argument before it, if it is one.

    Where there is none, that is put down.
    """
    name = string(call.arguments[index])
    before = call.arguments[max(index - 1, 0) : index]
    path = None
    if name is not None:
        path = _path(events, process, before, name, last=last, names=names)
    if path is None:
        events.doubt(process, call, f"{text(name or b'')!r} cannot be followed")
    return path


def _path(
    events: Events,
    process: Process,
    before: Iterable[bytes],
    name: bytes,
    *,
    last: bool,
    names: Names | None = None,
) -> bytes | None:
    base, names = process.cwd, names or Names()
    for argument in before:
        opened = descriptor(argument)
        if opened is not None and opened.number is not None:
            base = opened.path
    if base is process.cwd and name[:1] != b"/":
        names.via.add(process.where)
    path = events.shadow.resolve(base, name, last=last, via=names.via)
    if path is not None:
        names.uses.append(path)
    return path


_HANDLERS: Mapping[str, Callable[[Events, Process, Call], None]] = {
    **dict.fromkeys(("execve", "execveat"), _execute),
    **dict.fromkeys(_OPENS, _open),
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
#: The calls that are traced: those above, what starts processes, and what the kernel is to refuse.
TRACED = (*_HANDLERS, "clone", "clone3", "fork", "vfork", "openat2")
