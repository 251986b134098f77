"""Under a maximum nothing passes that costs more than it is counted at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gate_builders import Loop, Opened, Provider, open_gate, post

from pytest_mlrbench.models.settings import Settings

pytest_plugins = ["gate_fixtures"]

MESSAGES, CHAT = "/anthropic/v1/messages", "/openai/v1/chat/completions"
RESPONSES, GENERATE = "/openai/v1/responses", "/google/v1beta/models/m:generateContent"
FAST = "claude-code-20250219, fast-mode-2026-02-01"


def priced(provider: Provider) -> Settings:
    url = provider.url
    places = (("openai", f"{url}/v1"), ("anthropic", url), ("google", url))
    return Settings([f"{who}:* base_url={at} price_in=1 price_out=2" for who, at in places])


def ask(gate: Opened, path: str, more: dict[str, Any], **headers: str) -> Any:
    model = {} if path == GENERATE else {"model": "m"}
    return post(gate, path, {**model, **more}, **headers)


DEARER: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    (CHAT, {"service_tier": "priority"}, {}),
    (CHAT, {"service_tier": "fast"}, {}),
    (CHAT, {"service_tier": "scale"}, {}),
    (RESPONSES, {"service_tier": "ultrafast"}, {}),
    (RESPONSES, {"service_tier": "not_yet_invented"}, {}),
    (RESPONSES, {"service_tier": ["priority"]}, {}),
    ("/openai/v1/responses/compact", {"service_tier": "priority"}, {}),
    (MESSAGES, {"service_tier": "priority"}, {}),
    (MESSAGES, {"speed": "fast"}, {}),
    (MESSAGES, {}, {"anthropic-beta": FAST}),
    (MESSAGES, {"inference_geo": "us"}, {}),
    (GENERATE, {"serviceTier": "PRIORITY"}, {}),
    (GENERATE, {"service_tier": "priority"}, {}),
    (GENERATE, {"serviceTier": 3}, {}),
    (GENERATE, {"generationConfig": {"responseModalities": ["TEXT", "AUDIO"]}}, {}),
    (GENERATE, {"generation_config": {"response_modalities": "AUDIO"}}, {}),
    (GENERATE, {"generationConfig": {"responseModalities": [3]}}, {}),
    (GENERATE, {"generationConfig": {"speechConfig": {}}}, {}),
    (GENERATE, {"contents": {"parts": {"inline_data": {"mime_type": "audio/wav"}}}}, {}),
    (CHAT, {"modalities": ["text", "audio"]}, {}),
    (CHAT, {"audio": {"voice": "x", "format": "wav"}}, {}),
    (CHAT, {"messages": [{"content": [{"type": "input_audio", "input_audio": {}}]}]}, {}),
]


@pytest.fixture
def capped(tmp_path: Path, loop: Loop, provider: Provider) -> Iterator[Opened]:
    """A gate under a maximum of money."""
    with open_gate(tmp_path, loop, priced(provider), max_cost=9.0) as gate:
        yield gate


@pytest.mark.parametrize(("path", "more", "headers"), DEARER)
def test_what_costs_more_than_it_is_counted_at_does_not_pass_under_a_maximum(
    capped: Opened,
    provider: Provider,
    path: str,
    more: dict[str, Any],
    headers: dict[str, str],
) -> None:
    answer = ask(capped, path, more, **headers)
    assert answer.status_code == 403
    assert answer.headers["x-mlrbench-refused"] == "dearer"
    assert "than it would be counted at" in answer.text
    assert provider.got == []


@pytest.mark.parametrize(("path", "more", "headers"), DEARER)
@pytest.mark.parametrize("limits", [{}, {"max_tokens": 10**6}], ids=["none", "of tokens"])
def test_it_passes_where_nobody_counts_money(
    tmp_path: Path,
    loop: Loop,
    provider: Provider,
    limits: dict[str, Any],
    path: str,
    more: dict[str, Any],
    headers: dict[str, str],
) -> None:
    with open_gate(tmp_path, loop, priced(provider), **limits) as gate:
        assert ask(gate, path, more, **headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "more", "headers"),
    [
        *((CHAT, {"service_tier": tier}, {}) for tier in ("auto", "default", "flex", None)),
        *((MESSAGES, {"service_tier": tier}, {}) for tier in ("auto", "standard_only", "batch")),
        *((GENERATE, {"serviceTier": tier}, {}) for tier in ("FLEX", "standard", "unspecified")),
        (MESSAGES, {"speed": "standard", "inference_geo": "global"}, {}),
        (MESSAGES, {"inference_geo": None}, {"anthropic-beta": "claude-code-20250219"}),
        (CHAT, {"modalities": ["text"], "audio": None}, {}),
        (GENERATE, {"generationConfig": {"responseModalities": ["TEXT"]}}, {}),
        (GENERATE, {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png"}}]}]}, {}),
        (RESPONSES, {"metadata": {"service_tier": "priority", "speed": "fast"}}, {}),
        (MESSAGES, {"tools": [{"name": "f", "input_schema": {"speed": "fast"}}]}, {}),
    ],
)
def test_what_is_ordinary_or_cheaper_passes_under_a_maximum(
    capped: Opened, path: str, more: dict[str, Any], headers: dict[str, str]
) -> None:
    assert ask(capped, path, more, **headers).status_code == 200


def test_under_a_maximum_no_other_model_is_asked_beside_the_one_that_is_counted(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    more = {"tools": [{"type": "image_generation", "model": "image-dear"}]}
    with open_gate(tmp_path, loop, priced(provider), max_cost=9.0, web_tools=True) as gate:
        assert ask(gate, RESPONSES, more).status_code == 403
        assert ask(gate, RESPONSES, {"moderation": {"model": "m"}}).status_code == 200
    with open_gate(tmp_path, loop, priced(provider), web_tools=True) as gate:
        assert ask(gate, RESPONSES, more).status_code == 200
