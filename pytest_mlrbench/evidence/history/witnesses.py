"""What numbers may have come from without being typed: outputs, and files of programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.evidence.base import Action, Command
from pytest_mlrbench.evidence.history.digits import Values
from pytest_mlrbench.evidence.history.effects import Ran
from pytest_mlrbench.evidence.history.lineage import DATA, Lineage, comes_from, trace
from pytest_mlrbench.evidence.history.marks import Mark
from pytest_mlrbench.evidence.history.outputs import names
from pytest_mlrbench.evidence.history.story import Event, Story, tell
from pytest_mlrbench.evidence.history.transcripts import is_transcript

#: How a transcript says that the agent was shown more than it shows.
_CUT = re.compile(r"\[\.\.\. (?:\d+ characters left out|what the log leaves out) \.\.\.\]")


def printed(
    actions: Sequence[Action],
    files: Mapping[str, Path],
    story: Story | None = None,
    lineage: Lineage | None = None,
) -> list[str]:
    """Return what commands printed, without what the agent had typed before.

    :param files: path below the submission → file.
    :param story: what the actions did, if that has been told already.
    :param lineage: where the files come from, likewise.
    """
    story = story or tell(actions, files)
    lineage = lineage or trace(story, files)
    repeats: dict[int, set[str]] = {}
    for event in story.events:
        if isinstance(event.effect, Ran):
            repeats.setdefault(event.number, set()).update(_repeated(event, lineage))
    return [
        action.output
        for number, action in enumerate(actions, 1)
        if isinstance(action, Command) and action.output
        if not _is_typed(action.output, number, repeats.get(number, set()), lineage)
    ]


def _is_typed(output: str, number: int, repeats: set[str], lineage: Lineage) -> bool:
    """Tell whether an output shows a typed file, or is a program's that only hands one on."""
    shown = lineage.shown.get(number, ())
    if any(mark.kind == "typed" for mark in shown):
        return True
    for path in repeats.union(*(_behind(mark, lineage) for mark in shown)):
        mark = lineage.typed.get(path) or lineage.marks.get(path)
        if mark is None or mark.kind != "typed" or mark.text is None:
            continue
        if comes_from(output, mark.text, least=3):
            return True
    return False


def is_cut(story: Story) -> bool:
    """Tell whether the agent saw more of a program's output than the transcript shows."""
    return any(
        isinstance(event.effect, Ran) and _CUT.search(event.output) for event in story.events
    )


@dataclass(frozen=True, slots=True)
class Witness:
    """Texts that numbers may have come from without being typed.

    :param repeats: files whose numbers they may only repeat.
    """

    text: Values
    repeats: frozenset[str]


def witnesses_of(story: Story, lineage: Lineage, files: Mapping[str, Path]) -> list[Witness]:
    """Return what programs printed and wrote, and files whose origin nobody knows."""
    texts: dict[frozenset[str], list[str]] = {}
    outputs: dict[int, tuple[str, set[str]]] = {}
    for event in story.events:
        told = outputs.setdefault(event.number, (event.output, set()))[1]
        if isinstance(event.effect, Ran):
            told |= _repeated(event, lineage)
    for number, (output, repeats) in outputs.items():
        shown = lineage.shown.get(number, ())
        if output and all(mark.kind != "typed" for mark in shown):
            behind = repeats.union(*(_behind(mark, lineage) for mark in shown))
            texts.setdefault(frozenset(behind), []).append(output)
    for path, text in lineage.texts.items():
        mark = lineage.marks[path]
        if mark.kind == "typed" or not path.endswith(DATA):
            continue
        # The transcript itself repeats all that was typed.
        if mark.kind != "unknown" or "/" in path or not is_transcript(files[path]):
            texts.setdefault(frozenset(_behind(mark, lineage)), []).append(text)
    return [Witness(Values(*together), repeats) for repeats, together in texts.items()]


def _repeated(event: Event, lineage: Lineage) -> set[str]:
    """Return the typed files that a program names: what it prints may be theirs."""
    repeated: set[str] = set()
    for text in event.texts.values():
        told = names(text)
        repeated |= {
            path
            for name, paths in lineage.typed_names.items()
            if told.mentions(name)
            for path in paths
        }
    if isinstance(event.effect, Ran) and event.effect.code is not None:
        repeated |= set(lineage.written_by.get(event.effect.code, ()))
    return repeated


def _behind(mark: Mark, lineage: Lineage) -> set[str]:
    """Return the files whose numbers a file with this mark may only repeat."""
    same = lineage.written_by.get(mark.code or "", ())
    return {*mark.read, *same}


def is_vouched(near: tuple[float, float], witnesses: Sequence[Witness], path: str) -> bool:
    """Tell whether a number stands anywhere else than in what *path* may have given on.

    :param near: its value, and how far off another may be.
    """
    return any(path not in w.repeats and w.text.has(*near) for w in witnesses)
