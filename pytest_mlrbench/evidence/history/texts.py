"""What files contain after each edit of the agent, as far as a transcript shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_mlrbench.evidence.base import Edit

#: Characters of one file that are kept.
_LONGEST = 2_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """What a patch does to one file.

    :param text: of a new file.
    :param hunks: of a changed one: the lines that were there, and those that took their place.
    """

    path: str
    kind: str
    text: str = ""
    hunks: tuple[tuple[str, str], ...] = ()
    moved_to: str | None = None


class Texts:
    """The known text of each file; none where something changed it that the transcript hides."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def written(self, path: str, content: str, ok: bool | None = True) -> Edit:
        """Note that *path* was written as a whole."""
        return self._note(path, content[:_LONGEST], ok)

    def replaced(
        self, path: str, pairs: Sequence[tuple[str, str, bool]], ok: bool | None = True
    ) -> Edit:
        """Note that texts in *path* were replaced.

        :param pairs: what was there, what took its place, and whether everywhere.
        """
        text = self._known.get(path)
        for old, new, everywhere in pairs:
            if text is None or (old and old not in text):
                return self._note(path, None, ok)
            times = text.count(old) if everywhere and old else 1
            if len(text) + len(new) * times > _LONGEST:
                return self._note(path, None, ok)
            text = text.replace(old, new, times) if old else new
        return self._note(path, text, ok)

    def patched(self, patch: str, ok: bool | None = True) -> Iterator[Edit]:
        """Note a patch in one of the two forms that Codex has, see :func:`changes`."""
        for change in changes(patch):
            if change.kind == "add":
                yield self._note(change.path, change.text[:_LONGEST], ok)
            elif change.kind == "update":
                pairs = [(old, new, False) for old, new in change.hunks]
                edit = self.replaced(change.path, pairs, ok)
                if change.moved_to is not None:
                    edit = self._note(change.moved_to, edit.content, ok)
                yield edit
            elif ok is not False:
                self._known.pop(change.path, None)

    def _note(self, path: str, text: str | None, ok: bool | None) -> Edit:
        if ok is not False:
            self._known.pop(path, None)
            if text is not None:
                self._known[path] = text
        return Edit(path, text, ok)


_HEAD = re.compile(
    r"\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>[^\n]{1,4096})"
    r"|(?P<letter>[AMD]) (?P<place>/[^\n]{1,4096})"
)


@dataclass(slots=True)
class _Open:
    """A change whose lines are still being read."""

    path: str
    kind: str
    lines: list[str] = field(default_factory=list)
    moved_to: str | None = None


def changes(patch: str) -> Iterator[Change]:
    """Yield what *patch* does, file by file.

    It is either what ``apply_patch`` is given (``*** Add File: p``, lines of a new file begin with
    ``+``) or what the text log shows (``A /p``, the lines of a new file as they are).
    """
    is_log = "*** Begin Patch" not in patch
    now: _Open | None = None
    for line in patch.split("\n"):
        head = _HEAD.fullmatch(line.rstrip())
        if head and bool(head["letter"]) == is_log:
            if now is not None:
                yield _change(now, is_log)
            kind = {"A": "add", "M": "update", "D": "delete"}[
                head["letter"] or _LETTERS[head["verb"]]
            ]
            now = _Open(head["path"] or head["place"], kind)
        elif now is not None and line.startswith("*** Move to: "):
            now.moved_to = line.removeprefix("*** Move to: ").strip()
        elif now is not None and not line.startswith(("*** End Patch", "*** End of File")):
            now.lines.append(line)
    if now is not None:
        yield _change(now, is_log)


_LETTERS = {"Add": "A", "Update": "M", "Delete": "D"}


def _change(now: _Open, is_log: bool) -> Change:
    if now.kind == "add":
        lines = now.lines if is_log else [line[1:] for line in now.lines if line[:1] == "+"]
        return Change(now.path, "add", "\n".join(lines))
    return Change(now.path, now.kind, hunks=tuple(_hunks(now.lines)), moved_to=now.moved_to)


def _hunks(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield "\n".join(old), "\n".join(new)
            old, new = [], []
        elif line[:1] == "-":
            old.append(line[1:])
        elif line[:1] == "+":
            new.append(line[1:])
        elif line:
            old.append(line[1:])
            new.append(line[1:])
