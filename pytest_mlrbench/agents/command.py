"""Agents that are a command: ``cmd:COMMAND``, ``py:module:callable`` and the bundled reference."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pytest_mlrbench
from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.errors import AgentFault, InputError, SystemFault
from pytest_mlrbench.run import digests
from pytest_mlrbench.sandbox.local import run_process
from pytest_mlrbench.suites.select import Case

#: How much of an agent's output is quoted when it crashes, in characters.
_TAIL = 300
#: Seconds a Python agent's module may take to be imported.
_LOADING = 120
#: Programs whose first word is a script; the command runs in the workspace, where it is not.
_INTERPRETER = re.compile(r"(python|bash|sh|zsh|node|ruby|perl|Rscript|julia)[\d.]*")


class CommandAgent:
    """``cmd:COMMAND``: a program and its arguments, no shell in between.

    The command runs in the workspace, so words that name a file relative to *base* (the folder
    the option was written in) are made absolute.
    """

    needs_inputs = True
    has_files = True
    system: str | None = None

    def __init__(self, spec: str, base: Path) -> None:
        self.spec = spec
        try:
            words = shlex.split(spec.partition(":")[2])
        except ValueError as error:
            raise InputError(f"agent {spec!r}: cannot be split into words: {error}.") from None
        if not words:
            raise InputError(f"agent {spec!r} names no command: write cmd:COMMAND.")
        # os.path: a word may be a whole script, and Path refuses to look up names that long.
        named = [word if os.path.isfile(base / word) else "" for word in words]
        self.files = [base / word for word in named if word]
        self.command = [
            str(base / name) if name else word for word, name in zip(words, named, strict=True)
        ]
        bare = "/" not in words[0]
        program = (bare and shutil.which(words[0])) or shutil.which(self.command[0])
        if program is None:
            raise InputError(
                f"agent {spec!r}: there is no program {words[0]!r}, on the PATH or in {base}."
            )
        self.command[0] = os.path.abspath(program)
        script = words[1] if len(words) > 1 and _INTERPRETER.fullmatch(Path(words[0]).name) else ""
        if Path(script).suffix and not script.startswith("-") and not os.path.exists(base / script):
            raise InputError(f"agent {spec!r}: there is no file {script!r} in {base}.")

    def prepare(self, cases: Sequence[Case]) -> None:
        """Nothing beyond what the constructor has checked."""

    def digest(self, case: Case) -> str | None:
        """Digest of the words, the program, the files named, and their repository."""
        return self._content

    @cached_property
    def _content(self) -> str | None:
        files = [Path(self.command[0]), *self.files]
        return digests.of_json(
            {
                "words": self.spec,
                "files": [digests.of_file(path) for path in files],
                "surroundings": [digests.of_surroundings(path) for path in self.files],
            }
        )

    async def run(self, case: Case, work: Assignment) -> None:
        """Run the command with the variables of the contract, until it exits or time is up."""
        await run_command(self.command, self.environment(), work)

    def environment(self) -> dict[str, str]:
        """The environment the command inherits: ours, without what steers *our* pytest."""
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


class PythonAgent(CommandAgent):
    """``py:module:callable``: called with an Assignment, in a Python process of its own.

    The process makes a hang, a crash and stray output the same as for a command. It sees the
    import path of this process, with *base* in front.
    """

    def __init__(self, spec: str, base: Path) -> None:
        self.spec = spec
        module, _, name = spec.removeprefix("py:").partition(":")
        if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
            raise InputError(f"agent {spec!r} must be of the form py:module:callable.")
        self.base = base
        self.module = module
        self.command = [sys.executable, "-m", "pytest_mlrbench.agents.call", module, name]

    def prepare(self, cases: Sequence[Case]) -> None:
        """Import the callable once, in a process of its own."""
        try:
            done = subprocess.run(
                [*self.command, "--check"],
                env=self.environment(),
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
        """The inherited environment, with the import path of this process."""
        return {**super().environment(), "PYTHONPATH": os.pathsep.join(self._path())}


class ReferenceAgent(PythonAgent):
    """``reference``: the bundled agent; it knows the suite ``mini`` only."""

    def __init__(self, spec: str, base: Path) -> None:
        self.spec = spec
        self.base = Path(pytest_mlrbench.__file__).parents[1]
        self.module = "pytest_mlrbench"
        self.command = [sys.executable, "-m", "pytest_mlrbench.agents.reference"]

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


async def run_command(
    command: Sequence[str], environment: dict[str, str], work: Assignment
) -> None:
    """Run *command* for *work* and turn the way it ended into a fault, if it is one.

    :raises AgentFault: a non-zero exit, a signal, or the deadline.
    :raises SystemFault: it could not be started.
    """
    seconds = work.seconds_left
    try:
        ended = await run_process(
            command,
            workspace=work.workspace,
            environment={**environment, **work.environment},
            seconds=seconds,
            log=work.log,
        )
    except OSError as error:
        raise SystemFault("start", f"the agent could not be started: {error}.") from None
    if ended.reason == "timeout":
        raise AgentFault("timeout", f"the agent did not end within {seconds:.0f} s.")
    if ended.code != 0:
        raise AgentFault(
            "crash", f"the agent crashed with {_way_out(ended.code)}{_said(ended.tail)}"
        )


def _said(tail: str) -> str:
    """The last whole lines of the output, unless there is only one that is too long."""
    words = _without_keys(tail.strip())
    if len(words) > _TAIL:
        words = words[-_TAIL:].partition("\n")[2] or words[-_TAIL:]
    return f"; its last words: {words}" if words else " and printed nothing."


def _without_keys(text: str) -> str:
    """What an agent prints goes into reports, and it may print its environment."""
    from pytest_mlrbench.models.config import KEYS
    from pytest_mlrbench.models.redaction import Redaction

    names = [name for names in KEYS.values() for name in names]
    return Redaction(value for name in names if (value := os.environ.get(name)))(text)


def _way_out(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # real-time signals have no names
        return f"signal {-code}"
