"""Values of options that are more than words: numbers in range, times, folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from pytest_mlrbench.resources import no_folder, shipped, user_path

N = TypeVar("N", int, float)
#: In seconds: the most that is a time limit, and not a slip.
YEAR = 366 * 24 * 3600


def above(least: int, name: str, number: N | None) -> N | None:
    """Return the value of option *name* if it is above *least*, or was not given.

    :raises pytest.UsageError: it is not.
    """
    if number is not None and not least < number < float("inf"):
        raise pytest.UsageError(f"--mlr-{name} must be above {least}, not {number}.")
    return number


def one_of(words: Sequence[str], name: str, word: str | None) -> str:
    """Return the value of option *name*, which is one of *words*; the first if none was given.

    :raises pytest.UsageError: it is another.
    """
    if word and word not in words:
        raise pytest.UsageError(f"--mlr-{name} must be {' or '.join(words)}, not {word!r}.")
    return word or words[0]


def under(base: Path, name: str | None) -> Path | None:
    """Return the path *name* that was written in *base*."""
    return user_path(base, name) if name else None


def seconds(text: str) -> float:
    """Return the time that ``90``, ``90s``, ``15m`` or ``8h`` means, in seconds.

    :raises pytest.UsageError: it is none.
    """
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:].lower())
    number = text[:-1] if unit else text
    try:
        found = float(number) * (unit or 1)
    except ValueError:
        found = 0
    if not 0 < found <= YEAR:
        raise pytest.UsageError(
            f"--mlr-timeout {text!r} must be a time above 0, as 90, 90s, 15m or 8h, and at most a"
            " year."
        )
    return found


def checkout(base: Path, name: str | None) -> Path | None:
    """Return the checkout of the published repository that was named.

    :raises pytest.UsageError: it is none.
    """
    if not name:
        return None
    folder = user_path(base, name)
    if not (folder / "tasks").is_dir():
        raise pytest.UsageError(
            f"--mlr-tasks-dir: {folder} is no checkout of the published repository: it has no"
            " folder tasks."
        )
    return folder


def rubrics_in(base: Path, name: str | None) -> Path | None:
    """Return the folder of rubrics that was named.

    :raises pytest.UsageError: it is not there, or holds other files.
    """
    if not name:
        return None
    if not (base / name).is_dir():
        raise pytest.UsageError(f"--mlr-rubrics: {no_folder(base / name)}.")
    known = {path.name for path in shipped("rubrics").glob("*.yaml")}
    given = {path.name for path in (base / name).iterdir()}
    if not given or given - known:
        odd = ", ".join(sorted(given - known)) or "nothing"
        raise pytest.UsageError(
            f"--mlr-rubrics: {base / name} holds {odd}; rubrics are called"
            f" {', '.join(sorted(known))}."
        )
    return base / name
