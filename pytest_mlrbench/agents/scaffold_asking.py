"""Asking the scaffold's model: answers that can be used, counted and told of in the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pytest_mlrbench.agents import scaffold_prompts as prompts
from pytest_mlrbench.errors import AgentFault
from pytest_mlrbench.models.calls import CallRecord, Calls, Meter
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import Completion, Message, Prompt, Request
from pytest_mlrbench.models.faults import ModelFault

T = TypeVar("T")


class Log:
    """What the agent did, one line each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, words: str) -> None:
        """Add a line with the time of day."""
        line = " ".join(words.split())
        with self._path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")


class Unusable(Exception):
    """Why an answer cannot be used, as the end of a sentence that begins with the model."""

    def __init__(self, cause: Literal["no_output", "unusable_output"], words: str) -> None:
        super().__init__(words)
        self.cause = cause


class Written(NamedTuple):
    """An answer that can be used, in the model's own words, and the calls it took."""

    text: str
    calls: tuple[CallRecord, ...]


class Asking:
    """One model at work on one case.

    :param meter: for all calls that the answer took, those of kept steps included.
    :param records: a file that gets one line for each of them, as it ends.
    """

    def __init__(
        self, config: ModelConfig, calls: Calls, meter: Meter, log: Log, records: Path
    ) -> None:
        self.config = config
        self.meter = meter
        self._calls = calls
        self._log = log
        self._records = records
        self._noted = len(meter.records)

    def enter(self, calls: Sequence[CallRecord]) -> None:
        """Enter the calls of a step that was kept: the answer has taken them as well."""
        self.meter.records.extend(calls)
        self._note()

    async def text(self, prompt: Prompt, purpose: str) -> Written:
        """Return a document.

        :raises AgentFault: the model does not write one.
        :raises ModelFault: the model cannot be asked.
        """
        return await self._usable(prompt, Request(), purpose, lambda text: text)

    async def json(
        self, prompt: Prompt, schema: dict[str, Any], purpose: str, read: Callable[[Any], object]
    ) -> Written:
        """Return a JSON document that *read* accepts.

        :param read: raises ValueError where it does not.
        :raises AgentFault: the model does not write one.
        :raises ModelFault: the model cannot be asked.
        """

        def parse(text: str) -> str:
            try:
                document = json.loads(text[text.find("{") : text.rfind("}") + 1])
                read(document)
            except (ValueError, RecursionError):
                raise Unusable("unusable_output", "did not write the JSON asked for") from None
            return json.dumps(document)

        return await self._usable(prompt, Request(json_schema=schema), purpose, parse)

    async def _usable(
        self, prompt: Prompt, request: Request, purpose: str, parse: Callable[[str], str]
    ) -> Written:
        """Ask, and once more if the answer is of no use; the model is the agent: its own fault."""
        before = len(self.meter.records)
        try:
            text = parse(await self._ask(prompt, request, purpose))
        except Unusable as why:
            self._log.say(f"{purpose}: the model {why}; it is asked once more")
            text = await self._once_more(prompt, request, purpose, parse, f"you {why}")
        except ModelFault as fault:
            if fault.cause != "malformed":
                raise
            # No answer of a model at all, as a page of the gateway before it.
            self._log.say(f"{purpose}: {fault.message} It is asked once more")
            reason = "what arrived was no answer"
            text = await self._once_more(prompt, request, purpose, parse, reason)
        calls = tuple(self.meter.records[before:])
        self._log.say(f"{purpose}: {len(text)} characters by {self.config}, {len(calls)} call(s)")
        return Written(text, calls)

    async def _once_more(
        self,
        prompt: Prompt,
        request: Request,
        purpose: str,
        parse: Callable[[str], str],
        reason: str,
    ) -> str:
        again = prompts.fill("retry", reason=reason)
        try:
            return parse(await self._ask(_with(prompt, again), request, purpose))
        except Unusable as why:
            message = f"{self.config} was asked twice for {purpose} and {why}."
            raise AgentFault(why.cause, message) from None

    async def _ask(self, prompt: Prompt, request: Request, purpose: str) -> str:
        try:
            answer = await self._calls.ask(
                self.config, prompt, request, meter=self.meter, purpose=purpose
            )
        finally:
            self._note()
        _check(answer)
        return answer.text

    def _note(self) -> None:
        """Write down the calls that have ended since the last time."""
        new = self.meter.records[self._noted :]
        self._noted += len(new)
        with self._records.open("a", encoding="utf-8") as file:
            file.writelines(f"{record.model_dump_json()}\n" for record in new)


def _check(answer: Completion) -> None:
    """Make sure that an answer is a text that came to its end.

    An end for a reason we do not know is no ground for refusing a text: servers invent reasons.
    """
    if answer.stop == "refusal":
        raise Unusable("no_output", "refused to answer")
    if answer.stop == "filter":
        raise Unusable("no_output", "had the answer withheld by the provider's filter")
    if answer.stop == "length":
        raise Unusable("unusable_output", "came to the limit of tokens before the answer's end")
    if not answer.text.strip():
        raise Unusable("no_output", "answered with no text at all")
    if "\0" in answer.text:
        raise Unusable("unusable_output", "answered with binary data")


def _with(prompt: Prompt, words: str) -> Prompt:
    """Add *words* to the last message: not every answer that failed can be sent back."""
    *earlier, last = prompt.messages
    return replace(prompt, messages=(*earlier, Message((*last.parts, words), last.role)))
