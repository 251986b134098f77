"""The container engine: Docker, or Podman answering as Docker does, asked over its own socket."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple

from pytest_mlrbench.doctor.probe import Probe, Seen, within
from pytest_mlrbench.sandbox.contents import BUILD
from pytest_mlrbench.sandbox.options import IMAGE

#: Seconds an engine has for an answer.
PATIENCE = 2.0
SOCKET = Path("/var/run/docker.sock")
_START = "Start Docker or Podman's socket, or name an engine by DOCKER_HOST."


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


_Connect = Callable[[], HTTPConnection]


class _Engine(NamedTuple):
    """What was seen of an engine, and how to ask it; null for one that is not asked."""

    seen: Seen
    connect: _Connect | None = None


def probes() -> list[Probe]:
    """Return the looks at DOCKER_HOST or, without it, the usual sockets, and at the image there."""
    return [
        Probe(
            area="machine",
            name="engine",
            look=lambda: _find().seen,
            enables="Agents are run in its containers.",
        ),
        Probe(
            area="machine",
            name="image",
            look=_look_at_image,
            enables="Containers are made of it, unless --mlr-image names another.",
        ),
    ]


def _find() -> _Engine:
    host = os.environ.get("DOCKER_HOST", "").strip()
    if host:
        return _look_at_host(host)
    places = [SOCKET]
    if runtime := os.environ.get("XDG_RUNTIME_DIR", "").strip():
        places.append(Path(runtime, "docker.sock"))
    found = [_look_at_socket(str(place)) for place in places]
    # The one that works, or else the one that is at least there: it is what wants mending.
    for state in ("ok", "broken"):
        for one in found:
            if one.seen.state == state:
                return one
    where = " or ".join(str(place) for place in places)
    return _Engine(Seen("missing", f"there is no socket {where}", _START))


def _look_at_image() -> Seen:
    """Ask the engine for the image that runs use unless they name another."""
    engine = _find()
    if engine.seen.state != "ok" or engine.connect is None:
        return Seen("missing", "there is no engine to ask", "An engine is needed first.")
    build = f"To get it: `{BUILD.format(IMAGE)}` in the project's repository"
    try:
        answer = within(PATIENCE, partial(_ask_for, engine.connect, f"/images/{IMAGE}/json"))
    except (OSError, HTTPException) as error:
        return Seen("broken", f"the engine does not say whether it has {IMAGE}: {error}")
    if answer.status == HTTPStatus.NOT_FOUND:
        return Seen(
            "missing",
            f"the engine has no {IMAGE}",
            f"{build}, or name an image of yours with --mlr-image.",
        )
    if answer.status != HTTPStatus.OK:
        return Seen("broken", f"asked for {IMAGE}, the engine answers with status {answer.status}")
    return Seen("ok", f"the engine has {IMAGE}")


def _look_at_host(host: str) -> _Engine:
    """Look at the engine DOCKER_HOST names, if a run would take it.

    An address is not repeated, as there may be a password in it, and nobody is asked there.
    """
    if host.startswith(("unix://", "/")):
        return _look_at_socket(host.removeprefix("unix://") or str(SOCKET))
    seen = Seen(
        "broken",
        "DOCKER_HOST names no socket of this machine, and containers work on its folders",
        "Name a unix:// socket, or use pytest-mlrbench where the engine is.",
    )
    return _Engine(seen)


def _look_at_socket(path: str) -> _Engine:
    connect = partial(_UnixConnection, path, PATIENCE)
    return _Engine(_ask(path, connect), connect)


def _ask(where: str, connect: _Connect) -> Seen:
    """Ask the engine at *where* for a sign of life, and then for its version."""
    try:
        within(PATIENCE, partial(_get, connect, "/_ping"))
    except (FileNotFoundError, NotADirectoryError):
        return Seen("missing", f"there is no socket {where}", _START)
    except PermissionError:
        return Seen(
            "broken",
            f"no permission for {where}",
            "Join the group that owns the socket, or use a rootless engine.",
        )
    except TimeoutError:
        return Seen("broken", f"nothing answers at {where} within {PATIENCE:g} s", _START)
    except ConnectionError:
        return Seen("broken", f"nothing answers at {where}", _START)
    except HTTPException as error:
        return Seen("broken", f"what answers at {where} is no engine: {error}", _START)
    except OSError as error:  # a host without an address, a network without a route
        return Seen("broken", f"{where} is not reached: {error.strerror or error}", _START)
    return Seen("ok", f"{_version(connect)} answers at {where}")


class _Answer(NamedTuple):
    status: int
    body: bytes


def _get(connect: _Connect, path: str) -> bytes:
    """Return the body of an answer.

    :raises OSError: there is nobody to ask.
    :raises HTTPException: the answer is not one of an engine.
    """
    answer = _ask_for(connect, path)
    if answer.status != HTTPStatus.OK:
        raise HTTPException(f"GET {path} is answered with status {answer.status}")
    return answer.body


def _ask_for(connect: _Connect, path: str) -> _Answer:
    connection = connect()
    try:
        connection.request("GET", path)
        with connection.getresponse() as response:
            return _Answer(response.status, response.read(1 << 20))
    finally:
        connection.close()


def _version(connect: _Connect) -> str:
    """``Docker 28.2.2``; an engine that says nothing of itself works all the same."""
    try:
        about = json.loads(within(PATIENCE, partial(_get, connect, "/version")))
        parts = about.get("Components") or [{}]
        name = "Podman" if "podman" in str(parts[0].get("Name")).lower() else "Docker"
        return f"{name} {about['Version']}"
    except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
        return "an engine of unknown version"
