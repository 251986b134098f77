"""Agents that are a command: ``cmd:COMMAND``, ``py:module:callable`` and the bundled reference."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pytest_mlrbench
from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.ends import run_command
from pytest_mlrbench.agents.needs import Needs
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.run import digests
from pytest_mlrbench.sandbox.base import FILES
from pytest_mlrbench.sandbox.contents import Content, interpreters
from pytest_mlrbench.sandbox.given import EXECUTE, READ, check_ours
from pytest_mlrbench.suites.select import Case

#: What to do about a file that is not there, where it may be meant to be elsewhere.
_OR_IN_IMAGE = "correct its name, or write an absolute path for one of the image"
#: Seconds a Python agent's module may take to be imported.
_LOADING = 120
#: Programs whose first word is a script; the command runs in the workspace, where it is not.
_INTERPRETER = re.compile(r"(python|bash|sh|zsh|node|ruby|perl|Rscript|julia)[\d.]*")


class CommandAgent:
    """``cmd:COMMAND``: a program and its arguments, no shell in between.

    The command runs in the workspace, so words that name a file relative to *base* (the folder
    the option was written in) are made absolute. A container is given those files; whatever else
    the command needs must be in the image.
    """

    needs_inputs = True
    has_files = True
    system: str | None = None
    needs: Needs | None = Needs("docker")

    def __init__(self, spec: str, base: Path) -> None:
        self.spec = spec
        self.base = base
        try:
            words = shlex.split(spec.partition(":")[2])
        except ValueError as error:
            raise InputError(f"agent {spec!r}: cannot be split into words: {error}.") from None
        if not words:
            raise InputError(f"agent {spec!r} names no command: write cmd:COMMAND.")
        # os.path: a word may be a whole script, and Path refuses to look up names that long.
        self.words = words
        there = {word: base / word for word in words if os.path.isfile(base / word)}
        self.files = list(there.values())
        #: Words that are relative to the folder; an absolute one is a place in the image as well.
        self.named = {word: path for word, path in there.items() if not os.path.isabs(word)}

    def check_here(self) -> None:
        """Make sure that the command is on this machine.

        :raises InputError: it is not.
        """
        if not self._program:
            if self.words[0] in self.named:
                self._check_executable()
            raise InputError(
                f"agent {self.spec!r}: there is no program {self.words[0]!r}, on the PATH or in"
                f" {self.base}."
            )
        if self._script and not os.path.isfile(self.base / self._script):
            raise InputError(f"{self._missing('file', self._script)}: correct its name.")
        check_ours(self.files)

    @property
    def given(self) -> dict[Path, int]:
        """The files that containers are given, and the rights to each that the command needs."""
        return {path: self._rights(word) for word, path in self.named.items()}

    def _rights(self, word: str) -> int:
        if word != self.words[0]:
            return READ
        # A script is read by its interpreter, which has the rights of whoever started it.
        return EXECUTE | (READ if interpreters(self.named[word]) else 0)

    def image_contents(self) -> list[Content]:
        """Return what containers must have for the command, beside the files that are named.

        :raises InputError: a file that it names is not on this machine.
        """
        first, script = self.words[0], self._script
        check_ours(self.files)
        if first in self.named:
            self._check_executable()
            found = [Content("program", name) for name in interpreters(self.named[first])]
        elif "/" in first and not os.path.isabs(first):
            raise InputError(f"{self._missing('program', first)}: {_OR_IN_IMAGE}.")
        else:
            found = [Content("program", first)]
        if os.path.isabs(script):
            found.append(Content("file", script))
        elif script and script not in self.named:
            raise InputError(f"{self._missing('file', script)}: {_OR_IN_IMAGE}.")
        return [content for content in found if not content.is_given]

    @property
    def _script(self) -> str:
        """The word by which the program is told a file of code; empty if there is none for sure."""
        if len(self.words) < 2 or not _INTERPRETER.fullmatch(Path(self.words[0]).name):
            return ""
        word = self.words[1]
        return word if Path(word).suffix and not word.startswith("-") else ""

    def _missing(self, kind: str, word: str) -> str:
        return f"agent {self.spec!r}: there is no {kind} {word!r} in {self.base}"

    def _check_executable(self) -> None:
        path = self.named[self.words[0]]
        if not os.access(path, os.X_OK):
            raise InputError(
                f"agent {self.spec!r}: there is no program {self.words[0]!r}, as {path} cannot be"
                " executed: chmod +x makes it one, or name its interpreter before it."
            )

    @cached_property
    def _program(self) -> str:
        """Path of the program on this machine; empty if there is none."""
        first = self.words[0]
        found = ("/" not in first and shutil.which(first)) or shutil.which(
            str(self.named.get(first, first))
        )
        return os.path.abspath(found) if found else ""

    @property
    def command(self) -> list[str]:
        """The command on this machine."""
        words = [str(self.named.get(word, word)) for word in self.words]
        return [self._program, *words[1:]]

    @property
    def contained(self) -> list[str]:
        """The command in a container, which has the files that are named."""
        return [f"{FILES}/{_inside(word)}" if word in self.named else word for word in self.words]

    def prepare(self, cases: Sequence[Case]) -> None:
        """Nothing beyond what is checked of the place in which it runs."""

    def digest(self, case: Case) -> str | None:
        """Digest of the words, the program, the files named, and their repository."""
        return self._content

    @cached_property
    def _content(self) -> str | None:
        # The program of an image is part of the image's digest.
        files = [*([Path(self._program)] if self._program else []), *self.files]
        return digests.of_json(
            {
                "words": self.spec,
                "files": [digests.of_file(path) for path in files],
                "surroundings": [digests.of_surroundings(path) for path in self.files],
            }
        )

    async def run(self, case: Case, work: Assignment) -> None:
        """Run the command with the variables of the contract, until it exits or time is up."""
        contained = work.room is not None and work.room.is_container
        await run_command(
            self.contained if contained else self.command,
            (lambda gate: gate) if contained else (lambda gate: {**gate, **self.environment()}),
            work,
            {_inside(word): path for word, path in self.named.items()},
        )

    def environment(self) -> dict[str, str]:
        """Variables on this machine, beside those of the contract and those of this process."""
        return {}


class PythonAgent(CommandAgent):
    """``py:module:callable``: called with an Assignment, in a Python process of its own.

    The process makes a hang, a crash and stray output the same as for a command. It sees the
    import path of this process, with *base* in front.
    """

    needs = Needs("local", only=("local", "a Python callable is imported on this machine"))

    def __init__(self, spec: str, base: Path) -> None:
        self.spec = spec
        module, _, name = spec.removeprefix("py:").partition(":")
        if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
            raise InputError(f"agent {spec!r} must be of the form py:module:callable.")
        self.base = base
        self.named = {}
        self.module = module
        self.arguments = ["-m", "pytest_mlrbench.agents.call", module, name]

    @property
    def command(self) -> list[str]:
        """The command on this machine."""
        return [sys.executable, *self.arguments]

    def check_here(self) -> None:
        """Nothing to look for before :meth:`prepare`."""

    def image_contents(self) -> list[Content]:
        """It runs in no container."""
        return []

    def prepare(self, cases: Sequence[Case]) -> None:
        """Import the callable once, in a process of its own."""
        try:
            done = subprocess.run(
                [*self.command, "--check"],
                env={**os.environ, **self.environment()},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LOADING,
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"agent {self.spec!r} cannot be loaded: its import takes over {_LOADING} s."
            ) from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise InputError(f"agent {self.spec!r} cannot be loaded: {last}")

    @cached_property
    def _content(self) -> str | None:
        """Digest of the module's file (or package), and of its repository."""
        top = self.module.partition(".")[0]
        for folder in self._path():
            package, file = Path(folder, top), Path(folder, f"{top}.py")
            if (package / "__init__.py").is_file():
                code = [(n, p) for n, p in digests.walk(package) if n.endswith(".py")]
                init = package / "__init__.py"
                return digests.of_json([digests.of_files(code), digests.of_surroundings(init)])
            if file.is_file():
                return digests.of_json([digests.of_file(file), digests.of_surroundings(file)])
        return None

    def _path(self) -> Sequence[str]:
        return [str(self.base), *(entry for entry in sys.path if entry)]

    def environment(self) -> dict[str, str]:
        """The import path of this process."""
        return {"PYTHONPATH": os.pathsep.join(self._path())}


