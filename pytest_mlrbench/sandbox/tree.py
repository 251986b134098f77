"""What lies in a folder: the digest of each file, before and after an agent worked in it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pytest_mlrbench.run import digests

#: ``other`` is a pipe, a socket or a device; ``unreadable`` what could not be looked at.
Kind = Literal["file", "link", "other", "unreadable"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder.

    :param size: bytes.
    :param sha256: of a file's content or a link's target; null for what has none.
    """

    kind: Kind
    size: int
    sha256: str | None


@dataclass(frozen=True)
class Tree:
    """All names below a folder but those of folders; links are not followed.

    Names are bytes, relative to the folder, as the file system has them.
    """

    entries: Mapping[bytes, Entry] = field(default_factory=dict)
    #: Of the links alone: where they point.
    links: Mapping[bytes, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 over names, kinds and contents."""
        sha = hashlib.sha256()
        for name, entry in sorted(self.entries.items()):
            sha.update(name + f"\0{entry.kind}\0{entry.sha256}\0".encode())
        return sha.hexdigest()

    def differing(self, other: Tree) -> list[bytes]:
        """Names that are here and were not, or not so, in *other*."""
        return sorted(n for n, entry in self.entries.items() if other.entries.get(n) != entry)


def snapshot(root: Path) -> Tree:
    """Look at everything below *root*, where nothing may run any more.

    What its owner has locked is unlocked for it; what cannot be read for another reason (a path
    that is longer than the kernel takes, a broken disk) is an entry of its own kind.
    """
    top = os.fsencode(root).rstrip(b"/")
    entries: dict[bytes, Entry] = {}
    links: dict[bytes, bytes] = {}
    for path, mode in _walk(top):
        name = path[len(top) + 1 :] or b"."
        try:
            entries[name] = _entry(path, mode)
            if stat.S_ISLNK(mode):
                links[name] = os.readlink(path)
        except OSError:
            entries[name] = Entry("unreadable", 0, None)
    return Tree(entries, links)


def _walk(top: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield paths and modes of what is no folder, and of folders that cannot be entered."""
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            _unlock(folder, os.R_OK | os.X_OK)
            with os.scandir(folder) as found:
                inside = [
                    (entry.path, entry.stat(follow_symlinks=False).st_mode) for entry in found
                ]
        except OSError:
            yield folder, 0
            continue
        for path, mode in inside:
            if stat.S_ISDIR(mode):
                folders.append(path)
            else:
                yield path, mode


def _entry(path: bytes, mode: int) -> Entry:
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        return Entry("link", len(target), hashlib.sha256(target).hexdigest())
    if not stat.S_ISREG(mode):
        return Entry("other" if mode else "unreadable", 0, None)
    _unlock(path, os.R_OK)
    with open(path, "rb") as file:
        sha256 = digests.of_open(file, digests.BLOCK)  # any number of them may be mere holes
        return Entry("file", os.fstat(file.fileno()).st_size, sha256)


def _unlock(path: bytes, rights: int) -> None:
    if not os.access(path, rights):
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) | rights << 6)
