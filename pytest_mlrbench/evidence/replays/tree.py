"""A submission as it was before its commands wrote anything: what was given, and the code."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.evidence.gathering import Gathered
from pytest_mlrbench.evidence.ledgers.programs import is_code

#: What Python made of code.
_COMPILED = (".pyc", ".pyo")


@dataclass(frozen=True)
class CleanTree:
    """The files that a repetition begins with, by their path below the submission.

    :param given: those that the case began with.
    :param own: the agent's.
    :param others: those that are left out, whose folders are there all the same.
    """

    given: Mapping[str, Path] = field(default_factory=dict)
    own: Mapping[str, Path] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: Gathered, without: Collection[str]) -> CleanTree:
        """Sort the files of *run*.

        Code stays whoever wrote it: tools put it into shape, and fetch it from where it is kept.

        :param without: results, which are to be made again.
        """
        given, own, others = {}, {}, []
        for name, path in run.files.items():
            origin = run.origins.get(name) if run.origins else None
            kind = origin.kind if origin else "unknown"
            is_source = is_code(name) and not name.endswith(_COMPILED)
            if name in without:
                others.append(name)
            elif kind == "given":
                given[name] = path
            elif kind == "typed" or is_source:
                own[name] = path
            else:
                others.append(name)
        return cls(given, own, tuple(others))

    @property
    def names(self) -> frozenset[str]:
        """Paths of all that is laid out."""
        return frozenset((*self.given, *self.own))

    def lay(self, folder: Path) -> None:
        """Make *folder*, with copies of the files."""
        folders.make(folder)
        for name in self.others:
            folders.make((folder / name).parent)
        for name, path in (*self.given.items(), *self.own.items()):
            folders.make((folder / name).parent)
            folders.copy(path, folder / name)
            shutil.copymode(path, folder / name)
