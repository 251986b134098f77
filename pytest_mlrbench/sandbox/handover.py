"""Giving an agent its folders under a rootless engine.

Its root is the account that started it, and its other users are numbers outside that this account
may not give files to. Inside of a container root may: so one is run for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox.base import Job, Limits
from pytest_mlrbench.sandbox.container_options import Account, bind, confined
from pytest_mlrbench.sandbox.labels import labels

if TYPE_CHECKING:
    from docker import DockerClient

#: Root inside, which is us outside.
US = Account(0, 0)
_LIMITS = Limits(memory=256 * 2**20, pids=64, shm=2**16, tmp=2**16)
_RIGHTS = ["CHOWN", "DAC_OVERRIDE", "FOWNER"]


def hand_over(
    client: DockerClient, image: str, job: Job, folders: Sequence[Path], to: Account
) -> None:
    """Make *folders* and all that is in them belong to *to*, as containers number accounts.

    :raises SystemFault: they cannot be given.
    """
    places = {f"/given/{number}": folder for number, folder in enumerate(folders)}
    container = client.containers.create(
        image,
        entrypoint=["/bin/chown"],
        command=["-hR", str(to), *places],
        name=f"mlrbench-{uuid.uuid4().hex[:12]}-owner",
        labels=labels(job.run, job.case),
        network_mode="none",
        user="0:0",
        mounts=[bind(place, folder, read_only=False) for place, folder in places.items()],
        cap_add=_RIGHTS,
        **confined(_LIMITS),
    )
    try:
        container.start()
        code = container.wait(timeout=600)["StatusCode"]
    finally:
        container.remove(force=True)
    if code != 0:
        raise SystemFault("start", f"the agent's folders could not be given to {to}.")
