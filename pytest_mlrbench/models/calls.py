"""Every call to a model that a run makes goes through here, and what it used is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.models.breaker import Breaker
from pytest_mlrbench.models.budget import Budget, Counted, Reservation
from pytest_mlrbench.models.cassettes import Asked, Cassette, Outcome
from pytest_mlrbench.models.client import Client, complete
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import Completion, Prompt, Request
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.meter import CallRecord, Meter, Role
from pytest_mlrbench.models.prices import cost_usd
from pytest_mlrbench.models.registry import Models
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.models.shared_limits import shared_limits
from pytest_mlrbench.models.watch import Watch

__all__ = ["CallRecord", "Calls", "Meter", "Role"]


class Calls:
    """The models of one run in this process.

    :param models: null for those with the usual retries and *highest* requests at once.
    :param budget: what all calls of the run may cost; null where nobody counts.
    :param cassette: where calls are recorded, or replayed from: then no model is asked, nothing is
        paid, and neither budget nor breaker has a say.
    :param state: what is shared with other *workers*, see :meth:`share`.
    """

    def __init__(
        self,
        models: Models | None = None,
        *,
        budget: Budget | None = None,
        cassette: Cassette | None = None,
        state: SharedState | None = None,
        workers: int = 1,
        highest: int = 32,
    ) -> None:
        self._models = models or Models(highest=highest)
        self._budget = budget
        self._cassette = cassette
        self._breaker = Breaker(SharedState())
        self._refused = ""
        if state is not None:
            self.share(state, workers)

    def share(self, state: SharedState, workers: int) -> None:
        """Share limits, breaker and budget with the other *workers*; no call may be under way.

        What was spent so far goes there too, and a later session finds it there. Limits and breaker
        of one worker alone stay in this process.
        """
        if self._budget is not None:
            self._budget.share(state)
        if workers > 1:
            self._models.share(shared_limits(state, workers, self._models.highest))
            self._breaker = Breaker(state)

    def check(self, configs: Iterable[ModelConfig]) -> None:
        """Check before the first call that the budget can be kept with these models.

        :raises InputError: it cannot.
        """
        if self._budget is not None and not self.is_replay:
            self._budget.check(configs)

    @property
    def is_replay(self) -> bool:
        """Whether all answers come from a cassette."""
        return self._cassette is not None and self._cassette.mode == "replay"

    async def ask(
        self,
        config: ModelConfig,
        prompt: Prompt,
        request: Request,
        *,
        meter: Meter,
        purpose: str,
        retries: Retries | None = None,
    ) -> Completion:
        """Return a model's answer, and enter the call in *meter*.

        A call that is cancelled is not entered: nobody knows what it used.

        :param retries: null for those of all calls.
        :raises ModelFault: there was none.
        :raises SystemFault: it was not asked: there is no money left for it (cause ``budget``), no
            recording of it (``no_recording``), or the disk is full (``disk``).
        :raises InputError: the model cannot be asked at all.
        """
        asked = Asked(config, prompt, config.with_defaults(request), meter, purpose)
        outcome = await self._outcome(asked, retries)
        asked.meter.records.append(_record(asked, outcome))
        if outcome.fault is not None:
            raise outcome.fault
        assert outcome.answer is not None
        return outcome.answer

    def broken(self, config: ModelConfig) -> str | None:
        """Return why a model is not asked any more; null where it is.

        It is not when several calls in a row have failed with one cause.
        """
        fault = None if self.is_replay else self._breaker.broken(config)
        return fault.message if fault else None

    def exhausted(self) -> str | None:
        """Return why the budget has no room for a call of this process; null while it had."""
        return self._refused or None

    def counted(self) -> Counted:
        """Return what the run has spent, all of its processes and sessions together."""
        budget = self._budget or Budget(None, None, SharedState())
        return budget.counted()

    async def close(self) -> None:
        """Close the connections of the running loop."""
        await self._models.close()

    async def _outcome(self, asked: Asked, retries: Retries | None) -> Outcome:
        if self._cassette is None:
            return await self._live(asked, retries)
        if self._cassette.mode == "replay":
            await asyncio.sleep(0)  # others get their turn, as with a model
            return self._cassette.find(asked)
        return self._cassette.keep(asked, await self._live(asked, retries))

    async def _live(self, asked: Asked, retries: Retries | None) -> Outcome:
        if (fault := self._breaker.broken(asked.config)) is not None:
            return Outcome(fault=fault)
        client = self._models.client(asked.config)
        if retries is not None:
            client = replace(client, retries=retries)
        if self._budget is None:
            return await self._ask(asked, client, asked.wanted, None)
        wanted = self._budget.bounded(asked.wanted)
        try:
            held = await self._budget.reserve(asked.config, asked.prompt, wanted)
        except SystemFault as refusal:
            self._refused = refusal.message if refusal.cause == "budget" else self._refused
            return Outcome(fault=refusal)
        return await self._ask(asked, client, wanted, held)

    async def _ask(
        self, asked: Asked, client: Client, wanted: Request, held: Reservation | None
    ) -> Outcome:
        watch = Watch(client.adapter)
        try:
            answer = await complete(replace(client, adapter=watch), asked.prompt, wanted)
        except ModelFault as fault:
            self._breaker.failed(asked.config, fault)
            if held is not None:
                # A success in HTTP that is no answer has been paid for all the same.
                held.failed(paid=watch.silent > 0 or fault.status == 200)
            return Outcome(fault=fault)
        except BaseException:
            if held is not None:
                held.cut(silent=watch.silent)
            raise
        self._breaker.succeeded(asked.config)
        cost = cost_usd(asked.config, answer.usage, answer.model)
        if held is not None:
            held.answered(answer.usage, cost, silent=watch.silent)
        return Outcome(answer=answer, cost_usd=cost)


def _record(asked: Asked, outcome: Outcome) -> CallRecord:
    name = str(asked.config)
    if outcome.fault is not None:
        return CallRecord.of_fault(asked.purpose, name, outcome.fault)
    assert outcome.answer is not None
    return CallRecord.of_answer(asked.purpose, name, outcome.answer, outcome.cost_usd)
