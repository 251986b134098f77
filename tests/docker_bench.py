"""Ways of tests to run agents in containers, and to have engines of their own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_mlrbench.sandbox import ledger
from pytest_mlrbench.sandbox.base import Ended, Job, Limits
from pytest_mlrbench.sandbox.docker import DockerSandbox

IMAGE = os.environ.get("MLRBENCH_TEST_IMAGE", "mlrbench-base:ci")
ENGINE_SCRIPT = Path(__file__).parents[1] / "ci/docker/engine.sh"
#: Small, so that tests reach them soon.
SMALL = Limits(
    memory=256 * 2**20,
    cpus=1.0,
    pids=64,
    shm=2**20,
    tmp=16 * 2**20,
    disk=32 * 2**20,
    log=10_000,
)


class Bench:
    """Runs scripts of a shell as agents would be run, each in a case folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_id = f"test-{uuid.uuid4().hex[:12]}"
        self._count = 0
        self._sandboxes: list[DockerSandbox] = []

    def sandbox(
        self, kind: type[DockerSandbox] = DockerSandbox, image: str = IMAGE, **limits: Any
    ) -> DockerSandbox:
        """Return a sandbox with small limits."""
        made = kind(image=image, limits=replace(SMALL, **limits))
        self._sandboxes.append(made)
        return made

    def job(self, script: str, *, seconds: float = 60.0, **fields: Any) -> Job:
        """Return a job that runs *script*, which has *seconds*."""
        self._count += 1
        case = self.folder / f"case-{self._count}"
        workspace = case / "submission"
        workspace.mkdir(parents=True)
        given: dict[str, Any] = {
            "run": self.run_id,
            "case": f"case-{self._count}",
            "command": ["/bin/sh", "-c", script],
            "workspace": workspace,
            "files": {},
            "environment": {},
            "deadline": time.time() + seconds,
            "log": case / "agent.log",
            "ledger": ledger.Ledger(case / "ledger.jsonl"),
        }
        return Job(**{**given, **fields})

    def run(self, job: Job, sandbox: DockerSandbox | None = None) -> Ended:
        """Run *job* to its end."""
        return asyncio.run((sandbox or self.sandbox()).run(job))

    def say(self, script: str, **fields: Any) -> str:
        """Return what *script* prints."""
        job = self.job(script, **fields)
        self.run(job)
        return job.log.read_text("utf-8", "replace")

    def close(self) -> None:
        """Let go of the engine."""
        for sandbox in self._sandboxes:
            sandbox.close()


def names(client: Any, run: str) -> list[str]:
    """Names of all containers and networks of a run."""
    wanted = {"label": [f"mlrbench.run={run}"]}
    containers = [it["Names"][0] for it in client.api.containers(all=True, filters=wanted)]
    return containers + [it["Name"] for it in client.api.networks(filters=wanted)]


class OwnEngine:
    """A second engine on this machine, which a test may stop and kill."""

    OPTIONS = ("--bridge=none", "--iptables=false", "--ip6tables=false")

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = {**os.environ, **environment}
        self.address = f"unix://{folder}/d.sock"

    def do(self, action: str) -> None:
        """``start``, ``stop``, ``kill`` or ``remove`` it."""
        options = self.OPTIONS if action == "start" else ()
        command = [str(ENGINE_SCRIPT), action, str(self.folder), *options]
        subprocess.run(command, env=self._environment, check=True, timeout=60)

    def load(self, image: str) -> None:
        """Give it an image of the usual engine."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saving:
            load = ["docker", "--host", self.address, "load", "--quiet"]
            subprocess.run(load, stdin=saving.stdout, check=True, stdout=subprocess.DEVNULL)
