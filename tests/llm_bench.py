"""Fixtures with a judge's bench; named as plugin by the modules that use it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from llm_builders import KEY, Bench

from pytest_mlrbench.stub.server import StubProvider


@pytest.fixture(scope="module")
def opened_bench() -> Iterator[Bench]:
    """One for all tests of a module."""
    with StubProvider() as stub, asyncio.Runner() as runner:
        bench = Bench(stub, runner)
        try:
            yield bench
        finally:
            runner.run(bench.calls.close())


@pytest.fixture
def bench(opened_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A stub that has not been asked anything, and an empty folder."""
    for provider in ("ANTHROPIC", "OPENAI", "GOOGLE", "GEMINI"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
    opened_bench.stub.reset()
    opened_bench.folder = tmp_path
    return opened_bench
