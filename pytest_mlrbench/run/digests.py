"""Digests of what a result depends on: files, folders, code and the repository it lives in."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path


def of_json(value: object) -> str:
    """SHA-256 of plain data, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def of_file(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_files(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 over names and contents, in the order of the names."""
    sha = hashlib.sha256()
    for name, path in sorted(files):
        sha.update(f"{name}\0{of_file(path)}\0".encode("utf-8", "surrogateescape"))
    return sha.hexdigest()


def shown(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield what :func:`walk` does, and the links to regular files that stay under *folder*.

    So it is what a reader of the folder finds in it, and has after a copy too.
    """
    yield from walk(folder)
    root = folder.resolve()
    for where, _, names in os.walk(folder):
        for path in (Path(where, name) for name in names):
            if path.is_symlink() and path.is_file() and path.resolve().is_relative_to(root):
                yield path.relative_to(folder).as_posix(), path


def walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (relative path, path) of the regular files under *folder*; links are not followed."""
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path


@cache
def of_surroundings(path: Path) -> str:
    """Digest of what the code in the file *path* may use beside itself.

    That is the git repository around it: HEAD, uncommitted changes, and those new files that end
    like *path* does, so that reports and logs written beside an agent do not change it. Where there
    is no repository, it is the files beside *path* that end like it.
    """
    top = _git(path.parent, "rev-parse", "--show-toplevel")
    if top is None:
        return of_files((p.name, p) for p in path.parent.glob(f"*{path.suffix}") if p.is_file())
    root = Path(top.removesuffix("\n"))
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z") or ""
    names = [name for name in new.split("\0") if name.endswith(path.suffix)]
    return of_json(
        {
            "head": _git(root, "rev-parse", "HEAD"),
            "diff": _git(root, "diff", "HEAD"),
            "new": of_files((name, root / name) for name in names if (root / name).is_file()),
        }
    )


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
