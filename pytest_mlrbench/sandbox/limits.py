"""What users write of a case's limits: ``memory=16g cpus=4 pids=1024 shm=1g tmp=2g``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox.base import Limits

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
#: Name → least number of bytes that makes sense; engines refuse less memory than this.
_SIZES = {"memory": 6 * 2**20, "shm": 2**16, "tmp": 2**16, "disk": 2**16, "log": 0}
_NAMES = "memory, cpus, pids, shm, tmp, disk and log"


def parse(words: Sequence[str]) -> Limits:
    """Return the limits that *words* ask for, and the usual ones for the rest.

    A word is ``NAME=VALUE``, or several of them separated by spaces or commas; of two for one name
    the later counts. Sizes are bytes, or with k, m, g, t multiples of 1024 of them.

    :raises InputError: a word is of no use; it says which and what to write.
    """
    asked: dict[str, Any] = {}
    for word in re.split(r"[\s,]+", " ".join(words).strip()):
        if word:
            name, equals, value = word.partition("=")
            if not equals:
                raise InputError(f"--mlr-limits {word!r}: write NAME=VALUE, as in memory=16g.")
            asked[name] = _value(name, value, word)
    return replace(Limits(), **asked)


def _value(name: str, value: str, word: str) -> int | float:
    if name in _SIZES:
        return _size(value, _SIZES[name], word)
    if name == "cpus":
        try:
            cpus = float(value)
        except ValueError:
            cpus = 0
        if not 0.01 <= cpus < 10**5:
            raise InputError(
                f"--mlr-limits {word!r}: write a number of processors, as in cpus=2.5."
            )
        return cpus
    if name == "pids":
        # Fewer, and not even what starts the agent could run.
        if not value.isascii() or not value.isdigit() or not 16 <= int(value) < 2**22:
            raise InputError(f"--mlr-limits {word!r}: write a number of processes from 16 on.")
        return int(value)
    raise InputError(f"--mlr-limits {word!r}: there is no limit {name!r}, only {_NAMES}.")


def _size(value: str, least: int, word: str) -> int:
    found = _SIZE.fullmatch(value)
    if not found or len(value) > 20:
        raise InputError(f"--mlr-limits {word!r}: write a size, as 512m, 16g or a number of bytes.")
    size = int(float(found[1]) * _UNITS[found[2].lower()])
    if size < least:
        raise InputError(f"--mlr-limits {word!r}: it must be {words_of(least)} at least.")
    return size


def words_of(size: float, digits: int = 1) -> str:
    """Return bytes in words, as ``1.5 GiB``."""
    size, unit = _in_units(size)
    return f"{size:.0f} {unit}" if size == int(size) else f"{size:.{digits}f} {unit}"


def words_apart(more: int, less: int) -> tuple[str, str]:
    """Return two sizes in words, as exactly as it takes to tell one from the other."""
    (larger, unit), (smaller, other) = _in_units(more), _in_units(less)
    digits = 1
    while unit == other and digits < 15 and round(larger, digits) == round(smaller, digits):
        digits += 1
    return words_of(more, digits), words_of(less, digits)


def _in_units(size: float) -> tuple[float, str]:
    unit = "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return size, unit
