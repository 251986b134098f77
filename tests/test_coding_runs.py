"""A case of a coding agent from its prompt to its transcript; a script stands in for the CLI.

The real ones are run in ``test_coding_real.py`` and ``test_coding_docker.py``.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.coding import make_coding_agent
from pytest_mlrbench.agents.coding.running import lay
from pytest_mlrbench.errors import AgentFault, SystemFault
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.sandbox.local import LocalSandbox
from pytest_mlrbench.sandbox.room import Room
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.select import make_cases

RECORDED = shipped("fixtures") / "transcripts" / "codex"
KEY = "sk-real-0123456789abcdef0123456789abcdef"
MINI = load_suite("mini")
(CASE,) = make_cases(MINI, ["experiment"], MINI.tasks[:1])
#: What Codex does that matters here.
CODEX = f"""#!/bin/sh
[ "$1" = --version ] && echo codex-cli 0.171.0 && exit
cat >prompt-as-read
mkdir -p ~/.codex/sessions/1 && cp {RECORDED}/session.jsonl ~/.codex/sessions/1/
echo $HOME >home-as-seen
tail -n +2 {RECORDED}/agent.log
"""


class Station:
    """A case folder, and a script that is called ``codex``."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.folder, self.path = folder, path
        self.agent = make_coding_agent("codex")

    def run(self, script: str, seconds: float = 30.0) -> None:
        """Have the agent answer, which is *script* here."""
        program = self.path / "codex"
        program.write_text(script)
        program.chmod(0o755)
        workspace = self.folder / "submission"
        workspace.mkdir()
        work = Assignment(
            stage="experiment",
            task_id=CASE.task.id,
            repeat=1,
            workspace=workspace,
            deadline=time.time() + seconds,
            log=self.folder / "agent.log",
            room=Room(LocalSandbox(), run="r", case=CASE.name, folder=self.folder),
        )
        asyncio.run(self.agent.run(CASE, work))

    @property
    def transcript(self) -> list[dict[str, Any]]:
        text = (self.folder / "transcript.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def station(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Station:
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path), prepend=":")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    folder = tmp_path / "case"
    folder.mkdir()
    return Station(folder, path)


def test_it_is_told_what_to_do_and_its_account_is_kept(station: Station) -> None:
    station.run(CODEX)

    told = (station.folder / "prompt.md").read_text()
    assert (station.folder / "submission" / "prompt-as-read").read_text() == told
    home = station.folder / "home"
    assert (station.folder / "submission" / "home-as-seen").read_text().strip() == str(home)
    assert "gate" in (home / ".codex" / "config.toml").read_text()
    kinds = [entry["kind"] for entry in station.transcript]
    assert kinds == ["start", "command", "edit", "command", "message", "usage"]
    assert station.transcript[0] == {"kind": "start", "cli": "codex", "version": "0.171.0"}
    spent = station.agent.spent(CASE)
    assert spent is not None
    assert (spent.calls, spent.input, spent.output, spent.cost_usd) == (4, 10004, 108, None)


def test_the_version_is_looked_up_where_npm_has_installed_it(station: Station) -> None:
    package = station.folder / "lib" / "node_modules" / "@openai" / "codex"
    lay({"package.json": '{\n  "name": "@openai/codex",\n  "version": "9.8.7-rc.1"\n}\n'}, package)
    lay({"package.json": '{\n  "name": "codex-bin",\n  "version": "6.6.6"\n}\n'}, package / "bin")
    program = package / "bin" / "codex.sh"
    station.path.joinpath("codex").symlink_to(program)
    station.run('#!/bin/sh\n[ $1 != --version ] && cat && echo "$@"')

    assert station.transcript == [{"kind": "start", "cli": "codex", "version": "9.8.7-rc.1"}]
    log = (station.folder / "agent.log").read_text()
    assert (station.folder / "prompt.md").read_text() in log
    assert log.splitlines()[-1].startswith("exec --json")


def test_one_that_crashes_has_left_an_account_and_a_bill(station: Station) -> None:
    with pytest.raises(AgentFault, match="exit code 3") as raised:
        station.run(CODEX + "echo that went wrong; exit 3")
    assert raised.value.cause == "crash"
    assert "that went wrong" in raised.value.message
    assert len(station.transcript) == 6
    assert station.agent.spent(CASE) is not None


def test_one_that_does_not_end_likewise(station: Station) -> None:
    with pytest.raises(AgentFault) as raised:
        station.run(CODEX + "sleep 60", seconds=1.5)
    assert raised.value.cause == "timeout"
    assert len(station.transcript) == 6
    assert station.agent.spent(CASE) is not None


def test_keys_that_it_prints_are_not_in_the_transcript(station: Station) -> None:
    item = {"id": "1", "type": "agent_message", "text": "it is $OPENAI_API_KEY"}
    event = json.dumps({"type": "item.completed", "item": item}).replace('"', '\\"')
    station.run(f'#!/bin/sh\necho "{event}"\n')
    assert KEY in (station.folder / "agent.log").read_text()
    assert station.transcript[-1] == {"kind": "message", "text": "it is [key]"}


def test_without_a_place_to_run_in_nothing_is_measured() -> None:
    work = Assignment("experiment", CASE.task.id, 1, Path("/w"), time.time() + 9, Path("/l"))
    with pytest.raises(SystemFault) as raised:
        asyncio.run(make_coding_agent("codex").run(CASE, work))
    assert raised.value.cause == "start"


def test_what_it_is_steered_by_is_never_written_through_links(tmp_path: Path) -> None:
    """An earlier command of the case may have left anything in the home."""
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (outside / "config.toml").write_text("mine")
    (home / ".codex").symlink_to(outside)
    lay({".codex/config.toml": "new"}, home)
    (home / "settings.json").symlink_to(outside / "config.toml")
    lay({"settings.json": "new"}, home)

    assert (outside / "config.toml").read_text() == "mine"
    assert (home / ".codex" / "config.toml").read_text() == "new"
    assert (home / "settings.json").read_text() == "new"