class ReferenceAgent(PythonAgent):
    """``reference``: the bundled agent; it knows the suite ``mini`` only."""

    needs = Needs("local")

    def __init__(self, spec: str, base: Path) -> None:
        self.spec = spec
        self.base = Path(pytest_mlrbench.__file__).parents[1]
        self.named = {}
        self.module = "pytest_mlrbench"
        self.arguments = ["-m", "pytest_mlrbench.agents.reference"]

    @property
    def contained(self) -> list[str]:
        """The command in a container, where the package is installed."""
        return ["python3", *self.arguments]

    def image_contents(self) -> list[Content]:
        """Return what containers must have for it."""
        packages = ("pytest_mlrbench", "sklearn", "matplotlib")
        return [
            Content("program", "python3", is_shipped=True),
            *(Content("package", name, is_shipped=True) for name in packages),
        ]

    def prepare(self, cases: Sequence[Case]) -> None:
        """Make sure that what the experiments need is installed."""
        from importlib.util import find_spec

        if find_spec("sklearn") is None or find_spec("matplotlib") is None:
            raise InputError(
                "the reference agent needs scikit-learn and matplotlib:"
                " pip install 'pytest-mlrbench[reference]'."
            )
        known = {path.name for path in Path(__file__).parent.glob("reference/plans/*")}
        if odd := [case for case in cases if case.task.id not in known]:
            raise InputError(
                f"the reference agent knows the tasks of suite mini only, and {odd[0].name} is none"
                " of them: name another with --mlr-agent."
            )

    @cached_property
    def _content(self) -> str | None:
        """Digest of the agent's own code."""
        folder = Path(__file__).with_name("reference")
        return digests.of_files((n, p) for n, p in digests.walk(folder) if "__pycache__" not in n)


def _inside(word: str) -> str:
    """The place of a named file below ``/agent``: as typed, but never above it."""
    return os.path.normpath(f"/{word}").lstrip("/")
