"""What numbers may have come from without being typed: outputs, and files of programs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.evidence.base import Action, Command
from pytest_mlrbench.evidence.digits import Values, values
from pytest_mlrbench.evidence.effects import Ran
from pytest_mlrbench.evidence.lineage_transcript import DATA, Lineage, trace
from pytest_mlrbench.evidence.marks import Mark
from pytest_mlrbench.evidence.outputs import names
from pytest_mlrbench.evidence.story import Event, Story, tell
from pytest_mlrbench.evidence.transcripts import is_transcript

#: How a transcript says that the agent was shown more than it shows.
_CUT = re.compile(r"\[\.\.\. (?:\d+ characters left out|what the log leaves out) \.\.\.\]")


def printed(
    actions: Sequence[Action], files: Mapping[str, Path], story: Story | None = None
) -> list[str]:
    """Return what commands printed, without those that showed what the agent had typed.

    :param files: path below the submission → file.
    :param story: what the actions did, if that has been told already.
    """
    shown = trace(story or tell(actions, files), files).shown
    return [
        action.output
        for number, action in enumerate(actions, 1)
        if isinstance(action, Command) and action.output
        if all(mark.kind != "typed" for mark in shown.get(number, ()))
    ]


def is_cut(story: Story) -> bool:
    """Tell whether the agent saw more of a program's output than the transcript shows."""
    return any(
        isinstance(event.effect, Ran) and _CUT.search(event.output) for event in story.events
    )


@dataclass(frozen=True, slots=True)
class Witness:
    """A text that numbers may have come from without being typed.

    :param repeats: files whose numbers it may only repeat.
    """

    text: Values
    repeats: frozenset[str]


def witnesses_of(story: Story, lineage: Lineage, files: Mapping[str, Path]) -> Iterator[Witness]:
    """Yield what programs printed and wrote, and files whose origin nobody knows."""
    outputs: dict[int, tuple[str, set[str]]] = {}
    for event in story.events:
        told = outputs.setdefault(event.number, (event.output, set()))[1]
        if isinstance(event.effect, Ran):
            told |= _repeated(event, lineage)
    for number, (output, repeats) in outputs.items():
        shown = lineage.shown.get(number, ())
        if output and all(mark.kind != "typed" for mark in shown):
            repeats = repeats.union(*(_behind(mark, lineage) for mark in shown))
            yield Witness(values(output), frozenset(repeats))
    for path, text in lineage.texts.items():
        mark = lineage.marks[path]
        if mark.kind == "typed" or not path.endswith(DATA):
            continue
        # The transcript itself repeats all that was typed.
        if mark.kind != "unknown" or not is_transcript(files[path]):
            yield Witness(values(text), frozenset(_behind(mark, lineage)))


def _repeated(event: Event, lineage: Lineage) -> set[str]:
    """Return the typed files that a program names: what it prints may be theirs."""
    repeated: set[str] = set()
    for text in event.texts.values():
        told = names(text)
        repeated |= {path for path in lineage.typed if told.mentions(posixpath.basename(path))}
    if isinstance(event.effect, Ran) and event.effect.code is not None:
        repeated |= _written_by(event.effect.code, lineage)
    return repeated


def _behind(mark: Mark, lineage: Lineage) -> set[str]:
    """Return the files whose numbers a file with this mark may only repeat."""
    same = set() if mark.code is None else _written_by(mark.code, lineage)
    return {*mark.read, *same}


def _written_by(code: str, lineage: Lineage) -> set[str]:
    return {path for path, mark in lineage.marks.items() if mark.code == code}


def is_vouched(near: tuple[float, float], witnesses: Sequence[Witness], path: str) -> bool:
    """Tell whether a number stands anywhere else than in what *path* may have given on.

    :param near: its value, and how far off another may be.
    """
    return any(path not in w.repeats and w.text.has(*near) for w in witnesses)
