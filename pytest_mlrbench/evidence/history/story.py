"""What happened to the files of a run, step by step, as its transcript has it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
from pytest_mlrbench.evidence.history.imports import reached
from pytest_mlrbench.evidence.history.places import Places, matching, walk
from pytest_mlrbench.evidence.history.programs import ENDINGS, code, on_disk

#: Events that are told of one run; scripts that start each other.
_MOST, _DEEPEST = 20_000, 6


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that was done. Paths are relative to the submission if they lie in it.

    :param number: of the action, from 1.
    :param effect: an edit of the agent's, or what one part of a command did.
    :param ok: whether that part worked; null if that is not known.
    :param output: what the whole command printed.
    :param program: of a run, ``transcript:12`` if its text stands in the command.
    :param texts: of a run, path → text of the program and of what it brings in, as they were then.
    """

    number: int
    effect: Edit | Effect
    ok: bool | None
    output: str = ""
    program: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Story:
    """All that happened.

    :param programs: path → last known text of each program.
    :param is_whole: whether every program that was run is known, and no other agent was sent out.
    """

    events: Sequence[Event]
    programs: Mapping[str, str]
    is_whole: bool


def tell(actions: Sequence[Action], files: Mapping[str, Path]) -> Story:
    """Return what *actions* did to *files*, path below the submission → file."""
    teller = _Teller(actions, files)
    for number, action, found in teller.steps:
        if isinstance(action, Edit):
            teller.edited(number, action)
        elif isinstance(action, Command):
            teller.commanded(number, action, found)
    return Story(teller.events, {**teller.known, **teller.disk}, teller.is_whole)


class _Teller:
    """The events so far, and the programs as they are by now."""

    def __init__(self, actions: Sequence[Action], files: Mapping[str, Path]) -> None:
        self.steps = walk(actions, files)
        self.disk = on_disk(files)
        #: Programs that the transcript shows the text of.
        self.known: dict[str, str] = {}
        self.events: list[Event] = []
        self.is_whole = True
        self._places = Places(self.steps, files)

    def edited(self, number: int, action: Edit) -> None:
        """Note an edit of the agent's."""
        path = self._places.local(action.path)
        if action.ok is not False:
            self._wrote(path, action.content)
        self._add(Event(number, replace(action, path=path), action.ok))

    def commanded(self, number: int, action: Command, found: Sequence[Effect]) -> None:
        """Note a command."""
        if action.text.startswith("#") and not found:
            self.is_whole = False  # another agent, or a tool that is not known
        self._done(number, action, found, 0)

    def _done(self, number: int, action: Command, found: Sequence[Effect], depth: int) -> None:
        for place, effect in enumerate(found):
            ok = _ended(action, effect, place == len(found) - 1)
            if isinstance(effect, Ran):
                self._ran(number, action, effect, ok, depth)
                continue
            local = self._localised(effect)
            if isinstance(local, Wrote) and ok is not False and not local.is_added:
                self._wrote(local.path, local.text)
            elif isinstance(local, Copied) and ok is not False:
                self._copied(local)
            self._add(Event(number, local, ok, action.output))

    def _localised(self, effect: Wrote | Copied | Removed | Showed) -> Effect:
        here = self._places.local
        if isinstance(effect, Wrote):
            return replace(effect, path=here(effect.path))
        if isinstance(effect, Copied):
            sources = tuple(map(here, effect.sources))
            return replace(effect, sources=sources, target=here(effect.target))
        return replace(effect, paths=tuple(map(here, effect.paths)))

    def _ran(self, number: int, action: Command, effect: Ran, ok: bool | None, depth: int) -> None:
        here = self._places.local
        programs = {**self.disk, **self.known}
        path = here(effect.program) if effect.program is not None else None
        if path is not None and path not in programs:
            path = next(iter(matching(path, programs)), path)
        text = effect.code if effect.code is not None else programs.get(path or "")
        name = f"transcript:{number}" if effect.code is not None else path
        self.is_whole &= "*" not in (name or "") and effect.words[:1] != ("make",)
        texts: dict[str, str] = {}
        if text is not None and name is not None:
            # Text of a command is where the command was, as far as its imports go.
            place = posixpath.join(here(effect.cwd), name) if effect.code is not None else name
            texts = reached(place, text, programs)
            texts[name] = texts.pop(place)
        local = replace(
            effect, program=path, cwd=here(effect.cwd), writes=[*map(here, effect.writes)]
        )
        self._add(Event(number, local, ok, action.output, name, texts))
        if text is not None and path is not None and path.endswith(".sh") and depth < _DEEPEST:
            found, _ = effects(text, effect.cwd)
            self._done(number, replace(action, ok=ok), found, depth + 1)

    def _wrote(self, path: str, content: str | None) -> None:
        if path.endswith(ENDINGS):
            self.known.pop(path, None)
            if content is not None:
                text, now = code(path, content), self.disk.get(path, "")
                # What differs at its ends only is the same program.
                self.known[path] = now if now.strip() == text.strip() else text

    def _copied(self, effect: Copied) -> None:
        for source in effect.sources:
            for path in matching(source, list(self.known)):
                for target in (
                    effect.target,
                    posixpath.join(effect.target, posixpath.basename(path)),
                ):
                    if path in self.known and target.endswith(ENDINGS):
                        self.known[target] = self.known[path]

    def _add(self, event: Event) -> None:
        if len(self.events) < _MOST:
            self.events.append(event)


def _ended(action: Command, effect: Effect, is_last: bool) -> bool | None:
    """Tell whether one part of a command worked, which its exit code says of the last one only."""
    if isinstance(effect, Ran):
        has_crashed = "Traceback (most recent call last)" in action.output[-20_000:]
        if effect.is_aside:
            return None if action.ok is not False else False
        if action.ok and effect.is_masked and has_crashed:
            return False
        if action.ok is False and not is_last and not has_crashed:
            return None
    return action.ok
