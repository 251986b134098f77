"""What calls to models used together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pytest_mlrbench.values import Record

N = TypeVar("N", int, float)


class Spent(Record):
    """Sums over calls; a sum of which a part is not known is not known, and null.

    :param calls: how many answers were asked for.
    :param attempts: how many requests that took, those that failed included.
    :param input: tokens of the prompts, *cached_input* included.
    :param output: tokens that were generated, *reasoning* included.
    :param cost_usd: null also where the price of a model is not known.
    """

    calls: int
    attempts: int
    input: int | None = None
    output: int | None = None
    cached_input: int | None = None
    reasoning: int | None = None
    cost_usd: float | None = None

    @classmethod
    def total(cls, parts: Iterable[Spent]) -> Spent:
        """Add up *parts*; nothing at all is 0 of everything."""
        found = list(parts)
        return cls(
            calls=sum(part.calls for part in found),
            attempts=sum(part.attempts for part in found),
            input=_sum([part.input for part in found]),
            output=_sum([part.output for part in found]),
            cached_input=_sum([part.cached_input for part in found]),
            reasoning=_sum([part.reasoning for part in found]),
            cost_usd=_sum([part.cost_usd for part in found]),
        )


def _sum(numbers: Sequence[N | None]) -> N | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def usd(amount: float) -> str:
    """Return an amount as it is printed: ``$4.93``, and small ones to the hundredth of a cent."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"
