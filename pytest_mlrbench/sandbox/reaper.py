"""What dead processes left in an engine: found by its labels, and removed.

Nothing is ever touched that has no owner's label of ours, or whose owner may still live.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.sandbox.engine import engine_faults
from pytest_mlrbench.sandbox.labels import CASE, GPU, OWNER, RUN, is_dead

if TYPE_CHECKING:
    from docker import DockerClient

#: Seconds to wait for the end of a removal that somebody else has begun.
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Thing:
    """A container, network or volume of ours.

    :param gpus: ids of the GPUs it holds.
    """

    kind: Literal["container", "network", "volume"]
    id: str
    name: str
    run: str
    case: str
    owner: str
    gpus: tuple[str, ...] = ()

    @property
    def is_left(self) -> bool:
        """Whether its owner has ended."""
        return is_dead(self.owner)


def things(client: DockerClient) -> list[Thing]:
    """Return all that is labelled as ours, containers first: networks cannot go before them.

    :raises SystemFault: the engine cannot say.
    """
    only = {"label": OWNER}
    with engine_faults("the engine was asked for leftovers"):
        found = [
            _thing("container", it["Id"], (it["Names"] or ["/?"])[0].lstrip("/"), it["Labels"])
            for it in client.api.containers(all=True, filters=only)
        ]
        for it in client.api.networks(filters=only):
            found.append(_thing("network", it["Id"], it["Name"], it["Labels"]))
        for it in client.api.volumes(filters=only)["Volumes"] or ():
            found.append(_thing("volume", it["Name"], it["Name"], it["Labels"]))
    return found


def _thing(kind: Any, id: str, name: str, labels: dict[str, str]) -> Thing:
    gpus = tuple(filter(None, labels.get(GPU, "").split(",")))
    return Thing(kind, id, name, labels.get(RUN, ""), labels.get(CASE, ""), labels[OWNER], gpus)


def sweep(client: DockerClient, gpu: str | None = None) -> list[Thing]:
    """Remove what dead owners left, and return it; all of it is gone then.

    :param gpu: only what holds this GPU.
    :raises SystemFault: something of it cannot be removed.
    """
    found = [it for it in things(client) if it.is_left and (gpu is None or gpu in it.gpus)]
    for it in found:
        remove(client, it.kind, it.id)
    return found


def remove(client: DockerClient, kind: str, name: str) -> None:
    """Remove one thing by force, and return when it is gone; no error if it is gone already.

    :raises SystemFault: it cannot be removed.
    """
    from docker.errors import APIError, NotFound

    removals: dict[str, Callable[[], None]] = {
        "container": lambda: client.api.remove_container(name, force=True, v=True),
        "network": lambda: client.api.remove_network(name),
        "volume": lambda: client.api.remove_volume(name, force=True),
    }
    with engine_faults(f"the {kind} {name} could not be removed"):
        for last in _attempts():
            try:
                return removals[kind]()
            except NotFound:
                return
            except APIError:
                # Somebody else removes it at the moment, or the kernel still holds a part of it.
                if last:
                    raise


def _attempts() -> Iterator[bool]:
    """Yield whether this attempt is the last, for as long as there is patience."""
    end = time.monotonic() + _PATIENCE
    pause = 0.05
    while time.monotonic() < end:
        yield False
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
    yield True


def remove_quietly(client: DockerClient, kind: str, name: str) -> bool:
    """Remove one thing as :func:`remove` does, and return whether it is gone."""
    with contextlib.suppress(SystemFault):
        remove(client, kind, name)
        return True
    return False
