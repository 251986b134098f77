"""The place of one case: a sandbox, a GPU, a way to its models, a ledger."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.sandbox.base import WORKSPACE, Ended, Job, Network, Sandbox
from pytest_mlrbench.sandbox.ledger import Ledger
from pytest_mlrbench.spent import Spent

if TYPE_CHECKING:
    from pytest_mlrbench.models.budget import Reservation
    from pytest_mlrbench.sandbox.gate import Gate, Policy

#: Variables with the addresses and keys of models → those of the command.
Environment = Callable[[Mapping[str, str]], Mapping[str, str]]


@dataclass(slots=True)
class Room:
    """Where the commands of one case run.

    :param folder: of the case.
    :param network: what a container reaches.
    :param policy: deadline → what the case may ask of models and other hosts; null for nothing.
    :param gpus: lent to the case, by UUID.
    """

    sandbox: Sandbox
    run: str
    case: str
    folder: Path
    network: Network = "none"
    policy: Callable[[float], Policy] | None = None
    #: Holds what the case may cost; asked before the case begins.
    hold: Callable[[str], Awaitable[Reservation]] | None = None
    data: Mapping[str, Path] = field(default_factory=dict)
    hosts: Sequence[str] = ()
    gpus: Sequence[str] = ()
    #: File that the container has → file of this machine in its place.
    overlays: Mapping[str, Path] = field(default_factory=dict)
    #: What the models asked so far have used; null if none could be asked.
    spent: Spent | None = None
    #: What is wrong with a provider, if its last answer was none; empty otherwise.
    failing: str = ""
    #: What was seen of the case: one for all who write it, as each line follows from the last.
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.folder / "ledger.jsonl")

    @property
    def is_container(self) -> bool:
        """Whether commands see the files of an image, not those of this machine."""
        return self.sandbox.name == "docker"

    @property
    def home(self) -> Path:
        """The home of the agent on this machine; gone when the case has ended."""
        return self.folder / "home"

    async def execute(
        self,
        command: Sequence[str],
        work: Assignment,
        *,
        environment: Environment,
        files: Mapping[str, Path],
    ) -> Ended:
        """Run *command* for *work* to its end.

        :param environment: gives the variables beside those of the contract.
        :param files: name below ``/agent`` → file of this machine, for containers.
        :raises SystemFault: it could not be run to its end.
        """
        gate = None
        try:
            async with self._gate(work.deadline) as gate:
                return await self.sandbox.run(self._job(command, work, environment, files, gate))
        finally:
            if gate:  # which waits for answers that are under way, before it is closed
                self.failing = gate.failing
                self.spent = Spent.total([*([self.spent] if self.spent else []), gate.spent()])

    @asynccontextmanager
    async def allowance(self) -> AsyncIterator[None]:
        """Hold what the case may spend on models until it has ended, and count what it has.

        :raises SystemFault: it does not fit into the run's budget.
        """
        if self.policy is None or self.hold is None:
            yield
            return
        from pytest_mlrbench.models.exchange import Usage

        held = await self.hold(self.case)
        try:
            yield
        finally:
            spent = self.spent or Spent.total(())
            used = Usage(input=spent.input, output=spent.output)
            held.answered(used, spent.cost_usd, silent=0)

    def _job(
        self,
        command: Sequence[str],
        work: Assignment,
        environment: Environment,
        files: Mapping[str, Path],
        gate: Gate | None,
    ) -> Job:
        return Job(
            run=self.run,
            case=self.case,
            command=command,
            workspace=work.workspace,
            files=files,
            environment={
                **environment(gate.environment() if gate else {}),
                **work.environment,
                "MLR_WORKSPACE": WORKSPACE if self.is_container else str(work.workspace),
            },
            deadline=work.deadline,
            log=work.log,
            ledger=self.ledger,
            data=self.data,
            overlays=self.overlays,
            gpus=self.gpus,
            network=self.network,
            gate=gate.path if gate else None,
        )

    @asynccontextmanager
    async def _gate(self, deadline: float) -> AsyncIterator[Gate | None]:
        if self.policy is None:
            yield None
            return
        from pytest_mlrbench.sandbox.gate import Gate

        async with AsyncExitStack() as held:
            path = None
            if self.is_container:
                # Not in the case's folder: the path of a socket has about 100 characters at most.
                folder = held.enter_context(tempfile.TemporaryDirectory(prefix="mlrbench-"))
                path = Path(folder, "gate.sock")
            yield await held.enter_async_context(Gate(self.policy(deadline), self.ledger, path))
