"""The Docker engine: how it is reached, and its errors as sentences."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_mlrbench.errors import InputError, SystemFault

if TYPE_CHECKING:
    from docker import DockerClient

#: Seconds an answer of the engine may take; a busy one takes seconds to start a container.
TIMEOUT = 120
#: What to do without an engine: in a new run, and in one that had one.
LOCALLY = ", or add --mlr-sandbox=local for agents you trust with your own account"
NOT_AGAIN = ", as only the engine knows whether the image of this run is still the same"


def connect(otherwise: str = "") -> DockerClient:
    """Return a client of the engine that ``DOCKER_HOST`` or the usual socket leads to.

    :param otherwise: end of a sentence that tells to start an engine.
    :raises InputError: there is none, it does not answer, or it is on another machine.
    """
    try:
        import docker
    except ImportError:
        raise InputError(
            "containers need the Python package docker: pip install"
            f" 'pytest-mlrbench[docker]'{otherwise}."
        ) from None
    address = os.environ.get("DOCKER_HOST", "")
    if address and not address.startswith(("unix://", "/")):
        raise InputError(  # without the address, as there may be a password in it
            "DOCKER_HOST names no socket of this machine, and containers work on its folders: name"
            " a unix:// socket, or run this where the engine is."
        )
    path = address.removeprefix("unix://") or _usual_socket()
    try:
        with socket.socket(socket.AF_UNIX) as knocking:  # the SDK would leave its own one open
            knocking.connect(path)
        return docker.DockerClient(base_url=f"unix://{path}", version="auto", timeout=TIMEOUT)
    except Exception as error:
        where, remedy = path, "start it, or name another by DOCKER_HOST"
        if address:
            where, remedy = f"DOCKER_HOST={address}", "start it, or correct DOCKER_HOST"
        raise InputError(
            f"no Docker engine answers at {where} ({reason(error)}): {remedy}{otherwise}."
        ) from None


def _usual_socket() -> str:
    """The engine's socket, or a rootless engine's if there is only that one."""
    usual, own = "/var/run/docker.sock", f"/run/user/{os.getuid()}/docker.sock"
    return own if not os.path.exists(usual) and os.path.exists(own) else usual


@contextmanager
def engine_faults(doing: str, cause: str = "engine") -> Iterator[None]:
    """Turn whatever the engine or the way to it raises into a fault of the system.

    :param doing: what was being done, as ``starting the container``.
    :param cause: of what the engine itself refuses; where it cannot be asked, it is ``engine``.
    """
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (DockerException, RequestException, HTTPError, OSError) as error:
        lost = isinstance(error, RequestException | HTTPError | ConnectionError)
        cause = "engine" if lost and not isinstance(error, APIError) else cause
        if "could not select device driver" in str(error):
            raise SystemFault(cause, f"{doing}: {NO_GPU_DRIVER}.") from None
        if _is_full(error):
            raise SystemFault("host_disk", f"{doing}: the engine's disk is full.") from None
        raise SystemFault(cause, f"{doing}: {reason(error)}.") from None


NO_GPU_DRIVER = (
    "the engine gives no GPUs to containers: install the NVIDIA Container Toolkit, or add"
    " --mlr-gpus=0"
)


def _is_full(error: BaseException) -> bool:
    return "no space left on device" in str(error).lower()


def reason(error: BaseException) -> str:
    """Return what went wrong as a part of a sentence, without the layers it came through."""
    text = str(error)
    explanation = getattr(error, "explanation", None)
    if isinstance(explanation, bytes):
        explanation = explanation.decode("utf-8", "replace")
    if explanation:
        # The last part names the cause, e.g. `… runc create failed: exec: "x": not found`.
        return " ".join(explanation.split()).rstrip(".: ")
    for sign, words in (
        ("Connection refused", "nothing listens on the engine's socket"),
        ("No such file", "there is no socket of an engine"),
        ("FileNotFoundError", "there is no socket of an engine"),
        ("Permission denied", "this account may not use the engine's socket"),
        ("PermissionError", "this account may not use the engine's socket"),
        ("timed out", "the engine did not answer in time"),
        ("Connection aborted", "the engine closed the connection"),
        ("Connection reset", "the engine closed the connection"),
    ):
        if sign in text:
            return words
    return " ".join(text.split()).rstrip(".: ") or type(error).__name__
