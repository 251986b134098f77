"""Where the files that ship with the project are, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).parent


def shipped(name: Literal["benchmarks", "rubrics", "fixtures"]) -> Path:
    """Return the shipped folder *name*.

    In a wheel the folders lie inside the package; in a checkout (and so in an editable install)
    they are top-level folders beside it.
    """
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name
