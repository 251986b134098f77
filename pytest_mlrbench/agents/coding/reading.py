"""Lines of JSON that others wrote, of which any may be broken, foreign, or cut off."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

#: Bytes of a line, and of all files together, that are read; names in a folder, and files of them.
_LONGEST, _LARGEST, _LOOKS, _MOST = 4 * 2**20, 512 * 2**20, 100_000, 1000


def kept(home: Path, pattern: str) -> list[Path]:
    """Return the files below *home*, in the order of their names, that fit *pattern*.

    The folder is the agent's: no link is followed, what is no regular file is left out, and the
    search ends where there is more than any CLI leaves. Looked into is only the folder that the
    pattern begins with, since packages and data fill the rest.

    :param pattern: a path in which ``*`` is any text, slashes too.
    """
    folder = pattern.partition("/*")[0]
    top = os.path.join(home, folder)
    if os.path.realpath(top) != os.path.join(os.path.realpath(home), folder):
        return []
    found: list[Path] = []
    waiting, looks = [top], 0
    while waiting and looks < _LOOKS and len(found) < _MOST:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    looks += 1
                    name = os.path.relpath(entry.path, home)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif fnmatchcase(name, pattern) and entry.is_file(follow_symlinks=False):
                        found.append(Path(entry.path))
        except OSError:  # closed to us, or a path that is too long
            continue
    return sorted(found)


def documents(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that stand alone on a line of *paths*; other lines are left out.

    A file that cannot be read has none.
    """
    left = _LARGEST
    for path in paths:
        try:
            with path.open("rb") as file:
                while left > 0 and (line := file.readline(_LONGEST)):
                    left -= len(line)
                    if line.lstrip().startswith(b"{") and (found := _document(line)) is not None:
                        yield found
        except OSError:
            continue


def _document(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def at(value: Any, *steps: str) -> Any:
    """Return what lies under *steps* in nested objects; null if it is not there."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def objects(value: Any) -> Sequence[dict[str, Any]]:
    """Return the objects of a list; nothing for whatever else is in its place."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a text; that of parts (``[{"text": …}]``) together; empty for anything else."""
    if isinstance(value, str):
        return value
    return "\n".join(part["text"] for part in objects(value) if isinstance(part.get("text"), str))


def number(value: Any) -> int:
    """Return a count; 0 for whatever is none."""
    return value if type(value) is int and 0 < value < 2**53 else 0


def name(value: Any) -> str:
    """Return a name, which is short and on one line; empty for anything else."""
    found = text(value)
    return found if len(found) <= 200 and found.isprintable() else ""


def amount(value: Any) -> float | None:
    """Return a sum of money; null for whatever is none."""
    return float(value) if type(value) in (int, float) and 0 <= value < 1e9 else None


def inside(path: Any, workspace: str) -> str:
    """Return *path* relative to *workspace* if it lies in it, else as it is."""
    found = PurePosixPath(text(path))
    return str(found.relative_to(workspace) if found.is_relative_to(workspace) else found)
