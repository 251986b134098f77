"""What each step of a case came to, kept beside the submission so that no step is paid for twice.

The folder is ``steps/`` in the case's folder. Whoever runs the case again may hand it on; a step in
it is used only if the digest of all that it depended on is the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.models.calls import CallRecord
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.folder import read_model, write_json
from pytest_mlrbench.values import Record


class StepRecord(Record):
    """A finished step.

    :param key: digest of what it depended on.
    :param text: what it came to; null for one that came to files.
    :param files: digest of those files.
    :param calls: what the models were asked for it.
    """

    key: str
    text: str | None = None
    files: str | None = None
    calls: tuple[CallRecord, ...] = ()


class Steps:
    """The finished steps of one case.

    :param folder: need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, name: str, key: str) -> StepRecord | None:
        """Return the step *name*, if it is there and depended on the same."""
        record = read_model(self._record(name), StepRecord)
        return record if record is not None and record.key == key else None

    def keep_text(self, name: str, key: str, text: str, calls: tuple[CallRecord, ...]) -> None:
        """Record a step that came to a text."""
        write_json(self._record(name), StepRecord(key=key, text=text, calls=calls))

    def keep_files(self, name: str, key: str, workspace: Path) -> None:
        """Record a step that came to all that lies in *workspace*."""
        folder = self._files(name)
        self._record(name).unlink(missing_ok=True)
        folders.remove(folder)
        _lay(workspace, folder)
        write_json(self._record(name), StepRecord(key=key, files=_digest(folder)))

    def lay_files(self, name: str, key: str, workspace: Path) -> bool:
        """Lay the files of the step *name* into *workspace*, if they are there and unchanged."""
        folder = self._intact(name, key)
        if folder is not None:
            _lay(folder, workspace)
        return folder is not None

    def keep_copies(self, name: str, key: str, files: Iterable[Path]) -> None:
        """Record those of *files* that there are, which somebody may go on writing."""
        folder = self._files(name)
        self._record(name).unlink(missing_ok=True)
        folders.remove(folder)
        folders.make(folder)
        for path in files:
            if path.is_file():
                folders.copy(path, folder / path.name)
        write_json(self._record(name), StepRecord(key=key, files=_digest(folder)))

    def lay_copies(self, name: str, key: str, target: Path) -> None:
        """Lay what was so recorded into *target*, if it is there and unchanged."""
        folder = self._intact(name, key)
        for path in folder.iterdir() if folder else ():
            folders.copy(path, target / path.name)

    def _intact(self, name: str, key: str) -> Path | None:
        """The files of the step *name*; null if they are not there, or were changed."""
        record, folder = self.find(name, key), self._files(name)
        if record is None or record.files is None or not folder.is_dir():
            return None
        return folder if _digest(folder) == record.files else None

    def _record(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _files(self, name: str) -> Path:
        return self.folder / name


def _digest(folder: Path) -> str:
    return digests.of_folder(folder)[0]


def _lay(source: Path, target: Path) -> None:
    """Lay the files and links of *source* into *target*; links that lead out of it are left out.

    The same file in both places where the disk allows it: experiments may leave gigabytes. Whoever
    writes one of them later changes the step as well, which its digest then tells.
    """
    for name, path in digests.walk(source):
        new = target / name
        folders.make(new.parent)
        new.unlink(missing_ok=True)
        try:
            os.link(path, new)
        except OSError:
            folders.copy(path, new)
            shutil.copystat(path, new)
    folders.copy_links(source, target)
