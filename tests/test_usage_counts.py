"""What a provider says it used is believed only if it can be so; anything else is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gate_builders import ASK, CHAT, Loop, Provider, chat, open_gate, post
from test_calls import ask, judge, priced, run

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.budget import Budget
from pytest_mlrbench.models.calls import Calls
from pytest_mlrbench.models.cassettes import Cassette
from pytest_mlrbench.models.config import MOST_TOKENS, parse_model
from pytest_mlrbench.models.config import Provider as Who
from pytest_mlrbench.models.exchange import Usage
from pytest_mlrbench.models.prices import cost_usd
from pytest_mlrbench.models.settings import Settings
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.models.usage import count, usage_of
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider

pytest_plugins = ["gate_fixtures"]

HUGE = 10**400
ODD: list[Any] = [-1, -1000, MOST_TOKENS + 1, HUGE, 1.5, 8.0, "8", True, None, [8], {}]
odd = pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:12])


@odd
def test_a_count_is_an_integer_that_one_call_can_have(value: Any) -> None:
    assert count(value) is None
    assert [count(0), count(8), count(MOST_TOKENS)] == [0, 8, MOST_TOKENS]


@odd
@pytest.mark.parametrize(
    ("provider", "sound", "name"),
    [
        ("openai", {"prompt_tokens": 5, "completion_tokens": 6}, "prompt_tokens"),
        ("openai", {"input_tokens": 5, "output_tokens": 6}, "input_tokens"),
        ("anthropic", {"input_tokens": 5, "output_tokens": 6}, "input_tokens"),
        ("google", {"promptTokenCount": 5, "candidatesTokenCount": 6}, "promptTokenCount"),
    ],
)
def test_a_count_that_cannot_be_is_not_known(
    provider: Who, sound: dict[str, Any], name: str, value: Any
) -> None:
    assert usage_of(provider, sound) == Usage(input=5, output=6)
    assert usage_of(provider, {**sound, name: value}).input is None


@pytest.mark.parametrize(
    ("provider", "counts", "unknown"),
    [
        ("anthropic", {"input_tokens": 5, "cache_read_input_tokens": -3}, "input"),
        ("anthropic", {"input_tokens": 5, "cache_creation_input_tokens": HUGE}, "input"),
        ("anthropic", {"input_tokens": MOST_TOKENS, "cache_read_input_tokens": 1}, "input"),
        ("google", {"promptTokenCount": 5, "toolUsePromptTokenCount": -5}, "input"),
        ("google", {"promptTokenCount": 5, "thoughtsTokenCount": "x"}, "output"),
        ("google", {"promptTokenCount": 5, "candidatesTokenCount": -1}, "output"),
        ("openai", {"prompt_tokens": -8, "total_tokens": -8}, "output"),
    ],
)
def test_a_sum_with_a_part_that_cannot_be_is_not_known(
    provider: Who, counts: dict[str, Any], unknown: str
) -> None:
    assert getattr(usage_of(provider, counts), unknown) is None


def test_what_it_took_to_shorten_a_conversation_is_counted() -> None:
    step = {"type": "compaction", "input_tokens": 100, "output_tokens": 20}
    steps = [{"type": "message", "input_tokens": 5, "output_tokens": 6}, step]
    counts = {"input_tokens": 5, "output_tokens": 6}
    assert usage_of("anthropic", {**counts, "iterations": steps}) == Usage(input=105, output=26)
    wrong = [{**step, "output_tokens": -20}]
    assert usage_of("anthropic", {**counts, "iterations": wrong}) == Usage(input=105)
    odd: Any
    for odd in ("many", None, [7], {}):
        assert usage_of("anthropic", {**counts, "iterations": odd}) == Usage(input=5, output=6)


@pytest.mark.parametrize("counts", [None, [], "many", 7])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_what_holds_no_counts_says_nothing(provider: Who, counts: Any) -> None:
    assert usage_of(provider, counts) == Usage()


def test_a_cost_is_not_known_where_the_counts_cannot_be() -> None:
    config = parse_model("openai:m", price_in=1, price_out=1)
    for one in (-1, HUGE):
        assert cost_usd(config, Usage(input=one, output=1)) is None
        assert cost_usd(config, Usage(input=1, output=one)) is None
    with pytest.raises(InputError, match="max_tokens"):
        parse_model("openai:m", max_tokens=MOST_TOKENS + 1)


# Judges and agents of ours

BODY = {
    "openai": {
        "choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 6},
    },
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}],
        "usage": {"input_tokens": 5, "output_tokens": 6},
    },
    "anthropic": {
        "content": [{"type": "text", "text": "Yes."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 6},
    },
    "google": {
        "candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "Yes."}]}}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 6},
    },
}


def says(kind: str, **counts: Any) -> Reply:
    body: dict[str, Any] = json.loads(json.dumps(BODY[kind]))
    place = body["usageMetadata" if kind == "google" else "usage"]
    place |= counts
    return Reply(body=json.dumps(body).encode())


@pytest.mark.parametrize("value", [-1000, HUGE, "5", 1.5, None])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("openai", "prompt_tokens"),
        ("responses", "input_tokens"),
        ("anthropic", "input_tokens"),
        ("google", "promptTokenCount"),
    ],
)
def test_an_answer_with_a_wrong_count_is_an_answer_and_counts_at_its_worst(
    tmp_path: Path,
    mlr_stub_provider: StubProvider,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    name: str,
    value: Any,
) -> None:
    provider = "openai" if kind == "responses" else kind
    pytest.importorskip("google.genai" if provider == "google" else provider)
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "sk-test-0123456789")
    mlr_stub_provider.script = says(kind, **{name: value})
    api = "responses" if kind == "responses" else "chat"
    config = parse_model(
        f"{provider}:m",
        base_url=mlr_stub_provider.base_url(provider),
        **{"api": api, "price_in": 1, "price_out": 10, "max_tokens": 100},
    )
    meter = judge()
    budget = Budget(1.0, None, SharedState(tmp_path / "shared.json"))

    async def story(calls: Calls) -> None:
        assert (await ask(calls, config, meter)).text == "Yes."
        assert (await ask(calls, config, meter)).text == "Yes."

    run(story, budget=budget)
    assert [(one.usage.input, one.cost_usd) for one in meter.records] == [(None, None)] * 2
    # The worst is a hundred tokens of output, and what the prompt is taken for.
    assert budget.counted().usd > 2 * 100 * 10 / 1e6
    assert budget.counted().held_usd == 0


def test_without_a_maximum_a_wrong_count_is_a_call_of_unknown_cost(
    tmp_path: Path, mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    mlr_stub_provider.script = says("openai", prompt_tokens=-1000)
    budget = Budget(None, None, SharedState(tmp_path / "shared.json"))

    async def story(calls: Calls) -> None:
        await ask(calls, priced(mlr_stub_provider))

    run(story, budget=budget)
    counted = budget.counted()
    assert (counted.usd, counted.tokens, counted.unpriced) == (0, 6, 1)


@pytest.mark.parametrize(
    ("change", "usage", "cost"),
    [
        ({"usage": {"input": -1000, "output": 6}}, Usage(output=6), 0.5),
        ({"usage": {"input": HUGE, "output": "6"}}, Usage(), 0.5),
        ({"usage": None}, Usage(), 0.5),
        ({"cost_usd": -1.1}, None, None),
        ({"cost_usd": "much"}, None, None),
        ({"cost_usd": float("nan")}, None, None),
        ({"cost_usd": float("inf")}, None, None),
        ({"cost_usd": HUGE}, None, None),
        ({"cost_usd": True}, None, None),
    ],
)
def test_a_recording_is_believed_no_more_than_a_provider(
    tmp_path: Path,
    mlr_stub_provider: StubProvider,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    usage: Usage | None,
    cost: float | None,
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    config = priced(mlr_stub_provider)

    async def story(calls: Calls) -> None:
        await ask(calls, config)

    run(story, cassette=Cassette.record(tmp_path))
    (path,) = tmp_path.rglob("*.json")
    document = {**json.loads(path.read_text()), "cost_usd": 0.5}
    if "usage" in change:
        document["answer"]["usage"] = change["usage"]
    else:
        document |= change
    path.write_text(json.dumps(document))
    meter = judge()

    async def replayed(calls: Calls) -> None:
        assert (await ask(calls, config, meter)).text

    run(replayed, cassette=Cassette.replay(tmp_path))
    (record,) = meter.records
    assert record.cost_usd == cost
    assert usage is None or record.usage == usage
    assert meter.spent().cost_usd == cost


# The gate


def gate_says(provider: Provider, pad: int = 0, **counts: Any) -> None:
    document = {**CHAT, "usage": {**CHAT["usage"], **counts}, "pad": "x" * pad}  # type: ignore[dict-item]
    provider.says(text=json.dumps(document), content_type="application/json")


def dollars(provider: Provider) -> Settings:
    """A dollar for 1,000 tokens of input, two of output."""
    return Settings([f"openai:* base_url={provider.url}/v1 price_in=1000 price_out=2000"])


@pytest.mark.parametrize("value", [-1000, HUGE, 10**12, "x", 1.5])
def test_the_maximum_of_a_case_bites_whatever_the_provider_counts(
    tmp_path: Path, loop: Loop, provider: Provider, value: Any
) -> None:
    gate_says(provider, pad=3000, prompt_tokens=value)
    with open_gate(tmp_path, loop, dollars(provider), max_cost=2.0) as gate:
        assert [chat(gate).status_code for _ in range(3)] == [200, 200, 403]
        event = gate.events(number=3)[0]
        assert event["usage"]["input"] is None
        assert event["cost_usd"] is None
        spent = gate.gate.spent()
        assert (spent.calls, spent.input, spent.cost_usd) == (2, None, None)


def test_what_is_known_of_an_answer_counts_beside_what_is_not(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    # 1,500 tokens of output are three dollars, however short the answer.
    gate_says(provider, prompt_tokens=-1, completion_tokens=1500)
    with open_gate(tmp_path, loop, dollars(provider), max_cost=2.5) as gate:
        assert [chat(gate).status_code for _ in range(2)] == [200, 403]
    gate_says(provider, prompt_tokens=3000, completion_tokens=-1)
    with open_gate(tmp_path, loop, dollars(provider), max_cost=2.5) as gate:
        assert [chat(gate).status_code for _ in range(2)] == [200, 403]


def test_a_model_that_the_provider_gives_an_odd_name_is_counted_too(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    pytest.importorskip("genai_prices")
    usage = {"input_tokens": 10**6, "output_tokens": 1, "cache_creation_input_tokens": 1000}
    document = {"type": "message", "model": "no name? #", "usage": usage}
    provider.says(text=json.dumps(document), content_type="application/json")
    line = f"anthropic:* base_url={provider.url} price_in=1 price_out=1"
    with open_gate(tmp_path, loop, Settings([line]), max_cost=0.5) as gate:
        path = "/anthropic/v1/messages"
        statuses = [post(gate, path, {**ASK, "model": "m"}).status_code for _ in range(2)]
    assert statuses == [200, 403]
