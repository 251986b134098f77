"""Coding CLIs as agents: what is common to them, an adapter for each, and what they leave."""

from __future__ import annotations

from pytest_mlrbench.agents.coding.base import CodingAgent
from pytest_mlrbench.agents.coding.claude_code import ClaudeCode
from pytest_mlrbench.agents.coding.codex import Codex
from pytest_mlrbench.agents.coding.gemini_cli import GeminiCli
from pytest_mlrbench.errors import InputError

ADAPTERS: dict[str, type[CodingAgent]] = {
    adapter.kind: adapter for adapter in (ClaudeCode, Codex, GeminiCli)
}


def make_coding_agent(spec: str) -> CodingAgent:
    """Return the agent that *spec*, ``KIND[:MODEL]``, stands for.

    :raises InputError: there is no such kind, or the model's name is not usable.
    """
    kind = spec.partition(":")[0]
    if kind not in ADAPTERS:
        raise InputError(f"there is no coding agent {kind!r}: write {', '.join(ADAPTERS)}.")
    return ADAPTERS[kind](spec)
