"""Every call of a run is counted, priced and bounded, and who fails too often is left alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models.budget import Budget
from pytest_mlrbench.models.calls import CallRecord, Calls, Meter
from pytest_mlrbench.models.config import ModelConfig, parse_model
from pytest_mlrbench.models.exchange import Completion, Prompt, Request
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.registry import Models
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.models.shared_limits import SharedLimit
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply, Tokens
from pytest_mlrbench.stub.server import StubProvider

ONCE = Retries(attempts=1)
TWICE = Retries(attempts=2, first=0.001, longest=0.002)
CASE = "mini/idea/some_task/r1"
#: Input tokens of the stub are 11, output tokens 7.
COST = (11 * 1 + 7 * 10) / 1e6


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")


@pytest.fixture
def model(mlr_stub_provider: StubProvider) -> ModelConfig:
    return priced(mlr_stub_provider)


def priced(stub: StubProvider, name: str = "some-model", **settings: Any) -> ModelConfig:
    prices = {"price_in": 1, "price_out": 10, "max_tokens": 100, **settings}
    return parse_model(f"openai:{name}", base_url=stub.base_url("openai"), **prices)


def judge() -> Meter:
    return Meter(CASE, "judge", "strict")


Story = Callable[[Calls], Coroutine[Any, Any, Any]]


def run(story: Story, retries: Retries = ONCE, **settings: Any) -> Calls:
    async def whole() -> Calls:
        calls = Calls(Models(retries), **settings)
        try:
            await story(calls)
        finally:
            await calls.close()
        return calls

    return asyncio.run(whole())


async def ask(
    calls: Calls, config: ModelConfig, meter: Meter | None = None, text: str = "Hello"
) -> Completion:
    return await calls.ask(
        config, Prompt.of(text), Request(), meter=meter or judge(), purpose="review"
    )


async def fail(calls: Calls, config: ModelConfig, meter: Meter | None = None) -> SystemFault:
    with pytest.raises(SystemFault) as caught:
        await ask(calls, config, meter)
    return caught.value


def test_a_call_is_entered_with_what_it_used_and_cost(
    mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    meter = judge()

    async def story(calls: Calls) -> None:
        mlr_stub_provider.script = {2: replies.failing(500)}
        await ask(calls, model, meter)
        await ask(calls, model, meter)

    run(story, TWICE)
    first, second = meter.records
    assert (first.purpose, first.model, first.stop) == ("review", "openai:some-model", "end")
    assert (first.attempts, second.attempts) == (1, 2)
    assert first.cost_usd == pytest.approx(COST)
    assert meter.spent().attempts == len(mlr_stub_provider.requests) == 3
    assert CallRecord.model_validate_json(first.model_dump_json()) == first


def test_a_model_without_a_price_costs_an_unknown_sum_and_not_nothing(
    mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    unknown = priced(mlr_stub_provider, price_in=None, price_out=None)
    meter = judge()

    async def story(calls: Calls) -> None:
        await ask(calls, model, meter)
        assert meter.spent().cost_usd == pytest.approx(COST)
        await ask(calls, unknown, meter)

    run(story)
    assert meter.records[1].cost_usd is None
    assert meter.spent().cost_usd is None
    assert meter.spent().output == 14


def test_a_call_that_fails_is_entered_with_its_cause_and_costs_nothing(
    mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    mlr_stub_provider.script = replies.failing(500)
    meter = judge()

    async def story(calls: Calls) -> None:
        fault = await fail(calls, model, meter)
        assert fault.cause == "provider"
        assert fault.__cause__ is fault.__context__ is None

    run(story, TWICE)
    (record,) = meter.records
    assert (record.cause, record.attempts, record.stop) == ("provider", 2, None)
    nothing = {"input": 0, "output": 0, "cached_input": 0, "reasoning": 0, "cost_usd": 0.0}
    assert meter.spent() == Spent(calls=1, attempts=2, **nothing)


def test_who_fails_five_times_in_a_row_is_not_asked_again(
    mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    meter = judge()

    async def story(calls: Calls) -> None:
        mlr_stub_provider.script = replies.failing(503, "we are down")
        for _ in range(4):
            await fail(calls, model, meter)
        # One answer, and it begins anew; nor do other causes count.
        mlr_stub_provider.script = {5: Reply(), 6: replies.resetting(), 7: replies.failing(400)}
        await ask(calls, model, meter)
        mlr_stub_provider.script = replies.failing(503, "we are down")
        await fail(calls, model, meter)
        assert calls.broken(model) is None
        for _ in range(4):
            await fail(calls, model, meter)
        asked = len(mlr_stub_provider.requests)
        fault = await fail(calls, model, meter)
        assert isinstance(fault, ModelFault)
        assert fault.cause == "provider"
        assert fault.message == calls.broken(model)
        assert fault.message == (
            "openai:some-model was not asked: 5 calls in a row failed with provider, the last one"
            ' so: openai:some-model failed: 503 Service Unavailable, "we are down".'
        )
        # Other models of the address are not asked either; other addresses are.
        other = priced(mlr_stub_provider, "other-model")
        assert "openai:other-model was not asked" in (calls.broken(other) or "")
        assert calls.broken(other.model_copy(update={"base_url": "http://127.0.0.1:1"})) is None
        assert len(mlr_stub_provider.requests) == asked

    run(story)
    assert (meter.records[-1].cause, meter.records[-1].attempts) == ("provider", 0)


@pytest.mark.parametrize(
    ("reply", "enough", "others"),
    [
        (replies.failing(401), 2, True),
        (Reply(status=429, body=b'{"error": {"code": "insufficient_quota"}}'), 2, True),
        (replies.failing(404), 2, False),
        (replies.rate_limited(), 5, True),
        (replies.failing(400), None, False),
        (replies.not_json(), None, False),
    ],
)
def test_what_only_the_user_can_help_is_tried_twice(
    mlr_stub_provider: StubProvider,
    model: ModelConfig,
    reply: Reply,
    enough: int | None,
    others: bool,
) -> None:
    mlr_stub_provider.script = reply

    async def story(calls: Calls) -> None:
        for _ in range(7):
            await fail(calls, model)
        assert len(mlr_stub_provider.requests) == (enough or 7)
        assert (calls.broken(model) is not None) == (enough is not None)
        other = priced(mlr_stub_provider, "other-model")
        assert (calls.broken(other) is not None) == others

    run(story)


def test_a_call_under_way_that_succeeds_ends_the_silence(
    mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    mlr_stub_provider.script = lambda asked: (
        Reply(delay=0.4) if asked.text == "Slow" else replies.failing(401)
    )

    async def story(calls: Calls) -> None:
        slow = asyncio.create_task(ask(calls, model, text="Slow"))
        await asyncio.sleep(0.1)
        await fail(calls, model)
        await fail(calls, model)
        assert calls.broken(model)
        await slow
        assert calls.broken(model) is None

    run(story)


def test_workers_know_of_each_others_faults_and_limits(
    tmp_path: Path, mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    mlr_stub_provider.script = replies.failing(401)

    async def story() -> None:
        states = [SharedState(tmp_path / "shared.json") for _ in range(2)]
        one, other = (Calls(Models(ONCE), state=state, workers=2) for state in states)
        for calls in (one, other):
            await asyncio.sleep(0.06)
            await fail(calls, model)
        await asyncio.sleep(0.06)
        assert one.broken(model)
        assert other.broken(model)
        limit = one._models.limit(model)
        assert isinstance(limit, SharedLimit)
        assert limit.current == 16
        for calls in (one, other):
            await calls.close()

    asyncio.run(story())


def test_what_was_asked_before_the_run_had_a_folder_is_counted_in_it(
    tmp_path: Path, mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    path = tmp_path / "shared.json"

    async def story(calls: Calls) -> None:
        await ask(calls, model)
        calls.share(SharedState(path), workers=2)
        await ask(calls, model)
        assert isinstance(calls._models.client(model).limit, SharedLimit)

    for _ in range(2):  # and in a session after that one
        run(story, budget=Budget(1.0, None, SharedState()))
    counted = Budget(None, None, SharedState(path)).counted()
    assert (counted.usd, counted.held_usd) == (pytest.approx(4 * COST), 0)


def worst(config: ModelConfig) -> float:
    budget = Budget(1.0, None, SharedState())
    held = asyncio.run(budget.reserve(config, Prompt.of("Hello"), config.with_defaults(Request())))
    held.cut(silent=1)
    return budget.counted().cut_usd


@pytest.mark.parametrize("at_once", [True, False])
def test_a_budget_is_used_up_and_not_exceeded(
    mlr_stub_provider: StubProvider, model: ModelConfig, at_once: bool
) -> None:
    mlr_stub_provider.script = Reply(tokens=Tokens(output=90))
    cost, most = (11 + 900) / 1e6, 0.01
    budget = Budget(most, None, SharedState())
    meter, refusals = judge(), []

    async def one(calls: Calls) -> None:
        try:
            await ask(calls, model, meter)
        except SystemFault as fault:
            refusals.append(fault)

    async def story(calls: Calls) -> None:
        assert calls.exhausted() is None
        if at_once:
            await asyncio.gather(*(one(calls) for _ in range(20)))
        else:
            for _ in range(20):
                await one(calls)

    calls = run(story, budget=budget)
    # As many as one after the other, however many there are at once.
    made = int((most - worst(model)) / cost) + 1
    assert len(mlr_stub_provider.requests) == made
    assert budget.counted().usd == pytest.approx(made * cost)
    assert {fault.cause for fault in refusals} == {"budget"}
    assert len(refusals) == 20 - made
    assert calls.exhausted() in {fault.message for fault in refusals}
    assert meter.spent().calls == made
    assert [record.attempts for record in meter.records if record.cause] == [0] * len(refusals)
    # What the run may not spend at all is said at the start.
    unknown = priced(mlr_stub_provider, price_in=None, price_out=None)
    with pytest.raises(InputError, match="no known price"):
        calls.check([unknown])


def test_a_cancelled_call_holds_no_money_and_is_not_taken_for_a_fault(
    tmp_path: Path, mlr_stub_provider: StubProvider, model: ModelConfig
) -> None:
    mlr_stub_provider.script = replies.hanging()
    path = tmp_path / "shared.json"
    budget, meter = Budget(1.0, None, SharedState(path)), judge()
    each = worst(model)

    async def story(calls: Calls) -> None:
        tasks = [asyncio.create_task(ask(calls, model, meter)) for _ in range(3)]
        while len(mlr_stub_provider.requests) < 3:
            await asyncio.sleep(0.01)
        assert mlr_stub_provider.in_flight == 3
        assert budget.counted().held_usd == pytest.approx(3 * each)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert budget.counted().held_usd == 0
        assert calls.broken(model) is None

    run(story, budget=budget)
    counted = Budget(1.0, None, SharedState(path)).counted()
    assert (counted.usd, counted.held_usd, counted.cut_calls) == (0, 0, 3)
    assert counted.cut_usd == pytest.approx(3 * each)
    assert meter.records == []


def test_requests_that_may_have_been_paid_for_are_counted_at_their_worst(
    mlr_stub_provider: StubProvider,
) -> None:
    quick = priced(mlr_stub_provider, timeout=0.3)
    nowhere = quick.model_copy(update={"base_url": "http://127.0.0.1:1/v1"})
    stories: list[tuple[Any, ModelConfig, float]] = [
        (replies.failing(500), quick, 0),
        (replies.rate_limited(), quick, 0),
        (Reply(), nowhere, 0),
        (Reply(), quick, COST),
        ({1: replies.failing(500)}, quick, COST),
        (replies.hanging(), quick, worst(quick)),
        ({1: replies.hanging()}, quick, worst(quick)),
        (replies.truncated(), quick, worst(quick)),
        (replies.not_json(), quick, worst(quick)),
        (Reply(tokens=None), quick, worst(quick)),
    ]

    async def story(calls: Calls) -> None:
        for script, config, usd in stories:
            mlr_stub_provider.reset(script)
            before = budget.counted().usd
            await asyncio.gather(ask(calls, config), return_exceptions=True)
            counted = budget.counted()
            assert counted.usd - before == pytest.approx(usd), script
            assert counted.held_usd == 0

    budget = Budget(1.0, None, SharedState())
    run(story, TWICE, budget=budget)


def test_with_a_budget_every_request_says_how_long_the_answer_may_be(
    mlr_stub_provider: StubProvider,
) -> None:
    config = priced(mlr_stub_provider, max_tokens=None)

    async def story(calls: Calls) -> None:
        await ask(calls, config)

    run(story)
    run(story, budget=Budget(None, None, SharedState()))
    run(story, budget=Budget(None, 50_000, SharedState()))
    limits = ["16000" in json.dumps(asked.body) for asked in mlr_stub_provider.requests]
    assert limits == [False, False, True]


def test_a_model_that_cannot_be_asked_at_all_holds_nothing(
    mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    config = priced(mlr_stub_provider).model_copy(update={"base_url": "https://example.org/v1"})
    budget = Budget(1.0, None, SharedState())

    async def story(calls: Calls) -> None:
        with pytest.raises(InputError, match="needs a key"):
            await ask(calls, config)

    run(story, budget=budget)
    assert budget.counted().held_usd == 0
