"""The image that containers are made of: whether it is there, and what it has."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.sandbox.base import WORKSPACE
from pytest_mlrbench.sandbox.container_options import HOME, Account
from pytest_mlrbench.sandbox.contents import BUILD, Content, first_lacking, question
from pytest_mlrbench.sandbox.engine import engine_faults
from pytest_mlrbench.sandbox.labels import labels
from pytest_mlrbench.sandbox.reading import Reading

if TYPE_CHECKING:
    from docker import DockerClient

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What a recorder runs, and what leads to the gate: name → files that must be there.
_TOOLS = {
    "tracer": ("/usr/bin/strace", "/usr/bin/setpriv", "/bin/chown"),
    "doorway": ("/usr/bin/socat",),
}


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it is now.

    :param id: digest; what the name stands for may change while a run goes on.
    :param path: its ``PATH``.
    :param tools: those of ours that it has: ``tracer``, ``doorway``.
    """

    id: str
    path: str
    tools: frozenset[str]


def examine(
    client: DockerClient,
    name: str,
    options: dict[str, Any],
    account: Account,
    wanted: Sequence[Content] = (),
) -> Image:
    """Look at the image *name*, and run it once with *options* to see what it has.

    :param account: whom agents run as.
    :raises InputError: it is missing, nothing can be run in it under these options, or it lacks
        something that is *wanted*.
    """
    from docker.errors import ImageNotFound

    try:
        with engine_faults("the engine was asked for the image"):
            try:
                found = client.images.get(name)
            except ImageNotFound:
                raise InputError(
                    f"the engine has no image {name!r}: build it by `{BUILD.format(name)}` in the"
                    " project's repository, pull it, or name another with --mlr-image."
                ) from None
        digest = str(found.id)
        said = _probe(client, digest, _as_cases_find_it(options, account), wanted)
    except SystemFault as fault:
        raise InputError(f"image {name!r} cannot be run: {fault.message}") from None
    if lacking := first_lacking(wanted, said):
        raise InputError(lacking.lacking(name))
    variables = dict(word.split("=", 1) for word in found.attrs["Config"].get("Env") or ())
    return Image(digest, variables.get("PATH", _PATH), frozenset(said) & _TOOLS.keys())


def _as_cases_find_it(options: dict[str, Any], account: Account) -> dict[str, Any]:
    """Hide what an image has where the folders of a case will be, and from whom it is kept."""
    empty = dict.fromkeys((WORKSPACE, HOME), "size=1m,mode=1777")
    return {
        **options,
        "tmpfs": {**options.get("tmpfs", {}), **empty},
        "working_dir": WORKSPACE,
        "user": str(account),
    }


def _probe(
    client: DockerClient, image: str, options: dict[str, Any], wanted: Sequence[Content]
) -> list[str]:
    """Return the names of the tools that the image has, and words for what of *wanted* it lacks."""
    script = "; ".join(
        " && ".join([*(f"[ -x {path} ]" for path in paths), f"echo {tool}"])
        for tool, paths in _TOOLS.items()
    )
    with engine_faults("nothing can be started in it"):
        container = client.containers.create(
            image,
            entrypoint=["/bin/sh"],
            command=["-c", f"{script}\n{question(wanted)}\n:"],
            name=f"mlrbench-probe-{uuid.uuid4().hex[:12]}",
            labels=labels("", "probe"),
            network_mode="none",
            init=True,
            **options,
        )
        try:
            said = bytearray()
            pieces = container.attach(stdout=True, stderr=True, stream=True, logs=False)
            reading = Reading(pieces, said.extend, lambda: None)
            container.start()
            code = container.wait(timeout=60)["StatusCode"]
            reading.ended.wait(10)
            reading.close()
        finally:
            container.remove(force=True)
    words = said.decode("utf-8", "replace").split()
    if code != 0:
        raise SystemFault("start", f"its shell ended with exit code {code}: {' '.join(words)}")
    return words
