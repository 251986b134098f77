"""Agents that are a coding CLI: ``claude-code``, ``codex`` and ``gemini-cli``, with ``:MODEL``.

The CLI works by itself in a sandbox, so its own confirmations and sandbox are off. So are searches
of the web that its provider would do for it, which no network setting could keep it from.
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.coding import prompt
from pytest_mlrbench.agents.coding.events import Event, Start, Usage
from pytest_mlrbench.agents.coding.reading import documents, kept
from pytest_mlrbench.agents.coding.running import run
from pytest_mlrbench.agents.coding.usage import spent
from pytest_mlrbench.agents.needs import Needs
from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models.config import Provider
from pytest_mlrbench.run import digests
from pytest_mlrbench.sandbox.base import WORKSPACE
from pytest_mlrbench.sandbox.contents import Content
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.suites.select import Case

_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@\[\]-]*")
#: A line of its own: warnings may come first.
_VERSION = re.compile(r"^(?:[\w-]+ )?(\d+\.\d+\.\d+[\w.+-]*)(?: \([\w ]+\))?$", re.MULTILINE)
#: Tells the version, which may be any, and starts the CLI with the prompt as its input: as an
#: argument, it would be in every record. The version is looked up in the npm package, since some
#: take as long to tell it as to start.
_SCRIPT = r"""
package=$1; shift
folder=$(readlink -f "$(command -v "$1")")
while folder=${folder%/*} && [ -n "$folder" ]; do
    grep -qs "\"name\": *\"$package\"" "$folder/package.json" && break
done
if [ -n "$folder" ]; then
    sed -n 's/^ *"version": *"\(.*\)".*/\1/p' "$folder/package.json"
else
    "$1" --version </dev/null
fi
exec "$@" <"$0"
"""
#: Bytes of the output in which the version is told.
_HEAD = 20_000


class CodingAgent(ABC):
    """A coding CLI and the model it is told to use, if any.

    An adapter says what is different about its CLI.

    :param spec: ``KIND[:MODEL]``.
    :raises InputError: the model's name is not usable.
    """

    kind: ClassVar[str]
    #: What is started, to be found on the PATH.
    program: ClassVar[str]
    package: ClassVar[str]
    provider: ClassVar[Provider]
    #: Pattern of the files below its HOME in which the CLI keeps its sessions.
    sessions: ClassVar[str]

    needs_inputs = True
    has_files = True
    system: str | None = None

    def __init__(self, spec: str) -> None:
        self.spec = spec
        _, colon, self.model = spec.partition(":")
        if colon and not _MODEL.fullmatch(self.model):
            raise InputError(f"agent {spec!r} names no model: write {self.kind}:MODEL.")
        self._spent_in: dict[str, Spent | None] = {}
        # A container in every stage: it does what it likes there without asking.
        self.needs = Needs(
            "docker",
            otherwise="docker",
            network="models",
            providers=(self.provider,),
            models=self.models,
        )

    @property
    def models(self) -> Sequence[str]:
        """Patterns of the models that the CLI asks, as the provider calls them."""
        return (self.model or "*",)

    @abstractmethod
    def arguments(self) -> list[str]:
        """Return what the program is started with; it reads what to do from its input."""

    @abstractmethod
    def variables(self) -> dict[str, str]:
        """Return environment variables that the CLI is steered by."""

    @abstractmethod
    def files(self, gate: Mapping[str, str]) -> dict[str, str]:
        """Return path below HOME → text of the files the CLI is steered by.

        :param gate: variables with the addresses and keys that it is to use; what is not among
            them is the provider's own.
        """

    @abstractmethod
    def events(
        self,
        printed: Iterable[dict[str, Any]],
        session: Iterable[dict[str, Any]],
        workspace: str,
    ) -> Iterator[Event]:
        """Yield what is told by the lines it *printed*, and by those of its session files."""

    @abstractmethod
    def usage(
        self, printed: Iterable[dict[str, Any]], session: Iterable[dict[str, Any]]
    ) -> list[Usage]:
        """Return what its calls used, by model."""

    def command(self, prompt_path: str) -> list[str]:
        """Return the command to be started in the workspace.

        :param prompt_path: file with what it is told, as it is called where the command runs.
        """
        start = ("/bin/sh", "-c", _SCRIPT.strip(), prompt_path, self.package)
        return [*start, self.program, *self.arguments()]

    def environment(self, gate: Mapping[str, str]) -> dict[str, str]:
        """Return the variables the command needs beside HOME and those of the contract.

        :param gate: addresses and keys of the models.
        """
        return {**gate, **self.variables()}

    def transcript(self, log: Path, home: Path, workspace: str = WORKSPACE) -> list[Event]:
        """Return what the agent did: from its start to what it used.

        :param log: all that the command printed.
        :param home: its HOME, on this machine.
        :param workspace: as the agent saw it.
        """
        # The session and its sub-agents have a file each.
        sessions = kept(home, self.sessions)
        return [
            *self._start(log),
            *self.events(documents([log]), documents(sessions), workspace),
            *self.usage(documents([log]), documents(sessions)),
        ]

    def _start(self, log: Path) -> Iterator[Start]:
        try:
            with log.open("rb") as file:
                found = _VERSION.search(file.read(_HEAD).decode(errors="replace"))
        except OSError:
            return
        yield Start(self.kind, found[1] if found else None)

    def spent_by(self, events: Iterable[Event]) -> Spent | None:
        """Return what the calls used, as the CLI says; null if it says nothing."""
        return spent([event for event in events if isinstance(event, Usage)], self.provider)

    async def run(self, case: Case, work: Assignment) -> None:
        """Answer one case in the place it was given; ``transcript.jsonl`` tells what was done."""
        if work.room is None:
            raise SystemFault("start", f"agent {self.spec!r} was given no place to run in.")
        events, fault = await run(self, work, work.room)
        # What the gate counted is known better than what the CLI says.
        self._spent_in[case.name] = work.room.spent or self.spent_by(events)
        if fault:
            raise fault

    def spent(self, case: Case) -> Spent | None:
        """Return what the models it asked for *case* have used; null if unknown."""
        return self._spent_in.get(case.name)

    def check_here(self) -> None:
        """Make sure that the CLI is on this machine.

        :raises InputError: it is not.
        """
        if not shutil.which(self.program):
            raise InputError(
                f"agent {self.spec!r}: there is no program {self.program!r} on the PATH:"
                f" npm install -g {self.package}."
            )

    def image_contents(self) -> list[Content]:
        """Return what containers must have for it."""
        return [Content("program", self.program, is_shipped=True)]

    def prepare(self, cases: Sequence[Case]) -> None:
        """Make sure that there is something to tell it in every stage."""
        if odd := [case for case in cases if not prompt.is_known(case.stage)]:
            raise InputError(f"agent {self.spec!r} is for other stages than {odd[0].stage}.")

    def digest(self, case: Case) -> str:
        """Digest of how the CLI is started, what it is told, and which one this machine has.

        That of an image is part of the image's digest.
        """
        return self._content

    @cached_property
    def _content(self) -> str:
        return digests.of_json(
            {
                "command": self.command(""),
                "variables": self.variables(),
                "files": self.files({}),
                "prompts": prompt.TEMPLATES.digest,
                "program": self._installed(),
            }
        )

    def _installed(self) -> str:
        """Digest of the npm package or the file of the program on this machine; empty without."""
        found = shutil.which(self.program)
        if not found:
            return ""
        path = Path(found).resolve()
        packages = (folder / "package.json" for folder in path.parents)
        return digests.of_file(next((p for p in packages if p.is_file()), path))
