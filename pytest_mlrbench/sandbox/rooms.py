"""Where the cases of a run have their commands run: chosen once, checked before the first case."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.agents.needs import Needs, Where
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.run import digests
from pytest_mlrbench.sandbox.base import Limits, Network, Sandbox
from pytest_mlrbench.sandbox.options import IMAGE, SandboxOptions
from pytest_mlrbench.sandbox.room import Room
from pytest_mlrbench.sandbox.together import check_limits, check_money, check_places
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

if TYPE_CHECKING:
    from pytest_mlrbench.models.config import Provider
    from pytest_mlrbench.run.live import Live
    from pytest_mlrbench.sandbox.contents import Content
    from pytest_mlrbench.sandbox.docker import DockerSandbox
    from pytest_mlrbench.sandbox.gate import Policy
    from pytest_mlrbench.sandbox.gpus import Gpus
    from pytest_mlrbench.sandbox.leases import Leases


class Rooms:
    """Gives every case its :class:`~pytest_mlrbench.sandbox.room.Room`.

    :param agent: spec of the agent, for messages.
    :param needs: of the agent; null for one that runs no commands, which is given no room.
    :param live: has what the user said of models, and the budget.
    :param resuming: whether the run goes on with an earlier one.
    :raises InputError: what was asked for does not go together.
    """

    def __init__(
        self,
        options: SandboxOptions,
        agent: str,
        needs: Needs | None,
        stages: Sequence[str],
        live: Live,
        *,
        resuming: bool = False,
    ) -> None:
        options.check()
        self.options = options
        self.needs = needs
        self.stages = stages if needs else ()
        self._live = live
        self._resuming = resuming
        check_places(self, agent)
        # In every process, also in those that prepare nothing: they share one budget.
        live.gated = any(where and self._policy(where) for where in map(self.place, self.stages))
        check_money(self, gated=live.gated)

    def place(self, stage: str) -> Where | None:
        """Where commands run in *stage*; null if none are run."""
        place = self.needs.place(stage) if self.needs else None
        said = self.options.kind
        return place if place is None or said == "auto" else said

    def uses(self, where: Where) -> bool:
        """Whether a stage of the run has its commands run *where*."""
        return any(self.place(stage) == where for stage in self.stages)

    def asks_models(self, stage: str) -> bool:
        """Whether commands in *stage* may ask models by themselves, with keys of the user."""
        where = self.place(stage)
        return bool(where and self._policy(where) and self._providers)

    @property
    def lends(self) -> bool:
        """Whether there are stages whose cases are lent a GPU."""
        return any(STAGES[stage].runs_code and self.place(stage) for stage in self.stages)

    @property
    def network(self) -> Network:
        """What containers reach."""
        assert self.needs is not None
        said: Network = self.options.network or self.needs.network  # type: ignore[assignment]
        return "models" if said == "none" and self.options.allow_host else said

    @cached_property
    def limits(self) -> Limits:
        """Of every case."""
        from pytest_mlrbench.sandbox.limits import parse

        return parse(self.options.limits)

    @cached_property
    def gpus(self) -> Gpus:
        """The GPUs that are lent to cases, one each; perhaps none."""
        from pytest_mlrbench.sandbox.gpus import Gpus

        return Gpus.find(self.options.gpus, os.environ) if self.lends else Gpus((), "")

    @cached_property
    def container(self) -> DockerSandbox:
        """The sandbox of containers."""
        from pytest_mlrbench.sandbox.docker import DockerSandbox
        from pytest_mlrbench.sandbox.engine import NOT_AGAIN

        made = DockerSandbox(self.options.image or IMAGE, self.limits, self.gpus.uuids)
        if self._resuming:  # in another place, all cases would be run again
            made.otherwise = NOT_AGAIN
        return made

    @cached_property
    def local(self) -> Sandbox:
        """The sandbox of local processes."""
        from pytest_mlrbench.sandbox.local import LocalSandbox

        # Those that nobody asked for are a container's.
        return LocalSandbox(self.limits if self.options.limits else None)

    @cached_property
    def _leases(self) -> Leases:
        from pytest_mlrbench.sandbox.leases import Leases, lock_folder

        return Leases(lock_folder(os.environ), self.gpus.uuids, self._free)

    def _free(self, gpu: str) -> None:
        """Remove containers that a dead process has left on *gpu*."""
        if self.uses("docker"):
            from pytest_mlrbench.sandbox import reaper

            reaper.sweep(self.container.client, gpu)
            self.container.remove_left()

    def prepare(self, wanted: Sequence[Content] = ()) -> None:
        """Check, once per run, that every case can be given what was asked for.

        :param wanted: what containers must have.
        :raises InputError: it cannot.
        """
        if self.gpus.uuids:
            self._leases.prepare()
        if self._live.gated:
            self._check_gate()
        if self.uses("docker"):
            self.container.wanted = wanted
            self.container.prepare()
        if self.uses("local"):
            check_limits(self)
            self.local.prepare()

    def _check_gate(self) -> None:
        from pytest_mlrbench.sandbox.gate import check

        self._live.check_gated()
        for model in (self.needs and self.needs.models) or ():
            self._check_price(model)
        check(self._providers, self._live.config)
        if not self._providers and not self.options.allow_host:
            raise InputError(
                "--mlr-network=models has nobody to ask: set the key of a provider, such as"
                " OPENAI_API_KEY."
            )

    def _check_price(self, model: str) -> None:
        if self.options.agent_max_cost is None or "*" in model:
            return
        from pytest_mlrbench.models.exchange import Usage
        from pytest_mlrbench.models.prices import cost_usd

        config = self._live.config(f"{self._providers[0]}:{model}")
        if cost_usd(config, Usage(input=1, output=1)) is None:
            raise InputError(
                f"{config} has no known price, so --mlr-agent-max-cost cannot be kept: say its"
                " price_in and price_out in --mlr-model."
            )

    @cached_property
    def _providers(self) -> tuple[Provider, ...]:
        """Those whose models may be asked: whom the agent needs, or else all that have a key."""
        from pytest_mlrbench.models.config import KEYS, PROVIDERS

        wanted = self.needs.providers if self.needs else ()
        if wanted:
            return tuple(provider for provider in PROVIDERS if provider in wanted)
        return tuple(p for p in PROVIDERS if any(os.environ.get(name) for name in KEYS[p]))

    def _policy(self, where: Where) -> Callable[[float], Policy] | None:
        """What cases may ask of models and other hosts; null for nothing."""
        if self.needs is None or self.network == "none":
            return None
        # On this machine an agent that names no provider finds the user's own keys, as before.
        if where == "local" and not self.needs.providers:
            return None
        if self.network == "full" and not self._providers:
            return None
        return self._allowed_until

    def _allowed_until(self, deadline: float) -> Policy:
        from pytest_mlrbench.sandbox.gate import Policy
        from pytest_mlrbench.sandbox.gate_addresses import Host

        return Policy(
            deadline=deadline,
            config=self._live.config,
            providers=self._providers,
            models=self.needs.models if self.needs else None,
            hosts=[Host.parse(text) for text in self.options.allow_host],
            max_cost=self.options.agent_max_cost,
            web_tools=self.network == "full",
        )

    def digest(self, stage: str) -> str:
        """Digest of what the place adds to the agent; empty for this machine.

        What is in the user's data folders is not looked at: they may be as large as a disk.
        """
        return self._content if self.place(stage) == "docker" else ""

    @cached_property
    def _content(self) -> str:
        return digests.of_json(self.settings())

    def settings(self) -> dict[str, str]:
        """What containers are given, in words; empty if there are none."""
        if not self.uses("docker"):
            return {}
        return {
            "image": f"{self.options.image or IMAGE} {self.container.digest}",
            "network": self.network,
            "hosts": ", ".join(self.options.allow_host),
            "data": ", ".join(f"{p}:{name}" for name, p in (self.options.data or {}).items()),
            "limits": " ".join(
                f"{name}={value}"
                for name, value in asdict(self.limits).items()
                if value is not None
            ),
            "gpus": "one a case" if self.gpus.uuids else "none",
        }

    @asynccontextmanager
    async def open(
        self, run: str, case: Case, folder: Path, *, again: str = ""
    ) -> AsyncIterator[Room | None]:
        """Wait for what *case* needs, and hold it until it has ended.

        :param folder: of the case.
        :param again: folder below it, for a command that is run once more: it reaches no network.
        """
        place = self.place(case.stage)
        if place is None:
            yield None
            return
        from pytest_mlrbench.models.redaction import of_environment
        from pytest_mlrbench.sandbox.gpu_usage import watch
        from pytest_mlrbench.sandbox.heartbeat import Heart, beating
        from pytest_mlrbench.sandbox.ownership import remove_home

        contained, own = place == "docker", folder / again
        own.mkdir(parents=True, exist_ok=True)
        room = Room(
            sandbox=self.container if contained else self.local,
            run=run,
            case=case.name,
            folder=own,
            network=self.network if contained and not again else "none",
            policy=None if again else self._policy(place),
            hold=self._live.hold,
            data=self.options.data or {},
            hosts=self.options.allow_host,
        )
        heart = Heart(case.name, place, own / "agent.log", of_environment())
        async with AsyncExitStack() as held:
            held.push_async_callback(asyncio.to_thread, remove_home, room.home)
            await held.enter_async_context(beating(folder, heart))
            heart.state = "waits for the budget"
            await held.enter_async_context(room.allowance())
            if self.gpus.uuids and STAGES[case.stage].runs_code:
                heart.state = "waits for a GPU"
                room.gpus = await held.enter_async_context(self._leases.take(case=case.name))
                heart.gpus = await held.enter_async_context(watch(room.gpus, room.ledger))
            heart.state = "is run again" if again else "runs"
            yield room

    def leave(self) -> None:
        """Let go of the engine, and remove what workers that have died left in it."""
        if "container" in vars(self):
            self.container.close()

    def replace(self, container: DockerSandbox) -> None:
        """Run commands in the containers of another sandbox from now on."""
        if container is not self.container:
            self.leave()
            self.container = container

    def describe(self) -> list[str]:
        """Return what to tell people of it, a line for containers and one for local processes."""
        lines = []
        contained = [stage for stage in self.stages if self.place(stage) == "docker"]
        if contained:
            parts = [
                f"containers of image {self.options.image or IMAGE}",
                f"network {self.network}",
                *([self.gpus.described] if self.gpus.described else []),
            ]
            stages = "" if contained == list(self.stages) else f" in {', '.join(contained)}"
            lines.append(f"mlrbench: commands run{stages} in {', '.join(parts)}")
        local = [stage for stage in self.stages if self.place(stage) == "local"]
        if any(STAGES[stage].runs_code for stage in local):
            gpus = f", {self.gpus.described}" if self.gpus.uuids else ""
            lines.append(f"mlrbench: commands run as processes of yours, in no sandbox{gpus}")
        return lines
