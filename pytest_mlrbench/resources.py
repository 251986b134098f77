"""Where files are: those that ship with the project, and those a user names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).parent


def shipped(name: Literal["benchmarks", "rubrics", "fixtures"]) -> Path:
    """Return the shipped folder *name*.

    In a wheel the folders lie inside the package; in a checkout (and so in an editable install)
    they are top-level folders beside it.
    """
    return (PACKAGE if is_installed() else PACKAGE.parent) / name


def is_installed() -> bool:
    """Whether this is the content of a wheel rather than a checkout."""
    return (PACKAGE / "benchmarks").is_dir()


def no_folder(path: Path) -> str:
    """What is wrong with *path*, which should be a folder, without a stop."""
    if path.exists():
        return f"{path} is a file: name a folder"
    return f"there is no folder {path}"


def user_path(base: Path, name: str) -> Path:
    """Return the path a user has written in *base*; ``~`` is a home folder if there is one."""
    return base / os.path.expanduser(name)
