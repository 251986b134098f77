"""What a case has spent at the gate, and whether it may spend more."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import lru_cache

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.config import ModelConfig, Provider
from pytest_mlrbench.models.estimates import BYTES_PER_TOKEN
from pytest_mlrbench.models.exchange import Usage
from pytest_mlrbench.models.prices import cost_usd
from pytest_mlrbench.sandbox.gate_refusals import Refusal
from pytest_mlrbench.spent import Spent, usd

#: Requests to providers under way at once, each of which may pass a maximum.
AT_ONCE = 32
#: What Anthropic asks for tokens put into its cache for five minutes and for an hour, beyond the
#: price of others.
_FIVE_MINUTES, _HOUR = 0.25, 1.0
#: A request that the provider did not answer.
_FAILED = Spent.total(()).model_copy(update={"attempts": 1})
_PROBE = Usage(input=1_000, output=0)  # longer prompts may cost more


class Account:
    """Sums over the requests of one case.

    A request passes as long as what has been spent is below the maximum, so the maximum is passed
    at most by what the requests under way cost: one for an agent that asks one thing at a time,
    :data:`AT_ONCE` at the very most. Where an answer does not say what it used, or says what cannot
    be, its bytes and those of its request are counted against the maximum, at three to a token, and
    what is known beside; in the sums it is not known, and null.

    :param config: gives the model of a name such as ``openai:gpt-5``.
    :param max_cost: in USD; null for any.
    :param max_tokens: input and output together; null for any.
    """

    def __init__(
        self,
        config: Callable[[str], ModelConfig],
        max_cost: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.config = lru_cache(256)(config)
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        #: Who asks a provider has one of these; others wait for one.
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.spent = Spent.total(())
        self._usd = 0.0
        self._tokens = 0
        self._price = lru_cache(256)(self._priced)

    @property
    def limited(self) -> bool:
        """Whether there is a maximum."""
        return self.max_cost is not None or self.max_tokens is not None

    def check(self, provider: Provider, model: str) -> None:
        """Check that the model may be asked now.

        :raises Refusal: the maximum is reached, or nobody could say when it is.
        """
        if self.max_tokens is not None and self._tokens >= self.max_tokens:
            raise Refusal(403, "spent", f"the case has used up its {self.max_tokens} tokens.")
        if self.max_cost is None:
            return
        if self._usd >= self.max_cost:
            raise Refusal(403, "spent", f"the case has used up its {usd(self.max_cost)}.")
        if self._price(provider, model) is None:
            raise Refusal(
                403,
                "price",
                f"the price of {model} is not known, so {usd(self.max_cost)} cannot be held to: set"
                " price_in and price_out in --mlr-model, or a maximum of tokens instead.",
            )

    def cost(
        self, config: ModelConfig, usage: Usage, answered_by: str, written: tuple[int, int]
    ) -> float | None:
        """Return what an answer cost in USD; null where that is not known.

        :param written: tokens put into a cache for five minutes and for an hour.
        """
        cost = cost_usd(config, usage, answered_by)
        if cost is None or not any(written) or config.price_in is not None:
            return cost
        names = dict.fromkeys(name for name in (answered_by, config.model) if name)
        prices = (self._price(config.provider, name) for name in names)
        price = next((one for one in prices if one is not None), 0.0)
        return cost + price * (written[0] * _FIVE_MINUTES + written[1] * _HOUR)

    def enter(
        self, config: ModelConfig, usage: Usage, cost: float | None, size: int, *, answered: bool
    ) -> None:
        """Count one request that was sent on.

        :param size: bytes of the request and of its answer.
        :param answered: whether it was answered; an error of the provider costs nothing.
        """
        if not answered:
            self.spent = Spent.total([self.spent, _FAILED])
            return
        part = Spent(calls=1, attempts=1, cost_usd=cost, **usage.model_dump())
        self.spent = Spent.total([self.spent, part])
        if usage.input is None or usage.output is None:
            least = math.ceil(size / BYTES_PER_TOKEN)
            usage = Usage(input=max(usage.input or 0, least), output=usage.output or 0)
            cost = cost_usd(config, usage)
        self._tokens += (usage.input or 0) + (usage.output or 0)
        self._usd += cost or 0

    def _priced(self, provider: Provider, model: str) -> float | None:
        """USD for a token of input; null also for a name that no model has."""
        try:
            found = cost_usd(self.config(f"{provider}:{model}"), _PROBE)
        except InputError:  # whatever a provider may call its model, its answer is counted
            return None
        return None if found is None else found / 1_000
