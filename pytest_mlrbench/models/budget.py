"""The most that all calls of a run may cost together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models.amounts import Amount, book_of, bury, held_in, move, nano, nothing
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.estimates import UNSAID, worst_usage
from pytest_mlrbench.models.exchange import Prompt, Request, Usage
from pytest_mlrbench.models.prices import cost_usd
from pytest_mlrbench.models.shared import FRESH, Content, SharedState, own_name
from pytest_mlrbench.spent import usd

#: How often who waits looks on before the dead are looked for.
_LOOKS = 20


@dataclass(frozen=True, slots=True)
class Counted:
    """What a run has spent so far.

    :param usd: what the answers cost, and, under a maximum, requests without one at their worst.
    :param held_usd: the worst that the calls now under way can cost.
    :param cut_calls: calls that were under way when they were cancelled or their process died.
        Nobody says what they cost: nothing of it is in *usd*, and *cut_usd* is the most it can be.
    :param unpriced: calls whose cost is not known, which are not in *usd* either.
    """

    usd: float
    tokens: int
    held_usd: float
    held_tokens: int
    cut_calls: int
    cut_usd: float
    cut_tokens: int
    unpriced: int


class Budget:
    """Lets a call be made if its worst case still fits into what is left.

    The worst case is the estimated input with *max_tokens* of output. It is held until the call
    has ended and replaced by what was used. So what a run spends exceeds its budget at most by what
    calls under way use beyond their worst case (an estimate too low, an answer longer than was
    asked for, requests that were sent again) and by what calls cost that were cut off.

    A call that would fit if those under way used less than their worst waits for them.

    :param max_cost: in USD; null for any.
    :param max_tokens: input and output together; null for any.
    :param state: where it is counted, for all processes and for a later resume; also without a
        maximum, as one may be set then.
    """

    def __init__(self, max_cost: float | None, max_tokens: int | None, state: SharedState) -> None:
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.state = state
        self._most = nano(max_cost)

    @property
    def limited(self) -> bool:
        """Whether there is a maximum at all."""
        return self.max_cost is not None or self.max_tokens is not None

    def share(self, state: SharedState) -> None:
        """Count in *state* from now on, what this process alone has counted so far included.

        No call may be under way.
        """
        before, self.state = self.state, state
        if before is state or before.path is not None:
            return
        alone = book_of(before.look())
        with state.change() as content:
            book = content["budget"] = book_of(content)
            for name in ("nano", "tokens", "unpriced"):
                book[name] += alone[name]
            for name, value in alone["cut"].items():
                book["cut"][name] += value

    def check(self, configs: Iterable[ModelConfig]) -> None:
        """Check, before the first call, that the maximum can be kept.

        :raises InputError: what a model, or what an earlier session, costs is not known.
        """
        if self.max_cost is None:
            return
        for config in configs:
            if cost_usd(config, Usage(input=1, output=1)) is None:
                where = f" at {config.address}" if config.address else ""
                raise InputError(
                    f"{config}{where} has no known price, so --mlr-max-cost cannot be kept: say its"
                    f" price_in and price_out in --mlr-model, or use --mlr-max-tokens."
                )
        if calls := self.counted().unpriced:
            raise InputError(
                f"{calls} earlier calls of this run have no known price, so --mlr-max-cost cannot"
                f" be kept: use --mlr-max-tokens, or start a new run."
            )

    def bounded(self, wanted: Request) -> Request:
        """Return *wanted* with a limit of tokens, where there must be one."""
        if not self.limited or wanted.max_tokens is not None:
            return wanted
        return wanted.model_copy(update={"max_tokens": UNSAID})

    async def reserve(self, config: ModelConfig, prompt: Prompt, wanted: Request) -> Reservation:
        """Hold the worst case of a call, its retries included.

        :raises SystemFault: it does not fit (cause ``budget``), or there is no place to count it.
        :raises InputError: see :meth:`check`.
        """
        if not self.limited:
            return Reservation(self, Amount())
        return await self.hold(str(config), self._worst(config, prompt, wanted))

    async def hold(self, name: str, worst: Amount) -> Reservation:
        """Hold *worst* for *name*, a call or all that an agent may spend in a case.

        :raises SystemFault: it does not fit (cause ``budget``), or there is no place to count it.
        """
        while not self._hold(name, worst):
            for _ in range(_LOOKS):
                await asyncio.sleep(FRESH)
                if not self._over(book_of(self.state.look()), worst):
                    break
        return Reservation(self, worst)

    def counted(self) -> Counted:
        """Return what the run has spent so far, all of its processes and sessions together."""
        with self.state.change() as content:
            book = book_of(content)
            bury(book)
            if book != book_of({}):
                content["budget"] = book
        held = held_in(book)
        return Counted(
            usd=book["nano"] / 1e9,
            tokens=book["tokens"],
            held_usd=held.nano / 1e9,
            held_tokens=held.tokens,
            cut_calls=book["cut"]["calls"],
            cut_usd=book["cut"]["nano"] / 1e9,
            cut_tokens=book["cut"]["tokens"],
            unpriced=book["unpriced"],
        )

    def _worst(self, config: ModelConfig, prompt: Prompt, wanted: Request) -> Amount:
        most = worst_usage(prompt, wanted)
        cost = cost_usd(config, most)
        if cost is None:
            self.check([config])
        return Amount(nano(cost), (most.input or 0) + (most.output or 0))

    def _hold(self, name: str, worst: Amount) -> bool:
        """Hold *worst* if it fits now; false if it may later."""
        with self.state.change() as content:
            book = content["budget"] = book_of(content)
            if self._over(book, worst):
                bury(book)
            if not self._over(book, worst):
                move(book["held"].setdefault(own_name(), nothing()), worst, 1)
                return True
            if self._over({**book, "held": {}}, worst):
                raise SystemFault("budget", self._refusal(name, book, worst))
        return False

    def _over(self, book: Content, worst: Amount) -> bool:
        """Whether *worst* does not fit beside what is spent and held."""
        held = held_in(book)
        cost, tokens = book["nano"] + held.nano, book["tokens"] + held.tokens
        return (self.max_cost is not None and cost + worst.nano > self._most) or (
            self.max_tokens is not None and tokens + worst.tokens > self.max_tokens
        )

    def _refusal(self, name: str, book: Content, worst: Amount) -> str:
        cost, tokens = book["nano"], book["tokens"]
        if self.max_cost is not None and cost + worst.nano > self._most:
            return (
                f"{usd(cost / 1e9)} of the budget of {usd(self.max_cost)} are spent, and {name} may"
                f" cost up to {usd(worst.nano / 1e9)} more."
            )
        return (
            f"{tokens:,} tokens of the budget of {self.max_tokens:,} are used, and {name} may use"
            f" up to {worst.tokens:,} more."
        )


class Reservation:
    """What is held for one call; ended once, by one of the three."""

    def __init__(self, budget: Budget, worst: Amount) -> None:
        self._budget = budget
        self._worst = worst

    def answered(self, used: Usage, cost: float | None, *, silent: int) -> None:
        """Count what was used; the worst where it is not known, or not for all requests.

        :param cost: null if the model has no known price.
        :param silent: requests that got no answer and may have been paid for.
        """
        known = used.input is not None and used.output is not None
        count = Amount(nano(cost), (used.input or 0) + (used.output or 0))
        if silent or not known:
            count = Amount(max(count.nano, self._worst.nano), max(count.tokens, self._worst.tokens))
        has_price = self._budget.max_cost is not None or self._worst.nano > 0
        self._end(count, unpriced=cost is None and not has_price)

    def failed(self, *, paid: bool) -> None:
        """Count the worst of a call without an answer if it may be *paid*, and nothing if not."""
        self._end(self._worst if paid else Amount())

    def cut(self, *, silent: int) -> None:
        """Count a call that was cancelled among those nobody knows the cost of, if it was sent."""
        with suppress(SystemFault):  # a full disk must not keep anybody from ending
            self._end(Amount(), cut=silent > 0)

    def _end(self, count: Amount, *, unpriced: bool = False, cut: bool = False) -> None:
        with self._budget.state.change() as content:
            book = content["budget"] = book_of(content)
            book["nano"] += count.nano
            book["tokens"] += count.tokens
            book["unpriced"] += unpriced
            if cut:
                move(book["cut"], self._worst, 1)
            if self._budget.limited:
                held = book["held"].get(own_name(), nothing())
                move(held, self._worst, -1)
                if held["calls"] <= 0:
                    book["held"].pop(own_name(), None)
