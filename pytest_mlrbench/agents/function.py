"""Agents a user's fixture gives: an object of our protocol, or a function, async or not."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_mlrbench.agents.base import Agent, Assignment
from pytest_mlrbench.errors import AgentFault, InputError, SystemFault, describe, is_interrupt
from pytest_mlrbench.run import digests
from pytest_mlrbench.suites.select import Case


class FunctionAgent:
    """A function called with an :class:`Assignment` in this process.

    An async one is awaited on the run's event loop and cancelled at its deadline. A plain one
    runs in a thread, which nothing can end: past its deadline it is only no longer waited for.
    """

    needs_inputs = True
    has_files = True
    system: str | None = None

    def __init__(self, function: Callable[[Assignment], Any]) -> None:
        self.function = function
        target = function if hasattr(function, "__qualname__") else type(function)
        self.spec = f"fixture:{target.__module__}:{target.__qualname__}"
        self._target = target

    def prepare(self, cases: Sequence[Case]) -> None:
        """Nothing to check: the function is there."""

    def digest(self, case: Case) -> str | None:
        """Digest of the file the function is written in, and of its repository."""
        return self._content

    @cached_property
    def _content(self) -> str | None:
        try:
            file = Path(inspect.getsourcefile(inspect.unwrap(self._target)) or "")
        except TypeError:
            return None
        if not file.is_file():
            return None
        return digests.of_json([digests.of_file(file), digests.of_surroundings(file)])

    async def run(self, case: Case, work: Assignment) -> None:
        """Call the function and wait for it until the deadline."""
        try:
            async with asyncio.timeout(work.seconds_left) as limit:
                if inspect.iscoroutinefunction(inspect.unwrap(self.function)):
                    await self.function(work)
                else:
                    answer = await _in_thread(self.function, work)
                    if inspect.isawaitable(answer):
                        await answer
        except SystemFault:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            if isinstance(error, TimeoutError) and limit.expired():
                raise AgentFault("timeout", "the agent did not end before its deadline.") from None
            work.log.write_text("".join(traceback.format_exception(error)), "utf-8", "replace")
            raise AgentFault("crash", f"the agent raised {describe(error)}") from error
        if limit.expired():
            raise AgentFault("timeout", "the agent went on after its deadline.")


async def _in_thread(function: Callable[[Assignment], Any], work: Assignment) -> Any:
    """Like :func:`asyncio.to_thread`, but the process need not wait for the thread to exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def call() -> None:
        value, error = None, None
        try:
            value = function(work)
        except BaseException as raised:
            # StopIteration cannot be set on a future, SystemExit must not end the loop.
            error = raised if isinstance(raised, Exception) else RuntimeError(repr(raised))
            error = RuntimeError(repr(raised)) if isinstance(raised, StopIteration) else error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=call, name=f"mlr-agent-{work.task_id}", daemon=True).start()
    return await done


def as_agent(given: object) -> Agent:
    """Return what a user's ``mlr_agent`` fixture gave as an agent.

    :raises InputError: it is neither an agent nor callable.
    """
    if all(hasattr(given, name) for name in ("run", "digest", "prepare", "spec", "needs_inputs")):
        agent: Agent = given  # type: ignore[assignment]
        return agent
    if callable(given):
        return FunctionAgent(given)
    raise InputError(
        f"the fixture mlr_agent gave {given!r}: give an agent, or a function of one assignment."
    )
