"""Who made what lies where: a picture of the file system, kept up from what was traced.

It knows the names that were there at first, and every name, link and removal since. What it holds
at the end is compared with what really lies there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_mlrbench.sandbox.way import PATHS, Content, Node, Way, is_of_processes, split

#: Names that are kept; what is written under further ones has no recorded writer.
NAMES = 1_000_000
#: Folders that are found again without going there name by name.
NEAR = 1000
#: Links followed for one path, as many as the kernel follows.
_LINKS = 40
#: Links that every container has, from which :func:`Shadow.resolve` knows a way through /proc.
_KNOWN = {
    b"/dev/fd": b"/proc/self/fd",
    b"/dev/stdin": b"/proc/self/fd/0",
    b"/dev/stdout": b"/proc/self/fd/1",
    b"/dev/stderr": b"/proc/self/fd/2",
}


class Shadow:
    """Names and who made them. Paths are absolute, as the container has them.

    What a call costs here depends on the names that it gives, and hardly on how deep the folder
    lies from which they start: else an agent could keep us busy by going deep.
    """

    def __init__(self) -> None:
        self._root = Node()
        self._names = 0
        self._near: dict[bytes, Node] = {}
        for path, target in _KNOWN.items():
            self.symlink(path, target, None)

    def given(self, path: bytes, target: bytes | None = None) -> None:
        """Note a file (or a link to *target*) that was there at first."""
        if node := self._make(path):
            node.content, node.target = Content(origin=path), target

    def get(self, path: bytes) -> Content | None:
        """Who made what lies under a resolved path; null where nothing is known to lie."""
        node = self._find(path)
        return node.content if node else None

    def resolve(
        self,
        base: bytes | None,
        path: bytes,
        *,
        last: bool = False,
        via: set[bytes] | None = None,
        through: Callable[[list[bytes]], bytes | None] = lambda names: None,
    ) -> bytes | None:
        """The path without links and dots; null if it leads through /proc, nowhere, or too deep.

        :param base: what a relative path starts from, itself resolved; null if that is not known.
        :param last: whether a link at the very end is followed too.
        :param via: is given the links that were followed.
        :param through: tells to which folder three names below /proc lead, if it is known.
        """
        way = Way(self._root)
        if not path.startswith(b"/"):
            if base is None or is_of_processes(base):
                return None
            way = Way(self._root, base.rstrip(b"/"), self._folder(base))
        todo = split(path)[::-1]
        links = 0
        while todo:
            name = todo.pop()
            if name == b"..":
                way.leave()
                continue
            node = way.enter(name)
            if way.is_in_proc:
                # Without a further name it may be anything, and not be meant to be followed.
                folder = through(todo[:-4:-1]) if len(todo) > 3 else None
                if folder is None:
                    return None
                del todo[-3:]
                way = Way(self._root, folder, self._folder(folder))
                continue
            if node is not None and node.target is not None and (todo or last):
                links += 1
                if via is not None:
                    via.add(way.path)
                if links > _LINKS:
                    return None
                way.leave()
                if node.target.startswith(b"/"):
                    way = Way(self._root)
                todo.extend(split(node.target)[::-1])
        path = way.path
        return path if len(path) <= PATHS else None

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
            node.content = Content()
            if by is not None:
                node.content = Content((by,), "symlink", since=1, version=1)

    def link(self, path: bytes | None, to: bytes, by: int) -> None:
        """A file has one more name; *path* null if its first one is not known."""
        source = None if path is None else self._find(path)
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
        self._prune(path)
        self._prune(to)
        return moved is not None

    def unlink(self, path: bytes) -> None:
        """A name was taken away."""
        if (node := self._take(path)) is not None:
            self._names -= _count(node)
            self._prune(path)

    def doubt(self, path: bytes) -> None:
        """It is not known for certain who made what lies at *path* and below."""
        start = self._find(path)
        todo = [start] if start else []
        while todo:
            node = todo.pop()
            if node.content is not None:
                node.content.unsure = True
            todo.extend(node.children.values())

    def names(self, root: bytes) -> Mapping[bytes, Content]:
        """What is known to lie below *root*, by path relative to it; not what lies too deep."""
        found: dict[bytes, Content] = {}
        start = self._find(root)
        todo = [(b"", start)] if start else []
        while todo:
            prefix, node = todo.pop()
            for name, child in node.children.items():
                if child.content is not None:
                    found[prefix + name] = child.content
                # The paths of a million folders, each in the one before, would take all memory.
                if child.children and len(prefix) + len(name) < PATHS:
                    todo.append((prefix + name + b"/", child))
        return found

    def _find(self, path: bytes) -> Node | None:
        folder, _, name = path.rpartition(b"/")
        node = self._folder(folder)
        return node.children.get(name) if node and name else node

    def _folder(self, path: bytes) -> Node | None:
        if (node := self._near.get(path)) is not None:
            return node
        node = self._root
        for name in path.split(b"/"):
            if name and (node := node.children.get(name)) is None:
                return None
        self._keep_near(path, node)
        return node

    def _keep_near(self, path: bytes, node: Node) -> None:
        if len(self._near) >= NEAR:
            self._near.clear()
        self._near[path] = node
        node.is_near = True

    def _make(self, path: bytes) -> Node | None:
        folder, _, name = path.rpartition(b"/")
        if not name:
            return self._root
        node = self._near.get(folder)
        names = [name] if node else split(path)
        parent = node = node or self._root
        for each in names:
            parent, child = node, node.children.get(each)
            if child is None:
                if self._names >= NAMES:
                    return None
                child = node.children[each] = Node()
                self._names += 1
            node = child
        if names[-1:] == [name]:
            self._keep_near(folder, parent)
        return node

    def _put(self, path: bytes, moved: Node) -> None:
        folder, _, name = path.rpartition(b"/")
        if parent := self._make(folder):
            parent.children[name] = moved

    def _take(self, path: bytes) -> Node | None:
        """Cut a name off."""
        folder, _, name = path.rpartition(b"/")
        parent = self._folder(folder)
        taken = parent.children.pop(name, None) if parent else None
        if taken and (taken.children or taken.is_near):
            self._near.clear()
        return taken

    def _prune(self, path: bytes) -> None:
        """Cut off the folders that only led to a name, where there is none any more."""
        folder = path.rpartition(b"/")[0]
        node = self._folder(folder)
        if node is None or not node.is_bare:
            return
        names, way = split(folder), [self._root]
        for name in names:
            way.append(way[-1].children[name])
        while names and way.pop().is_bare:
            del way[-1].children[names.pop()]
            self._names -= 1
        self._near.clear()


def _count(node: Node) -> int:
    total, todo = 0, [node]
    while todo:
        total += 1
        todo.extend(todo.pop().children.values())
    return total
