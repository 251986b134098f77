"""Digests of what a result depends on: files, folders, code and the repository it lives in."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from io import BufferedReader
from pathlib import Path

from pytest_mlrbench import folders

#: Bytes from which on holes are looked for, and of a block in which there may be something.
_LARGE, BLOCK = 2**30, 2**16
#: Bytes of holes that are read, in all files of a folder together.
_HOLES = 4 * 2**30


def of_json(value: object) -> str:
    """SHA-256 of plain data, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def of_file(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return of_open(file)


def of_open(file: BufferedReader, large: int = _LARGE) -> str:
    """SHA-256 of an open file's content; of a large one that is nearly all holes, of what is there.

    As a database lays out its space, so an agent could lay out terabytes that take hours to read.
    Thus no more is read than *large* or eight times what the file takes on disk.

    :param large: bytes from which on a file is large.
    """
    about = os.fstat(file.fileno())
    if about.st_size <= large or about.st_blocks * 512 >= about.st_size // 8:
        return hashlib.file_digest(file, "sha256").hexdigest()
    sha = hashlib.sha256(f"{about.st_size}".encode())
    for place, block in _blocks(file.fileno(), about.st_size):
        if block.strip(b"\0"):  # where holes are may differ after a copy
            sha.update(f"{place}\0".encode() + block)
    return sha.hexdigest()


def _blocks(file: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield place and content of the blocks that have any."""
    done = 0
    for begin, end in folders.stretches(file, size):
        for place in range(max(done, begin - begin % BLOCK), end, BLOCK):
            yield place, os.pread(file, BLOCK, place)
            done = place + BLOCK


def of_files(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 over names and contents, in the order of the names.

    Where the holes in the files come to much, they are no longer read as the zeros they stand for:
    a disk holds any number of files that are nothing else.
    """
    sha, left = hashlib.sha256(), _HOLES
    for name, path in sorted(files):
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            left -= max(0, about.st_size - about.st_blocks * 512)
            digest = of_open(file, _LARGE if left >= 0 else BLOCK)
        sha.update(f"{name}\0{digest}\0".encode("utf-8", "surrogateescape"))
    return sha.hexdigest()


def of_folder(folder: Path) -> tuple[str, int]:
    """Return the digest over the files below *folder* and its links, and the number of the files.

    A link counts by where in the folder it leads; see :func:`folders.links`.
    """
    files = list(walk(folder))
    digest, links = of_files(files), folders.links(folder)
    return of_json([digest, sorted(links.items())]) if links else digest, len(files)


def shown(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield what :func:`walk` does, and the links to regular files that stay under *folder*.

    So it is what a reader of the folder finds in it, and has after a copy too.
    """
    root = folder.resolve()
    for name, entry in folders.entries(folder):
        path = Path(entry.path)
        if entry.is_file(follow_symlinks=False) or (
            entry.is_symlink() and path.is_file() and path.resolve().is_relative_to(root)
        ):
            yield name, path


def walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (relative path, path) of the regular files under *folder*; links are not followed."""
    for name, entry in folders.entries(folder):
        if entry.is_file(follow_symlinks=False):
            yield name, Path(entry.path)


@cache
def of_surroundings(path: Path) -> str:
    """Digest of what the code in the file *path* may use beside itself.

    That is the git repository around it, and those in it: HEAD, uncommitted changes, and those new
    files that end like *path* does, so that reports and logs written beside an agent do not change
    it. Where there is no repository, it is the files beside *path* that end like it.
    """
    top = _git(path.parent, "rev-parse", "--show-toplevel")
    if top is None:
        return of_files((p.name, p) for p in path.parent.glob(f"*{path.suffix}") if p.is_file())
    return of_json(_repository(Path(top.removesuffix("\n")), path.suffix))


def _repository(root: Path, suffix: str) -> dict[str, object]:
    diff = _git(root, "diff", "HEAD", "--ignore-submodules=dirty")
    # Before the first commit there is nothing to differ from: all files are new.
    kinds = ["--others", "--cached"] if diff is None else ["--others"]
    new = (_git(root, "ls-files", *kinds, "--exclude-standard", "-z") or "").split("\0")
    tracked = (_git(root, "ls-files", "--stage", "-z") or "").split("\0")
    # Of repositories in this one, git says no more than that they have changed.
    modules = {line.partition("\t")[2] for line in tracked if line.startswith("160000")}
    inner = sorted(modules | {name.rstrip("/") for name in new if name.endswith("/")})
    return {
        "head": _git(root, "rev-parse", "--verify", "HEAD"),
        "diff": diff,
        "new": of_files(
            (name, root / name) for name in new if name.endswith(suffix) and (root / name).is_file()
        ),
        "inner": {n: _repository(root / n, suffix) for n in inner if (root / n / ".git").exists()},
    }


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
