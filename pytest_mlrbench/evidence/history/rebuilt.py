"""The programs of a run: those on disk, and those that only the transcript still shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_mlrbench.evidence.base import Action, Source
from pytest_mlrbench.evidence.history.programs import on_disk
from pytest_mlrbench.evidence.history.story import Story, tell

#: Texts that one program was run as which are kept, the last ones.
_VERSIONS = 5


def sources(
    files: Mapping[str, Path], actions: Sequence[Action] | None, story: Story | None = None
) -> list[Source]:
    """Return the agent's programs, each as it is and, where it was run as another, as it was then.

    The path of one that is no longer so is ``run.py@transcript:12``; of one that stood in a command
    itself, ``transcript:12``.

    :param files: path below the submission → file.
    :param actions: null where there is no transcript: what was run is then not known.
    :param story: what the actions did, if that has been told already.
    """
    if actions is None:
        return [Source(path, text, None) for path, text in on_disk(files).items()]
    return list(_listed(story or tell(actions, files)))


def _listed(story: Story) -> Iterator[Source]:
    executed = _executed(story)
    for path, text in story.programs.items():
        is_run = text in executed.get(path, ())
        yield Source(path, text, True if is_run else None if not story.is_whole else False)
    for path, versions in executed.items():
        for text, number in list(versions.items())[-_VERSIONS:]:
            if path not in story.programs:
                yield Source(path, text, True)
            elif text != story.programs[path]:
                yield Source(f"{path}@transcript:{number}", text, True)


def _executed(story: Story) -> dict[str, dict[str, int]]:
    """Return path → text → number of the action, of each program that was run as it was then.

    What only ever failed counts where nothing else of it was run: it was put right since.
    """
    worked: dict[str, dict[str, int]] = {}
    failed: dict[str, dict[str, int]] = {}
    for event in story.events:
        for path, text in event.texts.items():
            kept = failed if event.ok is False else worked
            versions = kept.setdefault(path, {})
            versions.pop(text, None)
            versions[text] = event.number
    last_failed = {path: dict([list(texts.items())[-1]]) for path, texts in failed.items()}
    return {**last_failed, **worked}
