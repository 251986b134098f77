"""Fetched files on disk: there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pytest_mlrbench.fetching.wanted import Stopped

_PART = re.compile(r"(?P<name>.+)\.\d+\.part")


def write_whole(target: Path, data: bytes) -> None:
    """Put *data* in the place of *target*; a kill leaves the old file or the new one.

    :raises Stopped: the disk does not take it.
    """
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write(part, data)
            part.replace(target)
        except FileNotFoundError:  # another fetch took it for what a killed one had left
            _write(part, data)
            part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise Stopped(_sentence(target, error)) from None


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def remove_strays(targets: Iterable[Path]) -> None:
    """Remove what a killed fetch of these files has left half written."""
    names: dict[Path, set[str]] = {}
    for target in targets:
        names.setdefault(target.parent, set()).add(target.name)
    for folder, wanted in names.items():
        with contextlib.suppress(OSError):  # no such folder yet, or it is not ours to write
            for path in folder.iterdir():
                match = _PART.fullmatch(path.name)
                if match and match["name"] in wanted:
                    path.unlink()


def _sentence(target: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk is full ({target} could not be written): make room and run it again,"
            " or choose another disk with --tasks-dir."
        )
    return (
        f"{target} cannot be written ({error.strerror}): make its folder writable, or choose"
        " another one with --tasks-dir."
    )
