"""What an agent's code may use beside itself: any change of it is another agent on resume."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import lay

from pytest_mlrbench.run import digests

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def digest(folder: Path) -> str:
    digests.of_surroundings.cache_clear()
    return digests.of_surroundings(folder / "agent.py")


def no_repository(folder: Path) -> None:
    lay(folder, {"agent.py": "", "helper.py": "1"})


def never_committed(folder: Path) -> None:
    no_repository(folder)
    git(folder, "init")
    git(folder, "add", ".")


def committed(folder: Path) -> None:
    never_committed(folder)
    git(folder, "commit", "-m", "one")


def new_file(folder: Path) -> None:
    lay(folder, {"agent.py": ""})
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "one")
    lay(folder, {"helper.py": "1"})


def repository_within(folder: Path) -> None:
    new_file(folder)
    committed(folder / "inner")


def submodule(folder: Path) -> None:
    committed(folder.parent / "other")
    new_file(folder)
    git(folder, "submodule", "add", str(folder.parent / "other"), "inner")
    git(folder, "commit", "-m", "two")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (no_repository, "helper.py"),
        (never_committed, "helper.py"),
        (committed, "helper.py"),
        (new_file, "helper.py"),
        (repository_within, "inner/helper.py"),
        (submodule, "inner/helper.py"),
    ],
)
def test_every_change_of_the_code_beside_it_changes_the_digest(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    """The second one too: what is dirty already can change again."""
    folder = tmp_path / "mine"
    make(folder)
    found = [digest(folder)]
    assert digest(folder) == found[0]
    for text in ("2", "3", "4"):
        lay(folder, {name: text})
        found.append(digest(folder))
    assert len(set(found)) == 4


@pytest.mark.parametrize("make", [no_repository, never_committed, committed, submodule])
def test_what_a_run_leaves_beside_it_does_not(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = tmp_path / "mine"
    make(folder)
    before = digest(folder)
    lay(folder, {"report.xml": "<x/>", ".mlrbench/runs/a/log": "x"})
    assert digest(folder) == before


def test_a_submodule_that_is_not_there_is_no_repository(tmp_path: Path) -> None:
    submodule(tmp_path / "mine")
    git(tmp_path, "clone", str(tmp_path / "mine"), "clone")
    assert digest(tmp_path / "clone") == digest(tmp_path / "clone")
