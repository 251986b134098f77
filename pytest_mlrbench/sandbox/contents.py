"""What commands need of an image, and whether it is there: one question of its shell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_mlrbench.sandbox.base import DATA, FILES, WORKSPACE

#: How much of a first line the kernel looks at, in bytes.
_HEAD = 256
#: How the image that has all the agents we know is made.
BUILD = "docker build -t {} -f ci/docker/Dockerfile ."
#: Tells whether a program can be found as a command finds it. `command -v` would say so of what is
#: built into the shell, and in some shells of any path.
_FIND = r"""
find_program() {
    case $1 in
    */*) [ -f "$1" ] && [ -x "$1" ] ;;
    *) (
        set -f; IFS=:
        for folder in $PATH; do [ -f "$folder/$1" ] && [ -x "$folder/$1" ] && exit; done
        exit 1
    ) ;;
    esac
}
find_package() {
    python3 -c 'import sys, importlib.util as u; sys.exit(not u.find_spec(sys.argv[1]))' "$1"
}
"""


@dataclass(frozen=True, slots=True)
class Content:
    """One thing that an image must have.

    :param name: of a program, by itself or as a path; of a file, as a path; of a Python package.
    :param is_shipped: whether the image of our Dockerfile has it.
    """

    kind: Literal["program", "file", "package"]
    name: str
    is_shipped: bool = False

    @property
    def is_given(self) -> bool:
        """Whether it lies in a folder that is given to each case, and so may be there."""
        place = os.path.normpath(self.name)
        return any(place.startswith(f"{folder}/") for folder in (WORKSPACE, FILES, DATA))

    def lacking(self, image: str) -> str:
        """Say that *image* has none of it, and what to do."""
        where = {"program": " on its PATH", "package": " for its python3", "file": ""}[self.kind]
        if "/" in self.name:
            where = " that can be executed" if self.kind == "program" else ""
        build = f"build one that has it (`FROM {image}`) by `docker build`"
        if self.is_shipped:
            build = f"build ours by `{BUILD.format('NAME')}` in the project's repository"
        named = "name one that has it with --mlr-image"
        return f"image {image!r} has no {self.kind} {self.name!r}{where}: {named}, or {build}."


def interpreters(path: Path) -> list[str]:
    """Return the programs that the first line of a script says to run it by; none without one."""
    with path.open("rb") as file:
        line = file.readline(_HEAD).decode("utf-8", "replace").rstrip("\n")
    if not line.startswith("#!"):
        return []
    # Spaces and tabs are what the kernel takes apart: a carriage return is a part of the name.
    first, *rest = re.split(r"[ \t]+", line[2:].lstrip(" \t"))
    by_name = [word for word in rest if not word.startswith("-") and "=" not in word]
    found = [first, *by_name[:1]] if Path(first).name == "env" else [first]
    return [word for word in found if word]


def question(wanted: Sequence[Content]) -> str:
    """Return a script that prints a word for each of *wanted* that is not there."""
    lines = [_FIND]
    for number, it in enumerate(wanted):
        test = "[ -f" if it.kind == "file" else f"find_{it.kind}"
        end = " ]" if it.kind == "file" else " >/dev/null 2>&1"
        lines.append(f"{test} {shlex.quote(it.name)}{end} || echo {_word(number)}")
    return "\n".join(lines)


def first_lacking(wanted: Sequence[Content], said: Collection[str]) -> Content | None:
    """Return the first of *wanted* that is not there, by the words that its question printed."""
    return next((it for number, it in enumerate(wanted) if _word(number) in said), None)


def _word(number: int) -> str:
    return f"lacks:{number}"
