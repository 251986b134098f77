"""Where the names in the arguments of a call lead."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_mlrbench.sandbox.folders import through
from pytest_mlrbench.sandbox.overlaps import Names
from pytest_mlrbench.sandbox.processes import Process
from pytest_mlrbench.sandbox.strace import Call
from pytest_mlrbench.sandbox.strace_arguments import descriptor, string, text

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.events import Events


def named(
    events: Events, process: Process, call: Call, index: int, names: Names, *, last: bool = False
) -> bytes | None:
    """As :func:`path_of`; where there is none, that is put down."""
    path = path_of(events, process, call, index, last=last, names=names)
    if path is None:
        name = text(string(call.arguments[index]) or b"")
        events.doubt(process, call, f"{name!r} cannot be followed")
    return path


def path_of(
    events: Events,
    process: Process,
    call: Call,
    index: int,
    *,
    last: bool,
    names: Names | None = None,
) -> bytes | None:
    """The resolved path in an argument, below the folder in the argument before it, if it is one.

    :param last: whether a link at the very end is followed too.
    """
    name = string(call.arguments[index])
    if name is None:
        return None
    base, names = process.cwd, names or Names()
    for argument in call.arguments[max(index - 1, 0) : index]:
        opened = descriptor(argument)
        if opened is not None and opened.number is not None:
            base = opened.path
    if base is process.cwd and name[:1] != b"/":
        names.via.add(process.where)
    known = partial(through, events, process, call)
    path = events.shadow.resolve(base, name, last=last, via=names.via, through=known)
    if path is not None:
        names.uses.append(path)
    return path
