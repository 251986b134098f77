"""Whole runs with live models: a provider on this machine does what a script says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from files import lay

from conftest import Repository
from pytest_mlrbench.models import preflight, registry
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.stub.wire import Received

KEYS = {
    "OPENAI_API_KEY": "sk-openai-0123456789abcdef",
    "ANTHROPIC_API_KEY": "sk-ant-fedcba9876543210",
    "GOOGLE_API_KEY": "AIza-0f1e2d3c4b5a69788796",
}
ADDRESSES = {
    "OPENAI_BASE_URL": "openai",
    "ANTHROPIC_BASE_URL": "anthropic",
    "GOOGLE_GEMINI_BASE_URL": "google",
}
REPORTS = ("--junitxml=junit.xml", "--mlr-json=report.json")
#: An agent of one model, and two judges of two others.
SCAFFOLD = "--mlr-agent=scaffold:openai/gpt-5"
TWO_JUDGES = ("--mlr-judge=claude=anthropic:claude-x", "--mlr-judge=gemini=google:gemini-x")
JUDGE = "--mlr-judge=strict=openai:judge-x"
#: What differs between two runs that measured the same.
VOLATILE = {"mlr.seconds.agent", "mlr.seconds.judge", "mlr.resumed", "mlr.artifacts"}
#: Makes a child's waits between tries as short as those of this process are made.
QUICK = """
from functools import partial
from pytest_mlrbench.models import preflight, registry
from pytest_mlrbench.models.retrying import Retries

registry.Retries = partial(Retries, attempts=3, first=0.005, longest=0.01)
preflight.RETRIES = Retries(attempts=2, first=0.005, longest=0.01)
"""
#: An agent that asks nobody, waits for nobody, and leaves a line for each call.
AGENT = """
import pytest

@pytest.fixture(scope="session")
def mlr_agent():
    async def answer(work):
        with open("calls", "a") as calls:
            print(work.task_id, file=calls)
        (work.workspace / "idea.md").write_text(f"# An idea about {work.task_id}")
    return answer
"""


def kind(asked: Received) -> str:
    """Who asks: ``preflight``, ``hallucination``, ``judge`` or ``agent``."""
    if "This is a test. Answer in JSON" in asked.text:
        return "preflight"
    wanted = (asked.schema or {}).get("properties", {})
    if "hallucinations" in wanted:
        return "hallucination"
    return "judge" if "overall" in wanted else "agent"


class Live:
    """A repository whose runs ask *stub*, wherever they think they ask."""

    def __init__(
        self, repo: Repository, stub: StubProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.repo = repo
        self.stub = stub
        self.path = repo.path
        self._monkeypatch = monkeypatch
        repo.set_addopts("-p no:randomly -p no:hypothesispytest -p no:asyncio")
        self.set(**KEYS, **{name: stub.base_url(who) for name, who in ADDRESSES.items()})
        self.unset("GEMINI_API_KEY", "CI")
        quick = partial(Retries, attempts=3, first=0.005, longest=0.01)
        monkeypatch.setattr(registry, "Retries", quick)
        monkeypatch.setattr(preflight, "RETRIES", quick(attempts=2))
        repo.lay({"quick.py": QUICK, "pytest.ini": "[pytest]\n"})

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def unset(self, *names: str) -> None:
        for name in names:
            self._monkeypatch.delenv(name, raising=False)

    def lay_tasks(self, number: int) -> str:
        """Lay a suite of so many small tasks; return the option that names it."""
        ids = [f"t{n:03}" for n in range(number)]
        rows = "".join(f"{one},Task {one}\n" for one in ids)
        files = {"suite.yaml": "name: tiny\n", "tasks.csv": f"id,title\n{rows}"}
        texts = {f"tasks/{one}.md": f"# The task {one}\n" for one in ids}
        lay(self.path / "tiny", {**files, **texts})
        return "--mlr-suite=path:tiny"

    def lay_agent(self, more: str = "") -> tuple[str, ...]:
        """Lay an agent that asks no model; return the options of a run of ideas with it."""
        module = "from pytest_mlrbench.stage_tests import *\n"
        self.repo.lay({"conftest.py": AGENT + more, "test_mlr.py": module})
        (self.path / "calls").write_text("")
        return ("test_mlr.py", "--mlr-stage=idea", "--mlr-agent=fixture")

    @property
    def agents(self) -> list[str]:
        """Task ids of the calls of that agent."""
        return (self.path / "calls").read_text().split()

    def run(self, *options: str, code: int | None = None) -> pytest.RunResult:
        """Run pytest with JUnit and JSON reports; *code* is the exit code it must have."""
        options = (*options, *REPORTS)
        if any(option.startswith("-n") for option in options):
            result = self.repo.spawn("-p", "quick", *options)
        else:
            result = self.repo.run(*options)
        if code is not None:
            assert result.ret == code, f"{result.stdout.str()}\n{result.stderr.str()}"
        return result

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start pytest in a process group of its own, with its output in the file ``output``."""
        command = [sys.executable, "-m", "pytest", "-p", "quick", *options]
        with (self.path / "output").open("wb") as output:
            return subprocess.Popen(
                command, cwd=self.path, stdout=output, stderr=output, start_new_session=True
            )

    def asked(self) -> Counter[str]:
        """Who asked how often since the stub was reset."""
        return Counter(kind(one) for one in self.stub.requests)

    def results(self) -> dict[str, CaseResult]:
        """Case → result, in the last run."""
        return self.repo.runs[-1].results()

    def result(self) -> CaseResult:
        """The result of the one case of the last run."""
        (found,) = self.results().values()
        return found

    def properties(self) -> dict[str, dict[str, str]]:
        """Case → the properties in the last JUnit report."""
        cases = ET.parse(self.path / "junit.xml").iter("testcase")
        found = [{p.attrib["name"]: p.attrib["value"] for p in c.iter("property")} for c in cases]
        return {one["mlr.case"]: one for one in found}

    def report(self) -> Any:
        return json.loads((self.path / "report.json").read_text("utf-8"))


def lasting(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that are the same in two runs that measured the same."""
    return {name: value for name, value in properties.items() if name not in VOLATILE}


def scripted(
    judge: Reply | Callable[[Received], Reply | None] | None = None,
    agent: Reply | Callable[[Received], Reply | None] | None = None,
) -> Callable[[Received], Reply | None]:
    """A script for what judges and agents are answered; preflights are answered rightly."""

    def script(asked: Received) -> Reply | None:
        reply = {"judge": judge, "agent": agent}.get(kind(asked))
        return reply(asked) if callable(reply) else reply

    return script


def files(folder: Path) -> Iterator[Path]:
    """All files below *folder*."""
    return (path for path in folder.rglob("*") if path.is_file())


def until(condition: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not happened in time"
        time.sleep(0.01)


def kill(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGKILL) -> int:
    """Send a signal to the whole group of *process*; return how it ended."""
    os.killpg(process.pid, number)
    return process.wait(60)
