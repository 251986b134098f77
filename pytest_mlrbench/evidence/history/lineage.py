"""Who wrote each file last, from what the agent did.

A transcript shows commands, not what their processes wrote. So a file is taken to be written by the
last program that names it, and to be typed where its text is what the agent typed or where its
numbers were in what the agent typed before.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_mlrbench.evidence.base import Action, Origin
from pytest_mlrbench.evidence.history.digits import shared, values
from pytest_mlrbench.evidence.history.effects import Showed
from pytest_mlrbench.evidence.history.marks import Mark, Marks
from pytest_mlrbench.evidence.history.programs import content_of
from pytest_mlrbench.evidence.history.story import Story, tell

#: Files that hold results, or what was said while they were made.
DATA = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".log", ".yaml", ".yml", ".out", ".dat", ".xml")
_DOCUMENTS = (".md", ".tex", ".html", ".rst")
_TEXTS = (*DATA, *_DOCUMENTS)
#: Bytes of one file and of all that are read; characters of a command that are kept.
_LARGEST, _ALL, _SHORT = 2_000_000, 40_000_000, 200
_DEEPEST = 6


@dataclass(frozen=True)
class Lineage:
    """Where the files come from.

    :param marks: path → who wrote it last, for files of the submission.
    :param typed: path → the last text that the agent typed into it.
    :param texts: path → text, of the files that are texts.
    :param shown: action → who had written the files that it showed.
    """

    marks: Mapping[str, Mark]
    typed: Mapping[str, Mark]
    texts: Mapping[str, str]
    shown: Mapping[int, Sequence[Mark]]

    @cached_property
    def typed_names(self) -> Mapping[str, Sequence[str]]:
        """Name without folders → the files of that name that the agent typed."""
        found: dict[str, list[str]] = {}
        typed = {path for path, mark in self.marks.items() if mark.kind == "typed"}
        for path in sorted(typed | set(self.typed)):
            found.setdefault(posixpath.basename(path), []).append(path)
        return found

    @cached_property
    def written_by(self) -> Mapping[str, Sequence[str]]:
        """Program that stood in a command → the files that it wrote."""
        found: dict[str, list[str]] = {}
        for path, mark in self.marks.items():
            if mark.code is not None:
                found.setdefault(mark.code, []).append(path)
        return found

    def origins(self) -> dict[str, Origin]:
        """Return who wrote each file last."""
        return {path: Origin(mark.kind, mark.by[:_SHORT]) for path, mark in self.marks.items()}


def origins(
    actions: Sequence[Action], files: Mapping[str, Path], story: Story | None = None
) -> dict[str, Origin]:
    """Return who wrote each of *files* last.

    :param files: path below the submission → file.
    :param story: what the actions did, if that has been told already.
    """
    return trace(story or tell(actions, files), files).origins()


def trace(story: Story, files: Mapping[str, Path]) -> Lineage:
    """Return where the files come from."""
    marks = Marks(files)
    shown: dict[int, list[Mark]] = {}
    for event in story.events:
        if isinstance(event.effect, Showed):
            shown.setdefault(event.number, []).extend(marks.of(event.effect.paths))
        marks.take(event)
    texts = _texts(files)
    namesakes = _namesakes(marks)
    settled = {
        path: _settled(path, marks, namesakes.get(posixpath.basename(path)), texts)
        for path in files
    }
    return Lineage(settled, marks.typed, texts, shown)


def _texts(files: Mapping[str, Path]) -> dict[str, str]:
    texts: dict[str, str] = {}
    left = _ALL
    for path in sorted(path for path in files if path.endswith(_TEXTS)):
        if (content := content_of(files[path], min(_LARGEST, left))) is not None:
            texts[path] = content
            left -= len(content)
    return texts


def _settled(path: str, marks: Marks, namesake: Mark | None, texts: Mapping[str, str]) -> Mark:
    """Return who wrote a file, when all is known."""
    # That a program works in a folder does not make it the author of a document there.
    likely = marks.likely.get(path) if not path.endswith(_DOCUMENTS) else None
    mark = marks.now.get(path) or namesake or likely
    if mark is None:
        return Mark("unknown", 0, "")
    text, typed = texts.get(path), marks.typed.get(path)
    if text is None:
        return mark
    if typed is not None and typed.text is not None:
        is_same = text.strip() == typed.text.strip()
        if mark.kind != "typed" and is_same and text.strip():
            return typed
        is_changed = mark.kind == "typed" and mark.text is not None and not is_same
        is_changed = is_changed and not comes_from(text, typed.text, least=1)
        if is_changed and likely and likely.kind == "command" and likely.number > mark.number:
            return likely  # who came later and works in that folder changed it
    return _inherited(text, mark, texts) or mark


def _namesakes(marks: Marks) -> dict[str, Mark]:
    """Return name → who wrote the last file of that name: programs copy files too."""
    latest = sorted(marks.now.items(), key=lambda entry: entry[1].number)
    return {posixpath.basename(path): mark for path, mark in latest}


def _inherited(text: str, mark: Mark, texts: Mapping[str, str], depth: int = 0) -> Mark | None:
    """Return the typing that the numbers of a file come from, though a program wrote it.

    A program that reads a hand-written file is innocent as long as its numbers are its own.
    """
    if mark.kind != "command" or depth > _DEEPEST:
        return None
    if mark.code is not None and comes_from(text, mark.code, least=1):
        return Mark("typed", mark.number, f"literals in {mark.by}", mark.code, mark.code)
    for path, source in mark.read.items():
        if not path.endswith(DATA) or source.number >= mark.number:
            continue
        content = source.text if source.kind == "typed" else texts.get(path)
        if content is None or not comes_from(text, content, least=3):
            continue
        if source.kind == "typed":
            return Mark("typed", mark.number, f"{path}, typed, through {mark.by}", content)
        if (first := _inherited(content, source, texts, depth + 1)) is not None:
            return first
    return None


def comes_from(text: str, source: str, least: int) -> bool:
    """Tell whether most of the precise numbers of *text* stand in *source* already."""
    found, count = shared(text, [values(source)])
    return len(found) >= least and 2 * len(found) > count
