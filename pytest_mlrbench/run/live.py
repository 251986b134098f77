"""The live models of a run: none until a judge or an agent names one."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.spent import usd
from pytest_mlrbench.suites.select import parse_stages
from pytest_mlrbench.suites.stages import STAGES

if TYPE_CHECKING:
    from pytest_mlrbench.models.budget import Budget, Counted, Reservation
    from pytest_mlrbench.models.calls import Calls
    from pytest_mlrbench.models.cassettes import Cassette
    from pytest_mlrbench.models.config import ModelConfig
    from pytest_mlrbench.models.settings import Settings
    from pytest_mlrbench.options import Options


class Live:
    """What the user said of models, and the one :class:`Calls` of this process.

    Offline judges and agents do without either, so nothing is imported before it is asked for.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        #: Every model in use → whether it is shown images.
        self.models: dict[ModelConfig, bool] = {}
        #: Whether agents ask models by themselves, through the gate of their sandbox.
        self.gated = False

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The stages of the run."""
        return parse_stages(self.options.stage)

    @property
    def runs_experiments(self) -> bool:
        """Whether a stage of the run has experiments."""
        return any(STAGES[stage].runs_code for stage in self.stages)

    @property
    def shows_images(self) -> bool:
        """Whether models are shown the figures of a stage."""
        return any(STAGES[stage].has_figures for stage in self.stages)

    def model(self, name: str, *, images: bool) -> ModelConfig:
        """Return the model *name*, as ``openai:gpt-5``, and note that it is in use.

        :param images: whether it will be shown some.
        :raises InputError: it is none, or what was said of it cannot be used.
        """
        config = self._settings.config(name)
        self.models[config] = config.images and (images or self.models.get(config, False))
        return config

    @property
    def replays(self) -> bool:
        """Whether models are answered from a recording, so that nobody is asked or paid."""
        return bool(self.models and self.options.live.replay)

    def config(self, name: str) -> ModelConfig:
        """Return what the user said of the model *name*, without noting that it is in use."""
        return self._settings.config(name)

    @cached_property
    def _settings(self) -> Settings:
        from pytest_mlrbench.models.settings import Settings

        return Settings(self.options.live.model)

    @cached_property
    def calls(self) -> Calls:
        """Through which judges and agent ask their models."""
        from pytest_mlrbench.models.calls import Calls

        return Calls(
            budget=self.budget,
            cassette=self._cassette,
            # Two judges a case may be of one provider.
            highest=max(32, 2 * (self.options.concurrency or 0)),
        )

    @cached_property
    def budget(self) -> Budget:
        """What the run may spend, and where it is counted."""
        from pytest_mlrbench.models.budget import Budget
        from pytest_mlrbench.models.shared import SharedState

        said = self.options.live
        return Budget(said.max_cost, said.max_tokens, SharedState())

    async def hold(self, case: str) -> Reservation:
        """Hold the most that the agent's own calls in *case* may cost.

        :raises SystemFault: it does not fit into the budget.
        """
        from pytest_mlrbench.models.amounts import Amount, nano
        from pytest_mlrbench.models.budget import Reservation

        if not self.budget.limited:
            return Reservation(self.budget, Amount())
        most = Amount(nano(self.options.sandbox.agent_max_cost))
        return await self.budget.hold(f"the agent in {case}", most)

    def check_gated(self) -> None:
        """Check that the budget can be kept with agents that ask models by themselves.

        :raises InputError: it cannot.
        """
        said = self.options.live
        if said.max_tokens is not None:
            raise InputError(
                "--mlr-max-tokens does not bound an agent that asks models by itself: use"
                " --mlr-max-cost and --mlr-agent-max-cost."
            )
        if said.max_cost is not None and self.options.sandbox.agent_max_cost is None:
            raise InputError(
                "--mlr-max-cost needs --mlr-agent-max-cost, the most that the agent may spend in"
                " one case: that much is held for a case before it begins."
            )

    @property
    def _cassette(self) -> Cassette | None:
        from pytest_mlrbench.models.cassettes import Cassette

        said = self.options.live
        if said.record and said.replay:
            raise InputError("--mlr-record and --mlr-replay-calls exclude each other.")
        if said.replay:
            return Cassette.replay(said.replay)
        return Cassette.record(said.record) if said.record else None

    def share(self, folder: Path, workers: int) -> None:
        """Make budget, limits and breaker those of the run in *folder*, and check the budget.

        :param workers: how many processes ask models beside each other.
        :raises InputError: the budget cannot be kept.
        """
        if self.models or self.gated:
            from pytest_mlrbench.models.shared import SharedState

            self.calls.share(SharedState(folder / "shared.json"), workers)
            self.calls.check(self.models)

    def preflight(self) -> list[str]:
        """Ask every model a small question; return what the user should know.

        :raises InputError: one cannot be used.
        """
        if not self.models or not self.options.live.preflight:
            return []
        from pytest_mlrbench.models.preflight import preflight

        async def ask() -> list[str]:
            try:
                return await preflight(self.calls, list(self.models.items()))
            finally:
                await self.calls.close()

        return asyncio.run(ask())

    async def close(self) -> None:
        """Close the connections of the running loop."""
        if "calls" in vars(self):
            await self.calls.close()

    def stopped(self) -> SystemFault | None:
        """Why no further case may be started; null while one may."""
        if not self.models:
            return None
        if why := self.calls.exhausted():
            return SystemFault("budget", why)
        broken = next(filter(None, map(self.calls.broken, self.models)), None)
        return SystemFault("not_started", broken) if broken else None

    def settings(self) -> dict[str, dict[str, str]]:
        """What was said of each model in use; no key and no value of a header."""
        found = {}
        for config in self.models:
            said = {**config.model_dump(exclude={"provider", "model", "headers"})}
            said |= {"base_url": config.address, "headers": ", ".join(n for n, _ in config.headers)}
            found[str(config)] = {
                name: str(value) for name, value in said.items() if value not in (None, "")
            }
        return found

    def versions(self) -> dict[str, str]:
        """What the numbers of the run depend on beside the models."""
        if not self.models and not self.gated:
            return {}
        from pytest_mlrbench.models.prices import table_version

        return {"prices": table_version() or "none"}

    def spent(self) -> list[str]:
        """What the run has spent in all, in words, and what nobody knows of; empty if nothing."""
        if not self.models and not self.gated:
            return []
        if self.replays:
            return ["all calls were replayed: tokens and dollars are those of the recording"]
        try:
            counted = self.calls.counted()
        except (InputError, SystemFault) as error:  # the scores are there all the same
            return [f"what models have used in all is not known: {error}"]
        if not counted.tokens and not counted.cut_calls:
            return []
        cost = f", {usd(counted.usd)}" if counted.usd else ""
        unknown = f", {counted.unpriced} calls of unknown price" if counted.unpriced else ""
        used = (
            f"models in all, with preflight and answers of no use: {counted.tokens:,} tokens"
            f"{cost}{unknown}"
        )
        return [used, *self._cut_off(counted)]

    def _cut_off(self, counted: Counted) -> list[str]:
        if not counted.cut_calls:
            return []
        # Without a maximum nobody has asked how much a call can cost.
        most = f": at most {usd(counted.cut_usd)} more" if self.options.live.max_cost else ""
        calls = "1 call was" if counted.cut_calls == 1 else f"{counted.cut_calls} calls were"
        return [f"{calls} cut off in all sessions; nobody says what that cost{most}"]
