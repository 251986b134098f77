"""The repetitions of one case, each in a fresh container, with the inputs and the code alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pytest_mlrbench import folders
from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.evidence.base import Rerun
from pytest_mlrbench.evidence.gathering import Gathered
from pytest_mlrbench.evidence.ledgers.reading import read_view
from pytest_mlrbench.evidence.replays.corrupting import MOST_BYTES
from pytest_mlrbench.evidence.replays.inputs import Inputs, find, made_wrong
from pytest_mlrbench.evidence.replays.numbers import look
from pytest_mlrbench.evidence.replays.subject import Subject
from pytest_mlrbench.evidence.replays.trial import Trial, is_well
from pytest_mlrbench.run.faults import plain
from pytest_mlrbench.sandbox.base import Ended
from pytest_mlrbench.sandbox.rooms import Rooms
from pytest_mlrbench.suites.select import Case

#: Below the case's folder: a folder for each repetition.
FOLDER = "replays"
#: Letters of last words, and names, that are kept.
_TAIL, _MOST = 200, 100


@dataclass
class Repetitions:
    """Runs a case again as often as there is something to learn.

    :param seconds: how long each may take.
    """

    rooms: Rooms
    run: str
    case: Case
    folder: Path
    subject: Subject
    seconds: float
    _runs: list[Rerun] = field(default_factory=list)

    async def all(self) -> Trial:
        """Run it with the same seed, with another, and with inputs that are made wrong.

        :raises SystemFault: it could not be run to its end.
        :raises InputError: the engine is gone.
        """
        declared = self.subject.declared
        await self._once("seed", declared.seed)
        if not self._trial().same:  # of what does not repeat, nothing else can be told
            return self._trial()
        if declared.is_seeded:
            await self._once("another", declared.another)
        inputs = await asyncio.to_thread(self._inputs)
        is_shuffled = bool(inputs.places) and await self._wrong("labels", inputs)
        if inputs.places and not (is_shuffled and self._is_settled()):
            await self._wrong("input", inputs)
        return self._trial([_text(name) for name in inputs.left[:_MOST]])

    def _is_settled(self) -> bool:
        """Whether shuffled labels have changed the numbers, or ended the program."""
        return not is_well(self._runs[-1]) or self._trial().changed is True

    def _trial(self, left: Sequence[str] = ()) -> Trial:
        return self.subject.trial(self._runs, left)

    def _inputs(self) -> Inputs:
        """What the first repetition read, by its ledger."""
        tree, it = self.subject.tree, self.subject.declared
        view = read_view(self.folder / FOLDER / "1" / "ledger.jsonl")
        return find(view, it, tree.given, tree.names, self.rooms.options.data or {})

    async def _wrong(self, kind: Literal["labels", "input"], inputs: Inputs) -> bool:
        """Run it with inputs that are made wrong; false if none of them can be in that way."""
        own = self._next
        made = await asyncio.to_thread(self._make_wrong, own / "inputs", inputs, kind == "input")
        if made:
            await self._once(kind, self.subject.declared.seed, made)
        return bool(made)

    def _make_wrong(
        self, folder: Path, inputs: Inputs, is_all: bool
    ) -> dict[str, tuple[Path, str]]:
        """Return name → file to have in its place, and what has become of it."""
        made: dict[str, tuple[Path, str]] = {}
        for number, place in enumerate(inputs.places):
            content = None
            if place.source is None:
                content = self.rooms.container.content(place.name, MOST_BYTES)
            labels = self.subject.declared.labels
            if wrong := made_wrong(place, content, labels, is_all=is_all):
                folders.make(folder)
                target = folder / f"{number}{Path(place.name).suffix[:20]}"
                target.write_bytes(wrong[0])
                target.chmod(0o644)
                made[place.name] = target, wrong[1]
        return made

    @property
    def _next(self) -> Path:
        """The folder of the next repetition."""
        return self.folder / FOLDER / str(len(self._runs) + 1)

    async def _once(
        self,
        kind: Literal["seed", "another", "labels", "input"],
        seed: int,
        made: Mapping[str, tuple[Path, str]] | None = None,
    ) -> None:
        """Run it once, and keep what came of it."""
        own, made = self._next, made or {}
        workspace = own / "submission"
        command = self.subject.declared.words(seed)
        await asyncio.to_thread(self._lay, workspace, made)
        ended = await self._execute(command, own, made)
        numbers = await asyncio.to_thread(self._harvest, own)
        run = Rerun(
            kind=kind,
            command=command,
            seed=seed if self.subject.declared.is_seeded else None,
            inputs={_text(name): word for name, (_, word) in made.items()},
            folder=own.relative_to(self.folder).as_posix(),
            ended=f"exit {ended.code}" if ended.reason == "exit" else ended.reason,
            seconds=round(ended.seconds, 3),
            numbers=numbers,
        )
        said = "" if is_well(run) else _text(" ".join(plain(ended.tail).split())[-_TAIL:])
        self._runs.append(run.model_copy(update={"said": said}))

    def _lay(self, workspace: Path, made: Mapping[str, tuple[Path, str]]) -> None:
        self.subject.tree.lay(workspace)
        for name, (path, _) in made.items():
            if name in self.subject.tree.given:
                folders.copy(path, workspace / name)

    async def _execute(
        self, command: Sequence[str], own: Path, made: Mapping[str, tuple[Path, str]]
    ) -> Ended:
        again = own.relative_to(self.folder).as_posix()
        async with self.rooms.open(self.run, self.case, self.folder, again=again) as room:
            assert room is not None  # a case without one has no ledger
            room.overlays = {name: path for name, (path, _) in made.items() if name[0] == "/"}
            work = Assignment(
                stage=self.case.stage,
                task_id=self.case.task.id,
                repeat=self.case.repeat,
                workspace=(own / "submission").resolve(),
                deadline=time.time() + self.seconds,
                log=own / "agent.log",
                room=room,
            )
            return await room.execute(command, work, environment=lambda gate: gate, files={})

    def _harvest(self, own: Path) -> dict[str, float | None]:
        """Return the numbers that came out; the files that they stand in are kept, the rest not."""
        workspace = own / "submission"
        files = Gathered(workspace).files
        numbers = look(files, self.subject.points)
        for name in {point.file for point in self.subject.points} & files.keys():
            folders.make((own / "outputs" / name).parent)
            files[name].rename(own / "outputs" / name)
        for folder in (workspace, own / "inputs"):
            folders.remove(folder)
        return numbers


def _text(name: str) -> str:
    """A name as a record can hold it: those that are not UTF-8 cannot be written."""
    return name.encode("utf-8", "replace").decode()
