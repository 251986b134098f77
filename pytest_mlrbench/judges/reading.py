"""The files of a case as a judge may read them: in bounds, and never outside its two folders."""

from __future__ import annotations

import filecmp
import os
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.suites.stages import Stage

#: Name of the folder beside a workspace with the inputs as they were given.
PRISTINE = "inputs"
#: Files of a workspace that are looked at; an agent may unpack a data set in it.
MAX_FILES = 20_000
#: What others wrote, or a machine: nobody's work.
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env"})


@dataclass(frozen=True, slots=True)
class Content:
    """What a text file says.

    :param text: of a file larger than the limit, its two ends.
    :param unread: bytes between them.
    :param given: whether this is an input as it was given to the author.
    :param odd: whether it is not UTF-8, and so has replacement characters.
    :param binary: whether it is no text at all.
    """

    text: str
    unread: int = 0
    given: bool = False
    odd: bool = False
    binary: bool = False


class Files:
    """The workspace of a case, and the inputs as they were before an agent could change them.

    What the stage asks for is read from the workspace; anything else from the untouched inputs, if
    it is among them.
    """

    def __init__(self, workspace: Path, stage: Stage) -> None:
        self._root = Path(os.path.realpath(workspace))
        self._inputs = Path(os.path.realpath(workspace.parent / PRISTINE))
        own = (*stage.required, *stage.instead.values(), *stage.expected)
        self._outputs = {os.path.normpath(name) for name in own}
        self._asked = stage.inputs

    def find(self, name: str) -> Path | None:
        """Return the regular file *name*; null if there is none inside the folders."""
        return self._pristine(name) or _inside(self._root, name)

    def given(self, name: str) -> bool:
        """Whether the author was given *name*, as far as can be told.

        A run that keeps no inputs, as a replayed one, says so by the stage's contract alone.
        """
        if self._inputs.is_dir():
            return self._pristine(name) is not None
        asked = name in self._asked or name.split("/")[0] in self._asked
        return asked and name not in self._outputs

    def changed(self, name: str) -> bool:
        """Whether an input lies in the workspace with another content than it was given with."""
        given, now = self._pristine(name), _inside(self._root, name)
        try:
            return bool(given and now) and not filecmp.cmp(str(given), str(now), shallow=False)
        except OSError:
            return False

    def data(self, name: str, limit: int) -> bytes | None:
        """Return the bytes of a file; null if it has more than *limit*, or cannot be read."""
        path = self.find(name)
        found = _bytes(path, limit + 1) if path else None
        return None if found is None or len(found) > limit else found

    def text(self, name: str, limit: int) -> Content | None:
        """Return a text file, of which at most *limit* bytes are read; null if there is none."""
        path = self.find(name)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size <= limit:
                    head, tail = file.read(limit), b""
                else:
                    head = file.read(limit // 2)
                    file.seek(size - limit // 2)
                    tail = file.read(limit // 2)
        except OSError:
            return None
        unread = max(0, size - limit) if tail else 0
        return _decoded(head, tail, unread, self.given(name))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Paths of the workspace's own regular files, sorted: no links, nothing hidden."""
        own = (
            name
            for name, entry in folders.entries(self._root, _is_skipped)
            if entry.name[0] != "." and entry.is_file(follow_symlinks=False)
        )
        return tuple(sorted(islice(own, MAX_FILES)))

    def _pristine(self, name: str) -> Path | None:
        if os.path.normpath(name) in self._outputs:
            return None
        return _inside(self._inputs, name)


def _is_skipped(folder: str) -> bool:
    return folder in _SKIPPED or folder[0] == "."


def _inside(root: Path, name: str) -> Path | None:
    if len(name) > folders.LONGEST_PATH:
        return None
    try:
        path = (root / name).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # name too long, NUL in it, circle of links
        return None


def _bytes(path: Path, limit: int = -1) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except OSError:
        return None


def _decoded(head: bytes, tail: bytes, unread: int, given: bool) -> Content:
    text = head.decode("utf-8-sig", "replace")
    if tail:
        # A character that is cut in two is no fault of the file.
        text = text.rstrip("\ufffd") + tail.decode("utf-8", "replace").lstrip("\ufffd")
    odd = "\ufffd" in text and "\ufffd".encode() not in head + tail
    return Content(text, unread, given, odd, binary="\0" in text)
