"""The real coding CLIs work through the gate: what it lets pass is what they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from coding_cli import Desk, desk, run
from coding_stub import CodingStub
from gate_builders import Loop, open_gate, settings

from pytest_mlrbench.agents.coding import ADAPTERS, make_coding_agent

pytestmark = pytest.mark.slow
pytest_plugins = ["gate_fixtures"]


@pytest.fixture
def place() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.mark.parametrize("kind", ADAPTERS)
def test_a_cli_does_its_work_through_the_gate_and_is_counted(
    kind: str, place: Desk, loop: Loop, tmp_path: Path
) -> None:
    with CodingStub(workspace=place.workspace) as stub:
        config = settings(
            openai=f"{stub.url}/openai/v1",
            anthropic=f"{stub.url}/anthropic",
            google=f"{stub.url}/google",
        )
        with open_gate(tmp_path, loop, config) as gate:
            assert run(make_coding_agent(kind), place, gate.variables) == 0
            events = gate.events()
            spent = gate.gate.spent()
        assert (place.workspace / "results/results.md").exists()
        total = stub.total
        assert (spent.input, spent.output) == (total.input, total.output)
        assert (spent.cached_input, spent.calls) == (total.cached, len(stub.sent))
    refused = [event for event in events if event["status"] != 200]
    assert refused == []
