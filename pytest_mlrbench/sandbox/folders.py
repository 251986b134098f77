"""Which folders a process holds open, so that a way through ``/proc/self/fd/13/name`` is known.

Who guards against links goes by such names, as the editor of a coding CLI. Where a number is closed
is not seen, as it would be dear to look at, and need not be: a name below it leads somewhere only
if a folder has the number, and every call by which a folder can get one is. What is given at the
same time as it is used, or by a call that does not tell all that it gave, is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_mlrbench.sandbox.strace import Call
from pytest_mlrbench.sandbox.way import PATHS, is_of_processes

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.events import Events
    from pytest_mlrbench.sandbox.processes import Process

#: Numbers that are looked at, and folders that are kept of one process.
NUMBERS, FOLDERS = 256, 16
#: Calls whose result is a descriptor. Of ``fcntl`` only some are, but which ones strace and the
#: kernel may read otherwise; another result is a number that hardly is a folder's.
_GIVING = frozenset(("open", "openat", "creat", "dup", "dup2", "dup3", "fcntl"))
#: Calls that can give any, also where they fail in the end. What strace reads of them a thread can
#: have changed by then.
RECEIVING = ("recvmsg", "recvmmsg")
#: Calls by which processes may come to share descriptors, or threads of one to have each its own.
_SHARING = frozenset(("clone", "fork", "vfork", "close_range"))
_FOLLOWED = _GIVING | _SHARING | {*RECEIVING, "execve", "execveat"}
#: Traced for this alone.
TRACED = ("dup", "dup2", "dup3", "fcntl", *RECEIVING, "close_range")


@dataclass(slots=True)
class Folders:
    """The open folders of one process; times are as :attr:`Call.ended` counts them.

    :param is_lost: whether others may give descriptors to it, so that nothing is known any more.
    """

    is_lost: bool = True
    _paths: dict[int, bytes] = field(default_factory=dict)
    #: Number → when it was given last.
    _given: dict[int, int] = field(default_factory=dict)
    #: Number → when the last call ended that went by it.
    _used: dict[int, int] = field(default_factory=dict)
    #: Nothing that was given until then is known.
    _forgotten: int = -1

    def path(self, number: int, call: Call) -> bytes | None:
        """Which folder had this number all the time while a call was made; null if unknown."""
        path = self._paths.get(number)
        if self.is_lost or path is None or call.began < self._given[number]:
            return None
        self._used[number] = max(call.ended, self._used.get(number, 0))
        return path

    def given(self, number: int, path: bytes | None, call: Call) -> bool:
        """A call gave a number, to a folder if *path* is not null.

        False if another one went by that number, and it is not known whether before or after.
        """
        if number >= NUMBERS:
            return True
        # What a thread did before its birth was seen is told late.
        if call.ended > max(self._given.get(number, -1), self._forgotten):
            self._given[number] = call.ended
            self._paths.pop(number, None)
            if path is not None:
                self._paths[number] = path
                if len(self._paths) > FOLDERS:
                    del self._paths[next(iter(self._paths))]
        return call.began >= self._used.get(number, 0)

    def forget(self, call: Call) -> bool:
        """A call may have given any number; false as for :meth:`given`."""
        self._paths.clear()
        self._forgotten = max(call.ended, self._forgotten)
        return all(call.began >= used for used in self._used.values())

    def moved(self, ways: Iterable[tuple[bytes, bytes]], call: Call) -> None:
        """Folders have got other names, by one call."""
        for number, folder in list(self._paths.items()):
            for path, to in ways:
                if (folder + b"/").startswith(path + b"/"):
                    new = to + folder[len(path) :]
                    # It may have been told by its new name already, where something overlaps.
                    if call.began == call.ended > self._given[number] and len(new) <= PATHS:
                        self._paths[number] = new
                    else:
                        del self._paths[number]
                    break


def follow(events: Events, process: Process, call: Call) -> None:
    """Keep up what is known of a process's descriptors."""
    if call.name not in _FOLLOWED or call.error == "EAGAIN":
        return
    if call.name in _SHARING and _keeps(events, process, call):
        return
    folders = process.folders
    if call.result is not None and call.name in _GIVING:
        is_certain = call.result < 0 or folders.given(call.result, _folder(call), call)
    else:
        folders.is_lost |= call.name in _SHARING
        is_certain = folders.forget(call)
    if not is_certain:
        events.doubt(process, call, "a descriptor was given while another call went by it")


def _folder(call: Call) -> bytes | None:
    """The path of what was opened, if it is a folder for certain."""
    if b"O_DIRECTORY" not in b" ".join(call.arguments[1:3]) or call.deleted:
        return None
    path = call.path
    return path if path and path.startswith(b"/") and not is_of_processes(path) else None


def _keeps(events: Events, process: Process, call: Call) -> bool:
    """Whether a call leaves it at one table of descriptors for each process, and each its own."""
    if call.result is None:
        return False
    if call.name == "close_range":
        return call.arguments[2:] in ((b"0",), (b"CLOSE_RANGE_CLOEXEC",))
    if not has_flag(call.arguments, b"CLONE_FILES"):
        return not has_flag(call.arguments, b"CLONE_THREAD")
    # Else it is no thread, or one that was taken for a process of its own.
    return events.processes.of(call.result) is process


def has_flag(arguments: Iterable[bytes], flag: bytes) -> bool:
    """Whether a flag is among the arguments of a call."""
    return any(flag in argument for argument in arguments)


def through(events: Events, process: Process, call: Call, names: list[bytes]) -> bytes | None:
    """Where three names below ``/proc`` lead, as ``self``, ``fd``, ``13``; null if unknown.

    While there are threads whose process is not known yet, any of them may be of this one.
    """
    who, what, number = names
    if who not in (b"self", b"thread-self", b"%d" % process.pid) or what != b"fd":
        return None
    if not number.isdigit() or len(number) > 3 or not events.processes.are_placed:
        return None
    return process.folders.path(int(number), call)
