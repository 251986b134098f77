"""What is written down of each call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.models.exchange import Completion, Dropped, Stop, Usage
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.values import Record

Role = Literal["agent", "judge"]


class CallRecord(Record):
    """One call: what was asked of whom, and how it ended.

    :param purpose: what the answer is for, as ``review`` or ``idea``.
    :param model: as configured; *answered_by* is what the provider calls it.
    :param stop: null where there was no answer; *cause* says why then.
    :param attempts: requests that were sent; 0 for a call that was not made.
    :param cost_usd: null if the price of the model is not known.
    """

    purpose: str
    model: str
    answered_by: str = ""
    stop: Stop | None = None
    cause: str | None = None
    request_id: str = ""
    attempts: int = 1
    latency: float | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    dropped: tuple[Dropped, ...] = ()

    @classmethod
    def of_answer(
        cls, purpose: str, model: str, answer: Completion, cost_usd: float | None
    ) -> CallRecord:
        """Return the record of a call that was answered."""
        return cls(
            purpose=purpose,
            model=model,
            answered_by=answer.model,
            stop=answer.stop,
            request_id=answer.request_id,
            attempts=answer.attempts,
            latency=answer.latency,
            usage=answer.usage,
            cost_usd=cost_usd,
            dropped=answer.dropped,
        )

    @classmethod
    def of_fault(cls, purpose: str, model: str, fault: SystemFault) -> CallRecord:
        """Return the record of a call without an answer."""
        attempts = fault.attempts if isinstance(fault, ModelFault) else 0
        return cls(purpose=purpose, model=model, cause=fault.cause, attempts=attempts)

    @property
    def spent(self) -> Spent:
        """What this one call used; a call without an answer used requests only.

        One that was not made is none.
        """
        if self.stop is None:
            return Spent(
                calls=int(self.attempts > 0),
                attempts=self.attempts,
                input=0,
                output=0,
                cached_input=0,
                reasoning=0,
                cost_usd=0.0,
            )
        return Spent(calls=1, attempts=self.attempts, cost_usd=self.cost_usd, **dict(self.usage))


@dataclass
class Meter:
    """The calls that one judge, or the agent, has made in one case.

    :param case: its name, ``suite/stage/task/rN``.
    :param who: the judge's id, or the agent's spec.
    """

    case: str
    role: Role
    who: str
    records: list[CallRecord] = field(default_factory=list)

    def spent(self) -> Spent:
        """Return what the calls so far used."""
        return Spent.total(record.spent for record in self.records)
