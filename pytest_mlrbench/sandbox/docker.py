"""Containers: where commands of agents run that are not trusted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.sandbox import engine_limits, reaper
from pytest_mlrbench.sandbox.base import Ended, Job, Limits
from pytest_mlrbench.sandbox.cgroup import ControlGroup
from pytest_mlrbench.sandbox.container_options import (
    Account,
    agent_account,
    confined,
    devices,
    home_of,
    options,
)
from pytest_mlrbench.sandbox.contents import Content
from pytest_mlrbench.sandbox.doorway import open_network
from pytest_mlrbench.sandbox.ending import Cause, Seen, lasted, reason_of
from pytest_mlrbench.sandbox.engine import LOCALLY, connect, engine_faults
from pytest_mlrbench.sandbox.handover import US, hand_over
from pytest_mlrbench.sandbox.image import Image, examine
from pytest_mlrbench.sandbox.image_files import content_of
from pytest_mlrbench.sandbox.labels import labels
from pytest_mlrbench.sandbox.limits import words_of
from pytest_mlrbench.sandbox.ownership import give, warn
from pytest_mlrbench.sandbox.stay import Stay
from pytest_mlrbench.sandbox.threads import in_thread

if TYPE_CHECKING:
    from docker import DockerClient

    from pytest_mlrbench.sandbox.recorder import Recorder

#: Seconds between SIGTERM and SIGKILL.
GRACE = 5.0
#: Seconds before the deadline at which the agent finds a file that says so, and the share of its
#: time that this is at most.
WARNING, WARNING_SHARE = 300.0, 0.05
#: Seconds between looks at the container while nothing is heard of it.
TICK = 0.5
#: Seconds that what is left of a container that has ended may still take.
DRAIN = 60.0


class DockerSandbox:
    """Runs each command in a container of its own.

    The steps of :meth:`run` can be overridden: :meth:`create`, :meth:`start`, :meth:`conclude` and
    :meth:`remove` are called in threads, :meth:`follow` and :meth:`stop` on the loop.

    :param image: name of the image.
    :param gpus: ids that the engine is tried with before the first case.
    """

    name = "docker"
    #: What the image must have; looked for when it is examined, so before the first case.
    wanted: Sequence[Content] = ()
    #: What to do where no engine can be started, as :func:`connect` says it.
    otherwise = LOCALLY

    def __init__(self, image: str, limits: Limits, gpus: tuple[str, ...] = ()) -> None:
        self.image = image
        self.limits = limits
        self.gpus = gpus
        #: Kinds and names of what could not be removed when it should have been.
        self._left: set[tuple[str, str]] = set()

    @cached_property
    def client(self) -> DockerClient:
        """The way to the engine; made when it is first needed, in each process."""
        return connect(self.otherwise)

    @cached_property
    def examined(self) -> Image:
        """The image, as it is when it is first needed."""
        bound = {**confined(self.limits), **devices(self.gpus)}
        with engine_faults("the engine was asked about itself"):
            account = self.account
        return examine(self.client, self.image, bound, account, self.wanted)

    @cached_property
    def is_rootless(self) -> bool:
        """Whether users in containers are others outside, and their root is us."""
        return engine_limits.is_rootless(self.client.info())

    @property
    def account(self) -> Account:
        """Whom agents run as."""
        return Account(1000, 1000) if self.is_rootless else agent_account()

    @property
    def outside(self) -> Account | None:
        """Who that is on this machine; null where files here belong to nobody in containers."""
        return None if self.is_rootless else self.account

    @property
    def digest(self) -> str:
        """Digest of the image."""
        return self.examined.id

    def prepare(self) -> None:
        """Check the engine, the limits and the image, and remove what dead owners left.

        :raises InputError: one of them is of no use.
        """
        import psutil

        try:
            with engine_faults("the Docker engine was asked about itself"):
                info = self.client.info()
            engine_limits.check(info, self.limits, psutil.swap_memory().total)
            reaper.sweep(self.client)
        except SystemFault as fault:
            raise InputError(fault.message) from None
        _ = self.examined

    async def run(self, job: Job) -> Ended:
        """Run a command as the contract of :class:`~pytest_mlrbench.sandbox.base.Sandbox` says."""
        stay = Stay(job, asyncio.get_running_loop())
        try:
            await in_thread(self.create, stay)
            await in_thread(self.start, stay)
            cause = await self.follow(stay)
            await self.stop(stay, cause)
            # Also where it was ended for that: it went on writing until it was.
            if cause in ("exit", "disk") and await in_thread(stay.disk.look):
                cause = "disk"
            return await in_thread(self.conclude, stay, cause)
        finally:
            await in_thread(self.remove, stay)

    def close(self) -> None:
        """Let go of the engine, once what killed workers left there has been removed."""
        if "client" in vars(self):
            with contextlib.suppress(SystemFault):
                self.remove_left()
                reaper.sweep(self.client)
            self.client.close()
            del self.client

    def create(self, stay: Stay) -> None:
        """Make the agent's container and what it needs, and start all but itself."""
        job, image = stay.job, self.examined
        with engine_faults("no container could be made"):
            self.remove_left()
            self.give(stay)
            network = self.network(stay)
            arguments = options(job, self.limits, image.path)
            stay.recorder = self.recorder(job)
            if stay.recorder:
                command = stay.recorder.command()
                arguments["user"] = "0:0"
                arguments["cap_add"] = list(stay.recorder.capabilities)
                arguments["security_opt"] += stay.recorder.security_options
            else:
                command = list(job.command)
                arguments.update(user=str(self.account), init=True)
            stay.container = self.client.containers.create(
                image.id,
                entrypoint=command[:1],
                command=command[1:],
                name=stay.name("container", "agent"),
                labels=labels(job.run, job.case, job.gpus),
                network_mode=network,
                **arguments,
            )

    def give(self, stay: Stay) -> None:
        """Make the folders that the agent may write to its own."""
        home_of(stay.job).mkdir(parents=True, exist_ok=True)
        if self.is_rootless:
            stay.is_given = True
            hand_over(self.client, self.examined.id, stay.job, stay.folders, self.account)
        else:
            for folder in stay.folders:
                give(folder, self.account)

    def take_back(self, stay: Stay) -> None:
        """Make them ours, where they are not: what the agent left is to be read here."""
        if stay.is_given:
            hand_over(self.client, self.examined.id, stay.job, stay.folders, US)
            stay.is_given = False

    def recorder(self, job: Job) -> Recorder | None:
        """Return what records the job; null, and a word in the ledger, if the image has no tracer.

        It runs as root in the container, and the agent below it as somebody else.
        """
        if "tracer" not in self.examined.tools:
            job.ledger.write("blind", why="the image has no strace and setpriv in /usr/bin")
            return None
        from pytest_mlrbench.sandbox.recorder import Recorder

        return Recorder(job, uid=self.account.uid, gid=self.account.gid)

    def network(self, stay: Stay) -> str:
        """Make what the job may reach, and return the network mode of the agent's container."""
        job = stay.job
        if job.gate and job.network != "none" and "doorway" not in self.examined.tools:
            raise SystemFault("start", f"image {self.image!r} has no socat, which networks need.")
        return open_network(self.client, self.examined.id, stay, self.is_rootless)

    def start(self, stay: Stay) -> None:
        """Start the agent's container, with its output being read from the first byte on."""
        with engine_faults("the container could not be started", cause="start"):
            stay.listen(self.client, self.limits)
            stay.container.start()
            stay.started = time.monotonic()
            pid = self.client.api.inspect_container(stay.container.id)["State"]["Pid"]
        stay.disk.group = stay.group = ControlGroup(pid, stay.container.id)
        if stay.recorder:
            stay.recorder.started(pid)

    async def follow(self, stay: Stay) -> Cause:
        """Wait until the command has ended or must be ended, and return why.

        :raises SystemFault: the engine or the machine failed.
        """
        left = stay.job.deadline - time.time()
        end = time.monotonic() + left
        warning = end - min(WARNING, left * WARNING_SHARE)
        while True:
            stay.look()  # also when it has ended: its control group may still be there
            if stay.is_over:
                return "exit"
            stay.disk.check_disk()
            if stay.disk.is_over:
                return "disk"
            now = time.monotonic()
            if now >= end:
                return "timeout"
            if now >= warning:
                warn(home_of(stay.job), end - now)
                warning = end
            await stay.wait(min(TICK, end - now))

    async def stop(self, stay: Stay, cause: Cause) -> None:
        """End the container: with a warning first if its time is up, at once otherwise."""
        if cause == "timeout":
            await in_thread(self._signal, stay)
            await stay.wait_for_end(GRACE)
        elif cause == "exit":
            # What the agent has left running ends with it; the container itself soon does.
            await stay.wait_for_end(TICK)
        if not stay.has_ended:
            await in_thread(self._kill, stay)
            await stay.wait_for_end(DRAIN)
        await stay.wait_until_read(DRAIN)

    def _signal(self, stay: Stay) -> None:
        """Send SIGTERM to all processes but the first, from inside: where they can be seen.

        A container that is full of processes has no room for it, and is killed after the grace.
        """
        from docker.errors import APIError

        user = "0:0" if stay.recorder else str(self.account)
        command = ["/bin/sh", "-c", "kill -TERM -1"]
        with engine_faults("the container could not be warned"), contextlib.suppress(APIError):
            stay.container.exec_run(command, user=user, detach=True)

    def _kill(self, stay: Stay) -> None:
        from docker.errors import APIError

        with engine_faults("the container could not be ended"), contextlib.suppress(APIError):
            stay.container.kill()  # an APIError: it has ended meanwhile, which conclude() will see

    def conclude(self, stay: Stay, cause: Cause) -> Ended:
        """Say how the command ended, once its container has.

        :raises SystemFault: it was ended by something that is not the agent's doing.
        """
        from docker.errors import NotFound

        with engine_faults("the end of the container could not be seen"):
            try:
                stay.container.wait(timeout=DRAIN)
                state = self.client.api.inspect_container(stay.container.id)["State"]
            except NotFound:
                raise SystemFault("engine", "somebody removed the container.") from None
            stay.check()
            self.take_back(stay)
        recorder = stay.recorder
        if recorder and not recorder.has_begun:
            words = recorder.complaint or " ".join(stay.output.tail.split())[-200:]
            why = words or "no reason given"
            raise SystemFault("start", f"the agent's program could not be started: {why}")
        began, left = lasted(state, recorder.main_ended if recorder else None)
        if cause == "timeout" and left < stay.job.deadline:
            cause = "exit"  # which was seen too late only since there was so much to be read
        seen = Seen(
            cause=cause,
            state=state,
            recorded=recorder is not None,
            main_exit=recorder.main_exit if recorder else None,
            forks_refused=stay.forks_refused,
            free_memory=stay.free_memory,
        )
        reason, code = reason_of(seen)
        disk = stay.disk.measured if reason == "disk" else None
        ended = Ended(reason, code, max(left - began, 0.0), stay.output.tail, disk)
        self._record(stay, ended)
        return ended

    def _record(self, stay: Stay, ended: Ended) -> None:
        """Write down how the command ended."""
        facts = ended.facts(self.limits)
        if stay.recorder:
            stay.recorder.finish(facts, is_read=stay.is_read)
        else:
            stay.job.ledger.write("end", **facts)
        if ended.reason == "memory" and ended.code == 0:  # which is no fault of the agent's
            stay.output.remark(
                "a program was killed when the agent used more memory than its"
                f" {words_of(self.limits.memory)} (--mlr-limits memory=); the agent went on"
            )

    def remove(self, stay: Stay) -> None:
        """Remove all that the command had in the engine; what cannot be is tried again later."""
        try:
            for kind, name in reversed(stay.names):
                if not reaper.remove_quietly(self.client, kind, name):
                    self._left.add((kind, name))
            with contextlib.suppress(SystemFault), engine_faults("the case was not given back"):
                self.take_back(stay)
        finally:
            stay.close()

    def content(self, path: str, most: int) -> bytes | None:
        """Return what a file of the image holds; null if it is none, or has more than *most* bytes.

        :raises SystemFault: the engine cannot be asked.
        """
        with engine_faults("a file of the image could not be read"):
            return content_of(self.client, self.digest, path, most)

    def remove_left(self) -> None:
        """Remove what could not be removed when it should have been.

        :raises SystemFault: the engine still cannot.
        """
        for kind, name in sorted(self._left):  # containers come before networks
            reaper.remove(self.client, kind, name)
            self._left.discard((kind, name))
