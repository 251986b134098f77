"""Who wrote each file last, as far as the steps of a run tell; see ``lineage_transcript``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from typing import Literal

from pytest_mlrbench.evidence.base import Edit
from pytest_mlrbench.evidence.history.effects import Copied, Ran, Removed, Showed, Wrote
from pytest_mlrbench.evidence.history.outputs import Names, names
from pytest_mlrbench.evidence.history.places import matching
from pytest_mlrbench.evidence.history.story import Event

Kind = Literal["given", "command", "failed", "typed", "unknown"]
#: By how a run ended.
_KINDS: Mapping[bool | None, Kind] = {True: "command", False: "failed", None: "unknown"}


@dataclass(frozen=True, slots=True)
class Mark:
    """Who wrote a file.

    :param number: of the action.
    :param by: command line or tool.
    :param text: what was typed, if that is known.
    :param code: the program that wrote it, where that stood in the command itself.
    :param read: what files with other marks the program may have read.
    """

    kind: Kind
    number: int
    by: str
    text: str | None = None
    code: str | None = None
    read: Mapping[str, Mark] = field(default_factory=dict)


class Marks:
    """The last writer of each file by now.

    :param files: paths below the submission.
    """

    def __init__(self, files: Collection[str]) -> None:
        #: Path → name of the folder that it is in.
        self._files = {path: path.rpartition("/")[0].rpartition("/")[2] for path in files}
        self._folders = {path[:place] for path in files for place in _slashes(path)}
        self.now: dict[str, Mark] = {}
        #: The last text that the agent typed into each file, whatever became of it.
        self.typed: dict[str, Mark] = {}
        #: Files whose writer is known from the folder that a program names only.
        self.likely: dict[str, Mark] = {}
        #: Whether anything was run by now.
        self._has_run = False
        self._programs: dict[tuple[int, ...], _Program] = {}

    def take(self, event: Event) -> None:
        """Note what an event did."""
        effect = event.effect
        if isinstance(effect, Edit):
            if event.ok is not False:
                self._type(effect.path, effect.content, event, "an edit")
        elif isinstance(effect, Wrote):
            self._wrote(effect, event)
        elif isinstance(effect, Copied):
            self._copied(effect, event)
        elif isinstance(effect, Removed):
            for path in effect.paths:
                self._remove(path)
        elif isinstance(effect, Showed):
            self._showed(effect, event)
        elif isinstance(effect, Ran):
            self._ran(effect, event)

    def of(self, paths: Iterable[str]) -> list[Mark]:
        """Return who wrote what *paths*, which may be patterns, stand for by now."""
        known = self._known()
        found = [path for pattern in paths for path in matching(pattern, known)]
        return [self.now[path] for path in found if path in self.now]

    def _known(self) -> dict[str, None]:
        return dict.fromkeys([*self._files, *self.now])

    def _type(self, path: str, text: str | None, event: Event, by: str) -> None:
        mark = Mark("typed", event.number, by, text)
        self.now[path] = mark
        if text is not None:
            self.typed[path] = mark

    def _wrote(self, effect: Wrote, event: Event) -> None:
        for path in matching(effect.path, self._known()):
            before = self.now.get(path)
            if event.ok is False and before is not None:
                continue  # it is not known how far the command came
            if effect.is_added and before is not None and before.kind != "typed":
                continue  # a line more does not make it the agent's
            text = effect.text
            if text is not None and "*" in text and not any(sign.isdigit() for sign in text):
                self.now[path] = Mark("command", event.number, "output put into the file")
                continue
            if effect.is_added and before is not None and before.text is not None and text:
                text = before.text + text
            self._type(path, text, event, "a literal in a command")

    def _copied(self, effect: Copied, event: Event) -> None:
        known = self._known()
        others = self.now.keys() - self._files.keys()
        folders = self._folders | {path[:place] for path in others for place in _slashes(path)}
        for source in effect.sources:
            for path in _within(source, known):
                mark = self.now.get(path)
                if mark is None:
                    continue
                target = _target(effect, source, path, known, folders)
                if event.ok is False and target in self.now:
                    continue
                self.now[target] = replace(mark, number=event.number)
                if mark.kind == "typed" and mark.text is not None:
                    self.typed[target] = self.now[target]
                if effect.is_move and event.ok is not False and path != target:
                    self.now.pop(path, None)

    def _remove(self, pattern: str) -> None:
        for path in _within(pattern, dict(self.now)):
            del self.now[path]

    def _showed(self, effect: Showed, event: Event) -> None:
        """Note what was there before anything was done."""
        for path in effect.paths:
            if not self._has_run and event.ok and path in self._files and path not in self.now:
                self.now[path] = Mark("given", event.number, "there before the first command")

    def _ran(self, effect: Ran, event: Event) -> None:
        self._has_run = True
        kind = _KINDS[event.ok]
        program = self._program(event)
        by = " ".join(effect.words)
        read = {
            path: mark
            for path, mark in self.now.items()
            if mark.kind in ("typed", "command") and program.mentions(_name(path))
        }
        mark = Mark(kind, event.number, by, None, effect.code, read)
        known = self._known()
        written = {path for pattern in effect.writes for path in matching(pattern, known)}
        written |= {path for path in known if program.writes(_name(path))}
        for path in written:
            before = self.now.get(path)
            if kind == "command" or before is None or before.kind in ("unknown", "failed"):
                self.now[path] = mark
        folders = program.words | {part for word in effect.words for part in word.split("/")}
        folders -= {"", ".", ".."}
        for path, folder in self._files.items():
            before = self.likely.get(path)
            if folder in folders and (
                before is None or before.kind != "command" or kind == "command"
            ):
                self.likely[path] = mark

    def _program(self, event: Event) -> _Program:
        """Return what the programs of a run name, all together."""
        texts = [text for path, text in event.texts.items() if not path.endswith(".sh")]
        key = tuple(sorted(hash(text) for text in texts))
        if key not in self._programs:
            self._programs[key] = _Program([names(text) for text in texts])
        return self._programs[key]


class _Program:
    """What several texts name together, each name looked up once."""

    def __init__(self, told: Sequence[Names]) -> None:
        every = Names(
            frozenset().union(*(one.written for one in told)),
            frozenset().union(*(one.read for one in told)),
            frozenset().union(*(one.words for one in told)),
        )
        self.words = every.words
        self.writes = lru_cache(maxsize=None)(every.writes)
        self.mentions = lru_cache(maxsize=None)(every.mentions)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _slashes(path: str) -> list[int]:
    return [place for place, sign in enumerate(path) if sign == "/"]


def _within(pattern: str, known: Iterable[str]) -> list[str]:
    """Return the paths that *pattern* stands for, and what lies in folders that it stands for."""
    depth = pattern.count("/") + 1
    if not any(sign in pattern for sign in "*?["):
        return [path for path in known if path == pattern or path.startswith(pattern + "/")]
    fits = re.compile(translate(pattern)).match
    tops = {path: "/".join(path.split("/")[:depth]) for path in known}
    return [path for path, top in tops.items() if top.count("/") == depth - 1 and fits(top)]


def _target(
    effect: Copied, source: str, path: str, known: Container[str], folders: Container[str]
) -> str:
    """Return where a copy of *path*, which *source* stands for, went.

    :param folders: that are known.
    """
    depth = source.count("/") + 1
    inner = path.split("/")[depth:]
    name = path.split("/")[depth - 1]
    choices = [posixpath.join(effect.target, *inner), posixpath.join(effect.target, name, *inner)]
    for choice in choices:
        if choice in known:
            return choice
    is_folder = len(effect.sources) > 1 or "*" in source or effect.target == "."
    is_folder = is_folder or effect.target in folders
    return choices[1] if is_folder and not inner else choices[0]
