"""Judges of the agent's own model or family are named; nobody is accused on a guess."""

from __future__ import annotations

import pytest

from pytest_mlrbench.judges.kinship import family, kinship


@pytest.mark.parametrize(
    ("agent", "judge", "related"),
    [
        ("scaffold:openai/gpt-5", "openai:gpt-5", "model"),
        ("scaffold:openai/gpt-5-mini", "openai:gpt-5", "family"),
        ("scaffold:anthropic/claude-opus-4-5", "anthropic:claude-sonnet-4-5", "family"),
        ("scaffold:openai/meta-llama/llama-4", "openai:meta-llama/llama-4", "model"),
        ("scaffold:openai/qwen3-32b", "openai:gpt-5", None),
        ("claude-code", "anthropic:claude-opus-4-5", "family"),
        ("claude-code:claude-opus-4-5", "anthropic:claude-opus-4-5", "model"),
        ("codex:gpt-5", "openai:gpt-5", "model"),
        ("gemini-cli", "google:gemini-2.5-pro", "family"),
        ("gemini-cli", "anthropic:claude-opus-4-5", None),
        ("replay:runs#claude-3-7-sonnet-20250219", "anthropic:claude-opus-4-5", "family"),
        ("published:o4-mini-2025-04-16", "openai:gpt-5", "family"),
        ("replay:/home/me/claude/runs", "checklist", None),
        ("cmd:./gpt-5.sh", "openai:gpt-5", None),
        ("py:gpt:agent", "openai:gpt-5", None),
        ("reference", "openai:gpt-5", None),
        ("published:codex", "published:gemini", None),
    ],
)
def test_kinship(agent: str, judge: str, related: str | None) -> None:
    assert kinship(agent, judge) == related


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("openai:gpt-4.1", "GPT"),
        ("openai:chatgpt-4o-latest", "GPT"),
        ("openai:o3-pro", "GPT"),
        ("google:gemma-3", "Gemini"),
        ("openai:anthropic/claude-3", "Claude"),
        ("openai:deepseek-r1-distill-llama-70b", ""),  # of two
        ("openai:solar-o30", ""),
        ("openai:my-egpthing", ""),
    ],
)
def test_family(name: str, found: str) -> None:
    assert family(name) == found
