"""Who wrote a file, by the ledger.

The last writer decides, but for three things. What only passes data on (``cp``, ``tee``, a shell's
redirection) stands for what it was given. Who opens what was typed, and had nothing else to work
with, has not made it a result. And numbers that a program copies from what the agent had typed, be
it a file or a command line, are as typed as before: converting them is no measurement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

from pytest_mlrbench.evidence.base import Origin
from pytest_mlrbench.evidence.ledgers.copied import Digits, read_start
from pytest_mlrbench.evidence.ledgers.inputs import Work, Works
from pytest_mlrbench.evidence.ledgers.programs import PACKAGES, is_keeping, is_passing, is_shell
from pytest_mlrbench.evidence.ledgers.view import ROOT, LedgerView, Process

#: Typed files and command lines that are looked at for one file, and files that are passed on.
_SOURCES = 100
#: Files that a shell reads, of which one may be its script.
_SCRIPTS = 20
#: Copies of copies that are followed.
_STEPS = 20
#: From the worst to the best: what several sources come to is the first of them.
_CIRCLE = Origin("unknown", "it was passed on in a circle")
_WORST: tuple[Literal["typed", "failed", "unknown", "command", "given"], ...] = (
    "typed",
    "failed",
    "unknown",
    "command",
    "given",
)


class Typed:
    """What the agent had typed, and what a file may have its numbers from.

    :param files: data, below the workspace, or a whole path where they lay elsewhere.
    :param words: command lines, and the texts of shell scripts.
    """

    def __init__(self, files: frozenset[str] = frozenset(), words: tuple[str, ...] = ()) -> None:
        self.files = files
        self.words = words


class Lineage:
    """Answers who wrote which file.

    :param files: of the submission, by path below the workspace.
    """

    def __init__(self, view: LedgerView, files: Mapping[str, Path]) -> None:
        self.view = view
        self.files = files
        self.works = Works(view)
        self._digits = Digits()
        self._known: dict[tuple[int, str], Origin] = {}
        self._before: dict[int, Typed] = {}

    def origin(self, name: str) -> Origin:
        """Who wrote a file of the submission last."""
        made = self.view.made.get(name)
        if not self.view.is_whole:
            return Origin("unknown", "not all was recorded")
        if made is None:
            # Files have no event if nobody changed them; there cannot be more of them than that.
            is_given = self._without_event <= self.view.unchanged
            return Origin("given") if is_given else Origin("unknown", "it came after the end")
        if not made.is_sure:
            return Origin("unknown", "its last writer is not known for certain")
        if name in self.files and _digest(self.files[name]) != made.sha256:
            return Origin("unknown", "it was changed after the end")
        if not made.writers:
            return Origin("given")
        origin = self._last(ROOT + name, made.writers, made.kept)
        is_copied = origin.kind != "given" and self._is_copied(name)
        return Origin("typed", origin.by) if is_copied else origin

    def typed(self, name: str) -> Typed:
        """What the agent had typed that the writers of a file had before them.

        It may be innocent, as a file of settings is: what counts is whether a number stands there.
        """
        made = self.view.made.get(name)
        writers = made.writers if made else ()
        files = {name} if any(key in self.view.hands for key in writers) else set()
        words: dict[str, None] = {}
        works = dict.fromkeys(self.works.of(key) for key in writers)
        for found in [self._typed_before(work) for work in works if work is not None]:
            files |= found.files
            words.update(dict.fromkeys(found.words))
        return Typed(frozenset(files), tuple(words))

    def _typed_before(self, work: Work) -> Typed:
        if work.number not in self._before:
            works = self.works.lineage(work)
            paths = [path.removeprefix(ROOT) for each in works for path in each.typed]
            # The command itself comes first, before those that it builds on.
            works.sort(key=lambda each: each is not work)
            words = (text for each in works[:_SOURCES] for text in self._words(each))
            texts = dict.fromkeys(islice(words, 10 * _SOURCES))
            self._before[work.number] = Typed(frozenset(paths), tuple(texts))
        return self._before[work.number]

    @cached_property
    def _without_event(self) -> int:
        return sum(name not in self.view.made for name in self.files)

    def _is_copied(self, name: str) -> bool:
        if name not in self.files:
            return False
        typed = self.typed(name)
        files = [self.files[it] for it in sorted(typed.files - {name}) if it in self.files]
        return self._digits.are_copied(self.files[name], files[:_SOURCES], typed.words)

    def _words(self, work: Work) -> Iterator[str]:
        """The command lines of a command, and the scripts of its shells, which come first."""
        processes = sorted(work.processes, key=lambda it: not _has_shell(it))
        # Above it there is the agent, or a script that was started as the agent.
        script = self.view.parent(work.processes[0])
        above = [script] if script is not None and script.key not in self.view.hands else []
        for process in (above + processes)[:_SOURCES]:
            yield from (" ".join(program.argv) for program in process.programs)
            if _has_shell(process):
                names = (read.path.removeprefix(ROOT) for read in process.reads[:_SCRIPTS])
                yield from (read_start(self.files[name]) for name in names if name in self.files)

    # Writers

    def _last(
        self, path: str, writers: tuple[int, ...], kept: tuple[int, ...], steps: int = 0
    ) -> Origin:
        """The last of *writers* that may have changed what is in the file."""
        left = [key for key in writers if not is_keeping(self.view.program(key))]
        if not left or left[-1] not in self.view.processes or steps > _STEPS:
            return Origin("unknown", "its writer is not known")
        origin = self._by(self.view.processes[left[-1]], path, steps)
        if origin.kind != "command" or not any(key in self.view.hands for key in left):
            return origin
        # It was typed, and a program has opened it since: to write it anew, as one that finds a
        # placeholder, or to add to what is still there, so that nobody can tell whose is which. One
        # that had nothing to work with is not believed; :meth:`typed` still names the file itself.
        work = self.works.of(left[-1])
        if work is None or work.number not in self.works.open:
            return Origin("typed", origin.by)
        if any(key in self.view.hands for key in kept):
            return Origin("unknown", f"typed, and added to by {origin.by}")
        return origin

    def _by(self, process: Process, path: str, steps: int) -> Origin:
        """What a process that wrote to *path* stands for."""
        where = process.key, path
        if where not in self._known:
            self._known[where] = _CIRCLE
            self._known[where] = self._found(process, path, steps)
        return self._known[where]

    def _found(self, process: Process, path: str, steps: int) -> Origin:
        program, line = self.view.program(process.key), self.view.command_line(process.key)
        if process.key in self.view.hands:
            return Origin("typed", line)
        if is_shell(program):
            found = self._of_shell(process, path, steps)
        elif is_passing(program):
            found = self._passed(process, steps) or self._piped(process, path, steps)
        else:
            return Origin("command" if process.code == 0 else "failed", line)
        # What comes from nowhere stands on the command line: echo, printf, a here-document.
        kinds = [_WORST.index(each.kind) for each in found if each is not _CIRCLE]
        worst = min(kinds, default=0)
        return Origin(_WORST[worst], line)

    def _of_shell(self, shell: Process, path: str, steps: int) -> list[Origin]:
        """What a shell opened *path* for: what it started until it opened the next file."""
        since = shell.wrote.get(path, shell.born)
        later = (number for number in shell.wrote.values() if number > since)
        until = min(later, default=None)
        children = [self.view.processes[key] for key in shell.children]
        return self._best(
            (it for it in children if it.born > since and (until is None or it.born < until)),
            path,
            steps,
        )

    def _best(self, started: Iterator[Process], path: str, steps: int) -> list[Origin]:
        """The best of what several programs printed; none if they were no more than texts.

        A script that first says its date and then computes has computed: what it only said stands
        in its text, where :meth:`_is_copied` looks for it.
        """
        found: list[Origin] = []
        for process in started if steps <= _STEPS else ():
            if is_shell(self.view.program(process.key)):
                below = (self.view.processes[key] for key in process.children)
                found += self._best(below, path, steps + 1)
            else:
                found.append(self._by(process, path, steps + 1))
        found = [each for each in found if each is not _CIRCLE]
        found.sort(key=lambda it: (it.kind == "command", _WORST.index(it.kind)))
        return found[-1:]

    def _passed(self, process: Process, steps: int) -> list[Origin]:
        """The files that a program read to pass them on."""
        found = []
        for read in process.reads[:_SOURCES]:
            others = tuple(key for key in read.writers if key != process.key)
            if others:
                found.append(self._last(read.path, others, read.kept, steps + 1))
            elif not read.writers and read.kind not in PACKAGES:
                found.append(Origin("given"))
        return found

    def _piped(self, process: Process, path: str, steps: int) -> list[Origin]:
        """What came through a pipe: from those that the same shell started a moment before."""
        shell = self.view.parent(process)
        if shell is None or not is_shell(self.view.program(shell.key)):
            return []
        beside = (self.view.processes[key] for key in shell.children)
        left = (it for it in beside if it.born < process.born and it.overlaps(process))
        return self._best(left, path, steps + 1)


def origins(view: LedgerView, files: Mapping[str, Path]) -> dict[str, Origin]:
    """Path → who wrote it last, for each of the *files* of a submission."""
    lineage = Lineage(view, files)
    return {name: lineage.origin(name) for name in files}


def _has_shell(process: Process) -> bool:
    return any(is_shell(program) for program in process.programs)


def _digest(path: Path) -> str | None:
    """SHA-256 of a file, or of a link's target, as the sandbox takes it."""
    try:
        if path.is_symlink():
            return hashlib.sha256(
                str(path.readlink()).encode("utf-8", "surrogateescape")
            ).hexdigest()
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
