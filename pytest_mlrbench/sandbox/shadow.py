"""Who made what lies where: a picture of the file system, kept up from what was traced.

It knows the names that were there at first, and every name, link and removal since. What it holds
at the end is compared with what really lies there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Names that are kept; what is written under further ones has no recorded writer.
NAMES = 1_000_000
#: Links followed for one path, as many as the kernel follows.
_LINKS = 40
#: Links that every container has, from which :func:`Shadow.resolve` knows a way through /proc.
_KNOWN = {
    b"/dev/fd": b"/proc/self/fd",
    b"/dev/stdin": b"/proc/self/fd/0",
    b"/dev/stdout": b"/proc/self/fd/1",
    b"/dev/stderr": b"/proc/self/fd/2",
}


@dataclass(slots=True)
class Content:
    """What one file holds, whatever its names.

    :param writers: numbers of the processes that opened it for writing, the last one last, each
        once in a row; none for what was there at first.
    :param how: the last of it came to be.
    :param origin: under which path it lay at first, if it did.
    """

    writers: tuple[int, ...] = ()
    how: str = "given"
    origin: bytes | None = None
    #: Grows when it passes from one writer to another.
    version: int = 0
    #: Whether somebody else may have written it, since two calls were made in an unknown order.
    unsure: bool = False

    def written(self, by: int, how: str) -> bool:
        """Note a writer; false if it was the last one already."""
        self.how = how
        if self.writers[-1:] == (by,):
            return False
        self.writers = (*self.writers[-15:], by)
        self.version += 1
        return True


@dataclass(slots=True)
class _Node:
    children: dict[bytes, _Node] = field(default_factory=dict)
    content: Content | None = None
    target: bytes | None = None


class Shadow:
    """Names and who made them. Paths are absolute, as the container has them."""

    def __init__(self) -> None:
        self._root = _Node()
        self._names = 0
        for path, target in _KNOWN.items():
            self.symlink(path, target, None)

    def given(self, path: bytes, target: bytes | None = None) -> None:
        """Note a file (or a link to *target*) that was there at first."""
        if node := self._make(path):
            node.content, node.target = Content(origin=path), target

    def get(self, path: bytes) -> Content | None:
        """Who made what lies under a resolved path; null where nothing is known to lie."""
        node = self._find(_split(path))
        return node.content if node else None

    def resolve(
        self,
        base: bytes | None,
        path: bytes,
        *,
        last: bool = False,
        via: set[bytes] | None = None,
    ) -> bytes | None:
        """The path without links and dots; null if it leads through /proc, or nowhere.

        :param base: what a relative path starts from; null if that is not known.
        :param last: whether a link at the very end is followed too.
        :param via: is given the links that were followed.
        """
        if not path.startswith(b"/"):
            if base is None:
                return None
            path = base + b"/" + path
        todo = _split(path)[::-1]
        done: list[bytes] = []
        links = 0
        while todo:
            name = todo.pop()
            if name == b"..":
                del done[-1:]
                continue
            done.append(name)
            if done[0] == b"proc":
                return None  # each process sees another thing there
            node = self._find(done) if todo or last else None
            if node is not None and node.target is not None:
                links += 1
                if via is not None:
                    via.add(b"/" + b"/".join(done))
                if links > _LINKS:
                    return None
                done = [] if node.target.startswith(b"/") else done[:-1]
                todo.extend(_split(node.target)[::-1])
        return b"/" + b"/".join(done)

    def written(self, path: bytes, by: int, how: str) -> bool:
        """A process may write what lies at *path*; false if it was the last to do so already."""
        node = self._make(path)
        if node is None:
            return True
        if node.content is None:
            node.content = Content()
        return node.content.written(by, how)

    def symlink(self, path: bytes, target: bytes, by: int | None) -> None:
        """A link was made."""
        if node := self._make(path):
            node.target = target
            node.content = Content() if by is None else Content((by,), "symlink", version=1)

    def link(self, path: bytes | None, to: bytes, by: int) -> None:
        """A file has one more name; *path* null if its first one is not known."""
        source = None if path is None else self._find(_split(path))
        if path is None:
            self.written(to, by, "link")
        elif source is not None and (node := self._make(to)):
            node.content, node.target = source.content, source.target

    def rename(self, path: bytes, to: bytes, *, exchange: bool = False) -> bool:
        """A name was changed, and all below it; false if nothing was known under it."""
        known = self.get(path)
        if known is not None and known is self.get(to):
            return True  # two names of one file: the kernel then does nothing
        moved, replaced = self._take(path), self._take(to)
        if moved is not None:
            self._put(to, moved)
        if replaced is not None and exchange:
            self._put(path, replaced)
        elif replaced is not None:
            self._names -= _count(replaced)
        return moved is not None

    def unlink(self, path: bytes) -> None:
        """A name was taken away."""
        if (node := self._take(path)) is not None:
            self._names -= _count(node)

    def doubt(self, path: bytes) -> None:
        """It is not known for certain who made what lies at *path* and below."""
        start = self._find(_split(path))
        todo = [start] if start else []
        while todo:
            node = todo.pop()
            if node.content is not None:
                node.content.unsure = True
            todo.extend(node.children.values())

    def names(self, root: bytes) -> Mapping[bytes, Content]:
        """What is known to lie below *root*, by path relative to it."""
        found: dict[bytes, Content] = {}
        start = self._find(_split(root))
        todo = [(b"", start)] if start else []
        while todo:
            prefix, node = todo.pop()
            for name, child in node.children.items():
                if child.content is not None:
                    found[prefix + name] = child.content
                todo.append((prefix + name + b"/", child))
        return found

    def _find(self, names: list[bytes]) -> _Node | None:
        node: _Node | None = self._root
        for name in names:
            node = node.children.get(name) if node else None
        return node

    def _make(self, path: bytes) -> _Node | None:
        node = self._root
        for name in _split(path):
            child = node.children.get(name)
            if child is None:
                if self._names >= NAMES:
                    return None
                child = node.children[name] = _Node()
                self._names += 1
            node = child
        return node

    def _put(self, path: bytes, moved: _Node) -> None:
        names = _split(path)
        if parent := self._make(b"/".join(names[:-1])):
            parent.children[names[-1]] = moved

    def _take(self, path: bytes) -> _Node | None:
        """Cut a name off, and the folders that only led to it."""
        way = [self._root]
        names = _split(path)
        for name in names:
            if (child := way[-1].children.get(name)) is None:
                return None
            way.append(child)
        taken = way[-1]
        for parent, name in zip(way[-2::-1], reversed(names), strict=False):
            del parent.children[name]
            if parent.children or parent.content or parent.target is not None:
                break
            self._names -= parent is not self._root
        return taken


def _split(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name not in (b"", b".")]


def _count(node: _Node) -> int:
    total, todo = 0, [node]
    while todo:
        total += 1
        todo.extend(todo.pop().children.values())
    return total
