"""Real coding CLIs, run on this machine against the stub."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from coding_stub import CodingStub

from pytest_mlrbench.agents.coding.base import CodingAgent
from pytest_mlrbench.agents.coding.events import Event

#: Folder with ``node_modules/.bin``; without it, the CLIs are looked for on the PATH.
VARIABLE = "MLRBENCH_CLIS"
TASK = (
    "# Task\n\nHow long is the next word of a text?\n" + "Guess it from the words before it. " * 20
)
#: One claims to be nobody else than this, to a server that takes any key.
TOKEN = "token-of-this-case"


def find(program: str) -> str:
    """Return the path of a CLI; skip the test if it is not there."""
    folder = os.environ.get(VARIABLE, "")
    path = f"{folder}/node_modules/.bin" if folder else None
    found = shutil.which(program, path=path)
    if found is None:
        pytest.skip(f"there is no {program}: {VARIABLE} names no folder with it, nor does PATH")
    return found


@dataclass(frozen=True)
class Desk:
    """A place that a CLI works in, as it is on disk."""

    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def log(self) -> Path:
        return self.folder / "agent.log"

    def transcript(self, agent: CodingAgent) -> list[Event]:
        return agent.transcript(self.log, self.home, str(self.workspace))


@contextmanager
def desk() -> Iterator[Desk]:
    """A folder that another user can reach, with a task in it."""
    # Not below /tmp itself: Codex thinks ill of a HOME there.
    folder = Path(tempfile.mkdtemp(prefix="mlrbench-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        made = Desk(folder)
        made.workspace.mkdir()
        made.home.mkdir()
        (made.workspace / "task.md").write_text(TASK)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def gate(stub: CodingStub) -> dict[str, str]:
    """The variables by which a CLI finds the stub."""
    return {
        "ANTHROPIC_BASE_URL": f"{stub.url}/anthropic",
        "OPENAI_BASE_URL": f"{stub.url}/openai/v1",
        "GOOGLE_GEMINI_BASE_URL": f"{stub.url}/google",
        "ANTHROPIC_API_KEY": TOKEN,
        "OPENAI_API_KEY": TOKEN,
        "GEMINI_API_KEY": TOKEN,
    }


def run(
    agent: CodingAgent,
    at: Desk,
    variables: Mapping[str, str],
    *,
    told: str = "Do the experiment.\n",
    until: Callable[[], bool] | None = None,
) -> int:
    """Run the agent's command as a user who is not root, and return its exit code.

    :param until: once this is so, it is told to end.
    """
    path = find(agent.program)
    for name, text in agent.files(variables).items():
        (at.home / name).parent.mkdir(parents=True, exist_ok=True)
        (at.home / name).write_text(text)
    prompt = at.folder / "prompt.md"
    prompt.write_text(told)
    root = os.geteuid() == 0
    if root:
        for made in (at.folder, *at.folder.rglob("*")):
            os.chown(made, 1000, 1000)
    with at.log.open("wb") as log:
        process = subprocess.Popen(
            agent.command(str(prompt)),
            cwd=at.workspace,
            env={
                "PATH": f"{Path(path).parent}:{os.environ['PATH']}",
                "HOME": str(at.home),
                **agent.environment(variables),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=1000 if root else None,
            group=1000 if root else None,
            extra_groups=[] if root else None,
        )
        try:
            end = time.monotonic() + 120
            while until and not until() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            if until:
                os.killpg(process.pid, signal.SIGTERM)
            return process.wait(120)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
