"""The real coding CLIs of this machine write and run an experiment; a stub is their model."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from coding_cli import TOKEN, Desk, desk, find, gate, run
from coding_stub import CodingStub, Run, Say, tools_of

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.coding import ADAPTERS, make_coding_agent
from pytest_mlrbench.agents.coding.base import CodingAgent
from pytest_mlrbench.agents.coding.events import (
    Command,
    Edit,
    Event,
    Message,
    Trouble,
    Usage,
)
from pytest_mlrbench.errors import AgentFault
from pytest_mlrbench.models.config import KEYS, ModelConfig
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.run.submission import check_contract
from pytest_mlrbench.sandbox.gate import Policy
from pytest_mlrbench.sandbox.local import LocalSandbox
from pytest_mlrbench.sandbox.room import Room
from pytest_mlrbench.stub.replies import failing
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.select import make_cases
from pytest_mlrbench.suites.stages import STAGES

pytestmark = pytest.mark.slow

(CASE,) = make_cases(MINI := load_suite("mini"), ["experiment"], MINI.tasks[:1])
KINDS = pytest.mark.parametrize("kind", ADAPTERS)
WEB = {"WebSearch", "WebFetch", "web_search", "web_fetch", "google_web_search"}
#: A model that each CLI would not take by itself.
OTHERS = {"claude-code": "claude-sonnet-4-5", "codex": "gpt-5", "gemini-cli": "gemini-2.5-pro"}


@pytest.fixture
def place() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.fixture
def stub(place: Desk) -> Iterator[CodingStub]:
    with CodingStub(workspace=place.workspace) as serving:
        yield serving


def total(events: list[Event]) -> tuple[int, ...]:
    used = [event for event in events if isinstance(event, Usage)]
    names = ("input", "output", "cached_input", "reasoning")
    return tuple(sum(getattr(usage, name) for usage in used) for name in names)


def sent(stub: CodingStub) -> tuple[int, ...]:
    tokens = stub.total
    return tokens.input, tokens.output, tokens.cached, tokens.reasoning


def recorded(agent: CodingAgent, place: Desk) -> list[str]:
    """The events of the recording in ``fixtures``, as if it had been made at *place*."""
    folder = shipped("fixtures") / "transcripts" / agent.kind
    home = place.folder / "recorded"
    session = home / agent.sessions.replace("*", "a")
    session.parent.mkdir(parents=True)
    session.write_bytes((folder / "session.jsonl").read_bytes())
    events = agent.transcript(folder / "agent.log", home)
    return [repr(event).replace("/workspace", str(place.workspace)) for event in events]


@pytest.mark.parametrize("spec", [*ADAPTERS, *(f"{k}:{m}" for k, m in OTHERS.items())])
def test_it_writes_runs_and_reports_an_experiment(spec: str, place: Desk, stub: CodingStub) -> None:
    agent = make_coding_agent(spec)

    assert run(agent, place, gate(stub)) == 0

    check_contract(place.workspace, STAGES["experiment"])
    metrics = json.loads((place.workspace / "results" / "metrics.json").read_text())
    assert len(metrics["seeds"]) == 3
    events = place.transcript(agent)
    commands = [event for event in events if isinstance(event, Command)]
    assert [event.exit_code for event in commands if "cat >" not in event.command] == [2, 0]
    edits = [event.path for event in events if isinstance(event, Edit)]
    # A model that Codex does not know writes files by commands.
    assert edits == ([] if spec == "codex:gpt-5" else ["results/run.py"])
    assert Message("The experiment is done; its report is results/results.md.") in events
    assert total(events) == sent(stub)
    models = [event.model for event in events if isinstance(event, Usage)]
    assert sorted(models) == sorted(set(stub.models))
    if agent.model:
        assert set(stub.models) == {agent.model}
    else:
        assert list(map(repr, events)) == recorded(agent, place)
    assert all(asked.key_sent for asked in stub.requests)
    assert not WEB & {name for asked in stub.requests for name in tools_of(asked.body)}


@KINDS
def test_the_prompt_reaches_the_model_as_it_is(kind: str, place: Desk, stub: CodingStub) -> None:
    stub.steps = (Say("Understood."),)
    told = 'Say "$HOME" and `id`,\n\n--and-this @file /help \\n.\n' + "x" * 200_000
    assert run(make_coding_agent(kind), place, gate(stub), told=told) == 0
    assert any(told.strip() in asked.text for asked in stub.requests)


@KINDS
def test_its_programs_can_ask_the_models_too(kind: str, place: Desk, stub: CodingStub) -> None:
    agent = make_coding_agent(kind)
    name = {"anthropic": "ANTHROPIC", "openai": "OPENAI", "google": "GEMINI"}[agent.provider]
    stub.steps = (Run(f'test "${name}_API_KEY" = {TOKEN} && echo same'), Say("Done."))
    assert run(agent, place, gate(stub)) == 0
    (command,) = [e for e in place.transcript(agent) if isinstance(e, Command)]
    assert (command.exit_code, command.output.strip()) == (0, "same")


@KINDS
def test_one_that_is_stopped_has_told_what_it_did(kind: str, place: Desk, stub: CodingStub) -> None:
    stub.steps = (Run("echo first"), Run("echo begun > begun; sleep 60"), Say("Never said."))
    # Left to itself, Gemini CLI asks which model to take, and tells of that at its end only.
    agent = make_coding_agent(f"{kind}:{OTHERS[kind]}")

    def begun() -> bool:
        return (place.workspace / "begun").exists() and "echo begun" in place.log.read_text()

    run(agent, place, gate(stub), until=begun)

    events = place.transcript(agent)
    first, second = [event for event in events if isinstance(event, Command)]
    assert (first.exit_code, first.output.strip()) == (0, "first")
    assert second.command == "echo begun > begun; sleep 60"
    assert second.exit_code != 0
    assert total(events) == sent(stub)


@KINDS
def test_a_server_that_is_down_is_told(kind: str, place: Desk, stub: CodingStub) -> None:
    stub.script = failing(400, "this server is down")
    agent = make_coding_agent(kind)
    start = time.monotonic()
    assert run(agent, place, gate(stub)) != 0
    events = place.transcript(agent)
    assert any(isinstance(e, Trouble) and "this server is down" in e.text for e in events)
    assert time.monotonic() - start < 60


@KINDS
def test_on_this_machine_itself_it_asks_through_a_gate_of_its_own(
    kind: str, place: Desk, stub: CodingStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    agent = make_coding_agent(kind)
    path = Path(find(agent.program)).parent
    monkeypatch.setenv("PATH", str(path), prepend=":")
    monkeypatch.setenv(KEYS[agent.provider][0], "sk-real-0123456789")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")  # of the user; not for the agent
    config = ModelConfig(
        provider=agent.provider, model="any", base_url=stub.base_url(agent.provider)
    )
    room = Room(
        LocalSandbox(),
        run="local",
        case="case",
        folder=place.folder,
        policy=lambda deadline: Policy(deadline, lambda _: config, (agent.provider,)),
    )
    work = Assignment("experiment", "t", 1, place.workspace, time.time() + 90, place.log, room)
    if kind == "claude-code" and os.geteuid() == 0:
        with pytest.raises(AgentFault, match="root"):
            asyncio.run(agent.run(CASE, work))
        return
    asyncio.run(agent.run(CASE, work))

    spent = agent.spent(CASE)
    assert spent is not None
    assert (spent.calls, spent.input) == (len(stub.sent), stub.total.input)
    text = (place.folder / "transcript.jsonl").read_text()
    assert [json.loads(line)["kind"] for line in text.splitlines()][:4] == [
        *("start", "command", "edit", "command")
    ]
