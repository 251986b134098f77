"""The real coding CLIs in real containers: their model, a stub, is all they can reach."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coding_cli import TASK
from coding_stub import SESSION, CodingStub, Run, Say

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.coding import ADAPTERS, make_coding_agent
from pytest_mlrbench.agents.coding.base import CodingAgent
from pytest_mlrbench.errors import AgentFault, SystemFault
from pytest_mlrbench.models.config import ModelConfig, Provider
from pytest_mlrbench.run.submission import check_contract
from pytest_mlrbench.sandbox import ledger
from pytest_mlrbench.sandbox.base import Limits
from pytest_mlrbench.sandbox.docker import DockerSandbox
from pytest_mlrbench.sandbox.gate import Policy
from pytest_mlrbench.sandbox.room import Room
from pytest_mlrbench.stub.replies import failing
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.select import make_cases
from pytest_mlrbench.suites.stages import STAGES

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine"]

KINDS = pytest.mark.parametrize("kind", ADAPTERS)
IMAGE = "mlrbench-agents:ci"
#: Of this machine; no container may see it.
KEY = "sk-real-0123456789abcdef0123456789abcdef"
MINI = load_suite("mini")
(CASE,) = make_cases(MINI, ["experiment"], MINI.tasks[:1])


class Bed:
    """A case folder, and a room in which a CLI reaches the stub through a gate."""

    def __init__(self, folder: Path, stub: CodingStub, sandbox: DockerSandbox) -> None:
        self.folder = folder
        self._stub = stub
        self._sandbox = sandbox
        self.workspace = folder / "submission"
        self.workspace.mkdir()
        (self.workspace / "task.md").write_text(TASK)

    def run(self, agent: CodingAgent, seconds: float = 120.0) -> None:
        """Have the agent answer a case."""
        room = Room(
            sandbox=self._sandbox,
            run="coding",
            case=CASE.name,
            folder=self.folder,
            network="models",
            policy=lambda deadline: Policy(
                deadline=deadline,
                config=self._config,
                providers=(agent.provider,),
                models=agent.needs.models,
            ),
        )
        work = Assignment(
            stage="experiment",
            task_id=CASE.task.id,
            repeat=1,
            workspace=self.workspace,
            deadline=time.time() + seconds,
            log=self.folder / "agent.log",
            room=room,
        )
        asyncio.run(agent.run(CASE, work))

    def _config(self, name: str) -> ModelConfig:
        who, _, model = name.partition(":")
        provider: Provider = who  # type: ignore[assignment]
        address = self._stub.base_url(provider)
        return ModelConfig(provider=provider, model=model or "*", base_url=address)

    @property
    def transcript(self) -> list[dict[str, Any]]:
        text = (self.folder / "transcript.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    @property
    def ledger(self) -> list[dict[str, Any]]:
        return list(ledger.read(self.folder / "ledger.jsonl"))


@pytest.fixture(scope="module")
def sandbox(engine: Any) -> Iterator[DockerSandbox]:
    if not engine.images.list(IMAGE):
        pytest.skip(f"the engine has no image {IMAGE}: ci/docker/build.sh builds one")
    made = DockerSandbox(image=IMAGE, limits=Limits(memory=2 * 2**30, shm=2**26, tmp=2**28))
    yield made
    made.close()


@pytest.fixture
def stub() -> Iterator[CodingStub]:
    with CodingStub() as serving:
        yield serving


@pytest.fixture
def bed(
    tmp_path: Path, stub: CodingStub, sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> Bed:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    return Bed(tmp_path, stub, sandbox)


@KINDS
def test_it_writes_runs_and_reports_an_experiment(kind: str, bed: Bed, stub: CodingStub) -> None:
    stub.steps = (Run("env; cat /proc/[0-9]*/environ; ls -A ~ /agent"), *SESSION)
    agent = make_coding_agent(kind)

    bed.run(agent)

    check_contract(bed.workspace, STAGES["experiment"])
    told = bed.transcript
    assert [entry["exit_code"] for entry in told if entry["kind"] == "command"][1:] == [2, 0]
    assert {"kind": "edit", "path": "results/run.py", "change": "write"}.items() <= next(
        entry for entry in told if entry["kind"] == "edit"
    ).items()
    pinned = (Path(__file__).parents[1] / "ci" / "docker" / "agents.txt").read_text().split()
    assert f"{agent.package}@{told[0]['version']}" in pinned
    spent = agent.spent(CASE)
    assert spent is not None
    assert spent.calls == len(stub.sent)
    assert (spent.input, spent.output) == (stub.total.input, stub.total.output)
    said = [(entry["input"], entry["output"]) for entry in told if entry["kind"] == "usage"]
    assert tuple(map(sum, zip(*said, strict=True))) == (stub.total.input, stub.total.output)
    for name in ("agent.log", "transcript.jsonl", "ledger.jsonl", "prompt.md"):
        assert KEY not in (bed.folder / name).read_text(), name
    asked = [entry for entry in bed.ledger if entry["e"] == "api"]
    assert [entry["model"] for entry in asked if entry["status"] == 200] == stub.models
    assert "mlr-" not in (bed.folder / "transcript.jsonl").read_text()
    end = bed.ledger[-1]
    assert (end["whole"], end["unrecorded"], end["unclear"]) == (True, [], 0)
    (results,) = [e for e in bed.ledger if e["e"] == "file" and e["path"] == "results/run.py"]
    assert results["writers"]


@KINDS
def test_a_model_that_was_not_chosen_is_out_of_reach(kind: str, bed: Bed, stub: CodingStub) -> None:
    models = {"claude-code": "claude-sonnet-4-5", "codex": "gpt-5", "gemini-cli": "gemini-2.5-pro"}
    agent = make_coding_agent(f"{kind}:{models[kind]}")
    bed.run(agent)
    assert set(stub.models) == {models[kind]}
    assert not [e for e in bed.ledger if e["e"] == "api" and e["status"] != 200]


@pytest.mark.parametrize("kind", ["claude-code", "codex"])  # Gemini CLI takes long to start
def test_its_deadline_ends_it_and_what_it_did_is_told(
    kind: str, bed: Bed, stub: CodingStub
) -> None:
    stub.steps = (Run("echo first"), Run("tail -f task.md"), Say("Never said."))
    agent = make_coding_agent(kind)

    with pytest.raises(AgentFault, match="did not end within 20 s") as raised:
        bed.run(agent, seconds=20)

    assert raised.value.cause == "timeout"
    commands = [entry for entry in bed.transcript if entry["kind"] == "command"]
    assert [entry["command"] for entry in commands] == ["echo first", "tail -f task.md"]
    spent = agent.spent(CASE)
    assert spent is not None
    assert spent.input == stub.total.input


@KINDS
def test_a_provider_that_refuses_our_key_is_not_the_agents_fault(
    kind: str, bed: Bed, stub: CodingStub
) -> None:
    stub.script = failing(401, "this key is not valid")
    with pytest.raises(SystemFault, match="models did not answer") as raised:
        bed.run(make_coding_agent(kind), seconds=40)  # Claude Code asks again until then
    assert raised.value.cause == "provider"
