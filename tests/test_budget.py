"""A run spends what it may and no more, whoever of its processes spends it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models import estimates
from pytest_mlrbench.models.amounts import nano
from pytest_mlrbench.models.budget import Budget, Counted
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Image, Prompt, Request, Usage
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.spent import usd

MODEL = parse_model("openai:m", base_url="http://127.0.0.1:1/v1", price_in=1, price_out=10)
UNPRICED = parse_model("openai:m", base_url="http://127.0.0.1:1/v1")
PROMPT = Prompt.of("Hello")
#: Of a call of PROMPT with 1000 tokens of output.
INPUT = estimates.input_tokens(PROMPT, Request())
WORST = (INPUT + 10 * 1000) / 1e6


def hold(budget: Budget, output: int = 1000, config: Any = MODEL) -> Any:
    return asyncio.run(budget.reserve(config, PROMPT, Request(max_tokens=output)))


def refused(budget: Budget, output: int = 1000) -> SystemFault:
    with pytest.raises(SystemFault) as caught:
        hold(budget, output)
    assert caught.value.cause == "budget"
    return caught.value


def test_the_worst_is_held_and_then_replaced_by_what_was_used() -> None:
    budget = Budget(1.0, None, SharedState())
    call = hold(budget)
    assert budget.counted().held_usd == pytest.approx(WORST)
    call.answered(Usage(input=100, output=50), 0.0006, silent=0)
    assert budget.counted() == Counted(
        usd=0.0006,
        tokens=150,
        held_usd=0,
        held_tokens=0,
        cut_calls=0,
        cut_usd=0,
        cut_tokens=0,
        unpriced=0,
    )


def test_what_does_not_fit_is_not_asked_and_the_sentence_says_why() -> None:
    budget = Budget(0.011, None, SharedState())
    hold(budget).answered(Usage(input=100, output=900), 0.0091, silent=0)
    assert refused(budget).message == (
        "$0.0091 of the budget of $0.0110 are spent, and openai:m may cost up to $0.0100 more."
    )
    hold(budget, output=100).failed(paid=False)

    tokens = Budget(None, 1_500, SharedState())
    hold(tokens).answered(Usage(input=100, output=900), None, silent=0)
    assert refused(tokens).message == (
        "1,000 tokens of the budget of 1,500 are used, and openai:m may use up to"
        f" {1000 + INPUT:,} more."
    )


def test_what_nobody_counted_is_counted_at_its_worst() -> None:
    def after(end: Any) -> float:
        budget = Budget(1.0, None, SharedState())
        end(hold(budget))
        assert budget.counted().held_usd == 0
        return budget.counted().usd

    used = Usage(input=100, output=50)
    assert after(lambda call: call.answered(Usage(), None, silent=0)) == pytest.approx(WORST)
    # A request before the one that was answered may have been paid for.
    assert after(lambda call: call.answered(used, 0.0006, silent=1)) == pytest.approx(WORST)
    assert after(lambda call: call.answered(used, 5.0, silent=1)) == 5.0
    assert after(lambda call: call.failed(paid=True)) == pytest.approx(WORST)
    assert after(lambda call: call.failed(paid=False)) == 0
    assert after(lambda call: call.cut(silent=1)) == 0


def test_a_call_that_was_cut_off_is_counted_apart() -> None:
    budget = Budget(1.0, None, SharedState())
    hold(budget).cut(silent=0)
    assert budget.counted().cut_calls == 0
    hold(budget).cut(silent=1)
    counted = budget.counted()
    assert (counted.usd, counted.cut_calls) == (0, 1)
    assert counted.cut_usd == pytest.approx(WORST)


def test_a_model_without_a_price_is_refused_before_the_first_call() -> None:
    with pytest.raises(
        InputError, match=r"openai:m at .* has no known price.*price_in and price_out"
    ):
        Budget(1.0, None, SharedState()).check([MODEL, UNPRICED])
    Budget(1.0, None, SharedState()).check([MODEL])
    Budget(None, 10, SharedState()).check([UNPRICED])
    with pytest.raises(InputError, match="has no known price"):
        hold(Budget(1.0, None, SharedState()), config=UNPRICED)


def test_a_maximum_that_is_set_later_knows_what_was_spent_before(tmp_path: Path) -> None:
    state = SharedState(tmp_path / "shared.json")
    hold(Budget(None, None, state)).answered(Usage(input=100, output=50), 0.4, silent=0)
    resumed = Budget(0.4, None, SharedState(state.path))
    resumed.check([MODEL])
    assert "$0.4000 of the budget of $0.4000 are spent" in refused(resumed).message
    hold(Budget(None, None, state)).answered(Usage(input=100, output=50), None, silent=0)
    with pytest.raises(InputError, match="1 earlier calls of this run have no known price"):
        resumed.check([MODEL])


def test_an_answer_without_a_limit_gets_one_where_there_is_a_budget() -> None:
    budget = Budget(None, 50_000, SharedState())
    assert budget.bounded(Request()).max_tokens == estimates.UNSAID
    assert budget.bounded(Request(max_tokens=5)).max_tokens == 5
    assert Budget(None, None, SharedState()).bounded(Request()).max_tokens is None


def test_who_would_fit_later_waits_and_who_never_will_does_not() -> None:
    budget = Budget(WORST * 1.5, None, SharedState())

    async def story() -> None:
        first = await budget.reserve(MODEL, PROMPT, Request(max_tokens=1000))
        second = asyncio.create_task(budget.reserve(MODEL, PROMPT, Request(max_tokens=1000)))
        await asyncio.sleep(0.15)
        assert not second.done()
        with pytest.raises(SystemFault, match="of the budget of"):
            await budget.reserve(MODEL, PROMPT, Request(max_tokens=2000))
        first.answered(Usage(input=10, output=10), 0.0001, silent=0)
        (await asyncio.wait_for(second, 5)).failed(paid=False)
        # Who is cancelled while it waits holds nothing.
        last = await budget.reserve(MODEL, PROMPT, Request(max_tokens=1000))
        waiting = asyncio.create_task(budget.reserve(MODEL, PROMPT, Request(max_tokens=1000)))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        last.cut(silent=0)
        assert budget.counted().held_usd == 0

    asyncio.run(story())


Step = tuple[str, int, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "answered", "silent", "unknown", "failed", "paid", "cut"]),
        st.integers(1, 3000),  # output asked for
        st.integers(0, 100),  # percent of it that is used
        st.integers(0, 1000),  # which of those under way
    ),
    max_size=40,
)


@given(st.integers(0, 100_000_000), st.integers(0, 12_000), STEPS)
def test_no_order_of_events_spends_more_than_there_is(
    most_nano: int, most_tokens: int, steps: Sequence[Step]
) -> None:
    """Money is added up in billionths, so what comes out is exact."""
    budget = Budget(most_nano / 1e9, most_tokens, SharedState())
    held: list[tuple[Any, int]] = []
    spent_nano = spent_tokens = 0
    for what, output, percent, which in steps:
        if what == "hold":
            worst_nano, worst_tokens = INPUT * 1000 + output * 10_000, INPUT + output
            try:
                held.append((asyncio.run(_at_once(budget, output)), output))
            except (TimeoutError, SystemFault) as refusal:
                holding = isinstance(refusal, TimeoutError)
                under_way = [INPUT * 1000 + other * 10_000 for _, other in held] * holding
                tokens = [INPUT + other for _, other in held] * holding
                assert (
                    spent_nano + sum(under_way) + worst_nano > nano(budget.max_cost)
                    or spent_tokens + sum(tokens) + worst_tokens > most_tokens
                )
        elif held:
            call, asked = held.pop(which % len(held))
            used = Usage(input=INPUT, output=asked * percent // 100)
            assert used.output is not None
            cost = INPUT * 1000 + used.output * 10_000
            worst = (INPUT * 1000 + asked * 10_000, INPUT + asked)
            if what in ("answered", "silent"):
                call.answered(used, cost / 1e9, silent=what == "silent")
            elif what == "unknown":
                call.answered(Usage(), None, silent=0)
            elif what == "cut":
                call.cut(silent=1)
            else:
                call.failed(paid=what == "paid")
            counts = {"answered": (cost, INPUT + used.output), "failed": (0, 0), "cut": (0, 0)}
            added = counts.get(what, worst)
            spent_nano, spent_tokens = spent_nano + added[0], spent_tokens + added[1]
        counted = budget.counted()
        assert nano(counted.usd) == spent_nano
        assert counted.tokens == spent_tokens
        assert nano(counted.usd + counted.held_usd) <= nano(budget.max_cost)
        assert counted.tokens + counted.held_tokens <= most_tokens
    for call, _ in held:
        call.failed(paid=False)
    assert budget.counted().held_tokens == 0


async def _at_once(budget: Budget, output: int) -> Any:
    """Hold, and do not wait."""
    async with asyncio.timeout(0):
        return await budget.reserve(MODEL, PROMPT, Request(max_tokens=output))


@given(st.lists(st.text()), st.text())
def test_every_part_of_a_prompt_is_estimated(texts: list[str], system: str) -> None:
    request = Request()
    tokens = estimates.input_tokens(Prompt.of(*texts, system=system), request)
    assert tokens >= sum(len(text) for text in (*texts, system)) / 3
    picture = Image(b"", "image/png")
    with_picture = estimates.input_tokens(Prompt.of(*texts, picture, system=system), request)
    assert with_picture == tokens + estimates.IMAGE_TOKENS
    schema = {"type": "object", "description": "x" * 300}
    with_schema = Request(json_schema=schema)
    assert estimates.input_tokens(Prompt.of(*texts, system=system), with_schema) >= tokens + 100


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "$0.00"), (12.345, "$12.35"), (0.01234, "$0.0123")]
)
def test_money_is_printed_as_money(amount: float, text: str) -> None:
    assert usd(amount) == text


SPENDING = """
import asyncio, random, sys
from pathlib import Path
from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.models.budget import Budget
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Prompt, Request, Usage
from pytest_mlrbench.models.shared import SharedState

