"""As many requests at once as the provider takes: one more while it goes well, half if not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_models import configure, every_model

from pytest_mlrbench.models.client import complete
from pytest_mlrbench.models.exchange import Prompt
from pytest_mlrbench.models.limits import Limit
from pytest_mlrbench.models.registry import Models
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.stub.wire import Received


def test_it_grows_by_one_after_as_many_successes_as_it_is_high() -> None:
    limit = Limit(highest=4, start=2)

    async def story() -> list[int]:
        seen = []
        for _ in range(12):
            async with limit.slot() as slot:
                slot.succeeded()
            seen.append(limit.current)
        return seen

    assert asyncio.run(story()) == [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]


def test_requests_that_were_under_way_together_halve_it_once() -> None:
    limit = Limit(highest=16)
    gate = asyncio.Event()

    async def refused() -> None:
        async with limit.slot() as slot:
            await gate.wait()
            slot.refused()

    async def story() -> None:
        first = [asyncio.create_task(refused()) for _ in range(16)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*first)
        assert limit.current == 8
        await refused()
        assert limit.current == 4
        for _ in range(5):
            await refused()
        assert limit.current == 1

    asyncio.run(story())


def test_who_waits_is_served_in_order_and_never_more_than_allowed() -> None:
    limit = Limit(highest=3)
    served: list[int] = []
    most = 0

    async def one(number: int) -> None:
        nonlocal most
        async with limit.slot():
            served.append(number)
            most = max(most, limit.in_flight)
            await asyncio.sleep(0)

    async def story() -> None:
        await asyncio.gather(*(one(number) for number in range(20)))

    asyncio.run(story())
    assert served == list(range(20))
    assert most == 3
    assert limit.in_flight == 0


def test_who_stops_waiting_takes_no_place_with_it() -> None:
    limit = Limit(highest=1)

    async def waiting() -> None:
        async with limit.slot():
            await asyncio.sleep(0)

    async def story() -> None:
        async with limit.slot():
            tasks = [asyncio.create_task(waiting()) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
        # The second has been given the place just now, and does not know it yet.
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait_for(tasks[2], 5)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limit.in_flight == 0

    asyncio.run(story())


def test_a_limit_outlives_a_loop_that_ends_while_somebody_waits() -> None:
    limit = Limit(highest=1)

    async def abandoned() -> None:
        async with limit.slot():
            waiting = asyncio.create_task(hold())
            await asyncio.sleep(0)
            assert not waiting.done()

    async def hold() -> None:
        async with limit.slot():
            await asyncio.sleep(1)

    asyncio.run(abandoned())
    asyncio.run(asyncio.wait_for(_enter(limit), 5))
    assert limit.in_flight == 0


async def _enter(limit: Limit) -> None:
    async with limit.slot():
        pass


@pytest.mark.parametrize(("highest", "start"), [(0, None), (4, 5), (4, -1)])
def test_a_limit_that_makes_no_sense_is_refused(highest: int, start: int | None) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Limit(highest, start)


@every_model
def test_a_provider_that_takes_few_at_once_is_found_out(
    mlr_stub_provider: StubProvider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in ("ANTHROPIC", "OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-test")

    seen: list[Limit] = []

    def at_most_four(asked: Received) -> Reply:
        # What is on its way to the provider counts too, however slow this machine is.
        if mlr_stub_provider.in_flight > 4 or seen[0].in_flight > 4:
            return replies.rate_limited("0.01")
        return Reply(delay=0.01)

    mlr_stub_provider.script = at_most_four

    async def story() -> tuple[list[Any], Limit]:
        async with Models(Retries(attempts=20, first=0.01, longest=0.05), highest=32) as models:
            client = models.client(configure(mlr_stub_provider, kind))
            seen.append(client.limit)
            # Other clients of the provider count as well.
            other = models.client(configure(mlr_stub_provider, kind, max_tokens=5))
            assert other.limit is client.limit
            calls = [complete(one, Prompt.of("Hello")) for one in (client, other) * 50]
            return await asyncio.gather(*calls), client.limit

    answers, limit = asyncio.run(story())
    assert len(answers) == 100
    assert 1 <= limit.current <= 10
