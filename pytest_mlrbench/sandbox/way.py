"""The names of files as a tree, and how a path leads through it."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Bytes of the longest path that is followed, as the kernel neither takes nor tells a longer one.
PATHS = 4095
#: Writers of one file that are kept.
WRITERS = 16
#: How a writer can have opened a file after which nothing is left of what it held.
EMPTYING = ("truncate", "make")


@dataclass(slots=True)
class Content:
    """What one file holds, whatever its names.

    :param writers: numbers of the processes that opened it for writing, the last one last, each
        once in a row; none for what was there at first.
    :param how: the last of them opened it; once it has emptied or made it, that.
    :param origin: under which path it lay at first, if it did.
    """

    writers: tuple[int, ...] = ()
    how: str = "given"
    origin: bytes | None = None
    #: How many of the writers, at the end, came since it was emptied or made: what those before
    #: them wrote is gone. All of them, if it never was.
    since: int = 0
    #: Grows when it passes from one writer to another.
    version: int = 0
    #: Whether somebody else may have written it, since two calls were made in an unknown order.
    unsure: bool = False

    def written(self, by: int, how: str) -> bool:
        """Note a writer; false if it was the last one already, and nothing has changed by that."""
        is_last, is_emptied = self.writers[-1:] == (by,), how in EMPTYING
        if is_last and (not is_emptied or (self.how in EMPTYING and self.since == 1)):
            return False
        self.how = how
        if not is_last:
            self.writers = (*self.writers[1 - WRITERS :], by)
            self.version += 1
        self.since = 1 if is_emptied else min(self.since + (not is_last), len(self.writers))
        return True


@dataclass(slots=True)
class Node:
    """What is known of a name, and of those in it if it is a folder; *target* is a link's."""

    children: dict[bytes, Node] = field(default_factory=dict)
    content: Content | None = None
    target: bytes | None = None
    #: Whether it may be among those that are near.
    is_near: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether nothing is known of it."""
        return not self.children and self.content is None and self.target is None


class Way:
    """Where a path has led so far: to *start*, at *base*, and on from there name by name."""

    def __init__(self, root: Node, base: bytes = b"", start: Node | None = None) -> None:
        self._root = root
        self._base = base
        self._names: list[bytes] = []
        self._nodes = [start if base else root]

    @property
    def path(self) -> bytes:
        """The names so far, as a path from the root."""
        return b"/".join((self._base, *self._names)) or b"/"

    @property
    def is_in_proc(self) -> bool:
        """Whether it leads, from the root, to what each process sees otherwise."""
        return not self._base and self._names[:1] == [b"proc"]

    def enter(self, name: bytes) -> Node | None:
        """Go on to a name, and return what is known of it."""
        above = self._nodes[-1]
        node = above.children.get(name) if above else None
        self._names.append(name)
        self._nodes.append(node)
        return node

    def leave(self) -> None:
        """Go back to the folder above; from the root, stay there."""
        if self._base and not self._names:
            # What lies above the start is looked up only now, which few paths need.
            names, self._base, self._nodes = split(self._base), b"", [self._root]
            for name in names:
                self.enter(name)
        if self._names:
            self._names.pop()
            self._nodes.pop()


def split(path: bytes) -> list[bytes]:
    """Return the names in a path, without those that lead nowhere."""
    return [name for name in path.split(b"/") if name not in (b"", b".")]


def is_of_processes(path: bytes) -> bool:
    """Whether a resolved path is one in which each process sees something else."""
    return path == b"/proc" or path.startswith(b"/proc/")
