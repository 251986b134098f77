"""Folders that others fill, agents above all: walked, copied and removed whatever they hold."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

#: Bytes in a path, with the zero at its end: no name that is longer leads anywhere.
LONGEST_PATH = 4096
#: Bytes that are copied at once.
_PIECE = 2**20


def entries(
    folder: Path, skips: Callable[[str], bool] = lambda name: False
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield relative path and entry of all that is no folder, in the order of names.

    The folder may be deeper than os.walk can recurse. Links are not followed; what is closed to us,
    or deeper than a path can be long, is left out.

    :param skips: tells by the name of a folder whether it is left out.
    """
    top = os.fspath(folder)
    start = len(os.path.join(top, ""))
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                inside = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        below = []
        for entry in inside:
            if not entry.is_dir(follow_symlinks=False):
                if is_reached(entry.path):
                    yield entry.path[start:], entry
            elif not skips(entry.name):
                below.append(entry.path)
        waiting += reversed(below)


def is_reached(path: str) -> bool:
    """Whether a path is short enough to lead anywhere: a folder may be so by a few bytes only."""
    return len(os.fsencode(path)) < LONGEST_PATH


def links(folder: Path) -> dict[str, str]:
    """Return link → where in *folder* it leads to a file or a folder, both as relative paths.

    A link that leads out of it, or nowhere, is nothing to whoever reads the folder.
    """
    root = os.path.realpath(folder)
    found = {}
    for name, entry in entries(folder):
        if entry.is_symlink() and (place := _place(entry.path, root)):
            found[name] = place
    return found


def _place(path: str, root: str) -> str:
    # First, as the system gives up a chain of links that Python would follow until it overflows.
    if not (os.path.isfile(path) or os.path.isdir(path)):
        return ""
    real = os.path.realpath(path)
    inside = real == root or real.startswith(os.path.join(root, ""))
    return os.path.relpath(real, root) if inside else ""


def make(folder: Path) -> None:
    """Make *folder* and those above it, which Path.mkdir does by recursion."""
    lacking = []
    while not folder.is_dir():
        lacking.append(folder)
        folder = folder.parent
    for place in reversed(lacking):
        place.mkdir(exist_ok=True)


def copy(source: Path, target: Path) -> None:
    """Copy the content of a file, and its holes as holes: it may seem a thousand times as large."""
    with source.open("rb", buffering=0) as old, target.open("wb", buffering=0) as new:
        size = os.fstat(old.fileno()).st_size
        for begin, end in stretches(old.fileno(), size):
            old.seek(begin)
            new.seek(begin)
            while (left := end - old.tell()) > 0 and (data := old.read(min(left, _PIECE))):
                while data:
                    data = data[new.write(data) :]
        new.truncate(size)


def stretches(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of what an open file holds between its holes."""
    place = 0
    while place < size:
        try:
            begin = os.lseek(file, place, os.SEEK_DATA)
            place = os.lseek(file, begin, os.SEEK_HOLE)
        except AttributeError:  # no such system
            begin, place = place, size
        except OSError:  # no more
            return
        yield begin, place


def copy_links(source: Path, target: Path) -> None:
    """Lay the links within *source* into *target*, where they lead to the same place in it.

    So the copy of a folder has its digest, and is to a reader what the folder is.
    """
    for name, place in links(source).items():
        new = target / name
        make(new.parent)
        if (source / place).is_dir():  # it may be an empty one, which nothing else has made
            make(target / place)
        new.unlink(missing_ok=True)
        new.symlink_to(os.path.relpath(target / place, new.parent))


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all in it, whatever permissions it has.

    The programs do so without following links, and without running out of stack.
    """
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(path)], check=False, stderr=subprocess.DEVNULL)