MODEL = parse_model("openai:m", base_url="http://127.0.0.1:1/v1", price_in=1, price_out=10)
budget = Budget(float(sys.argv[2]), None, SharedState(Path(sys.argv[1])))
draw = random.Random(int(sys.argv[3]))

async def one():
    while True:
        try:
            held = await budget.reserve(MODEL, Prompt.of("Hello"), Request(max_tokens=1000))
        except SystemFault as fault:
            return
        await asyncio.sleep(draw.random() * 0.02)
        output = draw.randint(0, 1000)
        used = Usage(input=10, output=output)
        print(10 + output * 10, flush=True)  # said before it is counted
        held.answered(used, (10 + output * 10) / 1e6, silent=0)

async def story():
    await asyncio.gather(*(one() for _ in range(4)))

asyncio.run(story())
"""


def spend(path: Path, most: float, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SPENDING, str(path), str(most), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def said(worker: subprocess.Popen[bytes]) -> float:
    out, err = worker.communicate(timeout=60)
    assert not err, err.decode()
    return sum(map(int, out.split())) / 1e6


def test_four_workers_spend_what_there_is_and_no_more(tmp_path: Path) -> None:
    path, most = tmp_path / "shared.json", 0.3
    workers = [spend(path, most, seed) for seed in range(4)]
    spent = sum(map(said, workers))
    counted = Budget(most, None, SharedState(path)).counted()
    assert counted.usd == pytest.approx(spent)
    # As much as can be: there is no room for one more call.
    assert most - WORST < spent <= most
    assert (counted.held_usd, counted.cut_calls) == (0, 0)


def test_a_killed_worker_loses_no_money_and_holds_none(tmp_path: Path) -> None:
    path, most = tmp_path / "shared.json", 0.3
    workers = [spend(path, most, seed) for seed in range(2)]
    while json.loads(path.read_bytes() if path.exists() else b"{}").get("budget", {}).get(
        "nano", 0
    ) < nano(most / 3):
        time.sleep(0.005)
    workers[0].send_signal(signal.SIGKILL)
    spent = [said(worker) for worker in workers]
    counted = Budget(most, None, SharedState(path)).counted()
    # At the kill, a call may have been answered and not been counted yet.
    assert sum(spent) - 4 * WORST <= counted.usd <= sum(spent) + 1e-9
    assert most - WORST < counted.usd <= most
    assert counted.held_usd == 0
    assert counted.cut_calls <= 4
    # A resumed run goes on from there.
    more = said(spend(path, most + 0.1, 9))
    after = Budget(None, None, SharedState(path)).counted().usd
    assert after == pytest.approx(counted.usd + more)
    assert most + 0.1 - WORST < after <= most + 0.1
