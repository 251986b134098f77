"""Calls that the kernel may have made in another order than the one in which strace tells of them.

A call has its effect somewhere between its beginning and its end, as strace sees them. Where two
overlap, and one changes a name that the other goes by, what is known of the files behind it may be
the wrong way round. Programs that wait for each other are not concerned: what one does after
another has returned overlaps with nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pytest_mlrbench.sandbox.strace import Call

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.events import Events
    from pytest_mlrbench.sandbox.processes import Process

#: Calls that are remembered. One during which more of them ended cannot be told from any.
KEPT = 5000


@dataclass(slots=True)
class Names:
    """What a call is about.

    :param uses: resolved paths.
    :param via: links on the way to them, and what stands for the working directory.
    :param opens: it opens a file, or empties it; names stay as they are.
    """

    uses: list[bytes] = field(default_factory=list)
    via: set[bytes] = field(default_factory=set)
    opens: bool = False


class _Made(NamedTuple):
    call: Call
    process: Process
    names: Names
    #: Those of them that lead elsewhere since, or to a file that was emptied.
    changes: tuple[bytes, ...]
    #: When the last ended of this call and those that were remembered before it.
    ended: int


class Recent:
    """The calls that were made last, of those that have to do with names."""

    def __init__(self, kept: int = KEPT) -> None:
        self._made: deque[_Made] = deque(maxlen=kept)

    def check(
        self, events: Events, process: Process, call: Call, names: Names, *changes: bytes
    ) -> None:
        """Remember a call that was followed; doubt what it and those that overlap with it did."""
        last = self._made[-1].ended if self._made else 0
        this = _Made(call, process, names, changes, max(call.ended, last))
        if last > call.began:
            if len(self._made) == self._made.maxlen and self._made[0].ended > call.began:
                events.doubt(process, call, "too much was done in the meantime")
            _compare(events, this, self._beside(call))
        self._made.append(this)

    def _beside(self, call: Call) -> list[_Made]:
        """Those that overlap with a call, in the order in which they are told."""
        found = []
        for other in reversed(self._made):
            if other.ended <= call.began:
                break
            if other.call.began < call.ended and call.began < other.call.ended:
                found.append(other)
        return found[::-1]


def _compare(events: Events, this: _Made, beside: list[_Made]) -> None:
    unsure: set[bytes] = set()
    for other in beside:
        uses = other.names.uses
        if _misleads(this, other.names) or _misleads(other, this.names):
            events.doubt(this.process, this.call, f"{other.call.name} at the same time, on the way")
        elif this.process is other.process and this.names.opens and other.names.opens:
            pass  # whichever was first, the file has the same writer
        elif _changes(this, other.names) or _changes(other, this.names):
            unsure.update(this.names.uses, uses)
        # What was unsure by then may have got a further name.
        elif any(_is_in(path, use) or _is_in(use, path) for path in unsure for use in uses):
            unsure.update(uses)
    for path in unsure:
        events.shadow.doubt(path)


def _misleads(made: _Made, other: Names) -> bool:
    """Whether a call changes what led another one to its files."""
    return any(
        change in other.via or any(path != change and _is_in(path, change) for path in other.uses)
        for change in made.changes
    )


def _changes(made: _Made, other: Names) -> bool:
    return any(change in other.uses for change in made.changes)


def _is_in(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")
