"""What is read out of an answer does not depend on how the network cuts it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.models.config import Provider
from pytest_mlrbench.models.exchange import Usage
from pytest_mlrbench.sandbox import gate_usage
from pytest_mlrbench.sandbox.gate_hiding import Hiding
from pytest_mlrbench.sandbox.gate_usage import UsageReader

SECRET = "sk-aab-aabaac"
STREAM = b"".join(
    b"data: %s\r\n\r\n" % json.dumps(document).encode()
    for document in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"text": 'data: {"usage": {"output_tokens": 9}}'}},
        {"type": "message_delta", "usage": {"output_tokens": 7, "input_tokens": None}},
        {"type": "message_stop"},
    )
)


def read(provider: Provider, body: bytes, *, stream: bool = False, cuts: Any = ()) -> UsageReader:
    reader = UsageReader(provider, stream=stream)
    edges = [0, *sorted(cuts), len(body)]
    for start, end in pairwise(edges):
        reader.feed(body[start:end])
    reader.end()
    return reader


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_a_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    used = read("anthropic", STREAM, stream=True, cuts=cuts).usage
    assert (used.input, used.output) == (5, 7)


@given(
    st.lists(st.sampled_from([SECRET, SECRET[:5], "sk-", "a", "-", " "]), max_size=12),
    st.lists(st.integers(0, 100), max_size=8),
)
def test_a_secret_is_hidden_wherever_it_is_cut(words: list[str], cuts: list[int]) -> None:
    text = "".join(words).encode()
    hiding = Hiding([SECRET])
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    came = b"".join([*map(hiding.feed, pieces), hiding.end()])
    assert came == text.replace(SECRET.encode(), b"*" * len(SECRET))


def test_nothing_that_cannot_be_a_secret_is_held_back() -> None:
    hiding = Hiding([SECRET])
    assert hiding.feed(b"data: {}\n\n") == b"data: {}\n\n"
    assert hiding.feed(b"data: sk-aab") == b"data: "
    assert hiding.feed(b"le") == b"sk-aable"
    assert SECRET not in repr(hiding)


@pytest.mark.parametrize(
    ("provider", "document", "expected"),
    [
        ("openai", {"usage": {"prompt_tokens": 8, "total_tokens": 8}}, (8, 0)),
        ("openai", {"usage": {"prompt_tokens": 8}}, (8, None)),
        ("openai", {"usage": None}, (None, None)),
        ("openai", {"usage": {"prompt_tokens": "8", "completion_tokens": -1}}, (None, None)),
        ("openai", {"response": {"usage": {"input_tokens": 2, "output_tokens": 3}}}, (2, 3)),
        ("google", {"usageMetadata": {"promptTokenCount": 3}}, (3, 0)),
        ("google", [{"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1}}, {}],
            (3, 1)),
        ("google", {"usageMetadata": {"promptTokenCount": 3, "toolUsePromptTokenCount": 4}},
            (7, 0)),
        ("anthropic", {"usage": {"input_tokens": 1, "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 4, "output_tokens": 8}}, (7, 8)),
        ("anthropic", ["usage"], (None, None)),
        ("anthropic", {"usage": [1]}, (None, None)),
    ],
)  # fmt: skip
def test_counts_are_ours_whatever_the_provider_calls_them(
    provider: Provider, document: Any, expected: tuple[int | None, int | None]
) -> None:
    used = read(provider, json.dumps(document).encode()).usage
    assert (used.input, used.output) == expected


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"usage":', b"\xff", b"[" * 100_000])
def test_an_answer_that_is_none_says_nothing(body: bytes) -> None:
    for stream in (False, True):
        assert read("openai", b"data: " + body if stream else body, stream=stream).usage == Usage()


def test_an_answer_that_is_too_long_passes_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_usage, "LONGEST", 100)
    usage = {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    long = json.dumps({**usage, "pad": "x" * 100}).encode()
    assert read("openai", long, cuts=range(0, len(long), 10)).usage == Usage()
    # In a stream only the line that is too long.
    lines = b"data: " + long + b"\ndata: " + json.dumps(usage).encode() + b"\n\n"
    assert read("openai", lines, stream=True, cuts=range(0, len(lines), 10)).usage.output == 2
