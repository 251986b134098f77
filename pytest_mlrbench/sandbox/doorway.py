"""What of the network a container sees: a namespace that another container holds for it.

That one runs nothing but the way to the gate: a port of the loopback that leads to the gate's
socket on this machine. The agent's container joins its namespace, and finds the port and nothing
else: no interface, no names, no engine's gateway.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.sandbox.base import Limits
from pytest_mlrbench.sandbox.container_options import GATE, GATE_PORT, Account, bind, confined
from pytest_mlrbench.sandbox.handover import US
from pytest_mlrbench.sandbox.labels import labels

if TYPE_CHECKING:
    from docker import DockerClient

    from pytest_mlrbench.sandbox.stay import Stay

#: It needs little, however many connections the agent opens.
_LIMITS = Limits(memory=128 * 2**20, pids=512, shm=2**16, tmp=2**16)
#: Whom it runs as where we are root; no account of an image has this number by custom.
_KEEPER = Account(65532, 65532)


def open_network(client: DockerClient, image: str, stay: Stay, is_rootless: bool) -> str:
    """Make what the job of *stay* may reach, and return the network mode for its container.

    :param image: of the container that holds the way to the gate; it has ``socat``.
    :param is_rootless: whether root in containers is us outside.
    """
    job, marks = stay.job, labels(stay.job.run, stay.job.case)
    network = "none"
    if job.network == "full":
        # Of its own, with a way out: no other case is on it.
        network = stay.name("network", "net")
        client.networks.create(network, driver="bridge", labels=marks)
    if job.gate is None or job.network == "none":
        return network
    door = stay.name("container", "door")
    listen = f"TCP-LISTEN:{GATE_PORT},bind=127.0.0.1,fork,reuseaddr,backlog=128"
    client.containers.create(
        image,
        entrypoint=["/usr/bin/socat"],
        command=[listen, f"UNIX-CONNECT:{GATE}/{job.gate.name}"],
        name=door,
        labels=marks,
        network=None if network == "none" else network,
        network_mode="none" if network == "none" else None,
        user=str(US if is_rootless else _keeper(job.gate)),
        init=True,
        # Connecting to a socket needs no right to write. Nothing else is in its folder.
        mounts=[bind(GATE, job.gate.parent)],
        environment={"NVIDIA_VISIBLE_DEVICES": "void"},
        **confined(_LIMITS),
    ).start()
    return f"container:{door}"


def _keeper(gate: Path) -> Account:
    """Whom it runs as: us, or if we are root, somebody who is then given the socket's folder."""
    if os.getuid() != 0:
        return Account(os.getuid(), os.getgid())
    os.chown(gate.parent, _KEEPER.uid, _KEEPER.gid)
    return _KEEPER
