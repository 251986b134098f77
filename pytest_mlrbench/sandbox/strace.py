r"""The output of strace, read as it comes: bytes in, calls and exits out.

Read is what ``strace -f -y -ttt -o FILE`` writes, one line each::

    12  1700000000.123456 openat(AT_FDCWD</workspace>, "a\n", O_RDONLY) = 3</workspace/a\n>
    12  1700000000.123456 +++ exited with 0 +++

A call during which another process was seen is split over two lines (``<unfinished ...>``,
``<... openat resumed>``) and put together here. Whatever an agent can choose, names and arguments,
strace quotes: a quotation mark, an angle bracket or a line break in it is escaped. So a line break
ends a line, and what stands outside of quotes is strace's own.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_mlrbench.sandbox.strace_arguments import unescape

#: Bytes of one line. Longer than any call with the longest arguments the kernel takes.
LINE = 16 * 2**20

_LINE = re.compile(rb"(\d+) +(\d+\.\d+) (.*)", re.DOTALL)
_EXITED = re.compile(rb"\+\+\+ exited with (\d+) \+\+\+")
_KILLED = re.compile(rb"\+\+\+ killed by (\w+)(?: \(core dumped\))? \+\+\+")
_REPLACED = re.compile(rb"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
#: Strace says so at once, be it within another line. No line ends with what an agent can choose.
_ORPHAN = re.compile(rb"(.*?)(?:/usr/bin/)?strace: Exit of unknown pid (\d+) ignored", re.DOTALL)
#: The thread was killed before strace could see which call it was about to make. The kernel then
#: does not make it.
_NOT_MADE = re.compile(
    rb"\?\?\?\((?: <unfinished \.\.\.>|\) *= \?)|<\.\.\. \?\?\? resumed>\) *= \?"
)
_RESUMED = re.compile(rb"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_UNFINISHED = re.compile(rb"(.*) <(?:unfinished|pid changed to \d+) \.\.\.>", re.DOTALL)
#: The end of a line that tells of a failure. Nothing that an agent chose can stand there.
_FAILED = re.compile(rb"\) += -1 E[A-Z0-9]+ \([^()\"<>]*\)$")
#: Calls of which failures are told as well: even these may have done something.
_TOLD = re.compile(rb"(?:<\.\.\. )?(?:connect|recvmm?sg)\b")
#: Nearly all lines: a file was opened for reading.
_READ = re.compile(
    rb'(\d+) +(\d+\.\d+) openat\((AT_FDCWD<[^<>]*>), ("(?:[^"\\]|\\.)*"), (O_RDONLY[A-Z_|]*)\)'
    rb" += (\d+)<([^<>]*)>"
)
_CALL = re.compile(rb"(\w+)\((.*)", re.DOTALL)
#: A quoted string, what -y says of a descriptor, brackets, commas, and anything between them.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|<[^<>]*>|[\[{(]|[\]})]|,|[^"<\[\]{}(),]+|[<"]', re.DOTALL)
_RESULT = re.compile(rb" *= (-?\d+|\?)(?:<([^<>]*)>)?(\(deleted\))?(?: (E[A-Z0-9]+)\b)?")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has returned.

    :param task: the thread that made it, as the container numbers it.
    :param time: when it began, Unix time in seconds.
    :param arguments: as strace writes them; see :mod:`~pytest_mlrbench.sandbox.strace_arguments`.
    :param result: null where strace could not tell: the thread was killed in the call.
    :param error: name of what went wrong, such as ``ENOENT``; *result* is then negative.
    :param path: where the descriptor that was returned leads to.
    :param deleted: that path has no name in its folder any more, or never had.
    :param began: how many beginnings and ends of calls came before it began, and before it *ended*.
        What the kernel did for it, it did in between.
    """

    task: int
    time: float
    name: str
    arguments: tuple[bytes, ...]
    result: int | None
    path: bytes | None = None
    deleted: bool = False
    error: str | None = None
    began: int = field(default=0, compare=False)
    ended: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Exit:
    """A thread has ended. *code* is negative for a signal, null where it is not known by name."""

    task: int
    time: float
    code: int | None


@dataclass(frozen=True, slots=True)
class Replaced:
    """The process *task* executes another program, at the word of its thread *by*."""

    task: int
    time: float
    by: int


@dataclass(frozen=True, slots=True)
class Orphan:
    """The end of *task* was told to strace as its parent; it must have been traced until then."""

    task: int


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that is none of the above: strace's own words, or what it cut off."""

    line: bytes


#: What a thread does.
Doing = Call | Exit | Replaced
Event = Doing | Orphan | Unread


