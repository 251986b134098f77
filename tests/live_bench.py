"""The fixture of whole runs with live models; named as plugin by the modules that use it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from live import ADDRESSES, Live

from conftest import Repository
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Prompt, Request
from pytest_mlrbench.stub.server import StubProvider


@pytest.fixture(scope="session")
def sdks() -> None:
    """All that is imported when models are asked: sessions inside this process find it loaded,
    which is most of what a session takes.
    """
    for module in ("anthropic", "google.genai", "openai", "genai_prices"):
        pytest.importorskip(module)
    for module in ("judges.llm", "agents.scaffold"):
        pytest.importorskip(f"pytest_mlrbench.{module}")

    async def ask(stub: StubProvider) -> None:
        calls = Calls()
        for who in ADDRESSES.values():
            config = parse_model(f"{who}:m", base_url=stub.base_url(who))
            meter = Meter("none", "judge", "none")
            await calls.ask(config, Prompt.of("Hello"), Request(), meter=meter, purpose="none")
        await calls.close()

    with StubProvider() as stub:
        asyncio.run(ask(stub))


@pytest.fixture
def live(sdks: None, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    with StubProvider() as stub:
        yield Live(repo, stub, monkeypatch)
