"""Paths of another machine, as paths below the submission.

A transcript speaks of ``/home/x/w/results/a.json`` where the submission has ``results/a.json``. The
folder that the submission was is the one from which most of what was written is found again.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from pytest_mlrbench.evidence.base import Action, Command, Edit
from pytest_mlrbench.evidence.history.effects import (
    Copied,
    Effect,
    Ran,
    Removed,
    Showed,
    Wrote,
    effects,
)

#: Paths that are looked at to find the folder.
_MOST = 5000


Step = tuple[int, Action, list[Effect]]


def walk(actions: Sequence[Action], files: Collection[str]) -> list[Step]:
    """Return each action with its number, from 1, and what it does if it is a command.

    Paths are seen from the folder in which the agent began, where they are not absolute.

    :param files: paths below the submission.
    """
    steps: list[Step] = []
    there = _Known(files)
    start = cwd = "."
    for number, action in enumerate(actions, 1):
        found: list[Effect] = []
        if isinstance(action, Edit):
            there.add(action.path)
        elif isinstance(action, Command):
            if action.cwd is not None:
                start = cwd = action.cwd
            found, end = effects(action.text, cwd)
            if cwd != start:
                # Some shells begin anew with each command, and nothing but the files tells which.
                anew, other_end = effects(action.text, start)
                if there.count(anew) > there.count(found):
                    found, end = anew, other_end
            cwd = end
        steps.append((number, action, found))
    return steps


class _Known:
    """Paths that are there, each known by its endings."""

    def __init__(self, files: Collection[str]) -> None:
        self._endings: set[str] = set()
        for path in files:
            self.add(path)

    def add(self, path: str) -> None:
        parts = posixpath.normpath(path).split("/")[-12:]
        self._endings |= {"/".join(parts[start:]) for start in range(len(parts))} | {path}

    def count(self, found: Iterable[Effect]) -> int:
        """Return how many of the paths that are used are there."""
        used = [path for effect in found for path in _used(effect)]
        return sum(path.lstrip("/") in self._endings or path in self._endings for path in used)


def _used(effect: Effect) -> Sequence[str]:
    if isinstance(effect, Ran):
        return [effect.program] if effect.program is not None else []
    if isinstance(effect, Copied):
        return effect.sources
    return effect.paths if isinstance(effect, Removed | Showed) else ()


class Places:
    """Where the submission was.

    :param files: paths below the submission.
    """

    def __init__(self, steps: Iterable[Step], files: Collection[str]) -> None:
        self._home = _home(_paths(steps), files)

    def local(self, path: str) -> str:
        """Return *path* relative to the submission if it lies in it, else as it is."""
        path = posixpath.normpath(path) if path else "."
        if self._home is None:
            return path
        if path == self._home:
            return "."
        if path.startswith(self._home + "/"):
            return path[len(self._home) + 1 :]
        if not path.startswith("/"):
            # It may be seen from a folder around the submission.
            parts = self._home.split("/")
            for start in range(1, len(parts)):
                around = "/".join(parts[start:])
                if path == around:
                    return "."
                if path.startswith(around + "/"):
                    return path[len(around) + 1 :]
        return path


def _paths(steps: Iterable[Step]) -> list[str]:
    paths: list[str] = []
    for _, action, found in steps:
        if isinstance(action, Edit):
            paths.append(action.path)
        for effect in found:
            paths += _used(effect)
            if isinstance(effect, Wrote):
                paths.append(effect.path)
            elif isinstance(effect, Ran):
                paths += effect.writes
            elif isinstance(effect, Copied):
                paths.append(effect.target)
    return list(dict.fromkeys(paths))[:_MOST]


def _home(paths: Iterable[str], files: Collection[str]) -> str | None:
    """Return the folder from which most of *paths* lead to one of *files*."""
    names = set(files)
    folders = {posixpath.dirname(name) for name in names} - {""}
    votes: Counter[str] = Counter()
    for path in paths:
        parts = posixpath.normpath(path).split("/")
        for start in range(max(0, len(parts) - 12), len(parts)):
            rest, folder = "/".join(parts[start:]), "/".join(parts[start:-1])
            if rest in names or rest in folders:
                # A file in a folder tells more than one whose name may be found anywhere.
                votes["/".join(parts[:start])] += 2 + 4 * (len(parts) - start > 1)
            elif folder in folders:
                votes["/".join(parts[:start])] += 1
    absolute = {home: count for home, count in votes.items() if home.startswith("/")}
    votes = Counter(absolute) or votes
    best = max(votes.values(), default=0)
    # Nothing before the path: the agent began in the submission itself.
    return min((home for home, n in votes.items() if n == best), key=len, default="") or None


def matching(pattern: str, known: Iterable[str]) -> list[str]:
    """Return the paths that *pattern* stands for."""
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    depth = pattern.count("/")
    return [path for path in known if path.count("/") == depth and fnmatchcase(path, pattern)]