@dataclass
class Lines:
    """What strace writes, cut anywhere, put together again; without calls that failed.

    Of those, few are of interest.
    Kept is one unfinished call for each thread, and the line that has not ended yet.
    """

    _rest: bytearray = field(default_factory=bytearray)
    _skipping: bool = False
    _begun: dict[int, tuple[float, bytes, int]] = field(default_factory=dict)
    #: Beginnings and ends of calls so far; one that nothing came between counts once.
    _count: int = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield what the lines completed by *data* say."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            if self._rest:
                line = bytes(self._rest) + line
                self._rest.clear()
            if self._skipping:
                self._skipping = False
            elif line.endswith(b" ignored") and (orphan := _ORPHAN.fullmatch(line)):
                self._rest += orphan[1]
                yield Orphan(int(orphan[2]))
            elif line:
                yield from self._line(line)
        if not self._skipping:
            self._rest += rest
        if len(self._rest) > LINE:
            yield Unread(bytes(self._rest[:200]))
            self._rest.clear()
            self._skipping = True

    def close(self) -> Iterator[Event]:
        """Yield what is left: calls that have not returned, and a line that was cut off."""
        for task in list(self._begun):
            yield from self._cut_short(task)
        if self._rest:
            yield Unread(bytes(self._rest[:200]))
        self._rest.clear()

    def _cut_short(self, task: int) -> Iterator[Event]:
        """Yield the call in which a thread was when it was killed."""
        time, text, began = self._begun.pop(task, (0.0, b"", 0))
        if call := _call(task, time, text + b") = ?", began, self._count):
            yield call

    def _line(self, line: bytes) -> Iterator[Event]:
        if found := _READ.fullmatch(line):
            task, time, *arguments, result, path = found.groups()
            path = unescape(path)
            self._count += 1
            when = self._count
            yield Call(
                *(int(task), float(time), "openat", tuple(arguments), int(result), path),
                began=when,
                ended=when,
            )
            return
        found = _LINE.fullmatch(line)
        if not found:
            yield Unread(line[:200])
            return
        task, time, text = int(found[1]), float(found[2]), found[3]
        if text.startswith(b"+++"):
            yield from self._ending(task, time, text)
        elif text.startswith(b"---") or _NOT_MADE.fullmatch(text):
            return  # a signal, a stop, or nothing
        elif text.endswith(b")") and not _TOLD.match(text) and _FAILED.search(text):
            self._begun.pop(task, None)
        elif text.endswith(b" ...>") and (found := _UNFINISHED.fullmatch(text)):
            self._count += 1
            self._begun[task] = (time, found[1], self._count)
        elif found := _RESUMED.fullmatch(text):
            self._count += 1
            time, begun, began = self._begun.pop(task, (time, b"", 0))
            if begun.startswith(found[1] + b"("):
                call = _call(task, time, begun + found[2], began, self._count)
                yield call or Unread(line[:200])
            else:
                yield Unread(line[:200])
        else:
            self._count += 1
            yield _call(task, time, text, self._count, self._count) or Unread(line[:200])

    def _ending(self, task: int, time: float, text: bytes) -> Iterator[Event]:
        if found := _REPLACED.fullmatch(text):
            # The call that does it returns under the number of the process.
            by = int(found[1])
            yield from self._cut_short(task)
            if by in self._begun:
                self._begun[task] = self._begun.pop(by)
            yield Replaced(task, time, by)
            return
        yield from self._cut_short(task)
        if found := _EXITED.fullmatch(text):
            yield Exit(task, time, int(found[1]))
        elif found := _KILLED.fullmatch(text):
            yield Exit(task, time, _signal(found[1].decode()))
        else:
            yield Unread(text[:200])


def _signal(name: str) -> int | None:
    if name.startswith("SIGRT_"):
        return -(32 + int(name.removeprefix("SIGRT_")))
    number = getattr(signal, name, None)
    return -int(number) if isinstance(number, signal.Signals) else None


def _call(task: int, time: float, text: bytes, began: int, ended: int) -> Call | None:
    found = _CALL.fullmatch(text)
    if not found:
        return None
    split = _arguments(found[2])
    if split is None:
        return None
    arguments, after = split
    result = _RESULT.match(after)
    if not result:
        return None
    # A call that a signal interrupted has the result "?" and an error, and is made again.
    value = int(result[1]) if result[1] != b"?" else -1 if result[4] else None
    return Call(
        task,
        time,
        found[1].decode(),
        arguments,
        value,
        None if result[2] is None else unescape(result[2]),
        result[3] is not None,
        result[4].decode() if result[4] else None,
        began,
        ended,
    )


def _arguments(text: bytes) -> tuple[tuple[bytes, ...], bytes] | None:
    """Split at the commas that are in no brackets; also return what follows the closing one."""
    arguments: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        first = token[0]
        if first in (b"(", b"[", b"{"):
            depth += 1
        elif first in (b")", b"]", b"}"):
            depth -= 1
            if depth < 0:
                if last := text[start : token.start()].strip():
                    arguments.append(last)
                return tuple(arguments), text[token.end() :]
        elif first == b"," and depth == 0:
            arguments.append(text[start : token.start()].strip())
            start = token.end()
    return None
