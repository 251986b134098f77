"""The published repository: where it keeps the texts and inputs that a suite does not ship."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

#: What the paper stage is given of a run's ``results/``: the published papers lie there too.
_RESULTS = ("results.md", "log.txt")
_FIGURES = (".png", ".jpg", ".jpeg", ".gif", ".svg")


@dataclass(frozen=True)
class Source:
    """A public repository at one commit, and the folder with what is here of it.

    :param repository: ``owner/name`` on GitHub.
    :param commit: the full commit id everything is taken from.
    :param dataset: name of the data set on Hugging Face that holds the task texts too.
    :param run: the coding agent whose runs the paper stage starts from, by its folder's name.
    :param known: CSV file with path,sha256 of inputs whose content is known beforehand.
    :param root: a checkout, or the folder that ``mlrbench tasks fetch`` fills.
    """

    repository: str
    commit: str
    dataset: str
    run: str
    known: Path
    root: Path

    def path(self, task: str, need: str) -> str:
        """Return where the repository keeps an input of a stage; ``results`` is a folder."""
        if need == "task.md":
            return f"tasks/{task}.md"
        if need == "results":
            return f"agent_results/experiments_and_writeups/{self.run}/{task}/results"
        return f"agent_results/ideas_and_proposals/{task}/{need}"

    def find(self, task: str, need: str) -> dict[str, Path]:
        """Return path in the workspace → file here; empty where there is none."""
        place = self.local(self.path(task, need))
        if need != "results":
            return {need: place} if place.is_file() else {}
        known = [path for path in self.digests if path.startswith(self.path(task, need) + "/")]
        # A part of a run's results is another input than the whole.
        if not all((place / name.rpartition("/results/")[2]).is_file() for name in known):
            return {}
        if not (place / "results.md").is_file():
            return {}
        files = sorted(path for path in place.rglob("*") if path.is_file())
        named = {path.relative_to(place).as_posix(): path for path in files}
        return {f"results/{name}": path for name, path in named.items() if is_result(name)}

    def local(self, path: str) -> Path:
        """Return where a path of the repository lies here, in its own or the shortened spelling."""
        own = self.root / path
        short = path.removeprefix("agent_results/").replace(
            "experiments_and_writeups", "experiments"
        )
        return own if own.exists() or not (self.root / short).exists() else self.root / short

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Path in the repository → SHA-256, for the inputs whose content is known beforehand."""
        with self.known.open(encoding="utf-8", newline="") as file:
            return {row["path"]: row["sha256"] for row in csv.DictReader(file)}


def is_result(name: str) -> bool:
    """Whether a file of a run's ``results/`` is an input of the paper stage."""
    return name in _RESULTS or name.lower().endswith(_FIGURES)


def cache_root(commit: str) -> Path:
    """Return the folder of the user's cache for what was fetched from *commit*."""
    import platformdirs

    return platformdirs.user_cache_path("pytest-mlrbench") / "mlrbench" / commit[:12]
